"""Component chassis: power, air, fans, power supplies and the event log, as the BMC tells them.

Everything comes from the last answers of :class:`Ipmi`, so a cycle costs next to nothing whatever the BMC does; readings bear the
time of the answer they come from, and are made once for each answer. Without a BMC that can be asked, fans, air and power are
taken from the kernel's own sensors where it has any.
"""

from collections.abc import Callable

from nodeproof.clock import Instant
from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.collectors.services.bmc_fans import GRAVITY, BmcFans, Silence, absence_of
from nodeproof.collectors.services.board_sensors import BoardSensors
from nodeproof.collectors.services.ipmi import Ipmi, Sel
from nodeproof.collectors.services.sensor_names import (
    INLET,
    OUTLET,
    POWER,
    Rule,
    fan_identity,
    is_elsewhere,
    is_fan_power,
    pick,
    psu_direction,
    psu_number,
)
from nodeproof.errors import Absence, NoData
from nodeproof.host.background import Answer
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources.ipmitool_chassis import ChassisStatus, PowerSupply, PsuState
from nodeproof.sources.ipmitool_dcmi import DcmiPower
from nodeproof.sources.ipmitool_sensor import IpmiSensor

__all__ = ["create"]

_MAX_ABNORMAL = 64
_MAX_TEXT = 120
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
        self._judged: Answer[list[IpmiSensor]] | None = None
        self._watts: float | None = None
        self._why = ""

    def read(self, cycle: Cycle) -> None:
        try:
            sensors = self._ipmi.sensors()
        except NoData as absence:
            self._without_sensors(cycle, absence)
            return
        if sensors is not self._judged:
            self._judge(sensors.value)
            self._judged = sensors
        watts = self._watts
        if watts is not None:
            self._made.give(cycle, (sensors,), sensors.at, lambda past: past.add("power", round(watts, 2)))
            return
        try:
            power = self._ipmi.power()
        except NoData as absence:
            raise NoData(absence.state, f"{self._why}; {absence.reason}", remedy=absence.remedy) from None
        self._give(cycle, power, f"{self._why}; ")

    def _judge(self, sensors: list[IpmiSensor]) -> None:
        """The sensor for the whole machine, or why none serves."""
        found = pick(sensors, POWER)
        # A machine that runs this program draws power: 0 is what a BMC says that cannot measure it.
        self._watts = max((sensor.value for sensor in found if sensor.value), default=None)
        self._why = "; ".join(f"{sensor.name}: {sensor.problem or '0 W'}" for sensor in found[:3]) or "no sensor of that meaning"

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
        "sensors",
    )

    def __init__(self, ipmi: Ipmi, board: BoardSensors) -> None:
        self._ipmi = ipmi
        self._board = board
        self._made = _Made()
        self._silence = Silence()
        self._fans = BmcFans(self._silence)
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
        self._silence.note(sensors)
        taken = self._air(cycle, sensors)
        self._fans.make(cycle, sensors)
        self._place(cycle, sensors, taken)
        self._judge(cycle, sensors)
        told = {metric.name for metric in cycle.metrics} | {entry.name for entry in cycle.missing}
        for name in self.NAMES:
            if name not in told and name != "sensor_status":  # which lists sensors beyond their limits, and there may be none
                cycle.miss(name, Absence.UNSUPPORTED, "this BMC has no sensor of that meaning")

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
                cycle.miss(name, absence_of(found[0]), f"{found[0].name}: {found[0].problem}")
            else:
                cycle.miss(name, Absence.UNSUPPORTED, "none of the BMC's sensors has a name of that meaning")
        return taken

    @staticmethod
    def _place(cycle: Cycle, sensors: list[IpmiSensor], taken: set[str]) -> None:
        """Readings that have labels of their own; where two would share them, the later one bears its whole name."""
        used: set[tuple[str, ...]] = set()
        for sensor in sensors:
            value, name = sensor.value, sensor.name
            if value is None:
                continue
            if is_fan_power(sensor):
                fan = _unused(used, "fan", fan_identity(name)[0], instead=name)
                cycle.add("fan_power", round(value, 2), {"fan": fan})
            elif (direction := psu_direction(sensor)) is not None:
                psu = _unused(used, "psu", psu_number(name), direction, instead=name)
                cycle.add("psu_power", round(value, 2), {"psu": psu, "direction": direction} if direction else {"psu": psu})
            elif sensor.unit == "V":
                cycle.add("voltage", round(value, 3), {"sensor": name[:_MAX_TEXT]})
            elif sensor.unit == "°C" and name not in taken and not is_elsewhere(name):
                cycle.add("board_temp", round(value, 1), {"sensor": name[:_MAX_TEXT]})

    def _judge(self, cycle: Cycle, sensors: list[IpmiSensor]) -> None:
        """Sensors beyond their limits by the BMC's own judgement, and how many there are of each sort."""
        counts = dict.fromkeys(_COUNTS, 0)
        for sensor in sensors:
            gravity = GRAVITY.get(sensor.status, 0) if sensor.value is not None else 0
            counts[_sort(sensor)] += 1
            counts["abnormal"] += gravity > 0
            counts["lost"] += sensor.value is None and self._silence.is_lost(sensor.name)
            labels = self._abnormal.get(sensor.name)
            if gravity and labels is None and len(self._abnormal) < _MAX_ABNORMAL:
                labels = {"sensor": sensor.name[:_MAX_TEXT], "type": _TYPES.get(sensor.unit, "other")}
                self._abnormal[sensor.name] = labels
            if labels is not None and sensor.value is not None:
                cycle.add("sensor_status", gravity, labels)
        for state, labels in _COUNTS.items():
            cycle.add("sensors", counts[state], labels)


def _unused(used: set[tuple[str, ...]], kind: str, label: str, *more: str, instead: str) -> str:
    """``label`` the first time that it is asked for with ``more``, ``instead`` after that."""
    if (kind, label, *more) in used:
        return instead[:_MAX_TEXT]
    used.add((kind, label, *more))
    return label


def _sort(sensor: IpmiSensor) -> str:
    if sensor.value is not None:
        return "reading"
    return "no_reading" if sensor.problem or not sensor.discrete_state else "discrete"


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
        sets = [supply for supply in supplies if supply.of_set]
        for supply in sets:
            labels = {"sensor": supply.name[:_MAX_TEXT]}
            if supply.redundancy is None:
                cycle.miss("psu_redundancy", Absence.UNKNOWN, f"{supply.name}: {supply.text[:_MAX_TEXT]}", labels)
            else:
                cycle.add("psu_redundancy", float(supply.redundancy), labels)
        if not sets:
            cycle.miss("psu_redundancy", Absence.UNSUPPORTED, "this BMC reports no redundancy of power supplies")
        single = [supply for supply in supplies if not supply.of_set]
        used: set[tuple[str, ...]] = set()
        for supply in single:
            self._one(cycle, supply, {"psu": _unused(used, "psu", psu_number(supply.name), instead=supply.name)})
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
