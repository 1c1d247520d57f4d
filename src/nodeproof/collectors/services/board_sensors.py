"""Fans, air and power by the kernel's own sensors, for machines whose BMC cannot be asked."""

from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.collectors.base import Cycle
from nodeproof.collectors.services.hwmon import Hwmon
from nodeproof.collectors.services.sensor_names import INLET, OUTLET, fan_identity, pick
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources.ipmitool_sensor import IpmiSensor

__all__ = ["BoardSensors"]

_LOOK_S = 5.0
"""Walking through the chips is not for every cycle; they are read no more often either."""
_EAGER_LOOKS = 6
"""Chips answer a moment after they were first asked: the first looks (two a cycle) do not wait."""
_CARDS = {"amdgpu", "radeon", "nouveau", "xe", "i915"}
"""Chips that sit on a graphics card: their fans and power are not the chassis'."""
_POWER_METER = "power_meter"
"""Driver of the ACPI power meter, which measures the whole machine (Documentation/hwmon/acpi_power_meter.rst)."""


class _Fan(NamedTuple):
    """One fan of a chip."""

    key: tuple[str, str]
    """Folder of the chip and sensor."""
    labels: Labels
    rpm: float | None
    alarm: bool
    why: str
    """Why there is no speed."""


class _Seen(NamedTuple):
    """What the chips say now."""

    fans: tuple[_Fan, ...] = ()
    inlet_c: float | None = None
    outlet_c: float | None = None
    power_w: float | None = None


class BoardSensors:
    """The chassis by hwmon; get it by ``machine.shared(BoardSensors)``."""

    def __init__(self, machine: Machine) -> None:
        self._hwmon = machine.shared(Hwmon)
        self._looked_mono_s = -_LOOK_S
        self._eager_looks = _EAGER_LOOKS
        self._now = _Seen()
        self._turned: set[tuple[str, str]] = set()

    def power(self, at: Instant) -> float | None:
        """Watts of the whole machine; None when no meter tells."""
        return self._look(at).power_w

    def add_to(self, cycle: Cycle) -> None:
        """Add whatever of ``inlet_temp outlet_temp fan_speed fan_state`` there is."""
        seen = self._look(cycle.at)
        if seen.inlet_c is not None:
            cycle.add("inlet_temp", round(seen.inlet_c, 1))
        if seen.outlet_c is not None:
            cycle.add("outlet_temp", round(seen.outlet_c, 1))
        for fan in seen.fans:
            self._add_fan(cycle, fan)

    def _add_fan(self, cycle: Cycle, fan: _Fan) -> None:
        if fan.rpm:
            self._turned.add(fan.key)
        turned = fan.key in self._turned
        if fan.rpm is None:
            cycle.miss("fan_speed", Absence.UNKNOWN, fan.why, fan.labels, source=f"/sys/class/hwmon/{fan.key[0]}")
        elif fan.rpm == 0 and not turned:
            why = "0 RPM and never more: nothing is connected there, or it stands still"
            cycle.miss("fan_speed", Absence.UNKNOWN, why, fan.labels, source=f"/sys/class/hwmon/{fan.key[0]}")
            return
        else:
            cycle.add("fan_speed", fan.rpm, fan.labels)
        if turned:
            cycle.add("fan_state", 2.0 if not fan.rpm or fan.alarm else 0.0, fan.labels)

    def _look(self, at: Instant) -> _Seen:
        if at.mono_s - self._looked_mono_s >= _LOOK_S or self._eager_looks:
            self._looked_mono_s = at.mono_s
            self._eager_looks = max(0, self._eager_looks - 1)
            self._now = self._read()
        return self._now

    def _read(self) -> _Seen:
        try:
            chips = [chip for chip in self._hwmon.chips() if chip.name not in _CARDS]
        except NoData:
            return _Seen()
        fans: list[_Fan] = []
        used: set[tuple[str, str]] = set()
        air: list[IpmiSensor] = []
        power_w: float | None = None
        for chip in chips:
            for sensor in chip.sensors:
                if sensor.kind == "fan":
                    identity = fan_identity(sensor.label)
                    if identity in used:
                        identity = (f"{chip.name} {sensor.label}", identity[1])
                    used.add(identity)
                    labels = {"fan": identity[0], "direction": identity[1]}
                    why = sensor.absence.reason if sensor.absence is not None else ""
                    fans.append(_Fan((chip.folder, sensor.key), labels, sensor.value, bool(sensor.alarm), why))
                elif sensor.kind == "temp" and sensor.value is not None:
                    air.append(IpmiSensor(sensor.label, sensor.value, "°C", "ok"))
                elif sensor.kind == "power" and chip.name == _POWER_METER and sensor.value:
                    power_w = sensor.value
        return _Seen(tuple(fans), _hottest(pick(air, INLET)), _hottest(pick(air, OUTLET)), power_w)


def _hottest(sensors: list[IpmiSensor]) -> float | None:
    return max((sensor.value for sensor in sensors if sensor.value is not None), default=None)
