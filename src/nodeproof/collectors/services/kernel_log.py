"""The kernel log, read once for everybody: ``machine.shared(KernelLog)``.

Ask :meth:`KernelLog.counts` each cycle; it costs nothing when nothing happened. It raises NoData while the log cannot be read
(no permission, closed, not read to its end yet): pass that on as your metrics' absence, never as 0.

Every number of :class:`KernelCounts` counts *records that the kernel itself wrote, since* ``since_s``. ``complete`` tells whether
that is since boot; when it is false, or ``lost_records`` is not 0, the numbers are lower bounds (older records were overwritten
before they could be read), and a difference between two readings still holds as far as ``lost_records`` did not grow.
"""

from typing import NamedTuple

import msgspec

from nodeproof.host.machine import Machine

__all__ = ["AerCounts", "ErrorPair", "KernelCounts", "KernelLog", "LinkChange"]


class ErrorPair(NamedTuple):
    """Hardware errors of one part."""

    corrected: int
    uncorrected: int


class AerCounts(NamedTuple):
    """PCIe error reports of one device."""

    corrected: int
    nonfatal: int
    fatal: int


class LinkChange(NamedTuple):
    """One change of a network link."""

    mono_s: float
    """When, in seconds since boot (the clock of ``Instant.mono_s``)."""
    up: bool


class KernelCounts(msgspec.Struct, frozen=True):
    """What the kernel log told since ``since_s``. Dictionaries hold only what occurred, at most 256 keys; the rest is under ``other``."""

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
    """Lines that only say that machine checks were logged elsewhere (mcelog, EDAC): kind and processor not told. When this is not 0
    and ``machine_checks`` is empty, the number by processor is unknown, not 0."""
    firmware_errors: ErrorPair
    """Errors reported by firmware (APEI): corrected, and recoverable or fatal."""
    memory_errors: dict[str, ErrorPair]
    """EDAC lines by ``mcN label``."""
    memory_failures: int
    """Pages taken out of use after uncorrected errors."""
    oom_kills: int
    """Processes killed for want of memory, one each however many lines the kernel wrote; all of them."""
    oom_kills_cgroup: int
    """Those of them killed by the limit of a control group."""
    io_errors: dict[str, int]
    """Requests the block layer gave up, by disk (``sda``, ``nvme0n1``, ``dm-0``)."""
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
    soft_lockups: int
    hard_lockups: int
    rcu_stalls: int
    oopses: int
    thermal_events: dict[str, int]
    """Throttling by heat, lines by ``cpuN`` or zone (the kernel writes one in five minutes)."""
    xids: dict[str, dict[str, int]]
    """NVIDIA Xid by PCI address, then by code."""
    by_kind: dict[tuple[str, str], int]
    """All events by (kind, severity)."""


class KernelLog:
    """The log of this machine. Without :meth:`start` every call reads what is new by itself; with it a thread does."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def counts(self) -> KernelCounts:
        """What happened since ``since_s``; the same object as long as nothing new did. Raises NoData."""
        raise NotImplementedError
