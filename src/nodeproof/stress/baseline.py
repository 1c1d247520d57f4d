"""A number against what this machine did before: median, spread, drift and outliers. Arithmetic only.

The spread is the median absolute deviation, which one bad run does not move. A number is degraded when it lies below the median
by more than three of them (times 1.4826, which makes it a standard deviation for normal noise) or by 5 %, whichever is more.
"""

import math
from collections.abc import Sequence

import msgspec

from nodeproof.model.job import Performance

__all__ = ["LEAST_SAMPLES", "Baseline", "Drift", "Verdict", "baseline", "drift", "judge", "mad", "median"]

LEAST_SAMPLES = 5
"""Fewer comparable runs make no baseline."""
_DEVIATIONS = 3.0
_NORMAL = 1.4826
_FLOOR = 0.05
"""What acceptance tools of this field call a regression."""
_DRIFT = 0.02
"""A trend over all samples of less than this share of the median is none."""
_TREND_SAMPLES = 8
_TREND_MOST = 500
"""Of longer rows an even choice is looked at: the slopes of all pairs are as many as their square."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """What is normal here."""

    samples: int
    median: float
    mad: float
    low: float
    high: float
    """Edges of the band."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One number against a baseline."""

    performance: Performance
    reason: str
    deviation: float | None = None
    """(value - median) / median; None without a baseline."""
    outlier: str = ""
    """``low``, ``high`` or empty. High is no fault: another clock, other memory, or a mistake in measuring."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """How a row of samples moves."""

    found: bool
    change: float | None
    """Over the whole row, as a share of its median; negative = slower. None when there are too few samples."""
    reason: str


def median(values: Sequence[float]) -> float:
    """The middle of ``values``, which must not be empty."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median."""
    middle = median(values)
    return median([abs(value - middle) for value in values])


def baseline(values: Sequence[float]) -> Baseline | None:
    """The band of ``values``; those that are no finite number above 0 do not count. None when too few are left."""
    sound = [value for value in values if math.isfinite(value) and value > 0]
    if len(sound) < LEAST_SAMPLES:
        return None
    middle, spread = median(sound), mad(sound)
    width = max(_DEVIATIONS * _NORMAL * spread, _FLOOR * middle)
    return Baseline(samples=len(sound), median=middle, mad=spread, low=max(0.0, middle - width), high=middle + width)


def judge(value: float, before: Sequence[float], unit: str) -> Verdict:
    """``value``, of which more is better, against the comparable values ``before`` it."""
    band = baseline(before)
    if band is None:
        reason = f"{len(before)} comparable runs before this one, {LEAST_SAMPLES} make a baseline"
        return Verdict(performance=Performance.NO_BASELINE, reason=reason)
    if not math.isfinite(value):
        return Verdict(performance=Performance.NOT_JUDGED, reason=f"{value} is no number that can be judged")
    deviation = value / band.median - 1
    text = (
        f"{value:.4g} {unit}, {deviation:+.1%} from the median {band.median:.4g} of {band.samples} runs "
        f"(band {band.low:.4g} to {band.high:.4g})"
    )
    if value < band.low:
        return Verdict(performance=Performance.DEGRADED, reason=f"{text}: too low", deviation=deviation, outlier="low")
    if value > band.high:
        text += ": higher than ever is normal here; see whether clock, memory or program changed"
        return Verdict(performance=Performance.IN_BAND, reason=text, deviation=deviation, outlier="high")
    return Verdict(performance=Performance.IN_BAND, reason=text, deviation=deviation)


def drift(values: Sequence[float]) -> Drift:
    """Trend of ``values`` in their order: the median of all slopes between pairs (Theil and Sen), against their scatter.

    A trend counts when it moves the row by more than 2 % and by more than three deviations of what is left without it.
    """
    count = len(values)
    if count < _TREND_SAMPLES:
        return Drift(found=False, change=None, reason=f"{count} samples, {_TREND_SAMPLES} are needed to see a trend")
    row = values[:: -(-count // _TREND_MOST)]
    slope = median([(row[j] - row[i]) / (j - i) for i in range(len(row)) for j in range(i + 1, len(row))])
    middle = median(row)
    moved = slope * (len(row) - 1)
    rest = mad([value - slope * index for index, value in enumerate(row)])
    change = moved / middle if middle else None
    found = change is not None and abs(change) > _DRIFT and abs(moved) > _DEVIATIONS * _NORMAL * rest
    shown = "no trend" if change is None else f"{change:+.1%} over {count} samples"
    return Drift(found=found, change=change, reason=shown if found else f"no trend ({shown})" if change is not None else shown)
