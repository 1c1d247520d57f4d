"""Whether something grows or sinks over a run, and by how much at least and at most.

The slope is Theil and Sen's, the median of the slopes between all pairs of points, which a few outliers do not move; its
interval is Sen's, from Kendall's statistic (J. Amer. Statist. Assoc. 63, 1968, 1379-1389). No distribution is assumed. What is
judged is the change from the first to the last point on the line, with the interval: a limit is broken when all of the
interval lies above it, and kept when none does.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MIN_POINTS", "Bound", "Trend", "binned", "bound", "trend"]

MIN_POINTS = 8
"""With fewer the interval is the whole range of the slopes."""
_Z_95 = 1.959964
_MAX_POINTS = 240
_TOGETHER = 1e-9
"""Points that lie closer, as a share of the whole time, are of one moment: no slope is between them."""


class Trend(NamedTuple):
    """A change over the time of the points, in the unit of their values."""

    change: float
    low: float
    """95 % interval."""
    high: float
    start: float
    """Level at the first point, on the line."""
    points: int

    def percent(self) -> "Trend | None":
        """The same in percent of the level at the start; None when that is not above 0."""
        if self.start <= 0:
            return None
        scale = 100.0 / self.start
        return Trend(self.change * scale, self.low * scale, self.high * scale, 100.0, self.points)

    def negated(self) -> "Trend":
        """What sank as what grew."""
        return Trend(-self.change, -self.high, -self.low, self.start, self.points)


class Bound(StrEnum):
    """What an interval says of a limit."""

    KEPT = "kept"
    BROKEN = "broken"
    UNCLEAR = "unclear"


def bound(found: Trend, limit: float) -> Bound:
    """Whether the growth ``found`` keeps ``limit``."""
    if found.low > limit:
        return Bound.BROKEN
    return Bound.KEPT if found.high <= limit else Bound.UNCLEAR


def trend(times: Sequence[float], values: Sequence[float]) -> Trend | None:
    """The change over ``times``; None with fewer than :data:`MIN_POINTS` finite values or no time between them."""
    at, level = np.asarray(times, dtype=np.float64), np.asarray(values, dtype=np.float64)
    known = np.isfinite(at) & np.isfinite(level)
    at, level = at[known], level[known]
    if len(at) < MIN_POINTS:
        return None
    at, level = binned(at, level, _MAX_POINTS)
    span = float(at[-1] - at[0])
    if span <= 0:
        return None
    share = (at - at[0]) / span
    first, second = np.triu_indices(len(at), 1)
    length = share[second] - share[first]
    apart = length > _TOGETHER
    slopes = np.sort((level[second] - level[first])[apart] / length[apart])
    slope = float(np.median(slopes))
    low, high = _ends(slopes, len(at))
    return Trend(slope, low, high, float(np.median(level - slope * share)), len(at))


def binned(at: NDArray[np.float64], level: NDArray[np.float64], most: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The points in order of time; with more than ``most``, medians of as many groups of neighbours."""
    order = np.argsort(at, kind="stable")
    at, level = at[order], level[order]
    if len(at) <= most:
        return at, level
    groups = np.array_split(np.arange(len(at)), most)
    return np.array([np.median(at[group]) for group in groups]), np.array([np.median(level[group]) for group in groups])


def _ends(slopes: NDArray[np.float64], points: int) -> tuple[float, float]:
    """Slopes at the ends of the interval."""
    spread = _Z_95 * (points * (points - 1) * (2 * points + 5) / 18.0) ** 0.5
    count = len(slopes)
    low = int((count - spread) / 2) - 1
    high = int(np.ceil((count + spread) / 2))
    return float(slopes[max(0, low)]), float(slopes[min(count - 1, high)])
