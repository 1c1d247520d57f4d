"""What a benchmark sees of its run."""

from collections.abc import Callable
from contextlib import AbstractContextManager

from nodeproof.clock import Clock, Instant
from nodeproof.model.hardware import CellReport
from nodeproof.model.run import LogEvent, LogLevel, ProgressEvent, Provenance, StatusEvent
from nodeproof.runs.artifacts import ArtifactStore
from nodeproof.runs.cancel import CancelToken
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.frames import plain_text
from nodeproof.runs.job_locks import JobLocks
from nodeproof.runs.messages import MessageLog
from nodeproof.runs.ports import HardwareEvidence

__all__ = ["PluginHandle"]


class PluginHandle:
    """Given to ``load``. Every method may be called from any thread; none fails because nobody listens any more."""

    def __init__(
        self,
        *,
        run_number: int,
        log: MessageLog,
        token: CancelToken,
        artifacts: ArtifactStore,
        target: TargetEndpoint | None,
        evidence: HardwareEvidence,
        clock: Clock,
        file_path: Callable[[str], str],
        locks: JobLocks | None = None,
    ) -> None:
        self.run_number = run_number
        """Counts the runs of one executor from 1: with the process number it tells two runs apart (prompt tags)."""
        self.artifacts = artifacts
        """What lasts from run to run: data sets, environments, scripts."""
        self.target = target
        """The endpoint; None for work on this box."""
        self.locks = locks
        """The right to load this machine, where this run took it: a program that outlives us must keep it (``keep_fds``)."""
        self._log = log
        self._token = token
        self._evidence = evidence
        self._clock = clock
        self._file_path = file_path
        self._provenance: dict[str, Provenance] = {}

    def log(self, level: LogLevel, text: str) -> None:
        """A line for people."""
        self._log.event(LogEvent(level, plain_text(text)))

    def debug(self, text: str) -> None:
        """A line that only helps when something is wrong."""
        self.log(LogLevel.DEBUG, text)

    def info(self, text: str) -> None:
        """A line worth reading."""
        self.log(LogLevel.INFO, text)

    def warn(self, text: str) -> None:
        """A reason to trust the result less; it stands in the record."""
        self.log(LogLevel.WARN, text)

    def error(self, text: str) -> None:
        """Something that went wrong; it stands in the record."""
        self.log(LogLevel.ERROR, text)

    def status(self, text: str) -> None:
        """The one-line status from now on."""
        self._log.event(StatusEvent(plain_text(text)))

    def progress(self, done: int, total: int) -> None:
        """So much is done."""
        self._log.event(ProgressEvent(int(done), int(total)))

    def is_cancelled(self) -> bool:
        """Whether the run should stop."""
        return self._token.is_cancelled()

    def check_cancelled(self) -> None:
        """Raise RunCancelled if the run should stop."""
        self._token.check_cancelled()

    def wait(self, timeout_s: float) -> bool:
        """Sleep, but not beyond a cancel; whether the run should stop."""
        return self._token.wait(timeout_s)

    def on_cancel(self, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """``with handle.on_cancel(child.kill): ...``: called on a thread of its own when the run should stop, or at once."""
        return self._token.on_cancel(callback)

    def now(self) -> Instant:
        """The clock of the run."""
        return self._clock.now()

    def judge(self, name: str, since: Instant) -> CellReport:
        """Whether the box was fit from ``since`` until now; the report lists it as cell ``name``.

        A cell that is ``invalid`` is worth measuring again; the newest of one name counts.
        """
        return self._evidence.judge(name, since.mono_s, self._clock.now().mono_s)

    def file_path(self, name: str) -> str:
        """Where to write a file that is to stay with the record (raw output, samples); it is hashed when the run ends.

        Raises RecordError when ``name`` is no plain file name.
        """
        return self._file_path(name)

    def ran(self, name: str, *, version: str = "", sha256: str = "", path: str = "") -> None:
        """Tell what exactly is executed or fed in; the last word on a name counts."""
        texts = (plain_text(text) for text in (name, version, sha256, path))
        self._provenance[name] = Provenance(*texts)

    def provenance(self) -> tuple[Provenance, ...]:
        """What :meth:`ran` was told, by name."""
        return tuple(entry for _, entry in sorted(self._provenance.items()))
