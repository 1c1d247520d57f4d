"""Fans by a BMC's sensors, and which of its sensors fell silent.

A fan header without a fan says the same as a dead fan: nothing. So silence is a fault only of a fan that was heard before, and
only when it lasts; a fan that the tool left out of its table proves nothing at all.
"""

from nodeproof.collectors.base import Cycle
from nodeproof.collectors.services.sensor_names import fan_labels, is_fan
from nodeproof.errors import Absence
from nodeproof.model.metric import Labels
from nodeproof.sources.ipmitool_sensor import IpmiSensor

__all__ = ["GRAVITY", "BmcFans", "Silence", "absence_of"]

GRAVITY = {"nc": 1, "cr": 2, "nr": 3}
"""How far beyond its limits a sensor of this status is."""
_LOST_SCANS = 2
"""A sensor that had readings is lost when so many scans in a row bring none: one can be torn."""
_MAX_MISSING = 8
"""Fans without a reading that are named one by one."""
_FAULT = 2


class Silence:
    """For each sensor that ever had a reading: how many scans in a row brought none."""

    def __init__(self) -> None:
        self._scans: dict[str, int] = {}

    def note(self, sensors: list[IpmiSensor]) -> None:
        """Take one scan. Sensors that it does not list stay as they were."""
        for sensor in sensors:
            if sensor.value is not None:
                self._scans[sensor.name] = 0
            elif sensor.name in self._scans:
                self._scans[sensor.name] += 1

    def was_heard(self, name: str) -> bool:
        """Whether the sensor had a reading at any time."""
        return name in self._scans

    def is_lost(self, name: str) -> bool:
        """Whether it had readings, and the last scans brought none."""
        return self._scans.get(name, 0) >= _LOST_SCANS


class BmcFans:
    """Speed and state of each fan."""

    def __init__(self, silence: Silence) -> None:
        self._silence = silence
        self._known: dict[str, Labels] = {}

    def make(self, cycle: Cycle, sensors: list[IpmiSensor]) -> None:
        """Add the fans of one scan."""
        fans = [sensor for sensor in sensors if is_fan(sensor)]
        if not fans and not self._known:
            for name in ("fan_speed", "fan_duty", "fan_state"):
                cycle.miss(name, Absence.UNSUPPORTED, "this BMC has no sensor for a fan")
            return
        self._unit(cycle, fans)
        labels = fan_labels(fans)
        gaps: list[tuple[Labels, Absence, str]] = []
        for fan in fans:
            if fan.value is None:
                gaps.append(self._gap(cycle, fan, labels[fan.name]))
            else:
                self._known[fan.name] = labels[fan.name]
                self._reading(cycle, fan, fan.value, labels[fan.name])
        for name, kept in self._known.items():
            if name not in labels:
                gaps.append((kept, Absence.UNKNOWN, f"{name} was listed before and is not in the BMC's last answer"))
                cycle.miss("fan_state", *gaps[-1][1:], kept)
        for where, state, reason in gaps[:_MAX_MISSING]:
            cycle.miss("fan_speed", state, reason, where)
        if len(gaps) > _MAX_MISSING:
            cycle.miss("fan_speed", Absence.UNKNOWN, f"{len(gaps) - _MAX_MISSING} more fans have no reading")

    @staticmethod
    def _unit(cycle: Cycle, fans: list[IpmiSensor]) -> None:
        """Say which of the two ways of telling a speed this BMC does not use."""
        units = {fan.unit for fan in fans}
        if "%" in units and "RPM" not in units:
            cycle.miss("fan_speed", Absence.UNSUPPORTED, "this BMC tells the speed of fans as shares only (fan_duty)")
        elif "%" not in units:
            cycle.miss("fan_duty", Absence.NOT_APPLICABLE, "this BMC tells the speed of fans in RPM (fan_speed)")

    @staticmethod
    def _reading(cycle: Cycle, fan: IpmiSensor, value: float, labels: Labels) -> None:
        if fan.unit == "RPM":
            cycle.add("fan_speed", value, labels)
        else:
            cycle.add("fan_duty", round(value, 1), labels)
        cycle.add("fan_state", min(GRAVITY.get(fan.status, 0), _FAULT), labels)

    def _gap(self, cycle: Cycle, fan: IpmiSensor, labels: Labels) -> tuple[Labels, Absence, str]:
        if not self._silence.was_heard(fan.name):
            return labels, absence_of(fan), f"{fan.name}: {fan.problem}"
        reason = f"{fan.name}: {fan.problem}, though it had readings before"
        if self._silence.is_lost(fan.name):
            cycle.add("fan_state", _FAULT, labels)
        else:
            cycle.miss("fan_state", absence_of(fan), reason, labels)
        return labels, absence_of(fan), reason


def absence_of(sensor: IpmiSensor) -> Absence:
    """A sensor that says something impossible is broken; one that says nothing may not be there."""
    return Absence.UNKNOWN if sensor.problem.startswith("no reading") or sensor.doubted is not None else Absence.READ_ERROR
