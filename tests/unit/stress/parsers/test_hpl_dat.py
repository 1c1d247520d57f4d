"""``HPL.dat``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.stress.parsers.hpl_dat import parse

_FILE = """HPLinpack benchmark input file
a laboratory
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
2            # of problems sizes (N)
4000 8000 9999  Ns
1            # of NBs
192          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
2            # of process grids (P x Q)
1 2          Ps
4 2          Qs
16.0         threshold
"""


def test_all_that_decides_memory_ranks_and_proof() -> None:
    dat = parse(_FILE.encode())
    assert dat.device == 6
    assert dat.sizes == (4000, 8000)
    assert dat.blocks == (192,)
    assert dat.grids == ((1, 4), (2, 2))
    assert dat.threshold == 16.0


@pytest.mark.parametrize(("text", "threshold"), [("-1.0 off", -1.0), ("0.0", 0.0), ("soon", None), ("", None)])
def test_a_threshold_that_checks_nothing(text: str, threshold: float | None) -> None:
    assert parse(_FILE.replace("16.0         threshold", text).encode()).threshold == threshold


def test_a_file_as_destination_and_a_line_without_one() -> None:
    assert parse(_FILE.replace("6            device", "8 device").encode()).device == 8
    assert parse(_FILE.replace("6            device out (6=stdout,7=stderr,file)", "").encode()).device is None


@pytest.mark.parametrize(
    ("old", "new", "line_no"),
    [
        ("2            # of problems", "x problems", 5),
        ("2            # of problems", "0 problems", 5),
        ("2            # of problems", "65 problems", 5),
        ("2            # of problems sizes (N)", "", 5),
        ("4000 8000 9999  Ns", "4000", 6),
        ("192          NBs", "-3", 8),
        ("4 2          Qs", "4 0", 12),
    ],
)
def test_a_value_that_is_missing_is_named_with_its_line(old: str, new: str, line_no: int) -> None:
    with pytest.raises(ParseError) as raised:
        parse(_FILE.replace(old, new).encode())
    assert raised.value.line_no == line_no


def test_a_short_file_is_an_error() -> None:
    with pytest.raises(ParseError, match=r"at least 13 lines"):
        parse(b"6\n6\n")


@given(st.binary(max_size=200))
def test_any_bytes_raise_parse_error_or_parse(noise: bytes) -> None:
    try:
        dat = parse(noise.replace(b" ", b"\n"))
    except ParseError:
        return
    assert dat.sizes
