"""Component system: what the kernel says went wrong, in its log, in its taint bits and in its PCIe counters."""

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.event import EventKind, Severity
from nodeproof.model.metric import Labels
from nodeproof.sources import aer_counters, kernel_taint

__all__ = ["groups"]

_LOG = ("kernel_events_total", "kernel_log_complete", "kernel_log_lost_total", "kernel_log_unverified_total")
_PCI = "/sys/bus/pci/devices"
_AER_FILES = {"corrected": "aer_dev_correctable", "nonfatal": "aer_dev_nonfatal", "fatal": "aer_dev_fatal"}
_AER_PERIOD_S = 60.0
_LOOK_AGAIN_S = 600.0
"""How often devices without counters are looked at again (a driver may bring them)."""

_WATCHED: dict[tuple[str, str], int] = {
    (EventKind.AER.value, Severity.CRITICAL.value): 0,
    (EventKind.AER.value, Severity.WARNING.value): 0,
    (EventKind.FIRMWARE_ERROR.value, Severity.CRITICAL.value): 0,
    (EventKind.FIRMWARE_ERROR.value, Severity.WARNING.value): 0,
    (EventKind.FS_ERROR.value, Severity.CRITICAL.value): 0,
    (EventKind.FS_READONLY.value, Severity.CRITICAL.value): 0,
    (EventKind.HARD_LOCKUP.value, Severity.CRITICAL.value): 0,
    (EventKind.HUNG_TASK.value, Severity.WARNING.value): 0,
    (EventKind.IO_ERROR.value, Severity.WARNING.value): 0,
    (EventKind.MACHINE_CHECK.value, Severity.CRITICAL.value): 0,
    (EventKind.MACHINE_CHECK.value, Severity.WARNING.value): 0,
    (EventKind.MEMORY_ERROR.value, Severity.CRITICAL.value): 0,
    (EventKind.MEMORY_ERROR.value, Severity.WARNING.value): 0,
    (EventKind.OOM_KILL.value, Severity.WARNING.value): 0,
    (EventKind.OOPS.value, Severity.CRITICAL.value): 0,
    (EventKind.RCU_STALL.value, Severity.CRITICAL.value): 0,
    (EventKind.SOFT_LOCKUP.value, Severity.CRITICAL.value): 0,
    (EventKind.STORAGE_RESET.value, Severity.WARNING.value): 0,
    (EventKind.THERMAL.value, Severity.WARNING.value): 0,
}
"""Events whose count is told even while it is 0, so that an alert rule has a series from the start."""


def groups(machine: Machine) -> tuple[Group, ...]:
    """Kernel groups of the component."""
    return (
        Group(_LOG, _Log(machine).read),
        Group(("kernel_taint",), _Taint(machine).read, every_s=60.0),
        Group(("pcie_errors_total", "pcie_device_errors_total"), _Aer(machine).read, every_s=_AER_PERIOD_S),
    )


class _Log:
    """Counts of the kernel log."""

    def __init__(self, machine: Machine) -> None:
        self._log = machine.shared(KernelLog)
        self._labels: dict[tuple[str, str], Labels] = {}

    def read(self, cycle: Cycle) -> None:
        counts = self._log.counts()
        for key, count in (_WATCHED | counts.by_kind).items():
            cycle.add("kernel_events_total", count, self._label(key))
        cycle.add("kernel_log_complete", float(counts.complete))
        cycle.add("kernel_log_lost_total", counts.lost_records)
        cycle.add("kernel_log_unverified_total", counts.unverified)

    def _label(self, key: tuple[str, str]) -> Labels:
        labels = self._labels.get(key)
        if labels is None:
            labels = self._labels[key] = {"kind": key[0], "severity": key[1]}
        return labels


class _Taint:
    """Taint bits; they stay until the next boot, also when the log's ring has wrapped."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        taint = kernel_taint.parse(self._files.read("/proc/sys/kernel/tainted"))
        flags = ",".join(kernel_taint.words(taint))
        cycle.add("kernel_taint", taint, {"flags": flags} if flags else None)


class _Aer:
    """Error counters that the kernel keeps of each PCIe device; reading them does not touch the device."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._without: set[str] = set()
        self._looked_s: float | None = None
        self._labels: dict[tuple[str, str], Labels] = {}

    def read(self, cycle: Cycle) -> None:
        if self._looked_s is None or cycle.at.mono_s - self._looked_s >= _LOOK_AGAIN_S:
            self._without.clear()
            self._looked_s = cycle.at.mono_s
        totals = dict.fromkeys(_AER_FILES, 0)
        found = 0
        failed: NoData | None = None
        for device in self._devices():
            if device in self._without:
                continue
            try:
                found += self._device(cycle, device, totals)
            except NoData as absence:
                failed = absence.again()
            except ParseError as error:
                failed = NoData(Absence.READ_ERROR, f"{device}: {error}")
        if failed is not None:
            cycle.miss_all(("pcie_errors_total",), failed)
        elif not found:
            raise self._none()
        else:
            for severity, count in totals.items():
                cycle.add("pcie_errors_total", count, self._label("", severity))

    def _devices(self) -> list[str]:
        try:
            return self._files.names(_PCI)
        except NoData as absence:
            if absence.state is Absence.UNSUPPORTED:
                return []
            raise

    def _device(self, cycle: Cycle, device: str, totals: dict[str, int]) -> bool:
        """Counters of one device; False where it has none. Raises NoData, ParseError."""
        for severity, file in _AER_FILES.items():
            try:
                raw = self._files.read(f"{_PCI}/{device}/{file}")
            except NoData as absence:
                if absence.state is not Absence.UNSUPPORTED:
                    raise
                self._without.add(device)
                return False
            count = aer_counters.total(raw)
            totals[severity] += count
            if count:
                cycle.add("pcie_device_errors_total", count, self._label(device, severity))
        return True

    def _label(self, device: str, severity: str) -> Labels:
        labels = self._labels.get((device, severity))
        if labels is None:
            labels = {"device": device, "severity": severity} if device else {"severity": severity}
            self._labels[(device, severity)] = labels
        return labels

    def _none(self) -> NoData:
        return self._platform.no_hardware(
            "PCIe error reporting (AER)",
            f"no device below {_PCI} has {_AER_FILES['fatal']}",
            remedy="a kernel with CONFIG_PCIEAER, and firmware that leaves AER to it (_OSC; pcie_ports=native)",
        )
