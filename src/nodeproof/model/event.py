"""Events of the kernel log: one line of ``/dev/kmsg`` whose meaning is known."""

from enum import StrEnum

import msgspec

__all__ = ["EventKind", "KernelEvent", "Severity"]


class Severity(StrEnum):
    """How grave one event is by itself; rules that see more than one event may judge otherwise."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class EventKind(StrEnum):
    """What happened."""

    ACCELERATOR = "accelerator"
    """The driver of an AMD GPU or an Ascend NPU reports trouble: device = PCI address or ``npu_id=N``, code = what."""
    AER = "aer"
    """PCIe error report: device = PCI address, code = corrected, nonfatal or fatal."""
    BOND_LINK = "bond_link"
    """A bond saw a member go or come: device = member, code = up or down. The member's driver tells it as well."""
    BUFFER_IO_ERROR = "buffer_io_error"
    """Page cache could not read or write a block: device = disk or partition. Most follow an :attr:`IO_ERROR`."""
    FIRMWARE_ERROR = "firmware_error"
    """Error reported by firmware (APEI GHES): code = corrected, recoverable, fatal or info."""
    FS_ERROR = "fs_error"
    """A file system found itself damaged: device, code = file system."""
    FS_READONLY = "fs_readonly"
    """A file system was made read-only or shut down by an error: device, code = file system."""
    HARD_LOCKUP = "hard_lockup"
    """A processor took no interrupts for the watchdog's time: device = ``cpuN``."""
    HUNG_TASK = "hung_task"
    """A task waited in state D beyond ``kernel.hung_task_timeout_secs``."""
    IO_ERROR = "io_error"
    """The block layer gave a request up: device = disk, code = its words (``I/O``, ``critical medium``)."""
    KERNEL_BUG = "kernel_bug"
    """``BUG:`` or ``kernel BUG at``: often the first line of an oops."""
    KERNEL_WARNING = "kernel_warning"
    """``WARNING:`` with its place in the kernel."""
    LINK = "link"
    """A network driver saw its link change: device = interface, code = up or down."""
    MACHINE_CHECK = "machine_check"
    """Machine check of one processor: device = ``cpuN``, code = corrected or uncorrected."""
    MACHINE_CHECK_NOTICE = "machine_check_notice"
    """The kernel logged machine checks elsewhere and tells neither processor nor kind."""
    MEMORY_ERROR = "memory_error"
    """EDAC error: device = ``mcN`` and the DIMM label, code = corrected or uncorrected, count = errors of that line."""
    MEMORY_FAILURE = "memory_failure"
    """A page was taken out of use after an uncorrected error: code = outcome (``Recovered``, ``Failed`` ...)."""
    OOM_KILL = "oom_kill"
    """A process was killed for want of memory: code = ``global`` or ``cgroup``."""
    OOPS = "oops"
    """The kernel itself faulted (``[#1]``)."""
    PANIC = "panic"
    """The kernel stopped; seen only where a recorded log is read, or when ``panic_on_*`` gave it time."""
    PCIE_CONTAINMENT = "pcie_containment"
    """Downstream port containment cut a device off: device = PCI address of the port."""
    PCIE_HOTPLUG = "pcie_hotplug"
    """A slot lost its link or card, or found it again: device = PCI address of the port, code = up or down."""
    RCU_STALL = "rcu_stall"
    """A processor or task held up RCU."""
    SCSI_SENSE = "scsi_sense"
    """A SCSI or SATA disk gave a reason for failing: device = disk, code = sense key."""
    SEGFAULT = "segfault"
    """A program faulted; the kernel is well."""
    SOFT_LOCKUP = "soft_lockup"
    """A processor did not schedule for the watchdog's time: device = ``cpuN``."""
    STORAGE_RESET = "storage_reset"
    """A disk controller or link timed out or was reset: device = ``nvmeN`` or ``ataN``, code = what was done."""
    SXID = "sxid"
    """NVSwitch error: device = PCI address, code = number."""
    THERMAL = "thermal"
    """Too hot: device = ``cpuN`` or a thermal zone, code = core, package, critical."""
    XID = "xid"
    """NVIDIA GPU error: device = PCI address with domain, code = number."""


class KernelEvent(msgspec.Struct, frozen=True, gc=False):
    """One line of the kernel log."""

    kind: EventKind
    severity: Severity
    device: str
    """What it is about, as the kernel names it; empty where it names nothing."""
    code: str
    """What exactly, by kind; empty where the kind says it all."""
    message: str
    """The line, bounded and without control characters."""
    sequence: int
    """Sequence number of the record since boot."""
    mono_s: float
    """When, in seconds since boot."""
    facility: int
    """Syslog facility; 0 = the kernel itself."""
    verified: bool
    """The kernel itself wrote it. Any program that may write ``/dev/kmsg`` can forge the others: they are kept, never counted and
    never graver than info."""
    count: int = 1
    """Occurrences that this one line tells of."""
