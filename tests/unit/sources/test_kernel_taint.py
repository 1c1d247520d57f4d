"""Taint bits of the kernel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.kernel_taint import parse, words


def test_a_node_with_nvidias_driver() -> None:
    assert parse(b"12289\n") == 12289  # 1 + 4096 + 8192
    assert words(12289) == ["proprietary_module", "out_of_tree_module", "unsigned_module"]


def test_signs_of_trouble() -> None:
    assert words(16 | 32 | 128 | 512 | 16384) == ["machine_check", "bad_page", "oops", "warning", "soft_lockup"]
    assert words(0) == []
    assert words(1 << 40) == ["bit40"]


@pytest.mark.parametrize("raw", [b"", b"-1", b"x", b"1 2"])
def test_what_is_no_number(raw: bytes) -> None:
    with pytest.raises(ParseError, match="tainted"):
        parse(raw)


@given(st.binary(max_size=30))
def test_arbitrary_bytes_only_raise_parse_errors(raw: bytes) -> None:
    try:
        assert len(words(parse(raw))) <= 64
    except ParseError:
        return
