"""Subsets of the single-turn part of BFCL, and what of them is drawn.

A draw uses no random numbers: of each subset the first rows in file order, so that everybody's is the same. A shard ``i/n`` takes
each n-th of the drawn rows of a subset, from its i-th on; all shards together are the draw.
"""

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = [
    "ECHOLP", "FULL", "GOLDEN", "HALLUCINATION", "LIVE", "NON_LIVE", "SUBSETS", "WHOLE", "Draw", "Shard", "drawn_counts", "taken",
]  # fmt: skip

NON_LIVE, LIVE, HALLUCINATION, NONE = "non_live", "live", "hallucination", ""

SUBSETS: Mapping[str, tuple[int, str]] = {
    "irrelevance": (240, HALLUCINATION),
    "live_irrelevance": (884, HALLUCINATION),
    "live_multiple": (1053, LIVE),
    "live_parallel": (16, LIVE),
    "live_parallel_multiple": (24, LIVE),
    "live_relevance": (16, NONE),
    "live_simple": (258, LIVE),
    "multiple": (200, NON_LIVE),
    "parallel": (200, NON_LIVE),
    "parallel_multiple": (200, NON_LIVE),
    "simple_java": (100, NON_LIVE),
    "simple_javascript": (50, NON_LIVE),
    "simple_python": (400, NON_LIVE),
}
"""Rows of the published data and category, by name. The one without a category is never drawn."""


class Draw(NamedTuple):
    """How much of each category is taken."""

    non_live_pct: float
    live_pct: float
    hallucination_pct: float
    floor: int
    """A subset of no more rows than this is taken whole; 0 = none is for that reason."""

    def share_pct(self, category: str) -> float | None:
        """Of a subset of ``category``; None = it is not drawn."""
        shares = {NON_LIVE: self.non_live_pct, LIVE: self.live_pct, HALLUCINATION: self.hallucination_pct}
        return shares.get(category)


GOLDEN = Draw(62.0, 10.0, 10.0, 25)
"""995 rows of the published data."""
ECHOLP = Draw(46.0, 23.0, 12.0, 25)
"""1004 rows."""
FULL = Draw(100.0, 100.0, 100.0, 0)
"""3625 rows."""


class Shard(NamedTuple):
    """One of ``parts`` equal parts, counted from 0; the whole is 0/1."""

    part: int
    parts: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Of ``i/n``. Raises ValueError that says what is right."""
        found = re.fullmatch(r"\s*(\d{1,6})\s*/\s*(\d{1,6})\s*", text)
        if found is None:
            raise ValueError(f"{text[:40]!r} is no shard; write i/n, such as 0/4")
        index, count = int(found[1]), int(found[2])
        if not index < count:
            raise ValueError(
                f"{index}/{count}: shards of {count} are numbered 0 to {count - 1}" if count else "0 shards are none"
            )
        return cls(index, count)

    @property
    def whole(self) -> bool:
        """Whether it is all there is."""
        return self.parts == 1

    def has(self, position: int) -> bool:
        """Whether the row at ``position`` among the drawn ones of its subset belongs to it."""
        return position % self.parts == self.part

    def size(self, drawn: int) -> int:
        """How many of so many drawn rows belong to it."""
        return max(0, math.ceil((drawn - self.part) / self.parts))


WHOLE = Shard(0, 1)


def taken(rows: int, share_pct: float, floor: int) -> int:
    """How many of ``rows`` are drawn."""
    if rows <= floor or share_pct >= 100:
        return rows
    # A share such as 62 % of 50 is exactly 31; in floating point it may come out just below.
    return min(rows, max(1, math.floor(round(rows * share_pct / 100, 9))))


def drawn_counts(rows: Mapping[str, int], draw: Draw, shard: Shard = WHOLE) -> dict[str, int]:
    """Drawn rows by subset, of subsets with so many ``rows``; those of which nothing is drawn are left out."""
    counts = {}
    for name in sorted(rows):
        _, category = SUBSETS.get(name, (0, NONE))
        share = draw.share_pct(category)
        size = 0 if share is None else shard.size(taken(rows[name], share, draw.floor))
        if size:
            counts[name] = size
    return counts
