"""Percentiles that are only given where there are samples enough for them, with an interval.

A percentile needs so many samples that, with 99 % confidence, at least two of them lie above the true value: 662 for p99, 130 for
p95, 64 for p90, 11 for the median. With fewer, the number would be about the largest sample, which says nothing; the report
then says how many are lacking. Intervals are those of the bootstrap. That of a percentile needs no resampling: the order
statistic of a resample is an order statistic of the sample whose place is distributed as a beta variate.
"""

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GRID",
    "Figure",
    "Values",
    "mean_figure",
    "minimum_samples",
    "percentile",
    "percentile_figure",
    "quantile_grid",
    "ratio_interval",
]

GRID = 101
"""Points of :func:`quantile_grid`."""
_CONFIDENCE = 0.99
_LEVEL = 0.95
_RESAMPLES = 1000
_RESAMPLED_VALUES = 500_000
"""Beyond so many drawn values the mean of a resample is drawn from its limit, the normal distribution."""

Values = NDArray[np.float64]


class Figure(NamedTuple):
    """One number with what is behind it."""

    value: float | None
    """None = it cannot be told."""
    samples: int
    low: float | None = None
    """95 % interval; None where there is none."""
    high: float | None = None
    reason: str = ""
    """Why there is no value."""


@functools.cache
def minimum_samples(q: float) -> int:
    """Samples that the percentile ``q`` (0 to 1) needs; that of the other tail for one below the median."""
    share = max(q, 1.0 - q)
    count = 2
    step = 1024
    # n q^(n-1) (1-q) + q^n is the chance that fewer than two of n samples lie above the true percentile.
    while step:
        while _chance_of_fewer(share, count + step - 1) > 1.0 - _CONFIDENCE:
            count += step
        step //= 2
    return count


def _chance_of_fewer(share: float, count: int) -> float:
    return count * share ** (count - 1) * (1.0 - share) + share**count


def percentile(ordered: Values, q: float) -> float:
    """Of sorted values, linear between the two nearest (Hyndman and Fan's seventh definition)."""
    place = (len(ordered) - 1) * q
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (place - below))


def percentile_figure(values: Values, q: float, *, seed: int = 0, ordered: bool = False) -> Figure:
    """The percentile ``q`` of ``values`` with its bootstrap interval, or the reason why there is none."""
    count, needed = len(values), minimum_samples(q)
    if count < needed:
        return Figure(None, count, reason=f"p{q * 100:g} needs {needed} samples, there are {count}")
    if not ordered:
        values = np.sort(values)
    chance = np.random.default_rng(seed)
    rank = int((count - 1) * q) + 1
    places = np.minimum((chance.beta(rank, count - rank + 1, _RESAMPLES) * count).astype(np.int64), count - 1)
    low, high = _ends(values[places])
    return Figure(percentile(values, q), count, low, high)


def quantile_grid(ordered: Values) -> list[float]:
    """Sorted values at 0, 1, 2 ... 100 %; empty when there are none."""
    if not len(ordered):
        return []
    return [float(value) for value in ordered[np.rint(np.linspace(0, len(ordered) - 1, GRID)).astype(np.int64)]]


def mean_figure(values: Values, *, seed: int = 0) -> Figure:
    """The mean of ``values`` with its bootstrap interval."""
    count = len(values)
    if not count:
        return Figure(None, 0, reason="there are no samples")
    mean = float(values.mean())
    if count < 2:
        return Figure(mean, count)
    chance = np.random.default_rng(seed)
    resamples = min(_RESAMPLES, _RESAMPLED_VALUES // count)
    if resamples < 200:
        spread = float(values.std(ddof=1)) / count**0.5
        return Figure(mean, count, mean - 1.96 * spread, mean + 1.96 * spread)
    means = values[chance.integers(0, count, (resamples, count), dtype=np.int32)].mean(axis=1)
    low, high = _ends(means)
    return Figure(mean, count, low, high)


def ratio_interval(shares: Values, *, seed: int = 0) -> tuple[float, float] | None:
    """95 % bootstrap interval of the sum of ``shares``, relative to the sum: for rates. None below ten shares."""
    count, total = len(shares), float(shares.sum())
    if count < 10 or total <= 0:
        return None
    chance = np.random.default_rng(seed)
    resamples = min(_RESAMPLES, _RESAMPLED_VALUES // count)
    if resamples < 200:
        spread = 1.96 * float(shares.std(ddof=1)) * count**0.5 / total
        return 1.0 - spread, 1.0 + spread
    low, high = _ends(shares[chance.integers(0, count, (resamples, count), dtype=np.int32)].sum(axis=1))
    return low / total, high / total


def _ends(values: Values) -> tuple[float, float]:
    tail = (1.0 - _LEVEL) / 2
    low, high = np.quantile(values, [tail, 1.0 - tail])
    return float(low), float(high)
