"""How far equal measurements lie apart: the A/A noise that a difference has to exceed before it means anything."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.model.run import RunRecord

__all__ = ["FEWEST", "Noise", "deviation", "noise_of"]

FEWEST = 3
"""Runs from which a scatter can be told."""
_TO_SIGMA = 1.4826
"""Median absolute deviation of a normal distribution to its standard deviation."""
_BOTH_SIDES = 1.96 * 2**0.5
"""95 % of the differences of two equal runs lie within so many standard deviations."""


class Noise(NamedTuple):
    """Scatter of one metric."""

    share: float | None
    """95 % of equal runs differ by no more than this share of the value; None = it is not known."""
    runs: int
    """Equal runs that it was told from."""


def deviation(values: Sequence[float]) -> float:
    """Robust standard deviation, by the median absolute deviation."""
    middle = statistics.median(values)
    return _TO_SIGMA * statistics.median(abs(value - middle) for value in values)


def noise_of(key: str, equals: Sequence[RunRecord], pair: Sequence[RunRecord]) -> Noise:
    """Of metric ``key``: from ``equals``, other runs of the same instrument, and from repeats within the compared ones."""
    values = [record.frame.metrics[key] for record in equals if key in record.frame.metrics]
    within = [share for record in pair if (share := _repeats(key, record)) is not None]
    between = _between(values)
    known = [share for share in (*within, between) if share is not None]
    return Noise(max(known, default=None), len(values))


def _between(values: Sequence[float]) -> float | None:
    if len(values) < FEWEST:
        return None
    middle = statistics.median(values)
    return _BOTH_SIDES * deviation(values) / abs(middle) if middle else None


def _repeats(key: str, record: RunRecord) -> float | None:
    """What the run itself says of its repeats: ``aa_<metric without unit>_difference_pct``."""
    told = record.frame.metrics.get(f"aa_{key.rpartition('_')[0]}_difference_pct")
    return None if told is None else told / 100
