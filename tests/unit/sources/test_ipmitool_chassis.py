"""Chassis status and power supplies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.ipmitool_chassis import PsuState, Redundancy, parse, parse_power_supplies
from support.bmc import ipmitool_output


def test_status() -> None:
    status = parse(ipmitool_output("supermicro.chassis"))
    assert (status.power_on, status.intrusion) == (True, False)
    assert status.faults == {
        "power_overload": False,
        "main_power": False,
        "power_control": False,
        "drive": False,
        "cooling": True,
    }


def test_an_open_cover() -> None:
    assert parse(ipmitool_output("huawei.chassis")).intrusion is True


def test_what_the_bmc_does_not_name_is_not_false() -> None:
    status = parse(b"System Power : on\nDrive Fault : unknown\n")
    assert (status.power_on, status.intrusion, status.faults) == (True, None, {})


@pytest.mark.parametrize("raw", [b"", b"Error sending Chassis Status command\n", b"Foo : bar\n", b"\xff"])
def test_text_without_a_status_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="chassis status"):
        parse(raw)


def test_a_failed_supply_is_failed_though_its_sensor_is_ok() -> None:
    """influxdata/telegraf#5755: the status column said ok."""
    first, second = parse_power_supplies(ipmitool_output("supermicro.psu"))
    assert (first.name, first.state) == ("PS1 Status", PsuState.OK)
    assert (second.name, second.state) == ("PS2 Status", PsuState.FAILED)


def test_presence_that_is_not_stated_is_not_ok() -> None:
    """prometheus-community/ipmi_exporter#30: an old BMC does not tell."""
    redundancy, first, second, third = parse_power_supplies(ipmitool_output("huawei.psu"))
    assert (redundancy.redundancy, redundancy.of_set, redundancy.state) == (Redundancy.LOST, True, None)
    assert first.state is PsuState.OK
    assert (second.state, second.text) == (None, "nothing but status ok")
    assert (third.state, third.text) == (None, "Disabled")


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("Presence detected", PsuState.OK),
        ("Transition to OK", PsuState.OK),
        ("Presence detected, Predictive failure", PsuState.WARNING),
        ("Presence detected, Config Error", PsuState.WARNING),
        ("Transition to Non-critical from OK", PsuState.WARNING),
        ("Presence detected, Failure detected", PsuState.FAILED),
        ("Presence detected, Predictive failure, Failure detected", PsuState.FAILED),
        ("Presence detected, Power Supply AC lost", PsuState.FAILED),
        ("Presence detected, AC out-of-range, but present", PsuState.FAILED),
        ("Presence detected, Power Supply Inactive", PsuState.FAILED),
        ("0x01", None),
        ("State Deasserted", None),
        ("", None),
    ],
)
def test_words(words: str, state: PsuState | None) -> None:
    assert parse_power_supplies(f"PS1 | C8h | ok  | 10.1 | {words}\n".encode())[0].state is state


@pytest.mark.parametrize(
    ("words", "redundancy"),
    [
        ("Fully Redundant", Redundancy.FULL),
        ("Redundancy Degraded", Redundancy.DEGRADED),
        ("Redundancy Lost", Redundancy.LOST),
        ("Non-Redundant: Sufficient from Redundant", Redundancy.LOST),
        ("Disabled", None),
    ],
)
def test_redundancy(words: str, redundancy: Redundancy | None) -> None:
    supply = parse_power_supplies(f"PS Redundancy | 77h | ok | 7.1 | {words}\n".encode())[0]
    assert (supply.redundancy, supply.of_set, supply.state) == (redundancy, True, None)


def test_an_empty_slot() -> None:
    supply = parse_power_supplies(b"PS2 | C9h | ok | 10.2 | Device Absent\n")[0]
    assert (supply.absent, supply.state) == (True, None)


def test_a_silent_sensor_proves_nothing() -> None:
    assert parse_power_supplies(b"PS2 | C9h | ns | 10.2 | Presence detected\n")[0].state is None


def test_numbers_belong_to_the_sensor_table_and_names_may_hold_the_separator() -> None:
    supplies = parse_power_supplies(b"PS1|A | C8h | ok | 10.1 | Presence detected\nPSU1 PIN | 7Bh | ok | 10.1 | 164.5 Watts\n")
    assert [supply.name for supply in supplies] == ["PS1|A"]


def test_no_supplies_at_all() -> None:
    assert parse_power_supplies(b"\n") == []
    with pytest.raises(ParseError):
        parse_power_supplies(b'Sensor Type "Power Supply" not found.\n')


@given(st.binary(max_size=300))
def test_any_bytes(raw: bytes) -> None:
    for read in (parse, parse_power_supplies):
        try:
            read(raw)
        except ParseError:
            continue


@given(st.text("abcXYZ ,-", max_size=40))
def test_words_that_say_nothing_known_are_never_ok(words: str) -> None:
    supply = parse_power_supplies(f"PS1 | C8h | ok | 10.1 | {words}\n".encode())[0]
    assert supply.state is None
