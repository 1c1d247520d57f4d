"""Numbers of a cell with the clock that they were taken with, and their keys (bench.md 1.11, 1.12)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeproof.bench.stats.quantiles import Figure, mean_figure, percentile_figure
from nodeproof.bench.stats.rows import Answers
from nodeproof.model.run import Align, Cell, CellStyle, Column, ResultTable

__all__ = [
    "Line",
    "accept_length",
    "energy_metrics",
    "figure_table",
    "gap_metrics",
    "known",
    "line",
    "loop_interval",
    "median_of",
]

_GAP_QUANTILES = (0.5, 0.9, 0.99)
_LEAST_ANSWERS = 10
_NORMAL_95 = 1.96


class Line(NamedTuple):
    """One number of a run."""

    key: str
    figure: Figure
    clock: str
    """``client``, ``server`` or ``count``."""


def known(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those that are numbers."""
    return values[np.isfinite(values)]


def line(key: str, values: NDArray[np.float64], clock: str) -> Line:
    """The mean of what was told."""
    return Line(key, mean_figure(known(values)), clock)


def median_of(values: NDArray[np.float64]) -> float | None:
    """The true median; None without values."""
    told = known(values)
    return float(np.median(told)) if len(told) else None


def accept_length(completion: Sequence[int | None], accepted: Sequence[int | None]) -> list[float | None]:
    """Tokens a decode step of each answer, ``c / (c - a)``; None where it was not told or cannot be (a >= c)."""
    return [
        count / (count - drafted) if count is not None and drafted is not None and 0 <= drafted < count else None
        for count, drafted in zip(completion, accepted, strict=True)
    ]


def gap_metrics(answers: Answers, prefix: str = "") -> dict[str, float]:
    """Jitter of the arrivals: keys ``arrival_gap_...`` and ``stability``; a percentile needs its samples. Empty without gaps."""
    gaps = answers.gaps_ms
    if not len(gaps):
        return {}
    mean, deviation = float(gaps.mean()), float(gaps.std())
    metrics = {
        "arrival_gap_count": float(len(gaps)),
        "arrival_gap_mean_ms": mean,
        "arrival_gap_stddev_ms": deviation,
        "arrival_gap_max_ms": float(gaps.max()),
    }
    if mean > 0:
        metrics["arrival_gap_cv"] = deviation / mean
    for q in _GAP_QUANTILES:
        value = percentile_figure(gaps, q).value
        if value is not None:
            metrics[f"arrival_gap_p{q * 100:g}_ms"] = value
    middle, tail = metrics.get("arrival_gap_p50_ms"), metrics.get("arrival_gap_p99_ms")
    if middle and tail is not None:
        metrics["stability"] = (tail - middle) / middle
    return {prefix + key: value for key, value in metrics.items()}


def energy_metrics(energy: Mapping[str, float], tokens: int, prefix: str = "") -> dict[str, float]:
    """Energy of a cell by rail, and the tokens it went into: ``gpu_rail_joules_per_token`` and its parts (bench.md 3.9).

    The window is the whole cell, warm-up included, and so are the tokens. Without power, or without tokens, there is no ratio.
    """
    metrics = dict(energy)
    for key, joules in energy.items():
        rail = key.removesuffix("_energy_j")
        if rail != key:
            metrics[f"{rail}_energy_window_tokens"] = float(tokens)
            if tokens > 0 and joules > 0:
                metrics[f"{rail}_joules_per_token"] = joules / tokens
    return {prefix + key: value for key, value in metrics.items()}


def loop_interval(rate: float | None, answers: Answers) -> tuple[float, float] | None:
    """95 % interval of the throughput ``rate`` of a closed loop; None below ten answers.

    As many answers are always under way, so the throughput is the ratio of their tokens to their times, and its spread is that of
    a ratio: of what each answer's tokens differ from what its time would bring at the rate of all (linearised).
    """
    count = len(answers)
    if rate is None or count < _LEAST_ANSWERS or not answers.e2e_ms.sum() > 0 or not answers.output.sum() > 0:
        return None
    ratio = answers.output.sum() / answers.e2e_ms.sum()
    spread = float((answers.output - ratio * answers.e2e_ms).std(ddof=1)) / count**0.5 / float(answers.output.mean())
    return rate * (1 - _NORMAL_95 * spread), rate * (1 + _NORMAL_95 * spread)


def figure_table(title: str, lines: Sequence[Line]) -> ResultTable:
    """Value, interval, samples and clock of each."""
    columns = (
        Column("Figure"),
        Column("Mean", Align.RIGHT),
        Column("95 % interval", Align.RIGHT),
        Column("Samples", Align.RIGHT),
        Column("Clock"),
    )
    return ResultTable(title, columns, tuple(_row(one) for one in lines))


def _row(one: Line) -> tuple[Cell, ...]:
    value, samples, low, high, _ = one.figure
    if value is None:
        return (Cell(one.key), Cell("-", CellStyle.DIM), Cell("not told", CellStyle.DIM), Cell("0"), Cell(one.clock))
    between = "" if low is None or high is None else f"{low:.4g} to {high:.4g}"
    return (Cell(one.key), Cell(f"{value:.4g}"), Cell(between), Cell(str(samples)), Cell(one.clock))
