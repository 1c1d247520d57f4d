import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.btrfs import parse_error_stats


def test_the_five_counters_of_a_member() -> None:
    raw = b"write_errs 3\nread_errs 0\nflush_errs 1\ncorruption_errs 5\ngeneration_errs 0\n"
    assert parse_error_stats(raw) == {"write": 3, "read": 0, "flush": 1, "corruption": 5, "generation": 0}


def test_a_damaged_line_costs_itself_only() -> None:
    assert parse_error_stats(b"write_errs x\nread_errs 2\nother 3\n") == {"read": 2}


def test_nothing_usable_is_an_error() -> None:
    with pytest.raises(ParseError, match="btrfs error_stats, line 1"):
        parse_error_stats(b"invalid\n")


@given(st.binary(max_size=200))
def test_arbitrary_bytes(raw: bytes) -> None:
    try:
        found = parse_error_stats(raw)
    except ParseError:
        return
    assert all(number >= 0 for number in found.values())
