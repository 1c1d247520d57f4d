"""Conversions, each stated once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.units import (
    BYTES_PER_KIB,
    BYTES_PER_MIB,
    SECTOR_BYTES,
    duration_text,
    kelvin_to_celsius,
    parse_duration,
)


def test_constants() -> None:
    assert (BYTES_PER_KIB, BYTES_PER_MIB, SECTOR_BYTES) == (1024, 1048576, 512)


def test_kelvin() -> None:
    assert kelvin_to_celsius(273.15) == 0.0
    assert kelvin_to_celsius(310.15) == pytest.approx(37.0)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("3s", 3),
        ("500ms", 0.5),
        ("1h30m", 5400),
        ("168h", 604800),
        ("1.5s", 1.5),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("10ns", 1e-8),
        ("0", 0),
        ("0s", 0),
        ("-2s", -2),
        ("+2s", 2),
        ("-0", 0),
        (" 1m ", 60),
        ("1m30s", 90),
        ("168h0m0s", 604800),
        (".5s", 0.5),
        ("5.s", 5),
    ],
)
def test_parse_duration(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "-", "+", "3", "s", "3 s", "3d", "3x", "1.2.3s", ".s", "1h30", "--3s", "nan", "3ss", "1e3s"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration; write 3s, 500ms, 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.25, "250ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59.999, "59.999s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (3600, "1h0m0s"),
        (604800, "168h0m0s"),
        (5400.25, "1h30m0.25s"),
    ],
)
def test_duration_text(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


@given(st.integers(0, 10**9))
def test_a_duration_survives_the_round_trip(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(duration_text(seconds)) == pytest.approx(seconds, abs=0.0011)


@given(st.text(max_size=20))
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    try:
        assert isinstance(parse_duration(text), float)
    except ValueError as error:
        assert "is no duration" in str(error)
