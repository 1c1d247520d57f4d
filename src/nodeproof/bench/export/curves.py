"""What can be plotted of a run: numbers of its cells against load, and the distribution of each latency."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodeproof.bench.export.sheet import Distribution, Sheet

__all__ = ["Plot", "Series", "plots_of"]

_LOAD = re.compile(r"([cr])(\d+(?:[._]\d+)?)_(\w+)")
_PERCENTILE = re.compile(r"([a-z]\w*?)_p(\d+(?:_\d+)?)_ms")
_CELL = re.compile(r"[cr]\d")
_FAMILIES = (
    ("Throughput", re.compile(r"(tok_s|requests_s|request_rate|requests_per_s|goodput\w*)$"), ""),
    ("Latency", re.compile(r"_ms$"), "ms"),
    ("SLO attainment", re.compile(r"(attainment|slo_share|goodput_share)\w*$"), ""),
)
_LOADS = {"c": "concurrency", "r": "requests a second"}
_SHOWN = ("ttft", "tpot", "itl", "e2e")


class Series(NamedTuple):
    """One curve."""

    name: str
    points: tuple[tuple[float, float], ...]


class Plot(NamedTuple):
    """Curves on one pair of axes."""

    title: str
    x_name: str
    y_name: str
    series: tuple[Series, ...]


def plots_of(sheet: Sheet) -> list[Plot]:
    """Everything that the numbers allow."""
    metrics = sheet.record.frame.metrics
    distributions = [plot for one in sheet.distributions if (plot := _distribution(one)) is not None]
    return [*_by_load(metrics), *(distributions or _percentiles(metrics))]


def _by_load(metrics: Mapping[str, float]) -> list[Plot]:
    found: dict[tuple[str, str, str], dict[str, list[tuple[float, float]]]] = {}
    for key, value in metrics.items():
        match = _LOAD.fullmatch(key)
        if match is None:
            continue
        family = next(((title, unit) for title, pattern, unit in _FAMILIES if pattern.search(match[3])), None)
        if family is not None:
            series = found.setdefault((match[1], *family), {})
            series.setdefault(match[3], []).append((float(match[2].replace("_", ".")), value))
    return [
        Plot(title, _LOADS[load], unit, _series(series))
        for (load, title, unit), series in found.items()
        if any(len(points) > 1 for points in series.values())
    ]


def _percentiles(metrics: Mapping[str, float]) -> list[Plot]:
    found: dict[str, list[tuple[float, float]]] = {}
    for key, value in metrics.items():
        match = _PERCENTILE.fullmatch(key)
        if match is not None and _CELL.match(key) is None:
            found.setdefault(match[1], []).append((float(match[2].replace("_", ".")), value))
    several = {name: points for name, points in found.items() if len(points) > 1}
    return [Plot("Percentiles of latency", "percentile", "ms", _series(several))] if several else []


def _distribution(one: Distribution) -> Plot | None:
    """The share of answers that were at least so quick."""
    series = tuple(Series(name, _cumulative(values)) for name in _SHOWN if len(values := one.quantiles_ms.get(name, [])) > 1)
    return Plot(f"Latency of {one.cell}", "ms", "% of answers", series) if series else None


def _cumulative(quantiles: Sequence[float]) -> tuple[tuple[float, float], ...]:
    steps = len(quantiles) - 1
    return tuple((value, 100.0 * place / steps) for place, value in enumerate(quantiles))


def _series(found: Mapping[str, list[tuple[float, float]]]) -> tuple[Series, ...]:
    return tuple(Series(name, tuple(sorted(points))) for name, points in sorted(found.items()))
