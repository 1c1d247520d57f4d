"""Component chassis over recorded BMCs, twenty readings each worked out by hand from the fixture."""

import pytest

from nodeproof.clock import rfc3339
from nodeproof.collectors.chassis import create
from nodeproof.collectors.services.ipmi import Ipmi
from nodeproof.errors import Absence, CommandError, CommandFailure
from nodeproof.host.commands import CommandResult
from nodeproof.host.recorded import ManualClock, RecordedCommands
from nodeproof.model.catalogue import component_specs
from nodeproof.model.metric import Batch
from support.bmc import EVERYTHING, bmc_machine, ipmitool_answers, ipmitool_output, missing_of, settled, values

_SENSOR = "ipmitool sensor"
_PSU = "ipmitool sdr type Power Supply"
_TAIL = "| na | na | na | na | na | na\n"


def _batch(answers: dict[str, bytes | CommandResult | CommandError], host: str = "bmc-supermicro") -> Batch:
    machine = bmc_machine(answers, host=host)
    return settled(machine, create(machine, EVERYTHING))


class _Scans:
    """A BMC whose sensor table changes from scan to scan."""

    def __init__(self, **answers: bytes | CommandResult | CommandError) -> None:
        self.clock = ManualClock()
        self.machine = bmc_machine({_SENSOR: b"X | 1.0 | Volts | ok\n"} | answers, self.clock)
        self.collector = create(self.machine, EVERYTHING)

    def scan(self, raw: bytes, *, command: str = _SENSOR, pause_s: float = 11.0) -> Batch:
        """Let the tool print ``raw`` from now on, and give what the collector says after it was asked again."""
        commands = self.machine.commands
        assert isinstance(commands, RecordedCommands)
        commands.answers[command] = raw
        self.clock.advance(pause_s)
        return settled(self.machine, self.collector)


def test_supermicro_twenty_readings_by_hand() -> None:
    found = values(_batch(ipmitool_answers("supermicro")))
    assert {key: found.get(key) for key in _SUPERMICRO} == _SUPERMICRO


_SUPERMICRO: dict[tuple[str, ...], float] = {
    ("power",): 212.0,  # no sensor for it; DCMI: Instantaneous power reading: 212 Watts
    ("inlet_temp",): 23.0,  # Inlet Temp
    ("fan_speed", "1", "F"): 5400.0,  # FAN1
    ("fan_speed", "2", "F"): 5300.0,  # FAN2
    ("fan_speed", "A", "F"): 600.0,  # FANA
    ("fan_state", "1", "F"): 0.0,  # FAN1 ok
    ("fan_state", "A", "F"): 1.0,  # FANA nc: 600 is below its lower non-critical limit 700
    ("board_temp", "PCH Temp"): 41.0,
    ("board_temp", "System Temp"): 28.0,
    ("voltage", "12V"): 12.063,
    ("voltage", "3.3VCC"): 2.851,
    ("sensor_status", "voltage", "3.3VCC"): 2.0,  # cr: 2.851 is below its lower critical limit 2.891
    ("sensor_status", "fan", "FANA"): 1.0,  # nc
    ("sensors", "reading"): 13.0,  # 19 rows - 4 discrete - 2 na
    ("sensors", "discrete"): 4.0,  # VBAT, Chassis Intru, PS1 Status, PS2 Status
    ("sensors", "no_reading"): 2.0,  # P1-DIMMB1 Temp, FAN3
    ("sensors", "abnormal"): 2.0,  # FANA, 3.3VCC
    ("psu_state", "1"): 0.0,  # Presence detected
    ("psu_state", "2"): 2.0,  # Presence detected, Failure detected, Power Supply AC lost
    ("chassis_fault", "cooling"): 1.0,  # Cooling/Fan Fault : true
    ("chassis_fault", "drive"): 0.0,  # Drive Fault : false
    ("intrusion",): 0.0,  # Chassis Intrusion : inactive
    ("sel_entries",): 5.0,
    ("sel_critical_logged",): 1.0,  # entry 3; 4 is its end, a is non-critical
    ("bmc_up",): 1.0,
}


def test_supermicro_says_what_it_has_not() -> None:
    batch = _batch(ipmitool_answers("supermicro"))
    assert [(entry.labels, entry.state, entry.reason) for entry in missing_of(batch, "fan_speed")] == [
        ({"fan": "3", "direction": "F"}, Absence.UNKNOWN, "FAN3: no reading (status na)")
    ]
    assert missing_of(batch, "outlet_temp")[0].state is Absence.UNSUPPORTED
    assert missing_of(batch, "fan_power")[0].state is Absence.UNSUPPORTED
    assert missing_of(batch, "psu_redundancy")[0].state is Absence.UNSUPPORTED
    assert missing_of(batch, "fan_duty")[0].state is Absence.NOT_APPLICABLE
    assert missing_of(batch, "psu_power")[0].reason == "this BMC has no sensor of that meaning"
    assert len(batch.missing) == 6


def test_defect_9_what_is_below_zero_is_rounded_as_what_is_above() -> None:
    """-1.26 became -1.2: the reference adds a half and cuts off, which is right for positive numbers only."""
    batch = _batch({_SENSOR: f"Inlet Temp | -1.260 | degrees C | ok {_TAIL}VBAT Aux | -12.0625 | Volts | ok {_TAIL}".encode()})
    assert values(batch)["inlet_temp",] == -1.3
    assert values(batch)["voltage", "VBAT Aux"] == -12.062  # the even one of two as near


def test_huawei_twenty_readings_by_hand() -> None:
    found = values(_batch(ipmitool_answers("huawei"), host="bmc-huawei"))
    assert {key: found.get(key) for key in _HUAWEI} == _HUAWEI


_HUAWEI: dict[tuple[str, ...], float] = {
    ("power",): 318.0,  # Power, not Power1
    ("inlet_temp",): 26.0,  # Inlet Temp, not PSU1 Inlet Temp
    ("outlet_temp",): 41.0,  # Outlet Temp
    ("fan_speed", "1", "F"): 6840.0,  # FAN1 F Speed
    ("fan_speed", "1", "R"): 6480.0,  # FAN1 R Speed
    ("fan_speed", "2", "F"): 6840.0,  # FAN2 F Speed
    ("fan_speed", "2", "R"): 0.0,  # FAN2 R Speed, status cr: it stands still
    ("fan_state", "1", "R"): 0.0,
    ("fan_state", "2", "R"): 2.0,  # cr
    ("fan_power", "1"): 14.5,  # FAN1 Power
    ("fan_power", "2"): 13.0,  # FAN2 Power
    ("psu_power", "1", "in"): 164.0,  # PSU1 PIN
    ("psu_power", "2", "in"): 154.0,  # PSU2 PIN
    ("board_temp", "PSU1 Inlet Temp"): 33.0,
    ("voltage", "SYS 12V_1"): 12.18,
    ("sensor_status", "fan", "FAN2 R Speed"): 2.0,
    ("sensors", "reading"): 17.0,  # 20 rows - 2 discrete - FAN10
    ("psu_redundancy", "PS Redundancy"): 2.0,  # Redundancy Lost
    ("psu_state", "1"): 0.0,  # Presence detected
    ("intrusion",): 1.0,  # Chassis Intrusion : active
    ("sel_entries",): 3600.0,
    ("sel_used",): 90.0,  # 3600 x 16 bytes of 57600 + 6400
    ("sel_overflow",): 1.0,
    ("sel_critical_logged",): 2.0,  # Uncorrectable ECC, Lower Critical; Correctable ECC is not
}


def test_huawei_supplies_that_prove_nothing_are_not_ok() -> None:
    batch = _batch(ipmitool_answers("huawei"), host="bmc-huawei")
    assert [(entry.labels, entry.state) for entry in missing_of(batch, "psu_state")] == [
        ({"psu": "2"}, Absence.UNKNOWN),
        ({"psu": "3"}, Absence.UNKNOWN),
    ]
    assert ("psu_state", "2") not in values(batch)


@pytest.mark.parametrize(
    ("maker", "power", "inlet", "outlet", "fan"),
    [
        ("dell", 224.0, 22.0, 34.0, ("fan_speed", "1A", "F")),  # Pwr Consumption, Inlet Temp, Exhaust Temp, Fan1A
        ("hpe", 212.0, 21.0, 37.0, ("fan_duty", "1", "F")),  # Power Meter, 01-Inlet Ambient, hotter of two Sys Exhaust
        ("inspur", 402.0, 24.0, 38.0, ("fan_speed", "0", "R")),  # Total_Power, Inlet_Temp, Outlet_Temp, FAN0_R_Speed
    ],
)
def test_names_of_other_makers(maker: str, power: float, inlet: float, outlet: float, fan: tuple[str, ...]) -> None:
    found = values(_batch(ipmitool_answers(maker)))
    assert (found["power",], found["inlet_temp",], found["outlet_temp",]) == (power, inlet, outlet)
    assert fan in found


def test_output_of_a_real_ipmitool() -> None:
    """Printed by ipmitool 1.8.19 for a simulated BMC."""
    found = values(_batch(ipmitool_answers("simulated")))
    assert found["power",] == 212.0
    assert found["fan_speed", "1", "F"] == 5400.0
    assert (found["psu_state", "1"], found["psu_state", "2"]) == (0.0, 2.0)
    assert (found["sel_entries",], found["sel_critical_logged",], found["sel_overflow",]) == (2.0, 2.0, 0.0)
    assert found["chassis_fault", "cooling"] == 0.0


def test_every_metric_is_in_the_catalogue_with_its_labels() -> None:
    specs = component_specs("chassis")
    for maker in ("supermicro", "dell", "hpe", "huawei", "inspur"):
        for metric in _batch(ipmitool_answers(maker)).metrics:
            assert set(metric.labels or {}) <= set(specs[metric.name].labels)
            assert metric.unit == specs[metric.name].unit


def test_no_two_readings_share_name_and_labels() -> None:
    raw = (
        b"Fan 1 | 900 | RPM | ok\nFAN1 | 901 | RPM | ok\nFAN1 Power | 3 | Watts | ok\nFan 1 Pwr | 4 | Watts | ok\n"
        b"PSU1 PIN | 5 | Watts | ok\nPS1 Input | 6 | Watts | ok\nTemp | 7 | degrees C | ok\nTemp | 8 | degrees C | ok\n"
    )
    psu = b"PS1 Status | C8h | ok | 10.1 | Presence detected\nPS1 Input | C9h | ok | 10.1 | Power Supply AC lost\n"
    batch = _batch({_SENSOR: raw, _PSU: psu})
    keys = [(metric.name, tuple(sorted((metric.labels or {}).items()))) for metric in batch.metrics]
    assert len(set(keys)) == len(keys)
    found = values(batch)
    assert (found["fan_speed", "1", "F"], found["fan_speed", "FAN1", "F"]) == (900.0, 901.0)
    assert (found["fan_power", "1"], found["fan_power", "Fan 1 Pwr"]) == (3.0, 4.0)
    assert (found["psu_state", "1"], found["psu_state", "PS1 Input"]) == (0.0, 2.0)


def test_readings_bear_the_time_of_the_scan() -> None:
    scans = _Scans()
    scans.scan(ipmitool_output("dell.sensor"))
    scans.clock.advance(3.0)
    batch = scans.collector.collect()
    inlet = next(metric for metric in batch.metrics if metric.name == "inlet_temp")
    assert inlet.timestamp == rfc3339(scans.clock.wall_s - 3.0)
    assert values(batch)["bmc_answer_age",] == 3.0


def test_case_48_a_fan_is_faulty_only_when_it_had_readings_before() -> None:
    scans = _Scans()
    silent = b"FAN3 | na | RPM " + b"| na " + _TAIL.encode()
    for _ in range(3):
        batch = scans.scan(silent)
        assert not [key for key in values(batch) if key[0] in {"fan_state", "fan_speed"}]
        assert missing_of(batch, "fan_speed")[0].reason == "FAN3: no reading (status na)"
    scans.scan(b"FAN3 | 5000 | RPM | ok " + _TAIL.encode())
    once = scans.scan(silent)
    assert not [key for key in values(once) if key[0] == "fan_state"]
    assert missing_of(once, "fan_state")[0].state is Absence.UNKNOWN
    lost = scans.scan(silent)
    assert values(lost)["fan_state", "3", "F"] == 2.0
    assert values(lost)["sensors", "lost"] == 1.0
    assert "though it had readings before" in missing_of(lost, "fan_speed")[0].reason
    back = scans.scan(b"FAN3 | 5100 | RPM | ok " + _TAIL.encode())
    assert values(back)["fan_state", "3", "F"] == 0.0
    assert values(back)["sensors", "lost"] == 0.0


def test_a_fan_that_the_tool_leaves_out_is_unknown_not_faulty() -> None:
    scans = _Scans()
    scans.scan(b"FAN1 | 5000 | RPM | ok\nFAN2 | 5000 | RPM | ok\n")
    for raw in (b"FAN1 | 5000 | RPM | ok\n", b"Inlet Temp | 20 | degrees C | ok\n"):
        scans.scan(raw)
        batch = scans.scan(raw)
        assert ("fan_state", "2", "F") not in values(batch)
        assert {"fan": "2", "direction": "F"} in [entry.labels for entry in missing_of(batch, "fan_state")]


def test_many_silent_fans_are_told_in_a_few_lines() -> None:
    raw = "".join(f"FAN{number} | na | RPM | na {_TAIL}" for number in range(1, 31)).encode()
    gaps = missing_of(_batch({_SENSOR: raw}), "fan_speed")
    assert len(gaps) == 9
    assert gaps[-1].reason == "22 more fans have no reading"


def test_case_48_status_nr_is_not_believed_once_and_is_when_its_limits_bear_it_out() -> None:
    scans = _Scans()
    row = "Inlet Temp | {} | degrees C | nr | 0.000 | 0.000 | 0.000 | 70.000 | 75.000 | 80.000\n"
    first = scans.scan(row.format("85.000").encode())
    assert missing_of(first, "inlet_temp")[0].state is Absence.UNKNOWN
    second = scans.scan(row.format("86.000").encode())
    assert values(second)["inlet_temp",] == 86.0
    assert values(second)["sensor_status", "temperature", "Inlet Temp"] == 3.0


def test_case_48_zero_with_status_nr_is_never_a_temperature() -> None:
    scans = _Scans()
    row = b"Inlet Temp | 0.000 | degrees C | nr | 0.000 | 0.000 | 0.000 | 70.000 | 75.000 | 80.000\n"
    scans.scan(row.replace(b"0.000 | degrees C | nr", b"20.000 | degrees C | ok"))
    for _ in range(3):
        assert ("inlet_temp",) not in values(scans.scan(row))


def test_a_fan_that_stops_beyond_its_last_limit_is_faulty() -> None:
    scans = _Scans()
    row = "FAN1 | {} | RPM | {} | 300.000 | 500.000 | 700.000 | na | na | na\n"
    scans.scan(row.format("5000.000", "ok").encode())
    scans.scan(row.format("0.000", "nr").encode())
    batch = scans.scan(row.format("0.000", "nr").encode())
    assert (values(batch)["fan_speed", "1", "F"], values(batch)["fan_state", "1", "F"]) == (0.0, 2.0)


def test_a_header_that_says_zero_and_nr_from_the_start_is_no_fan() -> None:
    scans = _Scans()
    row = b"FAN1 | 0.000 | RPM | nr | 300.000 | 500.000 | 700.000 | na | na | na\n"
    for _ in range(3):
        assert not [key for key in values(scans.scan(row)) if key[0] in {"fan_speed", "fan_state"}]


def test_a_sensor_that_is_well_again_says_so() -> None:
    scans = _Scans()
    bad = b"12V | 10.1 | Volts | cr\n"
    assert values(scans.scan(bad))["sensor_status", "voltage", "12V"] == 2.0
    good = values(scans.scan(b"12V | 12.0 | Volts | ok\n"))
    assert (good["sensor_status", "voltage", "12V"], good["sensors", "abnormal"]) == (0.0, 0.0)


@pytest.mark.parametrize(("cell", "state"), [("900.000", Absence.READ_ERROR), ("na", Absence.UNKNOWN)])
def test_an_inlet_that_cannot_be_is_an_error_and_none_is_unknown(cell: str, state: Absence) -> None:
    batch = _batch({_SENSOR: f"Inlet Temp | {cell} | degrees C | ok {_TAIL}".encode()})
    assert missing_of(batch, "inlet_temp")[0].state is state
    assert ("inlet_temp",) not in values(batch)


def test_no_power_of_zero_when_nobody_can_tell() -> None:
    sensor = f"Power | 0.000 | Watts | ok {_TAIL}".encode()
    batch = _batch({_SENSOR: sensor, "ipmitool dcmi power reading": ipmitool_output("deactivated.dcmi")})
    entry = missing_of(batch, "power")[0]
    assert entry.state is Absence.UNKNOWN
    assert entry.reason == "Power: 0 W; ipmitool dcmi: the BMC says that power measuring is deactivated"


def test_power_missing_for_both_reasons() -> None:
    declined = CommandResult((), 1, b"", b"DCMI request failed because: Invalid command (c1)\n", 0.1, truncated=False)
    batch = _batch({_SENSOR: b"Inlet Temp | 20 | degrees C | ok\n", "ipmitool dcmi power reading": declined})
    entry = missing_of(batch, "power")[0]
    assert entry.state is Absence.UNSUPPORTED
    assert "no sensor of that meaning" in entry.reason
    assert "Invalid command (c1)" in entry.reason
    assert values(batch)["bmc_up",] == 1.0


def test_dcmi_serves_while_the_sensors_fail() -> None:
    batch = _batch({_SENSOR: b"garbage\n", "ipmitool dcmi power reading": ipmitool_output("supermicro.dcmi")})
    assert values(batch)["power",] == 212.0
    assert missing_of(batch, "inlet_temp")[0].state is Absence.READ_ERROR
    assert missing_of(_batch({_SENSOR: b"garbage\n"}), "power")[0].state is Absence.READ_ERROR


def test_a_supply_that_goes_is_a_fault_and_an_empty_slot_is_not() -> None:
    scans = _Scans()
    there, empty = (b"PS%d Status | C8h | ok | 10.1 | " + words + b"\n" for words in (b"Presence detected", b"Device Absent"))
    first = scans.scan(there % 1 + empty % 2, command=_PSU, pause_s=61.0)
    assert values(first)["psu_state", "1"] == 0.0
    assert [(entry.labels, entry.state) for entry in missing_of(first, "psu_state")] == [({"psu": "2"}, Absence.NOT_APPLICABLE)]
    second = scans.scan(empty % 1 + empty % 2, command=_PSU, pause_s=61.0)
    assert values(second)["psu_state", "1"] == 3.0


def test_machines_without_such_sensors_say_so() -> None:
    batch = _batch({_SENSOR: b"12V | 12 | Volts | ok\n", _PSU: b"\n", "ipmitool chassis status": b"System Power : on\n"})
    for name in ("fan_speed", "fan_duty", "fan_state", "inlet_temp", "psu_state", "psu_redundancy", "chassis_fault", "intrusion"):
        assert [entry.state for entry in missing_of(batch, name)] == [Absence.UNSUPPORTED], name


def test_redundancy_that_is_not_told_is_unknown() -> None:
    batch = _batch({_PSU: b"PS Redundancy | 77h | ns | 7.1 | Disabled\n"})
    assert missing_of(batch, "psu_redundancy")[0].state is Absence.UNKNOWN


def test_new_critical_events_are_counted_from_the_first_look() -> None:
    info, log = "ipmitool sel info", "ipmitool sel elist last 512"
    old = ipmitool_output("supermicro.sel_elist")
    scans = _Scans(**{info: ipmitool_output("supermicro.sel_info"), log: old})
    first = values(scans.scan(old, command=log))
    assert (first["sel_critical_events",], first["sel_critical_logged",]) == (0.0, 1.0)
    new = b"   b | 11/30/26 | 22:00:00 UTC | Memory DIMMA1 | Uncorrectable ECC | Asserted\n"
    scans.scan(old + new, command=log, pause_s=0.0)
    changed = ipmitool_output("supermicro.sel_info").replace(b"21:14:09", b"22:00:00").replace(b": 5\n", b": 6\n")
    batch = scans.scan(changed, command=info, pause_s=301.0)
    assert (values(batch)["sel_critical_events",], values(batch)["sel_critical_logged",]) == (1.0, 2.0)
    last = next(metric for metric in batch.metrics if metric.name == "sel_last_critical")
    assert last.labels == {"when": "11/30/26 22:00:00 UTC", "sensor": "Memory DIMMA1", "event": "Uncorrectable ECC"}


def test_a_cleared_log_takes_nothing_back() -> None:
    info, log = "ipmitool sel info", "ipmitool sel elist last 512"
    scans = _Scans(**{info: b"Entries : 1\n", log: b"\n"})
    scans.scan(b"\n", command=log)
    event = b"1 | 11/30/26 | 22:00:00 UTC | Memory DIMMA1 | Uncorrectable ECC | Asserted\n"
    assert values(scans.scan(event, command=log, pause_s=301.0))["sel_critical_events",] == 1.0
    cleared = scans.scan(b"Entries : 0\n", command=info, pause_s=301.0)
    assert (values(cleared)["sel_critical_events",], values(cleared)["sel_critical_logged",]) == (1.0, 0.0)
    assert [entry.name for entry in cleared.missing if entry.name.startswith("sel_")] == ["sel_used", "sel_overflow"]


def test_the_log_is_not_read_again_while_nothing_is_new() -> None:
    scans = _Scans(**ipmitool_answers("supermicro"))
    for _ in range(3):
        scans.scan(ipmitool_output("supermicro.sel_info"), command="ipmitool sel info", pause_s=301.0)
    commands = scans.machine.commands
    assert isinstance(commands, RecordedCommands)
    assert commands.asked.count("ipmitool sel elist last 512") == 1
    assert commands.asked.count("ipmitool sel info") == 3


def test_a_bmc_that_never_answered() -> None:
    hung = CommandError("ipmitool", CommandFailure.TIMED_OUT, "gave no answer in 120 s and was ended")
    batch = _batch(
        dict.fromkeys((_SENSOR, "ipmitool dcmi power reading", _PSU, "ipmitool chassis status", "ipmitool sel info"), hung)
    )
    assert values(batch) == {("bmc_up",): 0.0}
    entry = missing_of(batch, "inlet_temp")[0]
    assert (entry.state, entry.reason) == (Absence.READ_ERROR, "ipmitool sensor: gave no answer in 120 s and was ended")
    assert "ipmitool mc info" in entry.remedy
    assert "has not answered once" in missing_of(batch, "bmc_answer_age")[0].reason


def test_a_cycle_makes_nothing_anew_while_the_answer_is_the_same() -> None:
    scans = _Scans(**ipmitool_answers("huawei"))
    one = scans.scan(ipmitool_output("huawei.sensor"))
    two = scans.collector.collect()
    kept = {id(metric) for metric in one.metrics}
    anew = {metric.name for metric in two.metrics if id(metric) not in kept}
    assert anew == {"bmc_up", "bmc_answer_age"}


def test_the_collector_shares_the_bmc_with_others() -> None:
    scans = _Scans()
    scans.scan(ipmitool_output("dell.sensor"))
    assert len(scans.machine.shared(Ipmi).sensors().value) == 15
