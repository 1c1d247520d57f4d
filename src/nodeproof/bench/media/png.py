"""A picture as a PNG file (ISO/IEC 15948): eight bits of red, green and blue a pixel, no filters."""

import struct
import zlib

from nodeproof.bench.media.canvas import PALETTE, Canvas

__all__ = ["encode_png"]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_RGB = tuple(bytes(rgb) for rgb in PALETTE.values())


def encode_png(canvas: Canvas) -> bytes:
    """The file."""
    header = struct.pack(">IIBBBBB", canvas.width, canvas.height, 8, 2, 0, 0, 0)
    lines = b"".join(b"\0" + b"".join([_RGB[number] for number in row]) for row in canvas.rows)
    return _SIGNATURE + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(lines, 6)) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
