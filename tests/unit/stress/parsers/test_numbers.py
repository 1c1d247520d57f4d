"""Numbers, read without guessing."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.stress.parsers.numbers import is_localised, number, printed_step, whole


@pytest.mark.parametrize(
    ("text", "value"),
    [("5.5337e+02", 553.37), ("101234.5", 101234.5), ("7", 7.0), ("5.", 5.0), ("1E3", 1000.0)],
)
def test_decimals(text: str, value: float) -> None:
    assert number(text) == value


@pytest.mark.parametrize("text", ["", "nan", "inf", "-1", "+1", "1,5", "0x10", "1_0", "1e999", "\u0663", "1 ", "1" * 41])
def test_what_is_no_plain_decimal(text: str) -> None:
    assert number(text) is None


def test_whole_numbers() -> None:
    assert [whole(text) for text in ("0", "42", "-1", "1.0", "", "9" * 19)] == [0, 42, None, None, None, None]


@pytest.mark.parametrize(
    ("text", "localised"),
    [("101234,5", True), ("1.234,5", True), ("5,5e+02", True), ("1234.5", False), (",", False), ("abc", False)],
)
def test_commas(text: str, localised: bool) -> None:  # noqa: FBT001 - a row of the table
    assert is_localised(text) is localised


@pytest.mark.parametrize(
    ("text", "step"), [("0.0178", 0.00005), ("150.60", 0.005), ("7", 0.5), ("1.5e3", 50.0), ("2e-3", 0.0005)]
)
def test_half_of_the_last_digit(text: str, step: float) -> None:
    assert printed_step(text) == pytest.approx(step)


@given(st.floats(0, 1e30))
def test_what_c_prints_comes_back(value: float) -> None:
    assert number(f"{value:.17e}") == value
    read = number(f"{value:.2f}")
    assert read is not None
    assert math.isclose(read, value, abs_tol=0.0051)


@given(st.text(max_size=50))
def test_any_text_is_a_finite_number_or_none(text: str) -> None:
    value = number(text)
    assert value is None or (value >= 0 and math.isfinite(value))
