import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.sys_cpufreq import parse_mhz


def test_khz_become_mhz() -> None:
    assert parse_mhz(b"2596122\n", "f") == 2596.122


@pytest.mark.parametrize("raw", [b"<unknown>\n", b"0\n", b"-1\n", b"", b"20000001\n", b"2.5\n", b"\xb2"])
def test_what_is_no_frequency_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="a frequency in kHz"):
        parse_mhz(raw, "f")


@given(st.binary(max_size=20))
def test_any_bytes_give_a_frequency_or_a_parse_error(raw: bytes) -> None:
    try:
        assert 0 < parse_mhz(raw, "f") <= 20_000
    except ParseError:
        return


@given(st.integers(1, 20_000_000))
def test_every_frequency_comes_back(khz: int) -> None:
    assert parse_mhz(f"{khz}\n".encode(), "f") == khz / 1000
