"""Answer to ``ETHTOOL_GLINKSETTINGS``: ``struct ethtool_link_settings`` and three bit maps of link modes (linux/ethtool.h).

48 bytes, of which byte 15 (signed) holds the length of each map in 32-bit words; then the modes that are supported, advertised,
and advertised by the partner, in the byte order of the machine. Supported is what port, cable and transceiver can do together.
"""

import sys

from nodeproof.errors import ParseError

__all__ = ["MODE_SPEEDS_MBPS", "parse"]

_HEADER_BYTES = 48
_WORDS_AT = 15

MODE_SPEEDS_MBPS: dict[int, tuple[int, ...]] = {
    10: (0, 1, 92),
    100: (2, 3, 67, 90, 91),
    1_000: (4, 5, 17, 41, 68),
    2_500: (15, 47),
    5_000: (48,),
    10_000: (12, 18, 19, 20, 42, 43, 44, 45, 46),
    20_000: (21, 22),
    25_000: (31, 32, 33),
    40_000: (23, 24, 25, 26),
    50_000: (34, 35, 40, 52, 53, 54, 55, 56),
    56_000: (27, 28, 29, 30),
    100_000: (36, 37, 38, 39, 57, 58, 59, 60, 61, 75, 76, 77, 78, 79),
    200_000: (62, 63, 64, 65, 66, 80, 81, 82, 83, 84),
    400_000: (69, 70, 71, 72, 73, 85, 86, 87, 88, 89),
}
"""Bits by speed; modes added since Linux 6.0 (800 Gb/s) are not among them, and a port that has only such is not judged."""

_MASKS = {speed: sum(1 << bit for bit in bits) for speed, bits in MODE_SPEEDS_MBPS.items()}
_NEWER = 93
"""First bit that this table does not know."""


def parse(raw: bytes, /) -> int | None:
    """Greatest speed in Mb/s among the supported modes; None when the driver lists none, or newer ones too. Raises ParseError."""
    length = int.from_bytes(raw[_WORDS_AT : _WORDS_AT + 1], "little", signed=True) * 4
    if length <= 0 or len(raw) < _HEADER_BYTES + length:
        raise ParseError("ETHTOOL_GLINKSETTINGS", 0, raw[:_HEADER_BYTES].hex(), "maps of link modes")
    supported = 0
    for at in range(0, length, 4):
        supported |= int.from_bytes(raw[_HEADER_BYTES + at : _HEADER_BYTES + at + 4], sys.byteorder) << (8 * at)
    if supported >> _NEWER:
        return None
    return max((speed for speed, mask in _MASKS.items() if supported & mask), default=None)
