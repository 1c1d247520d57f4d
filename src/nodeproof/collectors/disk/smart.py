"""Component disk: what the disks say of themselves, and how warm they are."""

from collections.abc import Mapping

from nodeproof.clock import rfc3339
from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.services.block_devices import BlockDevices
from nodeproof.collectors.services.hwmon import Chip, Hwmon, Sensor
from nodeproof.collectors.services.smart import Smart, SmartReading
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue.disk import SMART_PERIOD_S, TEMPERATURE_PERIOD_S

__all__ = ["groups"]

_COUNTS = (
    "failing_attributes",
    "reallocated_sectors",
    "pending_sectors",
    "offline_uncorrectable",
    "crc_errors",
    "media_errors",
    "power_on_time",
    "percentage_used",
    "unsafe_shutdowns",
    "error_log_entries",
)
_DETAILS = tuple(
    f"smart_{name}"
    for name in (*_COUNTS, "temperature_limit", "sensor_temperature", "available_spare", "critical_warning", "note")
)
_TEMPERATURE_CHIPS = {"nvme", "drivetemp"}
_LIMIT_C = (1.0, 150.0)
_MOST_ALONE = 4
"""So many disks that are silent for the same reason have an entry each; more share one."""
_MOST_NAMED = 8
_HWMON_LIMITS = {"max": "warning", "crit": "critical"}


def groups(machine: Machine) -> tuple[Group, ...]:
    """Groups of this part of the component."""
    health = _Health(machine)
    return (
        Group(("smart_status", *_DETAILS), health.read, every_s=SMART_PERIOD_S),
        Group(("smart_temperature",), health.read_temperatures, every_s=TEMPERATURE_PERIOD_S),
    )


class _Health:
    """Answers of smartctl, and temperatures that the kernel reads by itself."""

    def __init__(self, machine: Machine) -> None:
        self._devices = machine.shared(BlockDevices)
        self._smart = machine.shared(Smart)
        self._hwmon = machine.shared(Hwmon)
        self._status_labels: dict[tuple[str, str], dict[str, str]] = {}

    def read(self, cycle: Cycle) -> None:
        readings = self._smart.readings()
        warmth = self._warmth()
        answered = {name: reading for name, reading in readings.items() if isinstance(reading, SmartReading)}
        silent = {name: reading for name, reading in readings.items() if isinstance(reading, NoData)}
        taken_at = cycle.timestamp
        for name, reading in answered.items():
            cycle.timestamp = rfc3339(reading.at.wall_s)
            warm = warmth.get(name)
            self._add(cycle, name, reading, warm if isinstance(warm, Sensor) else None)
        cycle.timestamp = taken_at
        _miss_together(cycle, ("smart_status",), silent)
        if not answered:
            _miss_together(cycle, _DETAILS, silent)
            return
        told = {metric.name for metric in cycle.metrics}
        for name in _DETAILS:
            if name not in told and name != "smart_note":  # there need be nothing to remark
                cycle.miss(name, Absence.NOT_APPLICABLE, "none of the disks that answered keeps this")

    def read_temperatures(self, cycle: Cycle) -> None:
        """The kernel's reading where there is one: newer, and it wakes nobody; else that of smartctl."""
        warmth = self._warmth()
        silent: dict[str, NoData] = {}
        taken_at = cycle.timestamp
        for name, reading in self._answers().items():
            labels = {"device": name}
            warm = warmth.get(name)
            if isinstance(warm, Sensor) and warm.value is not None:
                cycle.add("smart_temperature", warm.value, labels)
            elif isinstance(reading, NoData):
                silent[name] = warm if isinstance(warm, NoData) else reading
            elif reading.report.temperature_c is not None:
                cycle.timestamp = rfc3339(reading.at.wall_s)
                cycle.add("smart_temperature", reading.report.temperature_c, labels)
                cycle.timestamp = taken_at
            else:
                why = "the disk sleeps" if reading.asleep else "the disk does not tell its temperature"
                state = Absence.UNKNOWN if reading.asleep else Absence.UNSUPPORTED
                cycle.miss("smart_temperature", state, why, labels)
        _miss_together(cycle, ("smart_temperature",), silent)

    def _answers(self) -> Mapping[str, SmartReading | NoData]:
        """Of every disk that is no virtual one, also where there is no smartctl. Raises NoData when there is no such disk."""
        try:
            return self._smart.readings()
        except NoData as absence:
            physical = [name for name, disk in self._devices.disks().items() if not disk.virtual]
            if not physical:
                raise
            return dict.fromkeys(physical, absence.again())

    def _add(self, cycle: Cycle, name: str, reading: SmartReading, warm: Sensor | None) -> None:
        report = reading.report
        labels = {"device": name}
        if report.no_status is not None:
            cycle.miss_all(("smart_status",), report.no_status, labels)
        else:
            status = self._status_labels.setdefault((name, report.status), {"device": name, "status": report.status})
            cycle.add("smart_status", 0.0 if report.status == "FAILED" else 1.0, status)
        for count, value in report.counts.items():
            cycle.add(f"smart_{count}", value, labels)
        for field, share in (("current", report.spare_percent), ("threshold", report.spare_threshold_percent)):
            if share is not None:
                cycle.add("smart_available_spare", share, {**labels, "field": field})
        if report.critical_warning is not None:
            cycle.add("smart_critical_warning", report.critical_warning, labels)
        for number, value in report.sensors_c.items():
            cycle.add("smart_sensor_temperature", value, {**labels, "sensor": str(number)})
        for limit, value in (_limits(warm) | dict(report.limits_c)).items():
            cycle.add("smart_temperature_limit", value, {**labels, "limit": limit})
        for note in report.notes:
            cycle.add("smart_note", 1.0, {**labels, "note": note})

    def _warmth(self) -> dict[str, Sensor | NoData]:
        """The main sensor of each disk that has a driver for it, or why it does not answer."""
        try:
            chips = self._hwmon.chips()
        except NoData:
            return {}
        by_device = {chip.device: sensor for chip in chips if (sensor := _main_sensor(chip)) is not None}
        disks = self._devices.disks().values()
        return {disk.name: by_device[disk.parent] for disk in disks if disk.parent and disk.parent in by_device}


def _main_sensor(chip: Chip) -> Sensor | NoData | None:
    if chip.name not in _TEMPERATURE_CHIPS:
        return None
    sensors = [sensor for sensor in chip.sensors if sensor.kind == "temp"]
    main = next((sensor for sensor in sensors if sensor.label == "Composite"), sensors[0] if sensors else None)
    if main is None:
        return chip.absence
    return main if main.absence is None else main.absence


def _limits(warm: Sensor | None) -> dict[str, float]:
    if warm is None:
        return {}
    return {
        name: warm.limits[key]
        for key, name in _HWMON_LIMITS.items()
        if key in warm.limits and _LIMIT_C[0] <= warm.limits[key] <= _LIMIT_C[1]
    }


def _miss_together(cycle: Cycle, names: tuple[str, ...], silent: dict[str, NoData]) -> None:
    """Absences by disk; many that are silent for the same reason share one entry without a label."""
    groups_of: dict[tuple[Absence, str, str], list[str]] = {}
    for device, absence in silent.items():
        groups_of.setdefault((absence.state, absence.reason, absence.remedy), []).append(device)
    for (state, reason, remedy), devices in groups_of.items():
        for name in names:
            if len(devices) <= _MOST_ALONE:
                for device in devices:
                    cycle.miss(name, state, reason, {"device": device}, remedy=remedy)
            else:
                shown = ", ".join(devices[:_MOST_NAMED]) + (
                    f" and {len(devices) - _MOST_NAMED} more" if len(devices) > _MOST_NAMED else ""
                )
                cycle.miss(name, state, f"{reason} ({shown})", remedy=remedy)
