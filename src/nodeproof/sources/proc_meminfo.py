"""``/proc/meminfo``: ``MemAvailable:   24438896 kB`` (proc_meminfo(5), fs/proc/meminfo.c).

The same layout with ``Node 0`` in front of each name is ``/sys/devices/system/node/node*/meminfo``. The kernel's ``kB`` are
KiB. A long name leaves no room before the number (``ShadowCallStack:10373888 kB``), so the colon is the only separator.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError
from nodeproof.units import BYTES_PER_KIB

__all__ = ["MemInfo", "parse"]

_MAX_KIB = 1 << 54
"""No address space holds more KiB: 2^64 bytes. What claims to is a wrapped negative number (containers show such)."""
_MAX_DIGITS = 20


class MemInfo(NamedTuple):
    """What the file holds, by the kernel's own names."""

    sizes_bytes: dict[str, int]
    """Every line in kB: ``MemTotal``, ``Active(anon)`` ..."""
    counts: dict[str, int]
    """Every line without a unit: ``HugePages_Total``, ``HugePages_Free`` ..."""
    rejected: tuple[str, ...]
    """Names whose number is not plausible."""


def parse(raw: bytes, /, source: str = "/proc/meminfo") -> MemInfo:
    """Read every usable line; damaged and implausible ones are passed over. Raises ParseError when there is none."""
    sizes: dict[str, int] = {}
    counts: dict[str, int] = {}
    rejected: list[str] = []
    for line in raw.decode("utf-8", "replace").split("\n"):
        name, _, rest = line.partition(":")
        fields = rest.split()
        if not fields or not name:
            continue
        if name.startswith("Node "):
            name = name.rpartition(" ")[2]
        number = int(fields[0]) if fields[0].isdecimal() and len(fields[0]) <= _MAX_DIGITS else -1
        if not 0 <= number < _MAX_KIB:
            rejected.append(name)
        elif len(fields) == 1:
            counts[name] = number
        elif fields[1] == "kB":
            sizes[name] = number * BYTES_PER_KIB
    if not sizes:
        raise ParseError(source, 0, raw[:60].decode("utf-8", "replace"), "lines such as 'MemTotal: 24683652 kB'")
    return MemInfo(sizes, counts, tuple(rejected))
