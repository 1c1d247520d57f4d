import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_pid_status import parse_switches

_STATUS = b"Name:\tkworker/0:1\nState:\tD (disk sleep)\nvoluntary_ctxt_switches:\t%s\nnonvoluntary_ctxt_switches:\t%s\n"


def test_both_kinds_of_switches_count() -> None:
    assert parse_switches(_STATUS % (b"150", b"545")) == 695


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"voluntary_ctxt_switches:\t150\n",
        _STATUS % (b"-1", b"2"),
        _STATUS % (b"", b"2"),
        _STATUS % (b"9" * 5000, b"2"),
    ],
)
def test_half_a_count_is_none(raw: bytes) -> None:
    with pytest.raises(ParseError):
        parse_switches(raw)


@given(st.binary(max_size=100) | st.tuples(st.binary(max_size=8), st.binary(max_size=8)).map(lambda two: _STATUS % two))
def test_any_bytes_give_a_count_or_a_parse_error(raw: bytes) -> None:
    try:
        assert parse_switches(raw) >= 0
    except ParseError:
        return


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_every_count_comes_back(one: int, other: int) -> None:
    assert parse_switches(_STATUS % (b"%d" % one, b"%d" % other)) == one + other
