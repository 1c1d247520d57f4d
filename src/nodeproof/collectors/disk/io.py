"""Component disk: what ``/proc/diskstats`` counts, whole disks only, and how the node waits for I/O.

Partitions, loop devices, RAM disks and the paths of multipath disks are left out, and so are dm and md: their requests are
counted again by the disks below them. All rates come from the same pair of readings of a disk; the pair is dropped when any
counter steps back or another disk has taken the name. A disk that completed no read in the interval has no read latency: one
quiet entry "not applicable" names all such disks.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.services.block_devices import BlockDevices, Disk, no_disks
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import pressure, proc_diskstats, proc_stat
from nodeproof.sources.pressure import Stall
from nodeproof.sources.proc_diskstats import DiskCounters
from nodeproof.sources.proc_stat import CpuTimes
from nodeproof.sources.sys_block import looks_like_whole_disk
from nodeproof.units import BYTES_PER_MIB, SECTOR_BYTES

__all__ = ["groups"]

_NEEDS_TWO = "needs two readings of /proc/diskstats that follow on each other"
_RATES = ("iops", "throughput", "read_latency", "write_latency", "io_util", "queue_depth", "discard_throughput")
_TOTALS = (
    "reads_completed",
    "writes_completed",
    "read_sectors_total",
    "written_sectors_total",
    "read_time_total",
    "write_time_total",
    "io_time",
    "weighted_io_time",
    "in_flight",
)
_MIB_PER_SECTOR = SECTOR_BYTES / BYTES_PER_MIB
_STALL_LABELS: dict[str, tuple[Labels, ...]] = {
    stall: tuple({"stall": stall, "interval": interval} for interval in ("avg10", "avg60", "avg300"))
    for stall in ("some", "full")
}
_TIME_LABELS: dict[str, Labels] = {stall: {"stall": stall} for stall in ("some", "full")}
_MOST_NAMED = 8
_MOST_BUSY_PERCENT = 110.0
"""Disk and node are read a moment apart, so a busy disk may come out a little over 100; what is further off is no time share."""


def groups(machine: Machine) -> tuple[Group, ...]:
    """Groups of this part of the component."""
    return (
        Group((*_RATES, *_TOTALS), _Traffic(machine).read),
        Group(("io_wait",), _Waiting(machine).read),
        Group(("pressure", "pressure_stall_time"), _Pressure(machine).read),
    )


class _Before(NamedTuple):
    """The reading that rates start from."""

    counters: DiskCounters
    generation: str
    mono_s: float


class _Labels(NamedTuple):
    """Label sets of one disk, made once."""

    device: Labels
    read: Labels
    write: Labels


class _Traffic:
    """Counters and rates of ``/proc/diskstats``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._devices = machine.shared(BlockDevices)
        self._before: dict[str, _Before] = {}
        self._labels: dict[str, _Labels] = {}
        self._only: tuple[dict[str, Disk], frozenset[bytes]] = ({}, frozenset())

    def read(self, cycle: Cycle) -> None:
        disks = self._disks()
        counters = proc_diskstats.parse(self._files.read_kept("/proc/diskstats"), self._names(disks)).devices
        if disks is None:
            counters = {name: now for name, now in counters.items() if looks_like_whole_disk(name)}
        if not counters:
            raise no_disks()
        fresh: list[str] = []
        discarding: list[str] = []
        unread: list[str] = []
        unwritten: list[str] = []
        before, self._before = self._before, {}
        for name, now in counters.items():
            disk = disks[name] if disks is not None else None
            labels = self._label(name)
            self._count(cycle, labels.device, now)
            current = self._before[name] = _Before(now, disk.generation if disk else "", cycle.at.mono_s)
            discards = disk is not None and disk.discards and now.sectors_discarded is not None
            if discards:
                discarding.append(name)
            change = _change(before.get(name), current)
            if change is None:
                fresh.append(name)
                continue
            if not self._rate(cycle, labels, change, discards=discards):
                fresh.append(name)
            if not change.reads:
                unread.append(name)
            if not change.writes:
                unwritten.append(name)
        if len(self._labels) > len(counters):
            self._labels = {name: self._labels[name] for name in counters}
        _miss(cycle, _RATES[:-1], Absence.UNKNOWN, _NEEDS_TWO, fresh)
        _miss_discards(cycle, discarding, fresh, known=disks is not None)
        _miss(cycle, ("read_latency",), Absence.NOT_APPLICABLE, "no read was completed since the last reading", unread)
        _miss(cycle, ("write_latency",), Absence.NOT_APPLICABLE, "no write was completed since the last reading", unwritten)

    def _disks(self) -> dict[str, Disk] | None:
        try:
            return self._devices.disks()
        except NoData:
            return None

    def _names(self, disks: dict[str, Disk] | None) -> Collection[bytes] | None:
        if disks is None:
            return None
        if self._only[0] is not disks:
            self._only = (disks, frozenset(name.encode("utf-8", "surrogateescape") for name in disks))
        return self._only[1]

    def _label(self, name: str) -> _Labels:
        labels = self._labels.get(name)
        if labels is None:
            labels = self._labels[name] = _Labels(
                {"device": name}, {"device": name, "direction": "read"}, {"device": name, "direction": "write"}
            )
        return labels

    @staticmethod
    def _count(cycle: Cycle, labels: Labels, now: DiskCounters) -> None:
        cycle.add("reads_completed", now.reads, labels)
        cycle.add("writes_completed", now.writes, labels)
        cycle.add("read_sectors_total", now.sectors_read, labels)
        cycle.add("written_sectors_total", now.sectors_written, labels)
        if now.read_ms is not None and now.write_ms is not None:
            cycle.add("read_time_total", now.read_ms, labels)
            cycle.add("write_time_total", now.write_ms, labels)
        else:
            cycle.miss_all(("read_time_total", "write_time_total"), _no_times(), labels)
        if now.busy_ms is not None and now.weighted_ms is not None and now.in_flight is not None:
            cycle.add("io_time", now.busy_ms, labels)
            cycle.add("weighted_io_time", now.weighted_ms, labels)
            cycle.add("in_flight", now.in_flight, labels)
        else:
            cycle.miss_all(("io_time", "weighted_io_time", "in_flight"), _no_times(), labels)

    @staticmethod
    def _rate(cycle: Cycle, labels: _Labels, change: "_Change", *, discards: bool) -> bool:
        """Put the rates of one disk; False when it cannot have been that busy, so that none of them is to be believed."""
        per_s = 1.0 / change.seconds
        busy = 0.1 * change.busy_ms * per_s if change.busy_ms is not None else None  # ms/s are tenths of a per cent
        if busy is not None and busy > _MOST_BUSY_PERCENT:
            return False
        cycle.add("iops", round(change.reads * per_s, 2), labels.read)
        cycle.add("iops", round(change.writes * per_s, 2), labels.write)
        cycle.add("throughput", round(change.sectors_read * _MIB_PER_SECTOR * per_s, 4), labels.read)
        cycle.add("throughput", round(change.sectors_written * _MIB_PER_SECTOR * per_s, 4), labels.write)
        if busy is None or change.read_ms is None or change.write_ms is None or change.weighted_ms is None:
            cycle.miss_all(("read_latency", "write_latency", "io_util", "queue_depth"), _no_times(), labels.device)
            return True
        if change.reads:
            cycle.add("read_latency", round(change.read_ms / change.reads, 3), labels.device)
        if change.writes:
            cycle.add("write_latency", round(change.write_ms / change.writes, 3), labels.device)
        cycle.add("io_util", round(min(busy, 100.0), 2), labels.device)
        cycle.add("queue_depth", round(0.001 * change.weighted_ms * per_s, 3), labels.device)
        if discards and change.sectors_discarded is not None:
            cycle.add("discard_throughput", round(change.sectors_discarded * _MIB_PER_SECTOR * per_s, 4), labels.device)
        return True


def _miss_discards(cycle: Cycle, discarding: list[str], fresh: list[str], *, known: bool) -> None:
    if discarding:
        _miss(cycle, _RATES[-1:], Absence.UNKNOWN, _NEEDS_TWO, [name for name in fresh if name in discarding])
    elif known:
        reason = "no disk here can discard blocks, or the kernel does not count it"
        cycle.miss("discard_throughput", Absence.NOT_APPLICABLE, reason)
    else:
        reason = "which disks can discard blocks stands in /sys/block, which cannot be read"
        cycle.miss("discard_throughput", Absence.UNKNOWN, reason)


class _Change(NamedTuple):
    """Growth of the counters of one disk between two readings."""

    seconds: float
    reads: int
    sectors_read: int
    writes: int
    sectors_written: int
    read_ms: int | None
    write_ms: int | None
    busy_ms: int | None
    weighted_ms: int | None
    sectors_discarded: int | None


_COUNTED = tuple(DiskCounters._fields.index(field) for field in _Change._fields[1:])


def _change(before: _Before | None, now: _Before) -> _Change | None:
    """None when the two readings do not follow on each other: first sight, another disk, counters that began anew."""
    if before is None or before.generation != now.generation or now.mono_s <= before.mono_s:
        return None
    then, current = before.counters, now.counters
    grown: list[int | None] = []
    for field in _COUNTED:
        old, new = then[field], current[field]
        if old is None or new is None:
            grown.append(None)
            continue
        if new < old:
            return None
        grown.append(new - old)
    return _Change(now.mono_s - before.mono_s, *grown)  # type: ignore[arg-type]  # the first four are never None


def _miss(cycle: Cycle, names: Iterable[str], state: Absence, reason: str, devices: list[str]) -> None:
    """One absence for all devices that share it: a node has up to hundreds of idle disks."""
    if not devices:
        return
    named = ", ".join(devices[:_MOST_NAMED]) + (f" and {len(devices) - _MOST_NAMED} more" if len(devices) > _MOST_NAMED else "")
    for name in names:
        cycle.miss(name, state, f"{reason} ({named})", {"device": devices[0]} if len(devices) == 1 else None)


def _no_times() -> NoData:
    return NoData(Absence.UNSUPPORTED, "/proc/diskstats has no times for this device here")


class _Waiting:
    """iowait of all processors together."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._before: CpuTimes | None = None

    def read(self, cycle: Cycle) -> None:
        first_line = self._files.read_kept("/proc/stat").partition(b"\n")[0]
        now = proc_stat.parse(first_line).cpus["total"]
        before, self._before = self._before, now
        if before is None:
            raise NoData(Absence.UNKNOWN, "needs a second reading of /proc/stat")
        # Each field is clamped alone: iowait may step back (proc_stat(5)).
        spent = [max(0, new - old) for old, new in zip(before, now, strict=True)]
        if not sum(spent):
            raise NoData(Absence.UNKNOWN, "no time was counted since the last reading")
        cycle.add("io_wait", round(100.0 * spent[CpuTimes._fields.index("iowait")] / sum(spent), 2))


class _Pressure:
    """Pressure stall information of I/O."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        try:
            found = pressure.parse(self._files.read_kept("/proc/pressure/io"))
        except NoData as absence:
            if absence.state is not Absence.UNSUPPORTED:
                raise
            raise NoData(absence.state, absence.reason, remedy="boot with psi=1, on a kernel of 4.20 or newer") from None
        self._stall(cycle, "some", found.some)
        self._stall(cycle, "full", found.full)

    def _stall(self, cycle: Cycle, stall: str, shares: Stall | None) -> None:
        if shares is None:
            absence = NoData(Absence.READ_ERROR, f"/proc/pressure/io has no usable line {stall}")
            cycle.miss_all(("pressure", "pressure_stall_time"), absence, _TIME_LABELS[stall])
            return
        for labels, value in zip(_STALL_LABELS[stall], shares[:3], strict=True):
            cycle.add("pressure", value, labels)
        cycle.add("pressure_stall_time", shares.total_s, _TIME_LABELS[stall])
