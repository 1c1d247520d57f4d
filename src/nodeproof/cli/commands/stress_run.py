"""``nodeproof stress``: start a job, show how it gets on, and say how it ended."""

import argparse
import signal
import sys

from nodeproof.cli.output import print_json
from nodeproof.cli.state_lease import working_state
from nodeproof.cli.stress_manager import as_json, complain, item_name, make_manager, plan_of, told
from nodeproof.cli.stress_progress import make_progress
from nodeproof.cli.stress_report import print_report
from nodeproof.errors import UsageError
from nodeproof.host.signals import Signals
from nodeproof.model.job import Report, Status
from nodeproof.stress.facade import RunOptions, StressFacade
from nodeproof.stress.problems import Busy
from nodeproof.units import parse_duration

__all__ = ["run"]

_OK, _NOT_HEALTHY, _KILLED = 0, 1, 130
_POLL_S = 0.2
_KILL_WAIT_S = 15.0
_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _run(options: argparse.Namespace) -> int:
    names = _names(options)
    timeout_s = _timeout(options)
    if options.seconds is not None and options.seconds < 1:
        raise UsageError(f"--seconds {options.seconds}: expected 1 or more")
    with working_state(options):
        return _run_job(options, names, timeout_s)


def _run_job(options: argparse.Namespace, names: list[str], timeout_s: float) -> int:
    manager = make_manager(options)
    with Signals(*_STOP) as signals:
        try:
            report = manager.start_with_options(
                names, RunOptions(timeout_s=timeout_s, plan=plan_of(options), seconds=options.seconds or 0)
            )
        except Busy as busy:
            complain("run", _busy_text(busy))
            return _NOT_HEALTHY
        ended, killed = _follow(manager, report, signals)
    if as_json(options):
        print_json(ended, indent=2)
    else:
        print_report(ended)
    if killed:
        return _KILLED
    return _OK if ended.status is Status.HEALTHY else _NOT_HEALTHY


run = told("run", _run)


def _follow(manager: StressFacade, report: Report, signals: Signals) -> tuple[Report, bool]:
    """Until the job has ended; whether it was killed. The first signal cancels, a second one kills."""
    stopped = killed = False
    with make_progress() as progress:
        while (ended := manager.wait(report.job_id, 0.0)) is None:
            came = signals.wait(_POLL_S)
            if came and not stopped:
                stopped = True
                print("stress: cancelling; interrupt once more to kill", file=sys.stderr)
                manager.cancel(report.job_id, f"cancelled by {'/'.join(sorted(number.name for number in came))}")
            elif came:
                killed = True
                manager.kill()
                ended = manager.wait(report.job_id, _KILL_WAIT_S)
                if ended is None:
                    return manager.latest() or report, True
                break
            progress.show(manager.live())
    return ended, killed


def _names(options: argparse.Namespace) -> list[str]:
    """Items in their order. Raises UsageError for an empty element of ``--bench``, and for what is no item."""
    listed = options.bench.split(",") if options.bench is not None else []
    if any(not name.strip() for name in listed):
        raise UsageError(f"--bench {options.bench}: an element is empty")
    return [item_name(name) for name in (*listed, *options.names)]


def _timeout(options: argparse.Namespace) -> float:
    if options.timeout is None:
        return 0.0
    try:
        seconds = parse_duration(options.timeout)
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from None
    if seconds < 1 and seconds != 0:
        raise UsageError(f"--timeout {options.timeout}: expected 0 or at least 1s")
    return seconds


def _busy_text(busy: Busy) -> str:
    report = busy.report
    if report is None:
        return str(busy)
    return f"{busy}; job {report.job_id} by {report.initiator or 'unknown'} since {report.started_at}; nodeproof stress cancel"
