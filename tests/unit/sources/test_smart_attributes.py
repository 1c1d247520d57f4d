import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.smart_attributes import Attribute, celsius, count, failing, hours, parse
from support.smartctl import smartctl_output


def _raw(text: str) -> Attribute:
    return Attribute(5, "Reallocated_Sector_Ct", 100, 100, 10, prefail=True, when_failed="", raw=text)


def test_case_43_error_rates_are_judged_by_value_against_threshold() -> None:
    rows = parse(smartctl_output("table-raw-48bit.txt"))
    assert [(row.number, row.value, row.worst, row.thresh, row.prefail) for row in rows[:2]] == [
        (1, 83, 64, 44, True),
        (7, 90, 60, 45, True),
    ]
    assert [row.raw for row in rows[:2]] == ["201326592", "946278563"]
    assert not any(map(failing, rows))


def test_case_43_hours_and_temperature_are_unpacked() -> None:
    rows = parse(smartctl_output("table-raw-48bit.txt"))
    assert [row.number for row in rows] == [1, 7, 9, 190, 194, 240, 240]
    assert hours(rows[2]) == 180
    assert [celsius(row) for row in rows[3:5]] == [38.0, 38.0]
    assert hours(rows[5]) == 20730
    assert hours(rows[6]) == 15566  # 127865471384782 = 29771 * 2^32 + 15566


@pytest.mark.parametrize(
    ("value", "thresh", "prefail", "expected"),
    [
        (10, 10, True, True),
        (9, 10, True, True),
        (11, 10, True, False),
        (1, 0, True, False),
        (0, 10, True, False),
        (254, 255, True, False),
        (1, 50, False, False),
        (None, 10, True, False),
        (10, None, True, False),
    ],
)
def test_what_foretells_failure(value: int | None, thresh: int | None, prefail: bool, expected: bool) -> None:  # noqa: FBT001
    assert failing(Attribute(5, "x", value, value, thresh, prefail, "", "0")) is expected


@pytest.mark.parametrize(
    ("raw", "expected"),
    [("8", 8), ("0", 0), ("12 (3 0)", 12), ("4294967295", 4294967295), ("4295032853", None), ("0x1", 0), ("", None)],
)
def test_counts_are_believed_up_to_32_bits(raw: str, expected: int | None) -> None:
    assert count(_raw(raw)) == expected


@pytest.mark.parametrize(("raw", "expected"), [("4294967295", None), ("1000000", 1000000), ("x", None)])
def test_hours_that_no_disk_can_have(raw: str, expected: int | None) -> None:
    assert hours(_raw(raw)) == expected


@pytest.mark.parametrize(("raw", "expected"), [("150", 150.0), ("151", None), ("65261", None), ("-", None)])
def test_temperatures_that_no_disk_can_have(raw: str, expected: float | None) -> None:
    assert celsius(_raw(raw)) == expected


def test_the_brief_format_and_rows_without_values() -> None:
    raw = (
        b"ID# ATTRIBUTE_NAME          FLAGS    VALUE WORST THRESH FAIL RAW_VALUE\n"
        b"  5 Reallocated_Sector_Ct   PO--CK   005   005   010    NOW  3968\n"
        b"  9 Power_On_Hours          -O--CK   ---   ---   ---    -    12\n"
    )
    assert parse(raw) == [
        Attribute(5, "Reallocated_Sector_Ct", 5, 5, 10, False, "now", "3968"),
        Attribute(9, "Power_On_Hours", None, None, None, False, "", "12"),
    ]


def test_words_of_failure() -> None:
    row = b"  5 Reallocated_Sector_Ct   0x0033   005   005   010    Pre-fail  Always   %s 3968\n"
    assert [parse(row % word)[0].when_failed for word in (b"FAILING_NOW", b"In_the_past", b"-")] == ["now", "past", ""]


def test_text_without_a_table_is_an_error() -> None:
    with pytest.raises(ParseError, match="smartctl -A"):
        parse(b"Device does not support SMART\n")


@given(st.binary(max_size=200))
def test_arbitrary_bytes(raw: bytes) -> None:
    for text in (raw, b"  5 Reallocated_Sector_Ct   0x0033   100   100   010    Pre-fail  Always       -       " + raw):
        try:
            rows = parse(text)
        except ParseError:
            continue
        for row in rows:
            assert (found := hours(row)) is None or 0 <= found <= 1_000_000
            assert (number := count(row)) is None or 0 <= number < 1 << 32
            assert (warm := celsius(row)) is None or -60 <= warm <= 150
