"""Files of a name and a number a line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_vmstat import parse


def test_names_and_numbers() -> None:
    assert parse(b"nr_free_pages 934661\npgfault 1565060\noom_kill 0\n") == {
        "nr_free_pages": 934661,
        "pgfault": 1565060,
        "oom_kill": 0,
    }


@pytest.mark.parametrize(
    "bad",
    [
        b"pswpin",
        b"pswpin 1 2",
        b"pswpin x",
        b"pswpin -1",
        b"pswpin 18446744073709551616",
        b"pswpin " + b"9" * 25,
        b"pswpin " + b"9" * 5000,
        b"7 8",
        b"\xff\xfe",
        b"a b\nc",
    ],
)
def test_a_damaged_line_costs_only_itself(bad: bytes) -> None:
    assert parse(b"pgfault 5\n" + bad + b"\npgmajfault 6\n") == {"pgfault": 5, "pgmajfault": 6}


def test_two_damaged_lines_that_even_each_other_out_do_not_shift_the_rest() -> None:
    # Taken word by word, "pswpin" would get no number and "3" would become a name.
    assert parse(b"pswpin\n3 4 5\npgfault 6\n") == {"pgfault": 6}


@pytest.mark.parametrize("raw", [b"", b"\n", b"one\ntwo\n", b"1 2\n"])
def test_nothing_usable_is_an_error_that_names_the_file(raw: bytes) -> None:
    with pytest.raises(ParseError) as raised:
        parse(raw, "memory.events")
    assert raised.value.source == "memory.events"


@given(st.binary(max_size=300))
def test_any_bytes_parse_or_raise_parse_error(raw: bytes) -> None:
    try:
        values = parse(raw)
    except ParseError:
        return
    assert all(0 <= value < 1 << 64 for value in values.values())


_NAMES = st.from_regex(r"[a-z][a-z0-9_]{1,30}", fullmatch=True)


@given(st.dictionaries(_NAMES, st.integers(0, (1 << 64) - 1), min_size=1, max_size=50))
def test_what_the_kernel_prints_comes_back(values: dict[str, int]) -> None:
    assert parse("".join(f"{name} {value}\n" for name, value in values.items()).encode()) == values


@given(st.dictionaries(_NAMES, st.integers(0, 1 << 40), min_size=1, max_size=20), st.integers(0, 19))
def test_the_careful_way_reads_what_the_quick_way_reads(values: dict[str, int], place: int) -> None:
    lines = [f"{name} {value}" for name, value in values.items()]
    lines.insert(place, "torn")
    assert parse("\n".join(lines).encode()) == values


def test_every_line_of_this_machines_own_file_is_understood() -> None:
    raw = Path("/proc/vmstat").read_bytes()
    assert len(parse(raw)) == raw.count(b"\n")
