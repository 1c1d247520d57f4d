"""Component chassis: power, air, fans, power supplies and the event log, as the BMC tells them.

Everything comes from the last answers of :class:`Ipmi`, so a cycle costs next to nothing whatever the BMC does; readings bear the
time of the answer they come from, and are made once for each answer. Without a BMC that can be asked, fans, air and power are
taken from the kernel's own sensors where it has any.
"""

from collections.abc import Callable

from nodeproof.clock import Instant
from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.collectors.services.board_sensors import BoardSensors
from nodeproof.collectors.services.ipmi import Ipmi, Sel
from nodeproof.collectors.services.sensor_names import (
    INLET,
    OUTLET,
    POWER,
    Rule,
    fan_identity,
    fan_labels,
    is_elsewhere,
    is_fan,
    is_fan_power,
    pick,
    psu_identity,
)
from nodeproof.errors import Absence, NoData
from nodeproof.host.background import Answer
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources.ipmitool_chassis import ChassisStatus, PowerSupply, PsuState
from nodeproof.sources.ipmitool_dcmi import DcmiPower
from nodeproof.sources.ipmitool_sensor import IpmiSensor

__all__ = ["create"]

_MAX_MISSING = 8
"""Sensors without a reading that are named one by one."""
_LOST_SCANS = 2
"""A sensor that had readings is lost when so many scans in a row bring none: one can be torn."""
_MAX_ABNORMAL = 64
_MAX_TEXT = 120
_GRAVITY = {"nc": 1, "cr": 2, "nr": 3}
_TYPES = {"°C": "temperature", "RPM": "fan", "V": "voltage", "W": "power", "A": "current", "%": "share"}
_NOT_HERE = {Absence.NOT_APPLICABLE, Absence.UNSUPPORTED, Absence.NO_PERMISSION}
"""Absences that mean that the BMC cannot be asked at all, unlike one that does not answer."""
_GONE = 3
"""``psu_state`` of a supply that was there and is not any more."""
_AIR: tuple[tuple[str, Rule], ...] = (("inlet_temp", INLET), ("outlet_temp", OUTLET))
_COUNTS: dict[str, Labels] = {state: {"state": state} for state in ("reading", "discrete", "no_reading", "lost", "abnormal")}


def create(machine: Machine, selection: Selection) -> Collector:
    """The collector of this component."""
    ipmi = machine.shared(Ipmi)
    board = machine.shared(BoardSensors)
    sensors = _Sensors(ipmi, board)
    return GroupCollector(
        "chassis",
        (
            Group(("bmc_up", "bmc_answer_age"), _Bmc(ipmi).read),
            Group(("power",), _Power(ipmi, board).read),
            Group(_Sensors.NAMES, sensors.read),
            Group(("chassis_fault", "intrusion"), _Status(ipmi).read),
            Group(("psu_state", "psu_redundancy"), _Supplies(ipmi).read),
            Group(_Log.NAMES, _Log(ipmi).read),
        ),
        machine,
        selection,
    )


class _Made:
    """Readings made from one answer, given again in every cycle until there is a newer one."""

    def __init__(self) -> None:
        self._from: tuple[object, ...] = ()
        self._cycle: Cycle | None = None

    def give(self, cycle: Cycle, answers: tuple[object, ...], at: Instant, make: Callable[[Cycle], None]) -> None:
        """Add what ``make`` makes of ``answers``, which were got at ``at``."""
        same = len(answers) == len(self._from) and all(map(_is, answers, self._from))
        if self._cycle is None or not same:
            self._cycle = cycle.as_of(at)
            make(self._cycle)
            self._from = answers
        cycle.take(self._cycle)


def _is(one: object, other: object) -> bool:
    return one is other


class _Bmc:
    """Whether the BMC answers."""

    def __init__(self, ipmi: Ipmi) -> None:
        self._ipmi = ipmi

    def read(self, cycle: Cycle) -> None:
        reach = self._ipmi.reach()
        cycle.add("bmc_up", 1.0 if reach.up else 0.0)
        if reach.answered is None:
            cycle.miss("bmc_answer_age", Absence.UNKNOWN, f"the BMC has not answered once: {reach.reason}")
        else:
            cycle.add("bmc_answer_age", round(max(0.0, cycle.at.mono_s - reach.answered.mono_s), 1))


class _Power:
    """Power of the whole machine."""

    def __init__(self, ipmi: Ipmi, board: BoardSensors) -> None:
        self._ipmi = ipmi
        self._board = board
        self._made = _Made()

    def read(self, cycle: Cycle) -> None:
        try:
            sensors = self._ipmi.sensors()
        except NoData as absence:
            self._without_sensors(cycle, absence)
            return
        found = pick(sensors.value, POWER)
        # A machine that runs this program draws power: 0 is what a BMC says that cannot measure it.
        watts = max((sensor.value for sensor in found if sensor.value), default=None)
        if watts is not None:
            value = round(watts, 2)
            self._made.give(cycle, (sensors,), sensors.at, lambda past: past.add("power", value))
            return
        why = "; ".join(f"{sensor.name}: {sensor.problem or '0 W'}" for sensor in found[:3]) or "no sensor of that meaning"
        try:
            power = self._ipmi.power()
        except NoData as absence:
            raise NoData(absence.state, f"{why}; {absence.reason}", remedy=absence.remedy) from None
        self._give(cycle, power, f"{why}; ")

    def _without_sensors(self, cycle: Cycle, absence: NoData) -> None:
        """DCMI is asked while the sensors are not known; the kernel, when there is no BMC to ask."""
        if absence.state in _NOT_HERE:
            watts = self._board.power(cycle.at)
            if watts is None:
                raise absence
            cycle.add("power", round(watts, 2))
            return
        try:
            power = self._ipmi.power()
        except NoData:
            raise absence from None
        self._give(cycle, power, "")

    def _give(self, cycle: Cycle, power: Answer[DcmiPower], why: str) -> None:
        watts = power.value.instantaneous_w
        if watts is None:
            cycle.miss("power", Absence.UNKNOWN, f"{why}ipmitool dcmi: {power.value.problem}")
            return
        self._made.give(cycle, (power,), power.at, lambda past: past.add("power", round(watts, 2)))


class _Sensors:
    """Everything of the sensor table but the power of the whole."""

    NAMES = (
        "inlet_temp",
        "outlet_temp",
        "fan_speed",
        "fan_duty",
        "fan_state",
        "fan_power",
        "psu_power",
        "board_temp",
        "voltage",
        "sensor_status",
        "sensor_count",
    )

    def __init__(self, ipmi: Ipmi, board: BoardSensors) -> None:
        self._ipmi = ipmi
        self._board = board
        self._made = _Made()
        self._silent: dict[str, int] = {}
        self._abnormal: dict[str, Labels] = {}

    def read(self, cycle: Cycle) -> None:
        try:
            answer = self._ipmi.sensors()
        except NoData as absence:
            if absence.state in _NOT_HERE:
                self._board.add_to(cycle)
            raise
        self._made.give(cycle, (answer,), answer.at, lambda past: self._make(past, answer.value))

    def _make(self, cycle: Cycle, sensors: list[IpmiSensor]) -> None:
        self._count_silence(sensors)
        taken = self._air(cycle, sensors)
        self._fans(cycle, [sensor for sensor in sensors if is_fan(sensor)])
        for sensor in sensors:
            if sensor.value is not None:
                self._place(cycle, sensor, taken)
        self._judge(cycle, sensors)
        if not any(is_fan_power(sensor) for sensor in sensors):
            cycle.miss("fan_power", Absence.UNSUPPORTED, "this BMC has no sensor for the power of its fans")

    def _count_silence(self, sensors: list[IpmiSensor]) -> None:
        """Scans in a row without a reading, of each sensor that ever had one."""
        heard = {sensor.name for sensor in sensors if sensor.value is not None}
        for name in self._silent:
            self._silent[name] += 1
        self._silent.update(dict.fromkeys(heard, 0))

    def _is_lost(self, name: str) -> bool:
        return self._silent.get(name, 0) >= _LOST_SCANS

    @staticmethod
    def _air(cycle: Cycle, sensors: list[IpmiSensor]) -> set[str]:
        """Inlet and outlet; the names that served."""
        taken: set[str] = set()
        for name, rule in _AIR:
            found = pick(sensors, rule)
            taken.update(sensor.name for sensor in found)
            values = [sensor.value for sensor in found if sensor.value is not None]
            if values:
                cycle.add(name, round(max(values), 1))
            elif found:
                cycle.miss(name, _absence(found[0]), f"{found[0].name}: {found[0].problem}")
            else:
                cycle.miss(name, Absence.UNSUPPORTED, "none of the BMC's sensors has a name of that meaning")
        return taken

    def _fans(self, cycle: Cycle, fans: list[IpmiSensor]) -> None:
        if not fans:
            for name in ("fan_speed", "fan_duty", "fan_state"):
                cycle.miss(name, Absence.UNSUPPORTED, "this BMC has no sensor for a fan")
            return
        names = fan_labels(fans)
        silent: list[tuple[IpmiSensor, Labels]] = []
        for fan in fans:
            labels = names[fan.name]
            if fan.value is None:
                silent.append((fan, labels))
                if self._is_lost(fan.name):
                    cycle.add("fan_state", 2, labels)
                continue
            if fan.unit == "RPM":
                cycle.add("fan_speed", fan.value, labels)
            else:
                cycle.add("fan_duty", round(fan.value, 1), labels)
            cycle.add("fan_state", min(_GRAVITY.get(fan.status, 0), 2), labels)
        for fan, labels in silent[:_MAX_MISSING]:
            had = ", though it had readings before" if fan.name in self._silent else ""
            cycle.miss("fan_speed", _absence(fan), f"{fan.name}: {fan.problem}{had}", labels)
        if len(silent) > _MAX_MISSING:
            cycle.miss("fan_speed", Absence.UNKNOWN, f"{len(silent) - _MAX_MISSING} more fans have no reading")

    @staticmethod
    def _place(cycle: Cycle, sensor: IpmiSensor, taken: set[str]) -> None:
        """A reading that has labels of its own."""
        value = sensor.value if sensor.value is not None else 0.0
        if is_fan_power(sensor):
            cycle.add("fan_power", round(value, 2), {"fan": fan_identity(sensor.name)[0]})
        elif (psu := psu_identity(sensor)) is not None:
            labels = {"psu": psu[0], "direction": psu[1]} if psu[1] else {"psu": psu[0]}
            cycle.add("psu_power", round(value, 2), labels)
        elif sensor.unit == "V":
            cycle.add("voltage", round(value, 3), {"sensor": sensor.name})
        elif sensor.unit == "°C" and sensor.name not in taken and not is_elsewhere(sensor.name):
            cycle.add("board_temp", round(value, 1), {"sensor": sensor.name})

    def _judge(self, cycle: Cycle, sensors: list[IpmiSensor]) -> None:
        """Sensors beyond their limits by the BMC's own judgement, and how many there are of each sort."""
        counts = dict.fromkeys(_COUNTS, 0)
        for sensor in sensors:
            gravity = _GRAVITY.get(sensor.status, 0) if sensor.value is not None else 0
            counts[_sort(sensor)] += 1
            counts["abnormal"] += gravity > 0
            counts["lost"] += sensor.value is None and self._is_lost(sensor.name)
            labels = self._abnormal.get(sensor.name)
            if gravity and labels is None and len(self._abnormal) < _MAX_ABNORMAL:
                labels = {"sensor": sensor.name[:_MAX_TEXT], "type": _TYPES.get(sensor.unit, "other")}
                self._abnormal[sensor.name] = labels
            if labels is not None and sensor.value is not None:
                cycle.add("sensor_status", gravity, labels)
        for state, labels in _COUNTS.items():
            cycle.add("sensor_count", counts[state], labels)


def _sort(sensor: IpmiSensor) -> str:
    if sensor.value is not None:
        return "reading"
    return "no_reading" if sensor.problem or not sensor.discrete_state else "discrete"


def _absence(sensor: IpmiSensor) -> Absence:
    """A sensor that says something impossible is broken; one that says nothing may not be there."""
    return Absence.UNKNOWN if sensor.problem.startswith("no reading") or sensor.doubted is not None else Absence.READ_ERROR


class _Status:
    """Faults and cover."""

    def __init__(self, ipmi: Ipmi) -> None:
        self._ipmi = ipmi
        self._made = _Made()

    def read(self, cycle: Cycle) -> None:
        answer = self._ipmi.chassis()
        self._made.give(cycle, (answer,), answer.at, lambda past: self._make(past, answer.value))

    @staticmethod
    def _make(cycle: Cycle, status: ChassisStatus) -> None:
        for fault, present in status.faults.items():
            cycle.add("chassis_fault", 1.0 if present else 0.0, {"fault": fault})
        if not status.faults:
            cycle.miss("chassis_fault", Absence.UNSUPPORTED, "this BMC reports no chassis faults")
        if status.intrusion is None:
            cycle.miss("intrusion", Absence.UNSUPPORTED, "this BMC does not report whether the cover is open")
        else:
            cycle.add("intrusion", 1.0 if status.intrusion else 0.0)


class _Supplies:
    """Power supplies and their redundancy."""

    def __init__(self, ipmi: Ipmi) -> None:
        self._ipmi = ipmi
        self._made = _Made()
        self._seen: set[str] = set()

    def read(self, cycle: Cycle) -> None:
        answer = self._ipmi.supplies()
        self._made.give(cycle, (answer,), answer.at, lambda past: self._make(past, answer.value))

    def _make(self, cycle: Cycle, supplies: list[PowerSupply]) -> None:
        sets = [supply for supply in supplies if supply.redundancy is not None]
        for supply in sets:
            cycle.add("psu_redundancy", float(supply.redundancy or 0), {"sensor": supply.name})
        if not sets:
            cycle.miss("psu_redundancy", Absence.UNSUPPORTED, "this BMC reports no redundancy of power supplies")
        single = [supply for supply in supplies if supply.redundancy is None]
        for supply in single:
            self._one(cycle, supply, {"psu": supply.name})
        if not single:
            cycle.miss("psu_state", Absence.UNSUPPORTED, "this BMC has no sensor for the state of a power supply")

    def _one(self, cycle: Cycle, supply: PowerSupply, labels: Labels) -> None:
        text = supply.text[:_MAX_TEXT]
        if supply.absent and supply.name in self._seen:
            cycle.add("psu_state", _GONE, labels)
        elif supply.absent:
            cycle.miss("psu_state", Absence.NOT_APPLICABLE, f"{supply.name}: {text}; the slot was empty from the start", labels)
        elif supply.state is None:
            cycle.miss("psu_state", Absence.UNKNOWN, f"{supply.name}: {text!r} does not prove that it is there and well", labels)
        else:
            if supply.state is PsuState.OK:
                self._seen.add(supply.name)
            cycle.add("psu_state", float(supply.state), labels)


class _Log:
    """The BMC's event log."""

    NAMES = ("sel_entries", "sel_used", "sel_overflow", "sel_critical_events", "sel_critical_logged", "sel_last_critical")

    def __init__(self, ipmi: Ipmi) -> None:
        self._ipmi = ipmi
        self._made = _Made()
        self._known: set[tuple[object, ...]] | None = None
        self._new_critical = 0

    def read(self, cycle: Cycle) -> None:
        answer = self._ipmi.sel()
        self._made.give(cycle, (answer,), answer.at, lambda past: self._make(past, answer.value))

    def _make(self, cycle: Cycle, sel: Sel) -> None:
        cycle.add("sel_entries", sel.info.entries)
        if sel.info.used_percent is None:
            cycle.miss("sel_used", Absence.UNSUPPORTED, "this BMC does not tell how full its event log is")
        else:
            cycle.add("sel_used", sel.info.used_percent)
        if sel.info.overflow is None:
            cycle.miss("sel_overflow", Absence.UNSUPPORTED, "this BMC does not tell whether its event log dropped events")
        else:
            cycle.add("sel_overflow", 1.0 if sel.info.overflow else 0.0)
        critical = [entry for entry in sel.entries if entry.critical]
        if self._known is not None:
            self._new_critical += sum(entry not in self._known for entry in critical)
        self._known = set(critical)
        cycle.add("sel_critical_events", self._new_critical)
        cycle.add("sel_critical_logged", len(critical))
        if critical:
            last = critical[-1]
            labels = {"when": last.when[:_MAX_TEXT], "sensor": last.sensor[:_MAX_TEXT], "event": last.event[:_MAX_TEXT]}
            cycle.add("sel_last_critical", 1.0, labels)
