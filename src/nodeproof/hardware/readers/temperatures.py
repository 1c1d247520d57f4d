"""Temperatures that a run must not drive too high: processor sensors (hwmon) and thermal zones."""

from typing import NamedTuple

from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import cpu_sensor_names, hwmon

__all__ = ["Temperature", "Temperatures"]

_HWMON = "/sys/class/hwmon"
_ZONES = "/sys/class/thermal"


class Temperature(NamedTuple):
    """One sensor now."""

    kind: str
    """``cpu`` or ``chassis``."""
    name: str
    value_c: float | None
    """None = the sensor does not answer, or nonsense."""
    critical_c: float | None
    """Where the driver itself puts the critical point."""
    alarm: bool
    """The chip says that it is critical."""
    source: str

    def is_critical(self) -> bool:
        """Whether it is at or above its critical point."""
        over = self.value_c is not None and self.critical_c is not None and self.value_c >= self.critical_c
        return over or self.alarm


class _Sensor(NamedTuple):
    kind: str
    name: str
    path: str
    alarm_path: str
    critical_c: float | None


class Temperatures:
    """Finds the sensors at the first look and reads only them afterwards."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._sensors: list[_Sensor] | None = None

    def read(self) -> list[Temperature]:
        """Every sensor, processors first, zones in the order of their numbers. Raises NoData when there is none."""
        if self._sensors is None:
            self._sensors = [*self._processors(), *self._zones()]
        if not self._sensors:
            self._sensors = None
            raise self._platform.no_hardware(
                "temperature sensor", f"neither {_HWMON} nor {_ZONES} has one", remedy="load coretemp, k10temp or the ACPI driver"
            )
        return [self._read(sensor) for sensor in self._sensors]

    def _processors(self) -> list[_Sensor]:
        found: list[_Sensor] = []
        for folder in self._names(_HWMON):
            base = f"{_HWMON}/{folder}"
            chip = self._text(f"{base}/name")
            if not cpu_sensor_names.is_cpu_chip(chip):
                continue
            files = set(self._names(base))
            keys = sorted(name[: -len("_input")] for name in files if name.startswith("temp") and name.endswith("_input"))
            labels = {key: self._text(f"{base}/{key}_label") or key for key in keys}
            for key in keys:
                # Single cores are as hot as their package says, and a hundred files more to read.
                if cpu_sensor_names.hwmon_part(labels[key], set(labels.values())) == cpu_sensor_names.PACKAGE:
                    alarm = f"{base}/{key}_crit_alarm" if f"{key}_crit_alarm" in files else ""
                    name = f"{folder} {chip} {labels[key]}"
                    found.append(_Sensor("cpu", name, f"{base}/{key}_input", alarm, self._limit(f"{base}/{key}_crit")))
        return found

    def _zones(self) -> list[_Sensor]:
        zones = [name for name in self._names(_ZONES) if name.startswith("thermal_zone") and name[12:].isdecimal()]
        found: list[_Sensor] = []
        for zone in sorted(zones, key=lambda name: int(name[12:])):
            base = f"{_ZONES}/{zone}"
            found.append(_Sensor("chassis", self._text(f"{base}/type") or zone, f"{base}/temp", "", self._trip(base)))
        return found

    def _trip(self, base: str) -> float | None:
        """The zone's own critical trip point."""
        for file in self._names(base):
            if file.startswith("trip_point_") and file.endswith("_type") and self._text(f"{base}/{file}") == "critical":
                return self._limit(f"{base}/{file[:-5]}_temp")
        return None

    def _limit(self, path: str) -> float | None:
        limit = self._value(path)
        return limit if limit is not None and limit > 0 else None

    def _read(self, sensor: _Sensor) -> Temperature:
        alarm = bool(sensor.alarm_path) and self._text(sensor.alarm_path) == "1"
        return Temperature(sensor.kind, sensor.name, self._value(sensor.path), sensor.critical_c, alarm, sensor.path)

    def _value(self, path: str) -> float | None:
        try:
            return hwmon.parse_value(self._files.read(path), "temp", path)
        except (NoData, ParseError):
            return None

    def _text(self, path: str) -> str:
        try:
            return self._files.read_text(path)
        except NoData:
            return ""

    def _names(self, path: str) -> list[str]:
        try:
            return self._files.names(path)
        except NoData as absence:
            if absence.state in {Absence.UNSUPPORTED, Absence.READ_ERROR}:
                return []
            raise
