"""Scores out of counts: hits and samples of each subset, added over shards, and the hierarchy applied once.

Averages of shards are never averaged: weights and divisors change when a subset is absent from one of them. An answer that did
not come is in no count. What it could have made of the scores is given as bounds: all of them wrong, and all of them right.
"""

import statistics
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from nodeproof.bench.bfcl.subsets import HALLUCINATION, LIVE, NON_LIVE, SUBSETS
from nodeproof.errors import RecordError

__all__ = ["Scores", "Tally", "add", "bounds", "scores_of", "tallies_in", "tally_metrics"]

_SIMPLE = "simple_"


class Tally(NamedTuple):
    """Of one subset."""

    hits: int
    n: int


class Scores(NamedTuple):
    """In percent, two decimals. None = nothing of it was measured."""

    overall: float | None
    """Of all samples alike."""
    normalized: float | None
    """Mean of the categories that are present."""
    non_live: float | None
    """Mean of simple (itself the mean of its languages), multiple, parallel and parallel_multiple."""
    live: float | None
    """Of its samples alike."""
    hallucination: float | None
    """Mean of its subsets."""

    def metrics(self) -> dict[str, float]:
        """By stable keys; what was not measured is absent."""
        named = {
            "overall_accuracy": self.overall,
            "normalized_single_turn_score": self.normalized,
            "non_live_accuracy": self.non_live,
            "live_accuracy": self.live,
            "hallucination_accuracy": self.hallucination,
        }
        return {key: value for key, value in named.items() if value is not None}


def add(parts: Iterable[Mapping[str, Tally]]) -> dict[str, Tally]:
    """Counts of several shards together."""
    whole: dict[str, Tally] = {}
    for part in parts:
        for name, tally in part.items():
            before = whole.get(name, Tally(0, 0))
            whole[name] = Tally(before.hits + tally.hits, before.n + tally.n)
    return whole


def scores_of(tallies: Mapping[str, Tally]) -> Scores:
    """The hierarchy over counts."""
    present = {name: tally for name, tally in tallies.items() if tally.n > 0 and SUBSETS.get(name, (0, ""))[1]}
    categories = {
        NON_LIVE: _non_live(_of(present, NON_LIVE)),
        LIVE: _pooled(_of(present, LIVE).values()),
        HALLUCINATION: _mean(_ratio(tally) for tally in _of(present, HALLUCINATION).values()),
    }
    normalized = _mean(value for value in categories.values() if value is not None)
    return Scores(
        _pct(_pooled(present.values())),
        _pct(normalized),
        _pct(categories[NON_LIVE]),
        _pct(categories[LIVE]),
        _pct(categories[HALLUCINATION]),
    )


def bounds(tallies: Mapping[str, Tally], missing: Mapping[str, int]) -> tuple[Scores, Scores]:
    """The worst and the best that scores could be had the ``missing`` answers come, by subset."""
    worst = add([tallies, {name: Tally(0, count) for name, count in missing.items()}])
    best = add([tallies, {name: Tally(count, count) for name, count in missing.items()}])
    return scores_of(worst), scores_of(best)


def tally_metrics(tallies: Mapping[str, Tally]) -> dict[str, float]:
    """Counts by stable keys: ``subset.<name>.hits`` and ``subset.<name>.n``."""
    metrics = {}
    for name, tally in sorted(tallies.items()):
        metrics[f"subset.{name}.hits"] = float(tally.hits)
        metrics[f"subset.{name}.n"] = float(tally.n)
    return metrics


def tallies_in(metrics: Mapping[str, float]) -> dict[str, Tally]:
    """Counts out of the metrics of a record. Raises RecordError when there are none, or half of one, or what is no count."""
    found: dict[str, dict[str, float]] = {}
    for key, value in metrics.items():
        parts = key.split(".")
        if len(parts) == 3 and parts[0] == "subset" and parts[2] in {"hits", "n"}:
            found.setdefault(parts[1], {})[parts[2]] = value
    if not found:
        raise RecordError("the record holds no counts of subsets (subset.<name>.hits and .n): it cannot be added to others")
    return {name: _tally(name, pair) for name, pair in found.items()}


def _tally(name: str, pair: Mapping[str, float]) -> Tally:
    if set(pair) != {"hits", "n"}:
        raise RecordError(f"subset {name}: {' and '.join(sorted(pair))} without its other half: the record cannot be added")
    hits, count = pair["hits"], pair["n"]
    if not (hits == int(hits) and count == int(count) and 0 <= hits <= count):
        raise RecordError(f"subset {name}: {hits:g} hits of {count:g} are no counts: the record cannot be added")
    return Tally(int(hits), int(count))


def _of(tallies: Mapping[str, Tally], category: str) -> dict[str, Tally]:
    return {name: tally for name, tally in tallies.items() if SUBSETS[name][1] == category}


def _non_live(tallies: Mapping[str, Tally]) -> float | None:
    simple = _mean(_ratio(tally) for name, tally in tallies.items() if name.startswith(_SIMPLE))
    others = [_ratio(tally) for name, tally in tallies.items() if not name.startswith(_SIMPLE)]
    return _mean([*([] if simple is None else [simple]), *others])


def _ratio(tally: Tally) -> float:
    return tally.hits / tally.n


def _pooled(tallies: Iterable[Tally]) -> float | None:
    both = list(tallies)
    count = sum(tally.n for tally in both)
    return sum(tally.hits for tally in both) / count if count else None


def _mean(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return statistics.fmean(numbers) if numbers else None


def _pct(share: float | None) -> float | None:
    return None if share is None else round(share * 100, 2)
