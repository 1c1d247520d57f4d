"""Gaps between tokens of any number of requests, counted in bins of a microsecond: exact percentiles in flat memory."""

import numpy as np
from numpy.typing import NDArray

from nodeproof.bench.stats.quantiles import GRID, Figure, minimum_samples

__all__ = ["GapCounts"]

_FINE = 1_000_000
"""Bins of 1 us up to one second; longer ones are kept as they are."""
_TOGETHER = 1_000_000
_GROUPS = 40
_COARSE = 2048
_FIRST_US, _LAST_US = 1.0, 1e9
_TAIL = 0.025


class GapCounts:
    """Counts gaps; requests are dealt to groups, so that the interval treats the gaps of one request as belonging together."""

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0.0
        self.max_us = 0.0
        self._fine = np.zeros(_FINE + 1, dtype=np.int64)
        self._long: list[NDArray[np.float64]] = []
        self._groups = np.zeros((_GROUPS, _COARSE), dtype=np.int64)
        self._sums: NDArray[np.int64] | None = None
        """Fine counts, added up; made when they are asked for."""
        self._resampled: NDArray[np.int64] | None = None
        self._waiting: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        self._waiting_gaps = 0
        self._scale = (_COARSE - 1) / np.log(_LAST_US / _FIRST_US)

    def add(self, gaps_us: NDArray[np.float64], owners: NDArray[np.int64]) -> None:
        """Gaps, and for each the request that it belongs to."""
        self._waiting.append((gaps_us, owners))
        self._waiting_gaps += len(gaps_us)
        if self._waiting_gaps >= _TOGETHER:
            self._count_waiting()

    def _count_waiting(self) -> None:
        """Counting costs the same for ten gaps and for a million."""
        waiting, self._waiting, self._waiting_gaps = self._waiting, [], 0
        if waiting:
            self._count(np.concatenate([gaps for gaps, _ in waiting]), np.concatenate([owners for _, owners in waiting]))

    def _count(self, gaps_us: NDArray[np.float64], owners: NDArray[np.int64]) -> None:
        if not len(gaps_us):
            return
        self._sums = self._resampled = None
        self.count += len(gaps_us)
        self.total_us += float(gaps_us.sum())
        self.max_us = max(self.max_us, float(gaps_us.max()))
        whole = np.rint(gaps_us).astype(np.int64)
        short = whole < _FINE
        self._fine += np.bincount(whole[short], minlength=_FINE + 1)
        if not short.all():
            self._long.append(gaps_us[~short])
        bins = (np.log(np.clip(gaps_us, _FIRST_US, _LAST_US) / _FIRST_US) * self._scale).astype(np.int64)
        cells = (owners % _GROUPS) * _COARSE + bins
        self._groups += np.bincount(cells, minlength=_GROUPS * _COARSE).reshape(_GROUPS, _COARSE)

    def mean_us(self) -> float | None:
        """Mean; None when there are no gaps."""
        self._count_waiting()
        return self.total_us / self.count if self.count else None

    def percentile(self, q: float, *, requests: int) -> Figure:
        """In microseconds. ``requests``: so many requests they come from; gaps of one are not independent samples."""
        self._count_waiting()
        needed = minimum_samples(q)
        if self.count < needed:
            return Figure(None, self.count, reason=f"p{q * 100:g} needs {needed} gaps, there are {self.count}")
        value = self._value(q)
        if requests < 2 * _GROUPS:
            return Figure(value, self.count)
        low, high = self._interval(q)
        return Figure(value, self.count, min(low, value), max(high, value))

    def grid(self) -> list[float]:
        """In microseconds at 0, 1, 2 ... 100 % of the gaps; empty when there are none."""
        self._count_waiting()
        if not self.count:
            return []
        sums = np.cumsum(self._fine)
        ranks = np.rint(np.linspace(0, self.count - 1, GRID)).astype(np.int64)
        places = np.searchsorted(sums, ranks, side="right")
        long = np.sort(np.concatenate(self._long)) if self._long else np.zeros(0)
        beyond = ranks - int(sums[-1])
        return [float(place) if place < _FINE else float(long[over]) for place, over in zip(places, beyond, strict=True)]

    def _value(self, q: float) -> float:
        rank = int((self.count - 1) * q)
        if self._sums is None:
            self._sums = np.cumsum(self._fine)
        sums = self._sums
        place = int(np.searchsorted(sums, rank, side="right"))
        if place < _FINE:
            return float(place)
        long = np.sort(np.concatenate(self._long))
        return float(long[rank - int(sums[-1])])

    def _interval(self, q: float) -> tuple[float, float]:
        """Bootstrap over groups of requests."""
        if self._resampled is None:
            weights = np.random.default_rng(0).multinomial(_GROUPS, [1 / _GROUPS] * _GROUPS, size=400)
            self._resampled = np.cumsum((weights.astype(np.float64) @ self._groups).astype(np.int64), axis=1)
        sums = self._resampled
        ranks = (sums[:, -1] - 1) * q
        bins = np.array([np.searchsorted(row, rank, side="right") for row, rank in zip(sums, ranks, strict=True)])
        low, high = np.quantile(bins, [_TAIL, 1 - _TAIL])
        return float(self._edge(low)), float(self._edge(high + 1))

    def _edge(self, place: float) -> float:
        return float(_FIRST_US * np.exp(place / self._scale))
