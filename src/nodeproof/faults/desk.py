"""The faults of a running daemon: the engine, what is kept of it on disk, and who else has a say.

The engine answers at once, from memory. Writing waits for the disk (``fsync``), and a disk may be what is broken: a thread of its
own does it, started when there is something to write and gone when it is written. What cannot be written stays in memory, up to a
limit, and is tried again with the next change.
"""

import contextlib
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from nodeproof.clock import Clock, Instant
from nodeproof.errors import NodeproofError, RecordError, SnapshotError, UsageError, WriteError
from nodeproof.faults.coalesce import CoalescedEvent
from nodeproof.faults.engine import DrillRule, Engine, ReadsWell
from nodeproof.faults.findings import findings_of
from nodeproof.faults.journal import Journal, read_journal
from nodeproof.faults.records import ACTIVE_FILE, read_state
from nodeproof.host.atomic import store_file
from nodeproof.host.locks import DirectoryLock, probe_lock
from nodeproof.model.event import Severity
from nodeproof.model.fault import Fault, FaultEvent, FaultState, KernelPlace, Order, OrderKind
from nodeproof.model.health import Finding, Standing
from nodeproof.model.metric import Labels

__all__ = ["ORDERS", "FaultDesk"]

_log = logging.getLogger(__name__)
ORDERS = "orders"
"""Folder, in that of the faults, where commands leave what they ask for."""
_LOCK = "faults.lock"
_MOST_PENDING = 4096
_MOST_ORDERS = 64
_ORDER_BYTES = 16 * 1024
_STOP_S = 3.0
_REMEDY = "give each daemon a directory of its own (faultsub.dir)"
_order_decoder = msgspec.json.Decoder(Order)
_encoder = msgspec.json.Encoder()


class FaultDesk:
    """Faults between :meth:`open` and :meth:`close`. May be called from several threads."""

    def __init__(
        self,
        directory: str,
        clock: Clock,
        boot_id: str,
        *,
        off: Collection[str] = (),
        severities: Mapping[str, Severity] | None = None,
    ) -> None:
        """``severities``: of the rules of health, for drills of them."""
        self.directory = directory
        self._severities = severities or {}
        self._clock = clock
        self._boot_id = boot_id
        self._off = frozenset(off)
        self._lock = threading.RLock()
        self._kept = threading.Condition()
        self._directory_lock = DirectoryLock(directory, name=_LOCK, remedy=_REMEDY)
        self._journal = Journal(directory)
        self._engine = Engine(None, boot_id, _event_id, clock.now(), off=off)
        self._pending: list[FaultEvent] = []
        self._state: FaultState | None = None
        self._writer: threading.Thread | None = None
        self._findings: list[Finding] | None = []
        self.problem = ""
        """Why nothing is kept on disk now; empty when it is."""
        self.written = 0
        """Number of the newest entry that is on the disk."""
        self.listeners: list[Callable[[], None]] = []
        """Called, on the writer's thread, when entries have come to the disk."""

    def open(self) -> None:
        """Take up where the last daemon left off. Raises SnapshotError when another daemon has the directory.

        A directory that cannot be used otherwise costs the memory over a restart and no more: it is told of.
        """
        try:
            self._directory_lock.acquire()
        except SnapshotError as error:
            if probe_lock(self.directory, _LOCK).held:
                raise
            self._tell(str(error))
        at = self._clock.now()
        state: FaultState | None = None
        try:
            self._journal.open()
            state = self._load()
        except NodeproofError as error:
            self._tell(str(error))
        with self._lock:
            self._engine = engine = Engine(None, self._boot_id, _event_id, at, off=self._off)
            if state is not None:
                engine = self._engine = Engine(state, self._boot_id, _event_id, at, off=self._off)
            self.written = engine.sequence - len(engine.said)
            self._after()

    def _load(self) -> FaultState | None:
        """The kept state with the entries that came after it."""
        try:
            state = read_state(self.directory)
        except RecordError as error:
            path = os.path.join(self.directory, ACTIVE_FILE)
            _log.error("%s; it is set aside as %s.bad, and what stands is made anew from the log", error, path)
            with contextlib.suppress(OSError):
                os.replace(path, f"{path}.bad")
            state = None
        fresh = Engine(state, state.kernel.boot_id if state is not None else "", _event_id, self._clock.now())
        for event in read_journal(self.directory, state.sequence if state is not None else 0):
            fresh.replay(event)
        if state is None and not fresh.sequence:
            return None
        fresh.place = state.kernel if state is not None else KernelPlace()
        return fresh.state(self._clock.now())

    def close(self) -> None:
        """Write what is left and let go of the directory."""
        with self._lock:
            self._engine.changed = True
            self._after()
            writer = self._writer
        if writer is not None:
            writer.join(_STOP_S)
        self._journal.close()
        self._directory_lock.release()

    @property
    def place(self) -> KernelPlace:
        """How far the kernel log has been judged: only what is beyond is news."""
        return self._engine.place

    @property
    def sequence(self) -> int:
        """Number of the newest entry."""
        return self._engine.sequence

    def now(self) -> Instant:
        """This moment."""
        return self._clock.now()

    def active(self) -> list[Fault]:
        """What stands."""
        with self._lock:
            return list(self._engine.active.values())

    def findings(self) -> list[Finding]:
        """What stands and rests on no rule of health, as findings; the same list as long as nothing changed."""
        if self._findings is None:
            with self._lock:
                self._findings = findings_of(self._engine.active.values(), self._clock.now())
        return self._findings

    def know(self, cards: Mapping[tuple[str, str], Labels]) -> None:
        """What each card is, by component and the id that it has in readings now."""
        self._engine.cards = cards

    def hear(self, news: Iterable[CoalescedEvent]) -> None:
        """Take in what the kernel log told."""
        with self._lock:
            self._engine.kernel(news, self._clock.now())
            self._after()

    def judge(self, conditions: Iterable[Standing], reads_well: ReadsWell, *, log_readable: bool) -> None:
        """Compare what stands with what the rules of health say, and end what is over."""
        with self._lock:
            at = self._clock.now()
            self._engine.judge(conditions, reads_well, at)
            self._engine.expire(at, log_readable=log_readable)
            self._after()

    def obey(self, order: Order) -> Fault:
        """Do what an operator asks. Raises UsageError."""
        with self._lock:
            try:
                return self._engine.obey(order, self._clock.now(), _drill(order, self._severities))
            finally:
                self._after()

    def record(self, event: FaultEvent) -> FaultEvent:
        """Write an event that somebody handed in, with its number."""
        with self._lock:
            try:
                return self._engine.record(event, self._clock.now())
            finally:
                self._after()

    def keep(self, sequence: int, limit_s: float) -> bool:
        """Wait until the entry of this number is on the disk; whether it is."""
        with self._kept:
            return self._kept.wait_for(lambda: self.written >= sequence, limit_s)

    def take_orders(self) -> None:
        """Do what commands left in the folder of orders; each gets its answer beside it."""
        folder = os.path.join(self.directory, ORDERS)
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".json"))
        except OSError:
            return
        for name in names[:_MOST_ORDERS]:
            path = os.path.join(folder, name)
            answer = self._answer(path)
            with contextlib.suppress(WriteError, OSError):
                os.unlink(path)
                store_file(path.removesuffix(".json") + ".answer", answer)

    def _answer(self, path: str) -> bytes:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                order = _order_decoder.decode(os.read(fd, _ORDER_BYTES))
            finally:
                os.close(fd)
            return _encoder.encode({"fault": self.obey(order)})
        except (OSError, msgspec.MsgspecError) as error:
            return _encoder.encode({"error": f"an order that cannot be read: {error}"})
        except UsageError as error:
            return _encoder.encode({"error": str(error)})

    def _after(self) -> None:
        """Hand what the engine said, and what it holds, to the writer."""
        engine = self._engine
        if not engine.changed and not engine.said:
            return
        self._findings = None
        for event in engine.said:
            level = logging.INFO if event.severity is Severity.INFO else logging.WARNING
            _log.log(level, "%s %s %s: %s", event.rule, event.device, event.change, event.message)
        self._pending += engine.said
        engine.said = []
        if len(self._pending) > _MOST_PENDING:
            engine.dropped += len(self._pending) - _MOST_PENDING
            del self._pending[:-_MOST_PENDING]
        self._state = engine.state(self._clock.now())
        if self._writer is None or not self._writer.is_alive():
            self._writer = threading.Thread(target=self._write, name="faults-writer", daemon=True)
            self._writer.start()

    def _write(self) -> None:
        while True:
            with self._lock:
                events, state = self._pending, self._state
                self._pending, self._state = [], None
                if not events and state is None:
                    self._writer = None
                    return
            try:
                self._journal.append(events)
                self.written = events[-1].sequence if events else self.written
                events = []
                if state is not None:
                    store_file(os.path.join(self.directory, ACTIVE_FILE), _encoder.encode(state))
            except WriteError as error:
                with self._lock:
                    self._pending = events + self._pending
                    self._state = self._state or state
                    self._writer = None
                self._tell(str(error))
                return
            self.problem = ""
            with self._kept:
                self._kept.notify_all()
            for listener in self.listeners:
                listener()

    def _tell(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            _log.error("faults are not kept on disk: %s", problem)


def _drill(order: Order, severities: Mapping[str, Severity]) -> DrillRule | None:
    if order.kind is not OrderKind.INJECT:
        return None
    from nodeproof.faults.drill import drill_rule  # noqa: PLC0415 - the whole catalogue, for what is seldom done

    return drill_rule(order.target, severities)


def _event_id() -> str:
    return os.urandom(16).hex()
