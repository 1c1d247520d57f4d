"""Frequencies and who governs them, from cpufreq. One file a processor: a slow group."""

from nodeproof.collectors.base import Cycle
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import cpu_list, sys_cpufreq

__all__ = ["BOOST", "CURRENT", "GOVERNORS", "HARDWARE", "Frequencies"]

_CPU = "/sys/devices/system/cpu"

CURRENT = ("frequency", "avg_freq")
HARDWARE = ("min_freq", "max_freq")
GOVERNORS = ("allowed_max_freq", "governor_cores")
BOOST = ("boost_enabled",)


class Frequencies:
    """Reads ``cpufreq`` of every online processor."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._labels: dict[int, dict[str, str]] = {}

    def current(self, cycle: Cycle) -> None:
        """Frequency of each processor, and their mean."""
        values: dict[int, float] = {}
        failed: list[str] = []
        online = self._online()
        for cpu in online:
            try:
                values[cpu] = self._mhz(cpu, "scaling_cur_freq")
            except (NoData, ParseError) as error:
                failed.append(str(error))
        if not values:
            raise self._absence(failed)
        if self._labels.keys() != values.keys():
            self._labels = {cpu: self._labels.get(cpu) or {"core": str(cpu)} for cpu in values}
        for cpu, mhz in values.items():
            cycle.add("frequency", round(mhz), self._labels[cpu])
        cycle.add("avg_freq", round(sum(values.values()) / len(values), 2))
        if failed:
            cycle.miss("frequency", Absence.READ_ERROR, f"{len(failed)} of {len(online)} processors, the first: {failed[0]}")

    def hardware(self, cycle: Cycle) -> None:
        """Bounds of the hardware: those of the first processor that tells them."""
        for name, item in (("min_freq", "cpuinfo_min_freq"), ("max_freq", "cpuinfo_max_freq")):
            failed: list[str] = []
            for cpu in self._online():
                try:
                    cycle.add(name, self._mhz(cpu, item))
                    break
                except (NoData, ParseError) as error:
                    failed.append(str(error))
            else:
                cycle.miss_all((name,), self._absence(failed))

    def governors(self, cycle: Cycle) -> None:
        """Lowest cap that software has set, and how many processors each governor has."""
        caps: list[float] = []
        governed: dict[str, int] = {}
        failed: list[str] = []
        driver = ""
        for cpu in self._online():
            folder = f"{_CPU}/cpu{cpu}/cpufreq"
            try:
                # One driver serves all processors (cpufreq_register_driver), so one file tells it.
                driver = driver or self._files.read_text(f"{folder}/scaling_driver")
                caps.append(self._mhz(cpu, "scaling_max_freq"))
                governor = self._files.read_text(f"{folder}/scaling_governor")
            except (NoData, ParseError) as error:
                failed.append(str(error))
                continue
            governed[governor] = governed.get(governor, 0) + 1
        if not caps:
            raise self._absence(failed)
        cycle.add("allowed_max_freq", min(caps))
        for governor, cores in governed.items():
            cycle.add("governor_cores", cores, {"governor": governor, "driver": driver})
        if failed:
            cycle.miss("governor_cores", Absence.READ_ERROR, f"{len(failed)} processors, the first: {failed[0]}")

    def boost(self, cycle: Cycle) -> None:
        """The switch of the driver in use: one says boost, Intel's says no turbo."""
        for path, enabled in ((f"{_CPU}/cpufreq/boost", 1), (f"{_CPU}/intel_pstate/no_turbo", 0)):
            if self._files.exists(path):
                cycle.add("boost_enabled", 1 if self._files.read_int(path) == enabled else 0)
                return
        raise self._absence([f"neither {_CPU}/cpufreq/boost nor {_CPU}/intel_pstate/no_turbo is there"])

    def _online(self) -> list[int]:
        return cpu_list.parse(self._files.read(f"{_CPU}/online"), f"{_CPU}/online")

    def _mhz(self, cpu: int, item: str) -> float:
        path = f"{_CPU}/cpu{cpu}/cpufreq/{item}"
        return sys_cpufreq.parse_mhz(self._files.read(path), path)

    def _absence(self, failed: list[str]) -> NoData:
        """Why no processor told: no cpufreq at all, or files that exist and cannot be used."""
        first = failed[0] if failed else f"{_CPU}/online is empty"
        if failed and self._files.exists(f"{_CPU}/cpu0/cpufreq"):
            return NoData(Absence.READ_ERROR, first)
        return self._platform.no_hardware(
            "frequency control",
            first,
            remedy="load a cpufreq driver (acpi-cpufreq, cppc_cpufreq) and let the firmware leave frequencies to the system",
        )
