"""AER counters of a PCIe device."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.aer_counters import total


def test_the_files_own_sum_counts() -> None:
    raw = b"RxErr 1\nBadTLP 3\nBadDLLP 0\nRollover 0\nTimeout 1\nNonFatalErr 0\nCorrIntErr 0\nHeaderOF 0\nTOTAL_ERR_COR 5\n"
    assert total(raw) == 5


def test_without_it_the_lines_are_summed_and_damaged_ones_left_out() -> None:
    assert total(b"Undefined 0\nDLP 2\nBlocked TLP 1\nMalfTLP x\n\n") == 3


@pytest.mark.parametrize("raw", [b"", b"7", b"RxErr\n"])
def test_nothing_usable(raw: bytes) -> None:
    with pytest.raises(ParseError, match="aer_dev"):
        total(raw)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_only_raise_parse_errors(raw: bytes) -> None:
    try:
        assert total(raw) >= 0
    except ParseError:
        return
