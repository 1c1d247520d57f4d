"""``/proc/buddyinfo``."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.proc_buddyinfo import BuddyZone, parse

_TEXT = (
    b"Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3 \n"
    b"Node 0, zone   Normal    826    470    199    103    188    272    175    116     67     35     80 \n"
    b"Node 1, zone  Movable      2      1      0      4\n"
)


def test_zones_keep_node_name_and_counts() -> None:
    zones = parse(_TEXT)
    assert [(zone.node, zone.zone, len(zone.free_blocks)) for zone in zones] == [
        ("0", "DMA", 11),
        ("0", "Normal", 11),
        ("1", "Movable", 4),
    ]
    assert zones[2].free_blocks == (2, 1, 0, 4)


def test_free_pages_weigh_each_block_by_its_order() -> None:
    # 2*1 + 1*2 + 0*4 + 4*8 = 36; DMA: 1*256 + 1*512 + 3*1024 = 3840
    zones = parse(_TEXT)
    assert zones[2].free_pages == 36
    assert zones[0].free_pages == 3840


@pytest.mark.parametrize(
    "bad",
    [
        b"Node 0, zone Normal",
        b"Node 0, zone Normal 1 x 3",
        b"Node 0, zone Normal 1 -2 3",
        b"Node x, zone Normal 1 2",
        b"Node 0 zone Normal 1 2",
        b"Knoten 0, zone Normal 1 2",
        b"Node 0, Zone Normal 1 2",
        b"Node 0, zone Normal 1" + b"0" * 30,
    ],
)
def test_a_damaged_line_costs_only_itself(bad: bytes) -> None:
    assert parse(bad + b"\n" + _TEXT) == parse(_TEXT)


@pytest.mark.parametrize("raw", [b"", b"\n\n", b"\x00\xff binary", b"Node 0, zone"])
def test_nothing_usable_is_an_error_that_names_the_file(raw: bytes) -> None:
    with pytest.raises(ParseError) as raised:
        parse(raw)
    assert raised.value.source == "/proc/buddyinfo"


@given(st.binary(max_size=300))
def test_any_bytes_parse_or_raise_parse_error(raw: bytes) -> None:
    try:
        zones = parse(raw)
    except ParseError:
        return
    assert all(zone.free_pages >= 0 for zone in zones)


_ZONES = st.builds(
    BuddyZone,
    st.integers(0, 1023).map(str),
    st.sampled_from(["DMA", "DMA32", "Normal", "Movable", "Device"]),
    st.lists(st.integers(0, 2**40), min_size=1, max_size=14).map(tuple),
)


@given(st.lists(_ZONES, min_size=1, max_size=8))
def test_what_the_kernel_prints_comes_back(zones: list[BuddyZone]) -> None:
    text = "".join(f"Node {z.node}, zone {z.zone:>8} " + "".join(f"{n:>6} " for n in z.free_blocks) + "\n" for z in zones)
    assert parse(text.encode()) == zones
