"""``nodeproof bench run ID``: run a benchmark, show how it gets on, and say what came of it."""

import argparse
import signal

from nodeproof.cli.bench_executor import (
    as_json,
    complain,
    endpoint_of,
    executor_for,
    find_benchmark,
    machine_locks,
    parameters_of,
    switches_of,
    told,
)
from nodeproof.cli.bench_progress import TerminalReporter
from nodeproof.cli.bench_report import print_record
from nodeproof.cli.output import print_json
from nodeproof.cli.state_lease import working_state
from nodeproof.errors import UsageError
from nodeproof.host.signals import Signals
from nodeproof.model.run import ExitCode
from nodeproof.runs.headless import HeadlessOptions, run_blocking, values_for
from nodeproof.units import parse_duration

__all__ = ["run"]

_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_JUDGED = frozenset({ExitCode.VERDICT_FAIL, ExitCode.INCONCLUSIVE})


def _run(options: argparse.Namespace) -> int:
    descriptor, _ = find_benchmark(options.name)
    target = endpoint_of(options)
    if descriptor.needs_endpoint and target is None:
        raise UsageError(f"{descriptor.id} measures an endpoint: give --url and --model")
    if descriptor.needs_confirmation and not options.yes:
        raise UsageError(f"{descriptor.id} has side effects: {descriptor.detail} Give --yes to agree")
    overrides = parameters_of(options)
    values_for(descriptor, overrides)
    headless = HeadlessOptions(
        target=target,
        probe_coherence=not options.skip_coherence_probe,
        switches=switches_of(options),
        deadline_s=_deadline(options),
        save=not options.no_save,
        locks=machine_locks(options, target),
    )
    reporter = TerminalReporter(quiet=options.quiet or as_json(options))
    with working_state(options), Signals(*_STOP) as signals:
        outcome = run_blocking(
            executor_for(options, target),
            descriptor,
            overrides,
            reporter,
            options=headless,
            should_cancel=lambda: bool(signals.wait(0.0)),
        )
    reporter.close()
    if outcome.save_error:
        complain("run", outcome.save_error)
    if as_json(options):
        print_json(outcome.record, indent=2)
    else:
        print_record(outcome.record)
    code = outcome.exit_code
    return int(ExitCode.OK) if options.no_fail_on_verdict and code in _JUDGED else code


run = told("run", _run)


def _deadline(options: argparse.Namespace) -> float | None:
    if options.timeout is None:
        return None
    try:
        seconds = parse_duration(options.timeout)
    except ValueError as error:
        raise UsageError(f"--timeout: {error}") from None
    if seconds <= 0:
        raise UsageError(f"--timeout {options.timeout}: expected more than 0")
    return seconds
