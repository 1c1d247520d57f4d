"""What events of the kernel log mean as faults, as data. Pure.

An event proves that something went wrong; nothing in the log ever proves that it is right again. So each rule says how long there
must be quiet, or that only a new boot (or an operator) ends it. What is counted in readings as well, and judged by a rule of
health, is told here too: at once and with its device.
"""

from typing import NamedTuple

from nodeproof.model.event import EventKind, Severity
from nodeproof.model.fault import FaultClass as Is

__all__ = ["KERNEL_RULES", "UNVERIFIED", "KernelRule", "kernel_rule"]

_HOUR_S = 3600.0
_DAY_S = 86400.0
_INFO, _WARNING, _CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL


class KernelRule(NamedTuple):
    """One kind of event as a fault, or as no more than an entry of the log."""

    name: str
    """Id of the rule: ``kernel.oom_kill``."""
    type: str
    fault_class: Is
    component: str
    severity: Severity
    meaning: str
    action: str
    stands: bool = True
    """It is a fault until it ends; False = an entry of the log."""
    quiet_s: float = _DAY_S
    """It ends after so long without another; 0 = with the next boot."""
    least: int = 1
    """So many within ``window_s`` make a fault of it."""
    window_s: float = _HOUR_S


def _rule(
    name: str, type_: str, is_: Is, component: str, severity: Severity, meaning: str, action: str, quiet_s: float = _DAY_S
) -> KernelRule:
    return KernelRule(f"kernel.{name}", type_, is_, component, severity, meaning, action, quiet_s=quiet_s)


_READ_LOG = "Read the lines around it (journalctl -k) before anything else."

KERNEL_RULES: dict[tuple[EventKind, str], KernelRule] = {
    (EventKind.AER, "corrected"): _rule(
        "pcie_corrected",
        "pcie_errors",
        Is.LINK_DEGRADED,
        "system",
        _WARNING,
        "A PCIe link repeats transfers: a worn slot, riser or cable, or a card that sits badly.",
        "Reseat the card; if it goes on, change slot, then card.",
    )._replace(least=100),
    (EventKind.AER, "nonfatal"): _rule(
        "pcie_nonfatal",
        "pcie_errors",
        Is.LINK_DEGRADED,
        "system",
        _WARNING,
        "A PCIe transfer was lost; the link goes on.",
        "Watch whether it comes again; then reseat the card and try another slot.",
    ),
    (EventKind.AER, "fatal"): _rule(
        "pcie_fatal",
        "pcie_errors",
        Is.LINK_DOWN,
        "system",
        _CRITICAL,
        "A PCIe link failed and was reset: whatever was on its way is lost.",
        "Drain the node, reseat the card, and replace it if it happens again.",
    ),
    (EventKind.PCIE_CONTAINMENT, ""): _rule(
        "pcie_containment",
        "pcie_containment",
        Is.LOST,
        "system",
        _CRITICAL,
        "The port cut its device off to keep an error from spreading.",
        "Drain the node; the device comes back with a reset of the slot or a boot, if it is sound.",
        0.0,
    ),
    (EventKind.PCIE_HOTPLUG, "down"): _rule(
        "pcie_removed",
        "pcie_removed",
        Is.LOST,
        "system",
        _WARNING,
        "A slot lost its card or link while the machine ran.",
        "If nobody pulled it, reseat the card.",
        0.0,
    ),
    (EventKind.MACHINE_CHECK, "corrected"): _rule(
        "machine_check_corrected",
        "machine_check_corrected",
        Is.PROCESSOR,
        "cpu",
        _WARNING,
        "A processor put an error of its own right, again and again.",
        "Watch the rate (ras-mc-ctl --errors); replace the processor when it grows.",
    )._replace(least=10, window_s=_DAY_S),
    (EventKind.MACHINE_CHECK, "uncorrected"): _rule(
        "machine_check",
        "machine_check",
        Is.PROCESSOR,
        "cpu",
        _CRITICAL,
        "A processor met an error that it could not put right: data may be wrong.",
        "Take the node out of service and have processor and memory tested.",
        0.0,
    ),
    (EventKind.FIRMWARE_ERROR, "fatal"): _rule(
        "firmware_fatal",
        "firmware_error",
        Is.DEVICE,
        "system",
        _CRITICAL,
        "Firmware reported a fatal hardware error (APEI).",
        "Look into the event log of the BMC for the part it names.",
        0.0,
    ),
    (EventKind.FIRMWARE_ERROR, "recoverable"): _rule(
        "firmware_recoverable",
        "firmware_error",
        Is.DEVICE,
        "system",
        _CRITICAL,
        "Firmware reported a hardware error that cost data or a device, and not the machine (APEI).",
        "Look into the event log of the BMC for the part it names.",
    ),
    (EventKind.MEMORY_ERROR, "uncorrected"): _rule(
        "memory_uncorrected",
        "ecc_uncorrected",
        Is.ECC_UNCORRECTED,
        "memory",
        _CRITICAL,
        "A DIMM gave a value that could not be put right.",
        "Take the node out of service and replace the DIMM that is named.",
        0.0,
    ),
    (EventKind.MEMORY_ERROR, "corrected"): _rule(
        "memory_corrected",
        "ecc_corrected",
        Is.ECC_CORRECTED,
        "memory",
        _WARNING,
        "A DIMM needed more corrections than cosmic rays explain.",
        "Plan to replace the DIMM that is named.",
    )._replace(least=100, window_s=_DAY_S),
    (EventKind.MEMORY_FAILURE, ""): _rule(
        "memory_failure",
        "memory_repair",
        Is.MEMORY_REPAIR,
        "memory",
        _WARNING,
        "The kernel took a page out of use after an uncorrected error.",
        "Find the DIMM (ras-mc-ctl --error-count) and have it replaced.",
        0.0,
    ),
    (EventKind.MEMORY_FAILURE, "Failed"): _rule(
        "memory_failure_failed",
        "memory_repair",
        Is.MEMORY_REPAIR,
        "memory",
        _CRITICAL,
        "The kernel could not take a broken page out of use.",
        "Boot the node, then have its memory tested.",
        0.0,
    ),
    (EventKind.OOM_KILL, ""): _rule(
        "oom_kill",
        "oom_kill",
        Is.OUT_OF_MEMORY,
        "memory",
        _WARNING,
        "A process was killed because the machine, or a control group, was out of memory.",
        "See who was killed, and give it more memory or less work.",
        _HOUR_S,
    ),
    (EventKind.HUNG_TASK, ""): _rule(
        "hung_task",
        "hung_task",
        Is.STUCK,
        "system",
        _WARNING,
        "A task waited for a device or lock beyond the kernel's patience.",
        "See where it waits (cat /proc/PID/stack): most often a disk, a network file system or an accelerator's driver.",
        _HOUR_S,
    ),
    (EventKind.SOFT_LOCKUP, ""): _rule(
        "soft_lockup",
        "lockup",
        Is.KERNEL,
        "system",
        _CRITICAL,
        "A processor ran kernel code for so long that nothing else got its turn.",
        _READ_LOG,
    ),
    (EventKind.HARD_LOCKUP, ""): _rule(
        "hard_lockup",
        "lockup",
        Is.KERNEL,
        "system",
        _CRITICAL,
        "A processor took no interrupts for seconds: hardware, firmware, or a bug with interrupts off.",
        _READ_LOG,
    ),
    (EventKind.RCU_STALL, ""): _rule(
        "rcu_stall",
        "lockup",
        Is.KERNEL,
        "system",
        _CRITICAL,
        "A processor or task held the kernel's housekeeping up.",
        _READ_LOG,
    ),
    (EventKind.OOPS, ""): _rule(
        "oops",
        "kernel_oops",
        Is.KERNEL,
        "system",
        _CRITICAL,
        "The kernel itself faulted and went on with damage unknown.",
        "Boot the node when its jobs are done, and report the trace.",
        0.0,
    ),
    (EventKind.KERNEL_BUG, ""): _rule(
        "bug",
        "kernel_oops",
        Is.KERNEL,
        "system",
        _WARNING,
        "The kernel found itself in a state that must not be.",
        "Boot the node when its jobs are done, and report the trace.",
        0.0,
    ),
    (EventKind.PANIC, ""): _rule(
        "panic",
        "kernel_oops",
        Is.KERNEL,
        "system",
        _CRITICAL,
        "The kernel gave up.",
        "Read the crash dump, if there is one.",
        0.0,
    ),
    (EventKind.IO_ERROR, ""): _rule(
        "io_error",
        "io_error",
        Is.DISK,
        "disk",
        _WARNING,
        "A disk could not read or write what it was asked for.",
        "Look at SMART (smartctl -x) and cables; replace the disk when it goes on.",
        _HOUR_S,
    ),
    (EventKind.STORAGE_RESET, ""): _rule(
        "storage_reset",
        "storage_reset",
        Is.DRIVER_HUNG,
        "disk",
        _WARNING,
        "A disk or its controller did not answer in time and was reset.",
        "Look at cables, firmware and SMART; a disk that does it again is on its way out.",
        _HOUR_S,
    ),
    (EventKind.STORAGE_RESET, "removed"): _rule(
        "storage_lost",
        "disk_lost",
        Is.LOST,
        "disk",
        _CRITICAL,
        "The kernel gave a disk controller up and took it out of use.",
        "Reseat or replace the disk; a boot brings it back if it still answers.",
        0.0,
    ),
    (EventKind.STORAGE_RESET, "disabled"): _rule(
        "storage_disabled",
        "disk_lost",
        Is.LOST,
        "disk",
        _CRITICAL,
        "A disk did not come back from its reset and was switched off.",
        "Reseat or replace the disk; a boot brings it back if it still answers.",
        0.0,
    ),
    (EventKind.FS_ERROR, ""): _rule(
        "fs_error",
        "fs_error",
        Is.FILE_SYSTEM,
        "disk",
        _CRITICAL,
        "A file system found itself damaged.",
        "Copy what matters, unmount it and check it (fsck, xfs_repair); then look at its disk.",
        0.0,
    ),
    (EventKind.FS_READONLY, ""): _rule(
        "fs_readonly",
        "fs_readonly",
        Is.FILE_SYSTEM,
        "disk",
        _CRITICAL,
        "A file system was closed for writing after an error.",
        "Find the error before it in the log; check the disk, then the file system.",
        0.0,
    ),
    (EventKind.THERMAL, "critical"): _rule(
        "thermal_critical",
        "thermal",
        Is.THERMAL,
        "chassis",
        _CRITICAL,
        "A thermal zone reached the temperature at which the machine switches itself off.",
        "Look at fans, air flow and inlet temperature at once.",
        _HOUR_S,
    ),
    (EventKind.ACCELERATOR, "amdgpu_hang"): _rule(
        "amdgpu_hang",
        "driver_hung",
        Is.DRIVER_HUNG,
        "gpu",
        _CRITICAL,
        "An AMD GPU did not finish its work in time.",
        "Drain the node; the driver tries a reset. Without success, boot.",
        0.0,
    ),
    (EventKind.ACCELERATOR, "amdgpu_reset"): KernelRule(
        "kernel.amdgpu_reset",
        "reset",
        Is.DRIVER,
        "gpu",
        _WARNING,
        "The driver reset an AMD GPU: the work on it is lost.",
        "Start the job again; if it happens again, have the card tested.",
        stands=False,
    ),
    (EventKind.ACCELERATOR, "amdgpu_reset_failed"): _rule(
        "amdgpu_reset_failed",
        "reset_required",
        Is.RESET_REQUIRED,
        "gpu",
        _CRITICAL,
        "The driver could not reset an AMD GPU.",
        "Boot the node; replace the card if it comes up the same.",
        0.0,
    ),
    (EventKind.ACCELERATOR, "amdgpu_ras"): _rule(
        "amdgpu_ras",
        "ecc_uncorrected",
        Is.ECC_UNCORRECTED,
        "gpu",
        _CRITICAL,
        "An AMD GPU reported an error of its memory or logic that could not be put right.",
        "Drain the node, reset or boot it, and look at the counters (amd-smi metric -e).",
        0.0,
    ),
    (EventKind.ACCELERATOR, "ascend_heartbeat"): _rule(
        "ascend_heartbeat",
        "card_drop",
        Is.LOST,
        "npu",
        _CRITICAL,
        "The driver lost the heartbeat of an NPU.",
        "Drain the node and reset the card (npu-smi set -t reset); boot if it does not come back.",
        0.0,
    ),
    (EventKind.ACCELERATOR, "ascend_error"): KernelRule(
        "kernel.ascend_error",
        "driver_unhealthy",
        Is.DRIVER,
        "npu",
        _WARNING,
        "The Ascend driver reported an error.",
        "Look at the health and the error codes of the card (npu-smi info -t health).",
        stands=False,
    ),
}
"""By kind and code of the event; a code of its own goes before the empty one, which stands for all others."""

UNVERIFIED = KernelRule(
    "kernel.unverified",
    "unverified_line",
    Is.UNKNOWN,
    "system",
    _INFO,
    "A program other than the kernel wrote a line into the kernel log that reads like an error.",
    "Nothing is concluded from it. Whoever may write to /dev/kmsg can do this.",
    stands=False,
)
"""Lines that anybody may have written."""


def kernel_rule(kind: EventKind, code: str) -> KernelRule | None:
    """The rule for such an event; None when it is no more than a number in a counter."""
    return KERNEL_RULES.get((kind, code)) or KERNEL_RULES.get((kind, ""))
