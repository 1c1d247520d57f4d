"""``mm_stat`` of zram."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.zram import ZramMemory, parse


def test_the_first_three_numbers_count_and_newer_kernels_may_add_more() -> None:
    assert parse(b" 268435456 67108864 71303168        0 80000000     1024        0       12       34\n") == ZramMemory(
        268435456, 67108864, 71303168
    )


@pytest.mark.parametrize("raw", [b"", b"1 2", b"1 -2 3", b"a b c", b"1 2 " + b"9" * 30, b"\xff"])
def test_anything_else_is_an_error_that_names_the_file(raw: bytes) -> None:
    with pytest.raises(ParseError) as raised:
        parse(raw, "/sys/block/zram0/mm_stat")
    assert raised.value.source == "/sys/block/zram0/mm_stat"


@given(st.binary(max_size=60))
def test_any_bytes_parse_or_raise_parse_error(raw: bytes) -> None:
    try:
        state = parse(raw)
    except ParseError:
        return
    assert min(state) >= 0


@given(st.lists(st.integers(0, 1 << 60), min_size=3, max_size=9))
def test_what_the_kernel_prints_comes_back(numbers: list[int]) -> None:
    assert parse(" ".join(f"{number:>8}" for number in numbers).encode()) == tuple(numbers[:3])
