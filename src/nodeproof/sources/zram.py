"""``/sys/block/zram0/mm_stat``: ``1048576 4096 65536 0 131072 12 0 0 0`` (kernel: admin-guide/blockdev/zram.rst)."""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["ZramMemory", "parse"]


class ZramMemory(NamedTuple):
    """Memory behind one device."""

    original_bytes: int
    """What was written to it, uncompressed."""
    compressed_bytes: int
    used_bytes: int
    """What it costs, fragmentation and bookkeeping included."""


def parse(raw: bytes, /, source: str = "mm_stat") -> ZramMemory:
    """Read the first three numbers; newer kernels add more. Raises ParseError."""
    fields = raw.split()[:3]
    if len(fields) < 3 or not all(field.isdigit() and len(field) <= 20 for field in fields):
        raise ParseError(source, 1, raw[:60].decode("utf-8", "replace"), "at least three numbers of bytes")
    return ZramMemory(*map(int, fields))
