"""The facade of stress jobs for processes that own none: everything is asked of the runner."""

import os
import threading
import time
from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import urlencode

import msgspec

from nodeproof.errors import RecordError, RunError
from nodeproof.model.job import HISTORY_DEFAULT, HISTORY_LIMIT, ExecutionProfile, Initiator, Report
from nodeproof.model.live_job import LiveJob
from nodeproof.model.run import RunRecord
from nodeproof.runs.store import RunStore, StoredRun
from nodeproof.stress.adapters.base import DescribeError
from nodeproof.stress.availability import Availability
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.problems import Busy, Disabled, JobNotFound, SelectionError
from nodeproof.stress.runner.client import RunnerClient, RunnerGone, Stream
from nodeproof.stress.runner.place import DEFAULT_SOCKET
from nodeproof.stress.runner.wire import AvailabilityBody, Cancel, Event, Problem, RunBody, Start
from nodeproof.stress.settings import StressSettings
from nodeproof.stress.sizing import Plan

__all__ = ["RemoteManager", "runner_socket"]

_POLL_S = 0.2
_OK = 300
_T = TypeVar("_T")
_ERRORS: dict[str, type[RunError]] = {
    "disabled": Disabled,
    "invalid": SelectionError,
    "describe": DescribeError,
    "record": RecordError,
    "not_found": JobNotFound,
}


def runner_socket(named: str) -> str | None:
    """The socket of the runner that owns stress jobs here; None when none does.

    ``named`` is what the environment says: a path, ``none`` = jobs are this process's own, or empty = the default place, if
    somebody listens there. Raises RunError where this user may not ask it: jobs of its own would run beside those of the runner.
    """
    if named == "none":
        return None
    path = named or DEFAULT_SOCKET
    try:
        os.stat(path)
        allowed = os.access(path, os.W_OK)
    except PermissionError:
        allowed = False  # it lies where this user does not even see it
    except OSError:
        allowed = True
    if not allowed:
        raise RunError(f"stress jobs belong to the runner at {path}, and this user may not ask it; join the group of its socket")
    try:
        RunnerClient(path).ask("GET", "/v1/healthz")
    except RunnerGone:
        if named:
            raise
        return None  # there is none, or it left its socket behind
    return path


class RemoteManager:
    """The runner at ``path``, as if its manager were here."""

    def __init__(self, path: str) -> None:
        self._client = RunnerClient(path)
        self._lock = threading.Lock()
        self._attached: _Attached | None = None

    @property
    def config(self) -> StressSettings:
        """What the runner was told."""
        return self._get("/v2/config", StressSettings)

    @property
    def runs(self) -> RunStore:
        """The runner's own store: its group may read it."""
        return RunStore(self.config.home)

    def availability(self, name: str, plan: Plan = Plan.STANDARD) -> Availability:
        """Whether ``name`` can be run now, and why not."""
        body = self._get(f"/v2/availability/{_name(name)}?plan={plan}", AvailabilityBody)
        return Availability(**{field: getattr(body, field) for field in Availability._fields})

    def describe(self, name: str, *, timeout_s: float = 0.0, plan: Plan = Plan.STANDARD, seconds: int = 0) -> ExecutionProfile:
        """What a start would run."""
        query = urlencode({"timeout_seconds": timeout_s, "plan": str(plan), "seconds": seconds})
        return self._get(f"/v2/benchmarks/{_name(name)}?{query}", ExecutionProfile)

    def start_with_options(self, names: Sequence[str], options: RunOptions) -> Report:
        """Start a job. One from a command line ends with it; one from a page goes on without its reader."""
        wanted = Start(
            benchmarks=list(names),
            timeout_seconds=options.timeout_s,
            plan=str(options.plan),
            seconds=options.seconds,
            initiator=str(options.initiator),
            attached=options.initiator is Initiator.CLI,
        )
        body = msgspec.json.encode(wanted)
        if not wanted.attached:
            return _decoded(*self._client.ask("POST", "/v2/jobs", body), Report)
        status, stream = self._client.stream("POST", "/v2/jobs", body)
        if status >= _OK:
            raise _error(status, stream.read())
        attached = _Attached(stream)
        with self._lock:
            self._attached = attached
        return attached.first()

    def latest(self) -> Report | None:
        """The job that runs, else the newest of all."""
        return self._get("/v2/jobs/latest", Report | None)  # type: ignore[arg-type]  # msgspec takes unions

    def job(self, job_id: str) -> Report:
        """The job with this id."""
        return self._get(f"/v2/jobs/{_job_id(job_id)}", Report)

    def history(self, limit: int = HISTORY_DEFAULT) -> list[Report]:
        """The newest jobs that have ended."""
        return self._get(f"/v2/jobs?limit={min(max(1, limit), HISTORY_LIMIT)}", list[Report])[: max(0, limit)]

    def history_damage(self) -> str:
        """The runner's own business: it logs what it sets aside."""
        return ""

    def inspect(self, run_id: str) -> StoredRun:
        """The record of an item; its files lie with the runner."""
        body = self._get(f"/v2/runs/{run_id}", RunBody)
        return StoredRun("", msgspec.json.decode(body.record, type=RunRecord), tuple(body.problems))

    def live(self) -> LiveJob | None:
        """How the job that runs gets on."""
        attached = self._attached
        if attached is not None and not attached.done.is_set():
            return attached.live
        return self._get("/v2/live", LiveJob | None)  # type: ignore[arg-type]  # msgspec takes unions

    def wait(self, job_id: str, timeout_s: float | None = None) -> Report | None:
        """Wait for the end of a job. Raises RunnerGone when the runner went away meanwhile."""
        attached = self._attached
        if attached is not None and attached.report.job_id == job_id:
            return attached.wait(timeout_s)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not (report := self.job(job_id)).status.is_final:
            if deadline is not None and time.monotonic() >= deadline:
                return None
            time.sleep(_POLL_S)
        return report

    def can_cancel(self, job_id: str) -> bool:
        """Whether it runs; whether this caller may is the runner's to say."""
        newest = self.latest()
        return newest is not None and newest.job_id == job_id and not newest.status.is_final

    def cancel(self, job_id: str, reason: str = "cancelled by the user") -> None:
        """Have a job stopped."""
        self._cancel(job_id, Cancel(reason))

    def kill(self) -> None:
        """End the job that was started here without a grace."""
        attached = self._attached
        if attached is not None:
            self._cancel(attached.report.job_id, Cancel("killed by the user", kill=True))

    def shutdown(self, timeout_s: float) -> bool:
        """End what was started here."""
        attached = self._attached
        if attached is None or attached.done.is_set():
            return True
        self.cancel(attached.report.job_id, "nodeproof is shutting down")
        return attached.done.wait(timeout_s)

    def _cancel(self, job_id: str, wanted: Cancel) -> None:
        status, data = self._client.ask("POST", f"/v2/jobs/{_job_id(job_id)}/cancel", msgspec.json.encode(wanted))
        if status >= _OK:
            raise _error(status, data)

    def _get(self, target: str, kind: type[_T]) -> _T:
        return _decoded(*self._client.ask("GET", target), kind)


class _Attached:
    """A job that ends with this process: its stream, read on a thread of its own."""

    def __init__(self, stream: Stream) -> None:
        self.done = threading.Event()
        self.live: LiveJob | None = None
        self._stream = stream
        self._begun = threading.Event()
        self._report: Report | None = None
        self._fault: RunnerGone | None = None
        threading.Thread(target=self._read, name="runner-stream", daemon=True).start()

    @property
    def report(self) -> Report:
        """The newest. Raises RunnerGone when there never was one."""
        if self._report is None:
            raise self._fault or RunnerGone("the runner said nothing of the job")
        return self._report

    def first(self) -> Report:
        """Wait for the first report. Raises RunnerGone."""
        self._begun.wait()
        return self.report

    def wait(self, timeout_s: float | None) -> Report | None:
        """The last report; None when it has not come in time. Raises RunnerGone."""
        if not self.done.wait(timeout_s):
            return None
        if not self.report.status.is_final:
            raise self._fault or RunnerGone("the runner went away before the job ended")
        return self.report

    def _read(self) -> None:
        try:
            for line in self._stream.lines():
                event = msgspec.json.decode(line, type=Event)
                self.live = event.live
                if event.report is not None:
                    self._report = event.report
                    self._begun.set()
        except RunnerGone as error:
            self._fault = error
        except msgspec.DecodeError as error:
            self._fault = RunnerGone(f"the runner's stream cannot be understood: {error}")
        finally:
            self._begun.set()
            self.done.set()
            self._stream.close()


def _decoded(status: int, data: bytes, kind: type[_T]) -> _T:
    if status >= _OK:
        raise _error(status, data)
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise RunnerGone(f"the runner's answer cannot be understood: {error}; is it another release of nodeproof?") from None


def _error(status: int, data: bytes) -> RunError:
    try:
        problem = msgspec.json.decode(data, type=Problem)
    except msgspec.DecodeError:
        return RunnerGone(f"the runner answered {status}: {data[:200].decode('utf-8', 'replace').strip()}")
    if problem.code == "busy":
        return Busy(problem.error, problem.report)
    return _ERRORS.get(problem.code, RunError)(problem.error)


def _name(name: str) -> str:
    """Raises SelectionError for what could not be in the path of a request."""
    if not (name.isascii() and name.replace("_", "").isalnum()):
        raise SelectionError(f"{name[:80]!r} is no stress item")
    return name


def _job_id(job_id: str) -> str:
    """Raises JobNotFound as above."""
    if not (0 < len(job_id) <= 64 and set(job_id) <= set("0123456789abcdef")):
        raise JobNotFound(f"there is no stress job {job_id[:80]!r}")
    return job_id
