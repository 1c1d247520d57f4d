"""Answers to ``ETHTOOL_GLINKSETTINGS``."""

import os
import re
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeproof.errors import ParseError
from nodeproof.sources.ethtool_link import MODE_SPEEDS_MBPS, parse
from support.network import link_settings_answer

_HEADER = "/usr/include/linux/ethtool.h"


def test_the_greatest_supported_mode_counts() -> None:
    assert parse(link_settings_answer(6, 5, 12, 31, 36)) == 100_000  # autonegotiation, 1, 10, 25 and 100 Gb/s
    assert parse(link_settings_answer(85)) == 400_000
    assert parse(link_settings_answer(0)) == 10


def test_no_modes_or_newer_ones_are_no_speed() -> None:
    assert parse(link_settings_answer()) is None
    assert parse(link_settings_answer(6, 7, 13)) is None
    assert parse(link_settings_answer(36, 93)) is None


def test_the_answer_of_virtio_lists_nothing() -> None:
    raw = struct.pack("=IIBBBBBBBb", 0x4C, 0xFFFFFFFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 4) + bytes(32) + bytes(48)
    assert parse(raw) is None


@pytest.mark.parametrize("raw", [b"", bytes(48), bytes(15) + b"\x04" + bytes(32), bytes(15) + b"\xfc" + bytes(100)])
def test_an_answer_without_maps_is_refused(raw: bytes) -> None:
    with pytest.raises(ParseError, match="maps of link modes"):
        parse(raw)


def test_the_table_is_the_kernels() -> None:
    if not os.path.exists(_HEADER):
        pytest.skip(f"this machine has no {_HEADER} (linux-libc-dev)")
    modes: dict[int, list[int]] = {}
    with open(_HEADER, encoding="utf-8") as file:
        for speed, bit in re.findall(r"ETHTOOL_LINK_MODE_(\d+)base\w+_BIT\s*=\s*(\d+)", file.read()):
            if int(bit) < 93:
                modes.setdefault(int(speed), []).append(int(bit))
    assert {speed: tuple(sorted(bits)) for speed, bits in modes.items()} == MODE_SPEEDS_MBPS


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_raise_nothing_but_parse_error(raw: bytes) -> None:
    try:
        assert parse(raw) in {None, *MODE_SPEEDS_MBPS}
    except ParseError as error:
        assert error.expected


@settings(deadline=None)
@given(st.sets(st.integers(0, 92)))
def test_every_set_of_known_modes(bits: set[int]) -> None:
    expected = [speed for speed, modes in MODE_SPEEDS_MBPS.items() if bits & set(modes)]
    assert parse(link_settings_answer(*bits)) == max(expected, default=None)
