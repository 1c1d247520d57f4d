"""What goes wrong in processors: machine checks from the kernel log, and slowing down because of heat."""

from typing import NamedTuple

from nodeproof.collectors.base import Cycle
from nodeproof.collectors.cpu.siblings import packages, parts
from nodeproof.collectors.services.kernel_log import ErrorPair, KernelCounts, KernelLog
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels

__all__ = ["MACHINE_CHECKS", "THROTTLING", "MachineChecks", "Throttling"]

_CPU = "/sys/devices/system/cpu"
_DELTAS = ("cpu_ce_errors", "cpu_uce_errors")

MACHINE_CHECKS = (*_DELTAS, "machine_checks")
"""Metrics of :class:`MachineChecks`."""
THROTTLING = (
    "new_throttles",
    "thermal_throttle_util",
    "core_throttles",
    "core_throttle_time",
    "max_core_throttles",
    "package_throttles",
    "package_throttle_time",
)
"""Metrics of :class:`Throttling`."""

_CORRECTED: Labels = {"severity": "corrected"}
_UNCORRECTED: Labels = {"severity": "uncorrected"}
_NONE = ErrorPair(0, 0)


class MachineChecks:
    """Differences between two readings of what the kernel log counts."""

    def __init__(self, machine: Machine) -> None:
        self._log = machine.shared(KernelLog)
        self._before: KernelCounts | None = None
        self._labels: dict[int, Labels] = {}

    def read(self, cycle: Cycle) -> None:
        """Errors since the last cycle. A processor not seen before had none: its first error counts."""
        before, self._before = self._before, None
        counts = self._log.counts()
        self._before = counts
        checks = counts.machine_checks
        if counts.machine_check_notices and not checks:
            reason = "the kernel only noted that machine checks were logged elsewhere (mcelog, rasdaemon, EDAC)"
            cycle.miss_all(MACHINE_CHECKS, NoData(Absence.UNKNOWN, reason, remedy="install rasdaemon, or look into its records"))
            return
        cycle.add("machine_checks", sum(pair.corrected for pair in checks.values()), _CORRECTED)
        cycle.add("machine_checks", sum(pair.uncorrected for pair in checks.values()), _UNCORRECTED)
        if before is None and (checks or not counts.complete):
            cycle.miss_all(_DELTAS, NoData(Absence.UNKNOWN, "needs a second reading of the kernel log"))
            return
        earlier = before.machine_checks if before is not None else {}
        for cpu in checks or (0,):
            old, new = earlier.get(cpu, _NONE), checks.get(cpu, _NONE)
            labels = self._labels.setdefault(cpu, {"cpu": str(cpu)})
            cycle.add("cpu_ce_errors", max(0, new.corrected - old.corrected), labels)
            cycle.add("cpu_uce_errors", max(0, new.uncorrected - old.uncorrected), labels)
        if before is not None and counts.lost_records > before.lost_records:
            lost = counts.lost_records - before.lost_records
            cycle.miss_all(
                _DELTAS, NoData(Absence.UNKNOWN, f"{lost} records of the kernel log were overwritten before they were read")
            )


class _Counters(NamedTuple):
    """Counters of one core, or of one package, at one moment."""

    events: int
    time_ms: int | None


class _Package(NamedTuple):
    """One package: a processor of each of its cores, the first of which also speaks for the package."""

    labels: Labels
    cores: tuple[int, ...]


class Throttling:
    """``thermal_throttle`` of one thread of each core (Intel only). The kernel adds the time when a slow-down has ended."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._online = b""
        self._packages: list[_Package] = []
        self._before: dict[str, tuple[dict[str, _Counters], float]] = {}

    def read(self, cycle: Cycle) -> None:
        """Sum the cores of each package, and compare with the last reading."""
        first = f"{_CPU}/cpu0/thermal_throttle"
        if not self._files.exists(first):
            raise self._no_counters(first)
        self._divide()
        before, self._before = self._before, {}
        for package in self._packages:
            number = package.labels["package"]
            try:
                counters = self._counters(package)
            except NoData as absence:
                cycle.miss_all(THROTTLING, absence, package.labels)
                continue
            self._before[number] = (counters, cycle.at.mono_s)
            _totals(cycle, package.labels, counters)
            _changes(cycle, package.labels, before.get(number), counters)

    def _no_counters(self, path: str) -> NoData:
        info = self._platform.cpuinfo
        if info is not None and info.vendor not in {"GenuineIntel", ""} and not self._platform.is_virtual:
            return NoData(Absence.NOT_APPLICABLE, f"processors of {info.vendor} have no thermal throttle counters")
        return self._platform.no_hardware(
            "thermal throttle counter", f"{path} is not there", remedy="use a kernel built with CONFIG_X86_THERMAL_VECTOR"
        )

    def _divide(self) -> None:
        """Cores by package, made anew when processors came or went."""
        online = self._files.read(f"{_CPU}/online")
        if online == self._online:
            return
        divided = [
            _Package({"package": str(number)}, tuple(core[0] for core in parts(self._files, cpus, "core")))
            for number, cpus in (
                (self._files.read_int(f"{_CPU}/cpu{cpus[0]}/topology/physical_package_id"), cpus)
                for cpus in packages(self._files)
            )
        ]
        self._packages, self._online = divided, online

    def _counters(self, package: _Package) -> dict[str, _Counters]:
        counters = {f"core{cpu}": self._pair(cpu, "core") for cpu in package.cores}
        counters["package"] = self._pair(package.cores[0], "package")
        return counters

    def _pair(self, cpu: int, kind: str) -> _Counters:
        base = f"{_CPU}/cpu{cpu}/thermal_throttle/{kind}_throttle"
        try:
            time_ms = self._files.read_int(f"{base}_total_time_ms")
        except NoData as absence:
            if absence.state is not Absence.UNSUPPORTED:
                raise
            time_ms = None  # kernels before 5.6 count without time
        return _Counters(self._files.read_int(f"{base}_count"), time_ms)


def _totals(cycle: Cycle, labels: Labels, counters: dict[str, _Counters]) -> None:
    package = counters["package"]
    cores = [pair for name, pair in counters.items() if name != "package"]
    cycle.add("core_throttles", sum(pair.events for pair in cores), labels)
    cycle.add("max_core_throttles", max(pair.events for pair in cores), labels)
    cycle.add("package_throttles", package.events, labels)
    times_ms = [pair.time_ms for pair in cores if pair.time_ms is not None]
    untimed = NoData(Absence.UNSUPPORTED, "this kernel counts slow-downs without their time", remedy="use Linux 5.6 or newer")
    if len(times_ms) == len(cores):
        cycle.add("core_throttle_time", sum(times_ms), labels)
    else:
        cycle.miss_all(("core_throttle_time",), untimed, labels)
    if package.time_ms is not None:
        cycle.add("package_throttle_time", package.time_ms, labels)
    else:
        cycle.miss_all(("package_throttle_time",), untimed, labels)


def _changes(
    cycle: Cycle, labels: Labels, before: tuple[dict[str, _Counters], float] | None, counters: dict[str, _Counters]
) -> None:
    """New slow-downs, and the share of time of those that ended, of the worst core or the package."""
    if before is None or cycle.at.mono_s <= before[1]:
        cycle.miss_all(("new_throttles", "thermal_throttle_util"), NoData(Absence.UNKNOWN, "needs a second reading"), labels)
        return
    earlier, then_s = before
    # A core that was offline at the last reading, or whose counter began anew, has nothing to compare with.
    pairs = [(earlier[name], now) for name, now in counters.items() if name in earlier and now.events >= earlier[name].events]
    if not pairs:
        cycle.miss_all(("new_throttles", "thermal_throttle_util"), NoData(Absence.UNKNOWN, "all counters began anew"), labels)
        return
    cycle.add("new_throttles", max(now.events - old.events for old, now in pairs), labels)
    spent_ms = [now.time_ms - old.time_ms for old, now in pairs if now.time_ms is not None and old.time_ms is not None]
    if not spent_ms:
        cycle.miss("thermal_throttle_util", Absence.UNSUPPORTED, "this kernel counts slow-downs without their time", labels)
        return
    # What ended now may have begun before the last reading: then it lasted through the whole interval.
    cycle.add("thermal_throttle_util", round(min(100.0, max(0, *spent_ms) / (cycle.at.mono_s - then_s) / 10.0), 2), labels)
