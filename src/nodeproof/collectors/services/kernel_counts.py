"""What the kernel log told so far, as numbers."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from nodeproof.faults.coalesce import LinkChange
from nodeproof.model.event import EventKind, KernelEvent, Severity

__all__ = ["OTHER", "AerCounts", "ErrorPair", "KernelCounts", "Tally"]

OTHER = "other"
"""Key under which everything beyond the room of a dictionary is counted."""

_MAX_KEYS = 256
_MAX_CHANGES = 64


class ErrorPair(NamedTuple):
    """Hardware errors of one part."""

    corrected: int
    uncorrected: int


class AerCounts(NamedTuple):
    """PCIe error reports of one device."""

    corrected: int
    nonfatal: int
    fatal: int


class KernelCounts(msgspec.Struct, frozen=True):
    """What the kernel log told since ``since_s``.

    Dictionaries hold only what occurred: at most 256 keys, the rest under ``other``.
    """

    boot_id: str
    """Boot that this is about; empty where it cannot be read."""
    complete: bool
    """The log still held its first record when it was read: numbers are since boot."""
    since_s: float
    """Time of the oldest record read, in seconds since boot; 0 when complete."""
    lost_records: int
    """Records overwritten before they were read, after ``since_s``."""
    unverified: int
    """Records that looked like events but were not written by the kernel; not counted anywhere else."""
    machine_checks: dict[int, ErrorPair]
    """By logical processor."""
    machine_check_notices: int
    """Lines that only say that machine checks were logged elsewhere (mcelog, EDAC), not of which kind and processor. When this is
    not 0 and ``machine_checks`` is empty, the number by processor is unknown, not 0."""
    firmware_errors: ErrorPair
    """Errors reported by firmware (APEI): corrected, and recoverable or fatal."""
    memory_errors: dict[str, ErrorPair]
    """EDAC lines by ``mcN label``."""
    memory_failures: int
    """Pages taken out of use after uncorrected errors."""
    oom_kills: int
    """Processes killed for want of memory, one each however many lines the kernel wrote; all of them."""
    oom_kills_cgroup: int
    """Those of them that the line itself says were killed by the limit of a control group (kernels before 4.20 do not say)."""
    io_errors: dict[str, int]
    """Requests the block layer gave up, by disk (``sda``, ``nvme0n1``, ``dm-0``). Operations a disk does not support, and drives
    for removable media (``fd0``, ``sr0``), are left out."""
    buffer_io_errors: dict[str, int]
    """Blocks the page cache could not read or write, by disk or partition; mostly the same failures seen one level up."""
    storage_resets: dict[str, int]
    """Time-outs and resets by controller or link (``nvme0``, ``ata1``)."""
    fs_errors: dict[str, int]
    """File-system errors by device."""
    fs_readonly: dict[str, int]
    """File systems made read-only or shut down by an error, by device."""
    link_changes: dict[str, tuple[LinkChange, ...]]
    """The newest 64 changes of each interface, oldest first."""
    aer: dict[str, AerCounts]
    """By PCI address."""
    hung_tasks: int
    """Tasks that waited in state D beyond the kernel's limit."""
    soft_lockups: int
    hard_lockups: int
    rcu_stalls: int
    oopses: int
    """Faults of the kernel itself."""
    thermal_events: dict[str, int]
    """Throttling by heat, lines by ``cpuN`` or zone (the kernel writes one in five minutes)."""
    xids: dict[str, dict[str, int]]
    """NVIDIA Xid by PCI address, then by code."""
    by_kind: dict[tuple[str, str], int]
    """All events by (kind, severity)."""


class Tally:
    """Counts verified events; unverified ones are counted as such and nowhere else."""

    def __init__(self) -> None:
        self.unverified = 0
        self._kinds: dict[tuple[str, str], int] = {}
        self._totals: dict[EventKind, int] = {}
        self._by_code: dict[EventKind, dict[str, dict[str, int]]] = {}
        self._links: dict[str, list[LinkChange]] = {}

    def add(self, event: KernelEvent) -> None:
        """Count one event."""
        if not event.verified:
            self.unverified += 1
            return
        kind, times = event.kind, event.count
        key = (kind.value, event.severity.value)
        self._kinds[key] = self._kinds.get(key, 0) + times
        if kind is EventKind.IO_ERROR and event.severity is Severity.INFO:
            return
        self._totals[kind] = self._totals.get(kind, 0) + times
        devices = self._by_code.setdefault(kind, {})
        codes = devices.setdefault(_room(devices, event.device), {})
        code = _room(codes, event.code)
        codes[code] = codes.get(code, 0) + times
        if kind is EventKind.LINK:
            self._link(event)

    def _link(self, event: KernelEvent) -> None:
        if event.device not in self._links and len(self._links) >= _MAX_KEYS:
            return
        changes = self._links.setdefault(event.device, [])
        changes.append(LinkChange(event.mono_s, event.code == "up"))
        del changes[:-_MAX_CHANGES]

    def counts(self, boot_id: str, since_s: float, lost_records: int, *, complete: bool) -> KernelCounts:
        """Everything counted until now."""
        total = self._totals.get
        return KernelCounts(
            boot_id=boot_id,
            complete=complete,
            since_s=since_s,
            lost_records=lost_records,
            unverified=self.unverified,
            machine_checks={int(cpu[3:]): pair for cpu, pair in self._pairs(EventKind.MACHINE_CHECK) if cpu != OTHER},
            machine_check_notices=total(EventKind.MACHINE_CHECK_NOTICE, 0),
            firmware_errors=self._firmware(),
            memory_errors=dict(self._pairs(EventKind.MEMORY_ERROR)),
            memory_failures=total(EventKind.MEMORY_FAILURE, 0),
            oom_kills=total(EventKind.OOM_KILL, 0),
            oom_kills_cgroup=self._codes(EventKind.OOM_KILL).get("cgroup", 0),
            io_errors=self._devices(EventKind.IO_ERROR),
            buffer_io_errors=self._devices(EventKind.BUFFER_IO_ERROR),
            storage_resets=self._devices(EventKind.STORAGE_RESET),
            fs_errors=self._devices(EventKind.FS_ERROR),
            fs_readonly=self._devices(EventKind.FS_READONLY),
            link_changes={interface: tuple(changes) for interface, changes in self._links.items()},
            aer={
                device: AerCounts(codes.get("corrected", 0), codes.get("nonfatal", 0), codes.get("fatal", 0))
                for device, codes in self._by_code.get(EventKind.AER, {}).items()
            },
            hung_tasks=total(EventKind.HUNG_TASK, 0),
            soft_lockups=total(EventKind.SOFT_LOCKUP, 0),
            hard_lockups=total(EventKind.HARD_LOCKUP, 0),
            rcu_stalls=total(EventKind.RCU_STALL, 0),
            oopses=total(EventKind.OOPS, 0),
            thermal_events=self._devices(EventKind.THERMAL),
            xids={device: dict(codes) for device, codes in self._by_code.get(EventKind.XID, {}).items()},
            by_kind=dict(self._kinds),
        )

    def _pairs(self, kind: EventKind) -> Iterable[tuple[str, ErrorPair]]:
        for device, codes in self._by_code.get(kind, {}).items():
            yield device, ErrorPair(codes.get("corrected", 0), codes.get("uncorrected", 0))

    def _codes(self, kind: EventKind) -> dict[str, int]:
        return self._by_code.get(kind, {}).get("", {})

    def _devices(self, kind: EventKind) -> dict[str, int]:
        return {device: sum(codes.values()) for device, codes in self._by_code.get(kind, {}).items()}

    def _firmware(self) -> ErrorPair:
        codes = self._codes(EventKind.FIRMWARE_ERROR)
        return ErrorPair(codes.get("corrected", 0), codes.get("recoverable", 0) + codes.get("fatal", 0))


def _room(table: dict[str, dict[str, int]] | dict[str, int], key: str) -> str:
    return key if key in table or len(table) < _MAX_KEYS else OTHER
