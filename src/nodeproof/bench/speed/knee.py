"""The knee of a sweep: from which concurrency on more requests at once bring hardly more throughput."""

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["SHARE", "Knee", "Point", "find_knee"]

SHARE = 0.9
"""Share of the highest throughput that counts as all of it: two cells of one machine differ by less than the rest."""
_LEAST_POINTS = 3


class Point(NamedTuple):
    """A cell of the curve."""

    concurrency: int
    tok_s: float


class Knee(NamedTuple):
    """Where the curve bends, in words too."""

    concurrency: int | None
    """None = it does not bend within what was measured, or there is too little to tell."""
    text: str


def find_knee(points: Sequence[Point], share: float = SHARE) -> Knee:
    """The lowest concurrency that brings ``share`` of the peak. The highest one measured is no knee: it may go on from there."""
    curve = sorted(points)
    if len(curve) < _LEAST_POINTS:
        return Knee(None, f"a knee takes {_LEAST_POINTS} comparable cells, there are {len(curve)}")
    peak = max(curve, key=lambda point: point.tok_s)
    if peak.tok_s <= 0:
        return Knee(None, "no cell brought any throughput")
    knee = next(point for point in curve if point.tok_s >= share * peak.tok_s)
    if knee == curve[-1]:
        before = curve[-2]
        gain = knee.tok_s / before.tok_s if before.tok_s > 0 else float("inf")
        return Knee(
            None, f"no knee up to {knee.concurrency} at once: throughput is still {gain:.2f} times that of {before.concurrency}"
        )
    last = curve[-1]
    text = (
        f"knee at {knee.concurrency} at once: {knee.tok_s:.4g} tok/s, {knee.tok_s / peak.tok_s:.0%} of the peak; "
        f"{last.concurrency} at once bring {last.tok_s:.4g}"
    )
    return Knee(knee.concurrency, text)
