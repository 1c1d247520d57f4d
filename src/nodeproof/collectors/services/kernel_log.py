"""The kernel log, read once for everybody: ``machine.shared(KernelLog)``.

Ask :meth:`KernelLog.counts` each cycle; it costs next to nothing when nothing happened. It raises NoData while the log cannot be
read (no permission, closed, not read to its end yet): pass that on as your metrics' absence, never as 0.

Every number of :class:`KernelCounts` counts *records that the kernel itself wrote, since* ``since_s``. ``complete`` tells whether
that is since boot; when it is false, or ``lost_records`` is not 0, the numbers are lower bounds (older records were overwritten
before they could be read), and a difference between two readings still holds as far as ``lost_records`` did not grow. Numbers
never fall while the process lives, however often the ring wraps.
"""

import threading
from collections.abc import Sequence

from nodeproof.collectors.services.kernel_counts import OTHER, AerCounts, ErrorPair, KernelCounts, Tally
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.faults.coalesce import CoalescedEvent, Coalescer, FlapPolicy, LinkChange, LinkFlap, link_flap
from nodeproof.host.kmsg import KmsgChannel, KmsgThread
from nodeproof.host.machine import Machine
from nodeproof.model.event import Severity
from nodeproof.sources import kmsg
from nodeproof.sources.kernel_events import KERNEL_FACILITY, classify
from nodeproof.sources.kmsg import KmsgRecord

__all__ = ["OTHER", "AerCounts", "ErrorPair", "KernelCounts", "KernelLog", "LinkChange", "LinkFlap"]

_PATH = "/dev/kmsg"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_TURN = 1000
_MOST_TURNS = 200
"""One call reads at most so many turns itself; a ring of 16 MiB holds about 100,000 records."""
_DRIFT_S = 1.0
_MAX_NEWS = 2048


class KernelLog:
    """The log of this machine. Without :meth:`start` each call reads what is new by itself; after it a thread does.

    ``trusted`` are the syslog facilities whose records count as the kernel's own; a test that writes its records by
    ``echo > /dev/kmsg`` adds 1.
    """

    def __init__(self, machine: Machine, *, trusted: frozenset[int] = KERNEL_FACILITY) -> None:
        self._machine = machine
        self._trusted = trusted
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._channel = KmsgChannel(machine.files.real(_PATH), _PATH, opener=machine.files.opener)
        self._thread: KmsgThread | None = None
        self._closed = False
        self._tally = Tally()
        self._coalescer = Coalescer()
        self._news: dict[tuple[str, bool, str, str], CoalescedEvent] = {}
        """By kind, whether verified, device and code. The second half of the room is for what is critical."""
        self._heard_through = -1
        self._absence: NoData | None = NoData(Absence.UNKNOWN, f"{_PATH} is still being read")
        self._first: tuple[int, float] | None = None
        self._next_sequence = 0
        self._lost = 0
        self._skew_s = 0.0
        self._counts: KernelCounts | None = None
        self._boot_id: str | None = None

    def start(self) -> None:
        """Follow the log on a thread of its own from now on; :meth:`close` (or ``Machine.close``) ends it."""
        if self._thread is None:
            self._thread = KmsgThread(self._channel, self)
            self._thread.start()

    def close(self) -> None:
        """End the thread and give the descriptor back."""
        self._closed = True
        with self._reading:
            if self._thread is None:
                self._channel.close()
            else:
                self._thread.stop()
        self.lose(NoData(Absence.UNKNOWN, f"{_PATH} is no longer followed"))

    def counts(self) -> KernelCounts:
        """What happened since ``since_s``; the same object as long as nothing new did. Raises NoData."""
        self._catch_up()
        with self._lock:
            self._check()
            if self._counts is None:
                complete, since_s = self._reach()
                self._counts = self._tally.counts(self._boot(), since_s, self._lost, complete=complete)
            return self._counts

    def events(self) -> list[CoalescedEvent]:
        """Events seen, equal ones as one, the newest last; unverified ones among them. Raises NoData."""
        self._catch_up()
        with self._lock:
            self._check()
            return self._coalescer.events()

    @property
    def readable(self) -> bool:
        """Whether what the kernel writes now would be heard."""
        return self._absence is None

    def heard(self, through: int) -> None:
        """Records up to this number were told of before: they count, and are no news. Call it before :meth:`start`."""
        self._heard_through = through

    def news(self) -> list[CoalescedEvent]:
        """Events to tell somebody of, each with its count by now: new and graver ones, and a word a minute on what goes on."""
        self._catch_up()
        with self._lock:
            told = [self._coalescer.newest(whole) for whole in self._news.values()] if self._news else []
            self._news.clear()
            told += self._coalescer.due(self._machine.clock.now().mono_s)
            return told

    def link_flaps(self, policy: FlapPolicy = FlapPolicy()) -> list[LinkFlap]:  # noqa: B008 - immutable
        """Interfaces whose link went down and came back, judged now. Raises NoData."""
        changes = self.counts().link_changes
        now_s = self._machine.clock.now().mono_s
        flaps = (link_flap(interface, history, now_s, policy) for interface, history in changes.items())
        return [flap for flap in flaps if flap is not None]

    def take(self, records: Sequence[bytes], *, live: bool, at_end: bool) -> None:
        """Records from the reader, in order."""
        with self._lock:
            parsed = [record for record in map(_parsed, records) if record is not None]
            if self._first is None:
                self._skew_s = self._channel.suspended_s()
            if live and at_end and parsed and self._channel.is_device:
                self._set_skew(parsed[-1].time_us / 1e6)
            for record in parsed:
                self._take_one(record)
            if at_end:
                self._absence = None

    def lose(self, absence: NoData) -> None:
        """The reader cannot read now."""
        with self._lock:
            self._absence = absence.again()

    def _take_one(self, record: KmsgRecord) -> None:
        if record.sequence < self._next_sequence:
            return  # a channel opened anew begins with what the ring still holds
        if self._first is None:
            self._first = (record.sequence, record.time_us / 1e6)
        elif record.sequence > self._next_sequence:
            self._lost += record.sequence - self._next_sequence
            self._counts = None
        self._next_sequence = record.sequence + 1
        event = classify(record, self._trusted, self._skew_s)
        if event is None:
            return
        self._counts = None
        self._tally.add(event)
        told = self._coalescer.take(event, tell=record.sequence > self._heard_through)
        if told is not None:
            key = (event.kind, event.verified, event.device, event.code)
            room = _MAX_NEWS if event.severity is Severity.CRITICAL else _MAX_NEWS // 2
            if key in self._news or len(self._news) < room:
                self._news[key] = told

    def _set_skew(self, newest_s: float) -> None:
        """What the log's clock lacks now: it stands still while the machine is suspended, and NTP does not discipline it."""
        skew_s = self._machine.clock.now().mono_s - newest_s
        if abs(skew_s - self._skew_s) > _DRIFT_S:
            self._skew_s = skew_s

    def _catch_up(self) -> None:
        """Read what is new, where no thread does."""
        if self._thread is not None or self._closed:
            return
        with self._reading:
            try:
                self._channel.open()
                for _ in range(_MOST_TURNS):
                    drained = self._channel.drain(_TURN)
                    self.take(drained.records, live=False, at_end=drained.at_end)
                    if drained.at_end:
                        break
            except NoData as absence:
                self.lose(absence)

    def _check(self) -> None:
        if self._absence is not None:
            raise self._absence.again()
        if self._first is None:
            raise NoData(Absence.UNKNOWN, f"{_PATH} holds no record")

    def _reach(self) -> tuple[bool, float]:
        sequence, time_s = self._first or (0, 0.0)
        return (True, 0.0) if sequence == 0 else (False, time_s)

    def _boot(self) -> str:
        if self._boot_id is None:
            try:
                self._boot_id = self._machine.files.read_text(_BOOT_ID)
            except NoData:
                return ""
        return self._boot_id


def _parsed(raw: bytes) -> KmsgRecord | None:
    try:
        return kmsg.parse(raw)
    except ParseError:
        return None  # shows as a gap in the sequence numbers
