"""Power by DCMI."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.ipmitool_dcmi import parse
from support.bmc import ipmitool_output


def test_a_reading() -> None:
    assert parse(ipmitool_output("supermicro.dcmi")) == (212.0, 208.0, True, "")


def test_a_fraction_and_no_state() -> None:
    assert parse(b"Instantaneous power reading: 125.500 Watts\n") == (125.5, None, None, "")


def test_a_decimal_comma() -> None:
    assert parse(b"Instantaneous power reading: 125,500 Watts\n").instantaneous_w == 125.5


def test_measuring_switched_off_is_no_power_of_zero() -> None:
    power = parse(ipmitool_output("deactivated.dcmi"))
    assert power == (None, None, False, "the BMC says that power measuring is deactivated")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 Watts", "0 Watts cannot be the power of a machine that is running"),
        ("-5 Watts", "-5 Watts cannot be the power of a machine that is running"),
        ("100001 Watts", "100001 Watts cannot be the power of a machine that is running"),
        ("nan Watts", "nan Watts cannot be the power of a machine that is running"),
        ("unknown", "'unknown' is no power"),
        ("", "'' is no power"),
    ],
)
def test_what_cannot_be(text: str, problem: str) -> None:
    power = parse(f"Instantaneous power reading: {text}\n".encode())
    assert (power.instantaneous_w, power.problem) == (None, problem)


@pytest.mark.parametrize("raw", [b"", b"DCMI request failed because: Invalid command (c1)\n", b"\xff\x00"])
def test_text_without_a_reading_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="dcmi"):
        parse(raw)


@given(st.binary(max_size=200))
def test_any_bytes(raw: bytes) -> None:
    for text in (raw, b"Instantaneous power reading: " + raw):
        try:
            power = parse(text)
        except ParseError:
            continue
        assert (power.instantaneous_w is None) == bool(power.problem)


@given(st.integers(1, 100_000))
def test_every_power_that_can_be(watts: int) -> None:
    assert parse(f"    Instantaneous power reading:  {watts} Watts\n".encode()).instantaneous_w == watts
