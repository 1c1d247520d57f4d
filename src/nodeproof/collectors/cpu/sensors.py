"""Temperatures and power of processors and memory: from the kernel's sensors, the processor's energy counters, and the BMC.

Every source adds its sensors; a metric is missing when none of them has it, and then each source's reason is told.
"""

from nodeproof.clock import Instant
from nodeproof.collectors.base import Cycle
from nodeproof.collectors.cpu.energy import Energy
from nodeproof.collectors.cpu.siblings import packages
from nodeproof.collectors.services.hwmon import Chip, Hwmon, Sensor
from nodeproof.collectors.services.ipmi import Ipmi
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData, NodeproofError
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import cpu_sensor_names

__all__ = ["SENSORS", "Sensors"]

_BOTH = ("temperature", "mem_temperature", "power")
"""Metrics that several sources may bring."""
SENSORS = (*_BOTH, "core_temperature", "energy", "domain_power")
"""Metrics of :class:`Sensors`."""

_DRIVERS = {"GenuineIntel": "modprobe coretemp", "AuthenticAMD": "modprobe k10temp", "HygonGenuine": "modprobe k10temp"}
_MEMORY_DRIVERS = "load the driver of the modules' sensors (modprobe jc42 for DDR4, spd5118 for DDR5), or ask the BMC (ipmitool)"
_GRAVEST_FIRST = (
    Absence.NO_PERMISSION,
    Absence.READ_ERROR,
    Absence.STALE,
    Absence.UNKNOWN,
    Absence.UNSUPPORTED,
    Absence.NOT_APPLICABLE,
)
"""Which reason speaks for a metric that no source has: the one that somebody can do something about."""


class _Found:
    """What one reading of all sources brought."""

    def __init__(self, cycle: Cycle, labels: dict[tuple[str, str], Labels]) -> None:
        self._cycle = cycle
        self._into = cycle
        self._labels = labels
        self._seen: set[tuple[str, str, str]] = set()
        self.brought: set[str] = set()
        self.absences: dict[str, list[NoData]] = {name: [] for name in _BOTH}

    def read_at(self, at: Instant | None) -> None:
        """What follows was read at that moment by a slow source; None = in this cycle."""
        if self._into is not self._cycle:
            self._cycle.take(self._into)
        self._into = self._cycle if at is None else self._cycle.as_of(at)

    def add(self, name: str, cpu: str, sensor: str, value: float, device: str) -> None:
        """A reading; sensors of one name on one processor are told apart by their device."""
        if (name, cpu, sensor) in self._seen:
            sensor = f"{sensor} ({device})"
            if (name, cpu, sensor) in self._seen:
                return
        self._seen.add((name, cpu, sensor))
        self.brought.add(name)
        labels = self._labels.setdefault((cpu, sensor), {"cpu": cpu, "sensor": sensor})
        self._into.add(name, round(value, 2 if name == "power" else 1), labels)

    def absent(self, names: tuple[str, ...], absence: NoData) -> None:
        """One source has nothing for ``names``."""
        for name in names:
            self.absences[name].append(absence)


class Sensors:
    """Joins hwmon, RAPL and the BMC."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._hwmon = machine.shared(Hwmon)
        self._ipmi = machine.shared(Ipmi)
        self._platform = machine.shared(Platform)
        self._energy = Energy(machine)
        self._labels: dict[tuple[str, str], Labels] = {}

    def read(self, cycle: Cycle) -> None:
        """Ask all three; none of them blocks."""
        found = _Found(cycle, self._labels)
        self._read_hwmon(cycle, found)
        self._read_energy(cycle, found)
        self._read_bmc(cycle, found)
        found.read_at(None)
        for name in _BOTH:
            if name not in found.brought:
                cycle.miss_all((name,), _joined(found.absences[name]))

    def _read_hwmon(self, cycle: Cycle, found: _Found) -> None:
        try:
            chips = self._hwmon.chips()
        except NoData as absence:
            if absence.state is Absence.UNSUPPORTED:
                self._without_chip(cycle, found, absence.reason)
                found.absent(("mem_temperature",), self._no_memory_sensor(absence.reason))
            else:
                found.absent(("temperature", "mem_temperature"), absence)
                cycle.miss_all(("core_temperature",), absence)
            return
        processors = [chip for chip in chips if cpu_sensor_names.is_cpu_chip(chip.name)]
        modules = [chip for chip in chips if cpu_sensor_names.is_memory_chip(chip.name)]
        for chip, cpu in zip(processors, self._cpu_numbers(processors), strict=True):
            found.read_at(chip.at)
            self._processor(cycle, found, chip, cpu)
        for chip in modules:
            found.read_at(chip.at)
            self._module(found, chip)
        if not processors:
            self._without_chip(cycle, found, f"/sys/class/hwmon has no processor among {_names(chips)}")
        if not modules:
            found.absent(
                ("mem_temperature",), self._no_memory_sensor(f"/sys/class/hwmon has no memory module among {_names(chips)}")
            )

    def _without_chip(self, cycle: Cycle, found: _Found, reason: str) -> None:
        info = self._platform.cpuinfo
        driver = _DRIVERS.get(info.vendor if info is not None else "", "")
        remedy = (
            f"load the driver: {driver}" if driver else "ask the BMC (ipmitool): this kind of processor has no driver of its own"
        )
        absence = self._platform.no_hardware("processor temperature sensor", reason, remedy=remedy)
        found.absent(("temperature",), absence)
        cycle.miss_all(("core_temperature",), absence)

    def _no_memory_sensor(self, reason: str) -> NoData:
        return self._platform.no_hardware("memory temperature sensor", reason, remedy=_MEMORY_DRIVERS)

    def _cpu_numbers(self, chips: list[Chip]) -> list[str]:
        """Socket of each chip: chips of a kind are spread evenly over the sockets, in the order of their devices."""
        try:
            sockets = len(packages(self._files))
        except NodeproofError:
            sockets = 1
        numbers: dict[str, str] = {}
        for name in {chip.name for chip in chips}:
            alike = sorted(
                (chip for chip in chips if chip.name == name), key=lambda chip: (len(chip.device), chip.device, chip.folder)
            )
            for at, chip in enumerate(alike):
                numbers[chip.folder] = str(at * sockets // len(alike) if len(alike) >= sockets else at)
        return [numbers[chip.folder] for chip in chips]

    def _processor(self, cycle: Cycle, found: _Found, chip: Chip, cpu: str) -> None:
        if chip.absence is not None:
            labels = {"cpu": cpu, "sensor": _chip_name(chip)}
            cycle.miss_all(("temperature", "core_temperature"), chip.absence, labels)
            found.brought.add("temperature")
            return
        temperatures = [sensor for sensor in chip.sensors if sensor.kind == "temp"]
        labels_here = {sensor.label for sensor in temperatures}
        cores: list[Sensor] = []
        others: list[Sensor] = []
        for sensor in temperatures:
            part = cpu_sensor_names.hwmon_part(sensor.label, labels_here)
            if part:
                (cores if part == cpu_sensor_names.CORE else others).append(sensor)
        for sensor in others:
            if sensor.value is None:
                cycle.miss_all(("temperature",), _absence(sensor), {"cpu": cpu, "sensor": sensor.label})
                found.brought.add("temperature")
            else:
                found.add("temperature", cpu, sensor.label, sensor.value, chip.device)
        hottest = max((sensor.value for sensor in cores if sensor.value is not None), default=None)
        if not others and hottest is not None:
            # Older processors have no sensor of the package: its hottest core stands for it.
            found.add("temperature", cpu, "hottest core", hottest, chip.device)
        if cycle.wants("core_temperature"):
            self._cores(cycle, found, cpu, chip, cores)
        for sensor in chip.sensors:
            if sensor.kind == "power" and sensor.value is not None:
                found.add("power", cpu, sensor.label, sensor.value, chip.device)

    @staticmethod
    def _cores(cycle: Cycle, found: _Found, cpu: str, chip: Chip, cores: list[Sensor]) -> None:
        failed = [sensor for sensor in cores if sensor.value is None]
        for sensor in cores:
            if sensor.value is not None:
                found.add("core_temperature", cpu, sensor.label, sensor.value, chip.device)
        if not cores:
            reason = f"{chip.name} has no sensors of single cores"
            cycle.miss("core_temperature", Absence.UNSUPPORTED, reason, {"cpu": cpu, "sensor": _chip_name(chip)})
        elif failed:
            first = _absence(failed[0])
            reason = f"{len(failed)} of {len(cores)} cores: {first.reason}"
            cycle.miss("core_temperature", first.state, reason, {"cpu": cpu, "sensor": _chip_name(chip)})

    @staticmethod
    def _module(found: _Found, chip: Chip) -> None:
        if chip.absence is not None:
            found.absent(("mem_temperature",), chip.absence)
        for sensor in chip.sensors:
            if sensor.kind != "temp":
                continue
            if sensor.value is None:
                found.absent(("mem_temperature",), _absence(sensor))
            else:
                found.add("mem_temperature", "0", _chip_name(chip), sensor.value, chip.folder)

    def _read_energy(self, cycle: Cycle, found: _Found) -> None:
        try:
            powers = self._energy.read(cycle)
        except NoData as absence:
            found.absent(("power",), absence)
            told = {metric.name for metric in cycle.metrics} | {entry.name for entry in cycle.missing}
            cycle.miss_all((name for name in ("energy", "domain_power") if name not in told), absence)
            return
        found.read_at(None)
        for power in powers:
            found.add("power", power.package, power.sensor, power.watts, "RAPL")

    def _read_bmc(self, cycle: Cycle, found: _Found) -> None:
        try:
            answer = self._ipmi.sensors()
        except NoData as absence:
            found.absent(_BOTH, absence)
            return
        found.read_at(answer.at)
        silent: dict[str, list[str]] = {name: [] for name in _BOTH}
        for sensor in answer.value:
            name = cpu_sensor_names.bmc_metric(sensor.name, sensor.unit)
            if not name:
                continue
            if sensor.value is None:
                silent[name].append(f"{sensor.name}: {sensor.problem or 'no reading'}")
            else:
                found.add(name, cpu_sensor_names.first_number(sensor.name), sensor.name, sensor.value, "BMC")
        for name, quiet in silent.items():
            if not quiet:
                found.absent((name,), NoData(Absence.UNSUPPORTED, "the BMC has no such sensor"))
                continue
            reason = f"the BMC reads nothing from {len(quiet)} sensors, the first {quiet[0]}"
            found.absent((name,), NoData(Absence.UNKNOWN, reason))
            # Memory slots without a module also read nothing: there it says something only when no module reads.
            if name in found.brought and name != "mem_temperature":
                cycle.miss(name, Absence.UNKNOWN, reason)


def _absence(sensor: Sensor) -> NoData:
    return sensor.absence or NoData(Absence.UNKNOWN, f"{sensor.label} gave no reading")


def _chip_name(chip: Chip) -> str:
    return f"{chip.name} {chip.device}".strip()


def _names(chips: list[Chip]) -> str:
    return ", ".join(sorted({chip.name for chip in chips}))


def _joined(absences: list[NoData]) -> NoData:
    """The gravest absence, with everybody's reason."""
    gravest = min(absences, key=lambda absence: _GRAVEST_FIRST.index(absence.state))
    reasons = dict.fromkeys(absence.reason for absence in absences)
    remedies = dict.fromkeys(absence.remedy for absence in absences if absence.remedy)
    return NoData(gravest.state, "; ".join(reasons), remedy=gravest.remedy or next(iter(remedies), ""))
