"""Processors: their time, who may be used, throttle counters, clocks and governors."""

from typing import NamedTuple

from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import cpu_list, proc_self_status, proc_stat, sys_cpufreq
from nodeproof.sources.proc_stat import CpuTimes

__all__ = ["Clocks", "Governors", "Processors", "Throttle", "ThrottlePair"]

_CPU = "/sys/devices/system/cpu"
_UNGOVERNED = ("intel_pstate", "amd-pstate", "amd-pstate-epp", "amd_pstate")
"""Drivers whose ``powersave`` still follows the load (Documentation/admin-guide/pm/intel_pstate.rst, amd-pstate.rst)."""


class Processors:
    """Which processors there are, and which of them the run may use."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self.allowed = self._read_allowed()
        """Numbers, ascending."""

    def _read_allowed(self) -> tuple[int, ...]:
        try:
            return tuple(proc_self_status.parse_allowed_cpus(self._files.read("/proc/self/status")))
        except (NoData, ParseError):
            return tuple(self.online())

    def online(self) -> list[int]:
        """All that are online; empty when that cannot be read."""
        try:
            return cpu_list.parse(self._files.read(f"{_CPU}/online"), f"{_CPU}/online")
        except (NoData, ParseError):
            return []

    def restricted(self) -> bool:
        """Whether the run may use only some of them."""
        return bool(set(self.online()) - set(self.allowed))

    def times(self) -> dict[int, CpuTimes]:
        """Ticks of each allowed processor. Raises NoData and ParseError."""
        cpus = proc_stat.parse(self._files.read_kept("/proc/stat")).cpus
        found = {cpu: cpus[str(cpu)] for cpu in self.allowed if str(cpu) in cpus}
        if not found:
            raise NoData(Absence.READ_ERROR, "/proc/stat has no line of a processor that may be used")
        return found


class ThrottlePair(NamedTuple):
    """Slow-downs of one part."""

    events: int
    time_ms: int | None
    """None: the kernel counts without time (before 5.6)."""


class Throttle:
    """``thermal_throttle`` of the allowed processors' cores and packages (Intel only). Threads of one core share its counter."""

    def __init__(self, machine: Machine, allowed: tuple[int, ...]) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._allowed = allowed
        self._parts: dict[str, str] | None = None

    def read(self) -> dict[str, ThrottlePair | None]:
        """Counters by part, ``cpu2`` for a core and ``package0``; a part that cannot be read is None. Raises NoData."""
        if self._parts is None:
            self._parts = self._find()
        return {part: self._pair(stem) for part, stem in self._parts.items()}

    def _find(self) -> dict[str, str]:
        first = f"{_CPU}/cpu{self._allowed[0] if self._allowed else 0}/thermal_throttle"
        if not self._files.exists(first):
            raise self._absence(first)
        parts: dict[str, str] = {}
        for cpu in self._allowed:
            folder = f"{_CPU}/cpu{cpu}"
            if self._first_of_core(cpu):
                parts[f"cpu{cpu}"] = f"{folder}/thermal_throttle/core_throttle"
            parts.setdefault(f"package{self._package(cpu)}", f"{folder}/thermal_throttle/package_throttle")
        return parts

    def _absence(self, path: str) -> NoData:
        info = self._platform.cpuinfo
        if info is not None and info.vendor not in {"GenuineIntel", ""} and not self._platform.is_virtual:
            return NoData(Absence.NOT_APPLICABLE, f"processors of {info.vendor} have no thermal throttle counters")
        return self._platform.no_hardware(
            "thermal throttle counter", f"{path} is not there", remedy="use a kernel built with CONFIG_X86_THERMAL_VECTOR"
        )

    def _first_of_core(self, cpu: int) -> bool:
        """Whether no allowed processor with a smaller number is a thread of the same core; true where that is not told."""
        for name in ("core_cpus_list", "thread_siblings_list"):
            try:
                path = f"{_CPU}/cpu{cpu}/topology/{name}"
                siblings = cpu_list.parse(self._files.read(path), path)
            except (NoData, ParseError):
                continue
            return not any(other < cpu and other in self._allowed for other in siblings)
        return True

    def _package(self, cpu: int) -> int:
        try:
            return self._files.read_int(f"{_CPU}/cpu{cpu}/topology/physical_package_id")
        except NoData:
            return 0

    def _pair(self, stem: str) -> ThrottlePair | None:
        try:
            events = self._files.read_int(f"{stem}_count")
        except NoData:
            return None
        try:
            time_ms = self._files.read_int(f"{stem}_total_time_ms")
        except NoData as absence:
            return ThrottlePair(events, None) if absence.state is Absence.UNSUPPORTED else None
        return ThrottlePair(events, time_ms)


class Clocks:
    """Current frequency of processors, from cpufreq."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)

    def read(self, cpus: tuple[int, ...]) -> dict[int, float]:
        """MHz of those of ``cpus`` that tell it. Raises NoData when none does."""
        found: dict[int, float] = {}
        failed = ""
        for cpu in cpus:
            path = f"{_CPU}/cpu{cpu}/cpufreq/scaling_cur_freq"
            try:
                found[cpu] = sys_cpufreq.parse_mhz(self._files.read(path), path)
            except (NoData, ParseError) as error:
                failed = failed or str(error)
        if not found and failed:
            raise self.absence(cpus[0], failed)
        return found

    def absence(self, cpu: int, failed: str) -> NoData:
        """Why processor ``cpu`` tells no frequency."""
        if self._files.exists(f"{_CPU}/cpu{cpu}/cpufreq"):
            return NoData(Absence.READ_ERROR, failed)
        return self._platform.no_hardware(
            "frequency control", failed, remedy="load a cpufreq driver (acpi-cpufreq, cppc_cpufreq, intel_pstate)"
        )


class Governors:
    """Who chooses the frequency of each allowed processor."""

    def __init__(self, machine: Machine, allowed: tuple[int, ...]) -> None:
        self._files = machine.files
        self._clocks = Clocks(machine)
        self._allowed = allowed

    def read(self) -> dict[int, str]:
        """Governor by processor. Raises NoData when none is told."""
        found: dict[int, str] = {}
        failed = ""
        for cpu in self._allowed:
            try:
                found[cpu] = self._files.read_text(f"{_CPU}/cpu{cpu}/cpufreq/scaling_governor")
            except NoData as absence:
                failed = failed or absence.reason
        if not found:
            raise self._clocks.absence(self._allowed[0] if self._allowed else 0, failed or "no processor may be used")
        return found

    def slow(self, governors: dict[int, str]) -> list[int]:
        """Processors that their governor holds at the lowest frequency."""
        return [cpu for cpu, governor in governors.items() if governor == "powersave" and self._driver(cpu) not in _UNGOVERNED]

    def _driver(self, cpu: int) -> str:
        try:
            return self._files.read_text(f"{_CPU}/cpu{cpu}/cpufreq/scaling_driver")
        except NoData:
            return ""
