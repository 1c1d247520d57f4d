"""What data files come to in a day, reckoned from a minute of them."""

import zlib

from nodeproof.sinks.jsonl_files import Limits

__all__ = ["on_disk_a_day"]

_MINUTES_A_DAY = 24 * 60
_LEVEL, _GZIP = 6, 31
"""As ``host.append.compress_file`` packs."""


def on_disk_a_day(lines: bytes, minutes: float) -> float:
    """Bytes on the disk at the end of a day with so many minutes like the one that wrote ``lines`` to one file.

    A file is compressed when it has grown beyond the limit of a part, so there lie the packed parts and at most one open part.
    A minute is packed by itself here: that it repeats the minutes before it, which packs better, is left out.
    """
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    packed = len(packer.compress(lines)) + len(packer.flush())
    whole = len(lines) / minutes * _MINUTES_A_DAY
    part = Limits().part_bytes
    return whole if whole <= part else part + (whole - part) * packed / len(lines)
