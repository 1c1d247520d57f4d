"""Whether a row of equal measurements changed its level, and where: Pettitt's test, and how far the newest lies outside.

Pettitt's test is a Mann-Whitney test over all places where the row could be cut; the place with the largest statistic is where
the change is, if there is one (A. N. Pettitt, Applied Statistics 28, 1979). It asks for no distribution and is not misled by a
few wild values.
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.bench.compare.scatter import FEWEST, deviation

__all__ = ["FEWEST_FOR_CHANGE", "ChangePoint", "change_point", "outlier_score"]

FEWEST_FOR_CHANGE = 8
"""Below it no cut can be significant."""
_P_LIMIT = 0.01


class ChangePoint(NamedTuple):
    """Where a level ended and another began."""

    place: int
    """Index of the first value of the new level."""
    before: float
    """Median of the old level."""
    after: float
    p: float

    @property
    def change(self) -> float | None:
        """Of the median, as a share; None when the old one is 0."""
        return self.after / self.before - 1 if self.before else None


def change_point(values: Sequence[float]) -> ChangePoint | None:
    """The most likely change in ``values``, oldest first; None when there is none that is more than chance (1 %)."""
    count = len(values)
    if count < FEWEST_FOR_CHANGE:
        return None
    best_place, best, statistic = 0, 0, 0
    for place in range(count - 1):
        statistic += sum(_sign(values[place] - other) for other in values)
        if abs(statistic) > best:
            best_place, best = place + 1, abs(statistic)
    p = min(1.0, 2 * math.exp(-6 * best**2 / (count**3 + count**2)))
    if p > _P_LIMIT:
        return None
    return ChangePoint(best_place, statistics.median(values[:best_place]), statistics.median(values[best_place:]), p)


def outlier_score(value: float, window: Sequence[float]) -> float | None:
    """How many robust standard deviations ``value`` is from the middle of ``window``; None when that cannot be told."""
    if len(window) < FEWEST:
        return None
    scatter = deviation(window)
    distance = value - statistics.median(window)
    if not scatter:
        return 0.0 if not distance else math.copysign(math.inf, distance)
    return distance / scatter


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
