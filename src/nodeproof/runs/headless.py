"""A run from its start to its end in one call, for callers that only want to be told (bench.md 2.4)."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from nodeproof.errors import RunError
from nodeproof.model.hardware import LiveSample
from nodeproof.model.run import ExecutorMessage, RunRecord, RunSource
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.executor import BenchmarkExecutor, RunHandle
from nodeproof.runs.job_locks import JobLocks
from nodeproof.runs.live import RunTeller
from nodeproof.runs.params import ParamValues
from nodeproof.runs.ports import Switches

__all__ = ["HeadlessOptions", "RunOutcome", "RunReporter", "SilentReporter", "run_blocking", "values_for"]


_END_S = 30.0
"""So long the end of a run is waited for when its caller breaks."""


class HeadlessOptions(NamedTuple):
    """How a run is made."""

    target: TargetEndpoint | None = None
    source: RunSource = RunSource.CLI
    probe_coherence: bool = True
    switches: Switches = Switches()
    deadline_s: float | None = None
    save: bool = True
    locks: JobLocks | None = None
    """Taken for the run, where it loads this machine."""
    poll_s: float = 0.25


class RunOutcome(NamedTuple):
    """What came of it."""

    record: RunRecord
    saved_to: str
    """Directory in the store; empty when nothing is kept, or could not be."""
    save_error: str
    cancelled: bool

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        return self.record.exit_code


class RunReporter:
    """Is told what happens. All methods do nothing: override those that matter."""

    def started(self, handle: RunHandle) -> None:
        """The run has begun."""

    def message(self, message: ExecutorMessage) -> None:
        """An event or a frame, in order."""

    def tick(self, live: LiveSample | None) -> None:
        """Nothing came for a poll's time; the newest look at the box."""


SilentReporter = RunReporter
"""For output that is read by programs."""


def values_for(descriptor: Descriptor, overrides: Mapping[str, str]) -> ParamValues:
    """The parameters of ``descriptor`` with ``overrides`` as text. Raises ParamError naming the label; nothing is started."""
    return ParamValues.from_overrides(descriptor.build().parameters(), overrides.items())


def run_blocking(
    executor: BenchmarkExecutor,
    descriptor: Descriptor,
    overrides: Mapping[str, str],
    reporter: RunReporter,
    *,
    options: HeadlessOptions | None = None,
    should_cancel: Callable[[], bool] = lambda: False,
) -> RunOutcome:
    """Run ``descriptor`` and return when all is over. Raises ParamError before anything is started or told."""
    options = options or HeadlessOptions()
    values = values_for(descriptor, overrides)
    handle = executor.start(
        descriptor,
        values,
        target=options.target,
        source=options.source,
        probe_coherence=options.probe_coherence,
        switches=options.switches,
        deadline_s=options.deadline_s,
        save=options.save,
        locks=options.locks,
    )
    teller = RunTeller(executor.runs_folder if options.save else "")
    try:
        _follow(handle, reporter, teller, options.poll_s, should_cancel)
    except BaseException:
        # Whatever broke here, the run is brought to its end and has its record.
        handle.close()
        handle.wait(_END_S)
        raise
    finally:
        teller.forget()
    record = handle.record
    if record is None:
        raise RunError("the run ended without a record")
    return RunOutcome(record, handle.saved_to, handle.save_error, record.cancel_requested)


def _follow(
    handle: RunHandle, reporter: RunReporter, teller: RunTeller, poll_s: float, should_cancel: Callable[[], bool]
) -> None:
    """Tell the reporter everything until all is over."""
    reporter.started(handle)
    over = False
    while not over:
        over = handle.wait(poll_s)
        messages = handle.drain()
        for message in messages:
            teller.hear(message)
            reporter.message(message)
        teller.tell(handle)
        if not messages:
            reporter.tick(handle.live())
        if not over and not handle.is_cancelled() and should_cancel():
            handle.cancel()
