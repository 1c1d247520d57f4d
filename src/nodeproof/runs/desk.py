"""Where a run is written down while it goes on: its log, and its place in the store, on a thread of their own.

A disk that hangs holds no run up: what is said is kept in memory, and :attr:`Desk.fault` says what did not get further.
"""

from nodeproof.errors import RunError
from nodeproof.model.run import Event, LogEvent, LogLevel, RunRecord, Stage, StageEvent
from nodeproof.runs.frames import error_chain, plain_text
from nodeproof.runs.messages import MessageLog
from nodeproof.runs.open_run import RunKeeper, ScratchRun
from nodeproof.runs.request import RunRequest
from nodeproof.runs.supervise import Supervisor
from nodeproof.runs.worker import Worker

__all__ = ["Desk"]

_FLUSH_S = 1.0
"""So long a new stage waits for the disk to know of it; a disk that hangs does not hold the run up."""


class Desk:
    """Of one run. The leader of the run calls it; :meth:`say` and :meth:`warn` may be called from any thread."""

    def __init__(self, request: RunRequest, supervisor: Supervisor, name: str) -> None:
        self.worker = Worker(f"{name}-disk", supervisor.wake)
        self.log = MessageLog(request.clock, self._to_disk, request.limits)
        self.fault = ""
        """Why record or log could not be stored; empty when all went well."""
        self._store = request.store
        self._keeper: RunKeeper | None = None
        self._early: list[bytes] = []
        self._slow = False

    @property
    def run_id(self) -> str:
        """Name in the store; empty until there is one."""
        return "" if self._keeper is None else self._keeper.run_id

    @property
    def keeper(self) -> RunKeeper:
        """Its place. Raises RunError when it has none."""
        if self._keeper is None:
            raise RunError("it has no place in the store")
        return self._keeper

    def say(self, event: Event) -> None:
        """An entry of the log."""
        self.log.event(event)

    def warn(self, text: str) -> None:
        """A line that stands in the record."""
        self.say(LogEvent(LogLevel.WARN, plain_text(text)))

    def enter(self, stage: Stage) -> None:
        """The run has come to ``stage``; the disk should know before anything happens in it."""
        self.say(StageEvent(stage))
        if self._store is not None and not self._slow:
            self._slow = not self.worker.submit(self.flush).wait(_FLUSH_S)

    def claim(self, draft: RunRecord) -> None:
        """On its thread: get a place in the store, and write there what was said before there was one. Raises WriteError."""
        keeper: RunKeeper = ScratchRun() if self._store is None else self._store.claim(draft)
        for line in self._early:
            keeper.append(line)
        self._early.clear()
        self._keeper = keeper

    def flush(self) -> None:
        """On its thread: done when everything before it is."""

    def _to_disk(self, line: bytes) -> None:
        self.worker.submit(lambda: self._append(line))

    def _append(self, line: bytes) -> None:
        """On its thread. A log that cannot be written does not end the run; the record will say so."""
        try:
            if self._keeper is None:
                self._early.append(line)
            else:
                self._keeper.append(line)
        except Exception as error:  # noqa: BLE001 - said once
            self.fault = self.fault or f"the log of this run could not be written: {error_chain(error)[0]}"
