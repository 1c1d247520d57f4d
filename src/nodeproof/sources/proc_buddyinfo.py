"""``/proc/buddyinfo``: ``Node 0, zone   Normal    826    470    199    103`` (proc(5), mm/vmstat.c ``frag_show_print``).

The n-th number (from 0) counts free blocks of 2^n pages. How many there are is the kernel's ``MAX_PAGE_ORDER``: 11 on x86_64,
14 on aarch64 kernels with pages of 64 KiB.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["BuddyZone", "parse"]


class BuddyZone(NamedTuple):
    """Free blocks of one zone of one NUMA node."""

    node: str
    zone: str
    """``DMA``, ``DMA32``, ``Normal``, ``HighMem``, ``Movable`` or ``Device``."""
    free_blocks: tuple[int, ...]
    """By order: the n-th counts blocks of 2^n pages."""

    @property
    def free_pages(self) -> int:
        """Free pages of this zone."""
        return sum(count << order for order, count in enumerate(self.free_blocks))


def parse(raw: bytes, /) -> list[BuddyZone]:
    """Every zone, in the file's order; damaged lines are passed over. Raises ParseError when no line is usable."""
    zones = [zone for line in raw.split(b"\n") if (zone := _zone(line)) is not None]
    if not zones:
        raise ParseError(
            "/proc/buddyinfo", 0, raw[:60].decode("utf-8", "replace"), "lines such as 'Node 0, zone Normal 826 470 199'"
        )
    return zones


def _zone(line: bytes) -> BuddyZone | None:
    head, _, tail = line.partition(b",")
    place, fields = head.split(), tail.split()
    if len(place) != 2 or place[0] != b"Node" or not place[1].isdigit() or len(fields) < 3 or fields[0] != b"zone":
        return None
    counts = fields[2:]
    if not all(count.isdigit() and len(count) <= _MAX_DIGITS for count in counts):
        return None
    return BuddyZone(place[1].decode("ascii"), fields[1].decode("utf-8", "replace"), tuple(map(int, counts)))


_MAX_DIGITS = 20
"""A 64-bit counter has no more."""
