"""The kernel's clock discipline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.timex import parse


def test_a_clock_kept_by_chrony_in_nanoseconds() -> None:
    raw = b"state 0\nstatus 8193\noffset -41230\nfreq 1245184\nmaxerror 1820\nesterror 25\ntai 37\n"
    # 8193 = 0x2001: PLL and NANO; -41230 ns; 1245184 / 65536 = 19 ppm
    found = parse(raw)
    assert found.synced
    assert found.offset_s == pytest.approx(-41.23e-6)
    assert found.max_error_s == pytest.approx(0.00182)
    assert found.estimated_error_s == pytest.approx(25e-6)
    assert found.frequency_ppm == 19.0


def test_offset_in_microseconds_without_the_nano_bit() -> None:
    assert parse(b"state 0\nstatus 1\noffset 250\nmaxerror 1000\nesterror 5\n").offset_s == pytest.approx(250e-6)


@pytest.mark.parametrize(("state", "status"), [(5, 64), (5, 8192), (0, 64), (0, 0x1000)])
def test_an_offset_of_zero_without_discipline_is_no_offset(state: int, status: int) -> None:
    """Nobody keeps the clock, the kernel writes offset 0: that must not look like a perfect clock."""
    found = parse(f"state {state}\nstatus {status}\noffset 0\nmaxerror 16000000\nesterror 16000000\n".encode())
    assert (found.synced, found.offset_s, found.max_error_s, found.frequency_ppm) == (False, None, 16.0, None)


@pytest.mark.parametrize("raw", [b"", b"state 0\nstatus 1\n", b"state x\nstatus 1\noffset 1\nmaxerror 1\nesterror 1"])
def test_lacking_numbers_are_named(raw: bytes) -> None:
    with pytest.raises(ParseError, match=r"adjtimex\(2\)"):
        parse(raw)


def test_damaged_numbers_count_as_lacking() -> None:
    with pytest.raises(ParseError, match="a number for offset"):
        parse(b"state 0\nstatus 1\noffset --5\nmaxerror 1\nesterror 1\n")


@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(st.tuples(st.sampled_from(["state", "status", "offset", "maxerror", "esterror"]), st.text(max_size=8))).map(
            lambda rows: "\n".join(f"{a} {b}" for a, b in rows).encode("utf-8", "replace")
        ),
    )
)
def test_arbitrary_bytes_only_raise_parse_errors(raw: bytes) -> None:
    try:
        parse(raw)
    except ParseError:
        return
