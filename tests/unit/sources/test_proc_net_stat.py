"""Tables of /proc/net/stat."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_net_stat import parse

ARP = b"""entries  allocs   destroys hash_grows lookups  table_fulls
00000002 00000002 00000005 00000000   00000004 00000001
00000002 00000008 00000003 00000000   000000ff 0000000a
"""


def test_processors_are_summed_and_the_table_is_counted_once() -> None:
    # allocs 2 + 8, destroys 5 + 3, lookups 4 + 255, table_fulls 1 + 10
    assert parse(ARP) == {"entries": 2, "allocs": 10, "destroys": 8, "hash_grows": 0, "lookups": 259, "table_fulls": 11}


def test_damaged_lines_are_passed_over_and_a_short_one_counts_as_far_as_it_goes() -> None:
    assert parse(b"entries allocs\nzz 1\n\n3 4 5\n7\n-1 2\n0000000a 2") == {"entries": 10, "allocs": 2}


@pytest.mark.parametrize("raw", [b"", b"entries allocs\n", b"entries\nno numbers\n", b"\xff\n1 2\n"])
def test_nothing_usable_is_an_error(raw: bytes) -> None:
    with pytest.raises(ParseError, match="arp_cache"):
        parse(raw, "arp_cache")


@given(st.binary(max_size=300))
def test_any_bytes_are_counts_or_an_error(raw: bytes) -> None:
    with contextlib.suppress(ParseError):
        assert all(number >= 0 for number in parse(raw).values())
