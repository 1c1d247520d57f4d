"""Which sensor is which, over the names that makers use."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    plain_name,
    psu_direction,
    psu_number,
)
from nodeproof.sources.ipmitool_sensor import IpmiSensor


def _sensor(name: str, unit: str, value: float | None = 1.0) -> IpmiSensor:
    return IpmiSensor(name, value, unit, "ok" if value is not None else "na", problem="" if value is not None else "no reading")


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("01-Inlet Ambient", "inlet ambient"),
        ("Total_Power", "total power"),
        ("Sys.Power ", "sys power"),
        ("P1-DIMM 1", "p1 dimm 1"),
    ],
)
def test_plain_names(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (POWER, "power"),
        (POWER, "POWER"),
        (POWER, "Pwr Consumption"),
        (POWER, "Power Meter"),
        (POWER, "Total_Power"),
        (POWER, "Sys Power"),
        (POWER, "System Level"),
        (POWER, "Node1 Total Power"),
        (INLET, "Inlet Temp"),
        (INLET, "01-Inlet Ambient"),
        (INLET, "Ambient Temp"),
        (INLET, "Sys Ambient"),
        (INLET, "Inlet_Temp"),
        (INLET, "System Inlet Temp"),
        (INLET, "Front Panel Temp"),
        (INLET, "MB_Inlet_Temp"),
        (OUTLET, "Outlet Temp"),
        (OUTLET, "Exhaust Temp"),
        (OUTLET, "33-Sys Exhaust"),
        (OUTLET, "Exit Air Temp"),
        (OUTLET, "Outlet_Temp_1"),
    ],
)
def test_names_of_makers(rule: Rule, name: str) -> None:
    sensor = _sensor(name, rule.unit)
    assert pick([sensor], rule) == [sensor]


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (POWER, "CPU Total Power"),
        (POWER, "Mem_Total_Power"),
        (POWER, "FAN1 Power"),
        (POWER, "Power Supply 1"),
        (POWER, "PSU1 Power In"),
        (POWER, "Power1"),
        (INLET, "PSU1 Inlet Temp"),
        (INLET, "GPU1 Inlet Temp"),
        (INLET, "Outlet Temp"),
        (INLET, "Exhaust Ambient"),
        (OUTLET, "PS1 Outlet Temp"),
        (OUTLET, "Inlet Temp"),
    ],
)
def test_other_parts_are_left_alone(rule: Rule, name: str) -> None:
    assert pick([_sensor(name, rule.unit)], rule) == []


def test_the_reference_s_name_wins_over_others() -> None:
    sensors = [_sensor("Ambient Temp", "°C", 1.0), _sensor("System Inlet Temp", "°C", 2.0), _sensor("Inlet Temp", "°C", 3.0)]
    assert [sensor.value for sensor in pick(sensors, INLET)] == [3.0]


def test_a_silent_sensor_of_the_best_name_is_not_replaced_by_another() -> None:
    sensors = [_sensor("Inlet Temp", "", None), _sensor("Ambient Temp", "°C", 22.0)]
    assert pick(sensors, INLET) == sensors[:1]


def test_the_unit_must_fit() -> None:
    discrete = IpmiSensor("Inlet Temp", None, "", "0x0180", discrete_state="0x1")
    assert pick([discrete, _sensor("Power", "V")], INLET) == []
    assert pick([_sensor("Power", "V")], POWER) == []


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("FAN1 F Speed", ("1", "F")),
        ("FAN1 R Speed", ("1", "R")),
        ("FAN10 R Speed", ("10", "R")),
        ("FAN 1 F Speed", ("1", "F")),
        ("FAN1F Speed", ("1", "F")),
        ("FAN2R Speed", ("2", "R")),
        ("FAN1", ("1", "F")),
        ("FANA", ("A", "F")),
        ("Fan1A", ("1A", "F")),
        ("Fan 2A Tach", ("2A", "F")),
        ("Fan 1 Front Tach", ("1", "F")),
        ("Fan 1 Rear Tach", ("1", "R")),
        ("FAN0_R_Speed", ("0", "R")),
        ("SYS_FAN3", ("SYS 3", "F")),
        ("CPU0_FAN", ("CPU0", "F")),
        ("Fan_SYS0_1", ("SYS0 1", "F")),
        ("Fan 1 DutyCycle", ("1", "F")),
        ("FAN1 Power", ("1", "F")),
        ("Fan Speed", ("0", "F")),
        ("", ("0", "F")),
    ],
)
def test_fans(name: str, identity: tuple[str, str]) -> None:
    assert fan_identity(name) == identity


def test_two_fans_never_share_labels() -> None:
    labels = fan_labels([_sensor("FAN1", "RPM"), _sensor("Fan 1", "RPM"), _sensor("FAN1 R", "RPM")])
    assert labels == {
        "FAN1": {"fan": "1", "direction": "F"},
        "Fan 1": {"fan": "Fan 1", "direction": "F"},
        "FAN1 R": {"fan": "1", "direction": "R"},
    }


@pytest.mark.parametrize(
    ("sensor", "fan"),
    [
        (_sensor("Pump", "RPM"), True),
        (_sensor("Fan 1", "%"), True),
        (_sensor("FAN3", "", None), True),
        (_sensor("CPU Usage", "%"), False),
        (_sensor("CPU Temp", "°C"), False),
        (IpmiSensor("Fan Redundancy", None, "", "0x0180", discrete_state="0x0"), False),
        (IpmiSensor("Fan Redundancy", None, "", "0x0180"), False),
    ],
)
def test_what_a_fan_is(sensor: IpmiSensor, fan: bool) -> None:  # noqa: FBT001 - a column of the table above
    assert is_fan(sensor) is fan


def test_power_of_fans() -> None:
    assert is_fan_power(_sensor("FAN1 Power", "W"))
    assert is_fan_power(_sensor("Fan Pwr", "W"))
    assert not is_fan_power(_sensor("FAN1 Power", "V"))
    assert not is_fan_power(_sensor("Power", "W"))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("PS1 Status", "1"),
        ("PSU 2", "2"),
        ("Power Supply 1", "1"),
        ("PSU_A", "A"),
        ("PS Redundancy", "PS Redundancy"),
        ("Presence", "Presence"),
    ],
)
def test_supplies(name: str, number: str) -> None:
    assert psu_number(name) == number


@pytest.mark.parametrize(
    ("sensor", "direction"),
    [
        (_sensor("PSU1 PIN", "W"), "in"),
        (_sensor("PS1 Input Power", "W"), "in"),
        (_sensor("PSU1 POUT", "W"), "out"),
        (_sensor("Power Supply 1", "W"), ""),
        (_sensor("PSU1 VIN", "V"), None),
        (_sensor("Power", "W"), None),
    ],
)
def test_direction_of_supply_power(sensor: IpmiSensor, direction: str | None) -> None:
    assert psu_direction(sensor) == direction


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [("CPU1 Temp", True), ("P1-DIMMA1 Temp", True), ("02-CPU 1", True), ("CPU1 MEM Temp", True), ("PCH Temp", False)],
)
def test_whose_temperature(name: str, elsewhere: bool) -> None:  # noqa: FBT001 - a column of the table above
    assert is_elsewhere(name) is elsewhere


@given(st.text(max_size=40))
def test_any_name_is_some_fan(name: str) -> None:
    fan, direction = fan_identity(name)
    assert fan
    assert direction in {"F", "R"}
