"""Counts of the shards of a work, added up; ratios are made of the sums, once. Averages of shards would weigh them wrongly.

A known-answer benchmark keeps ``subset.<name>.hits`` and ``subset.<name>.n`` in its metrics. The scores are those of bench.md
5.5: ``overall_accuracy`` is the share of all samples; ``normalized_single_turn_score`` the mean of the categories, of which
``non_live`` is the mean of [mean of the ``simple_*``, ``multiple``, ``parallel``, ``parallel_multiple``], ``live`` the share of
its samples, ``hallucination`` the mean of its subsets.
"""

from collections.abc import Iterable, Mapping

from nodeproof.errors import RecordError

__all__ = ["Tally", "add_up", "scores", "tallies_of"]

Tally = tuple[int, int]
"""Right ones, and all."""
_PREFIX, _HITS, _ALL = "subset.", ".hits", ".n"
_NO_CATEGORY = frozenset({"live_relevance"})


def tallies_of(metrics: Mapping[str, float]) -> dict[str, Tally]:
    """By subset. Raises RecordError when there are none, or they are no counts that go together."""
    found: dict[str, Tally] = {}
    for key, value in metrics.items():
        if not (key.startswith(_PREFIX) and key.endswith(_ALL)):
            continue
        name = key[len(_PREFIX) : -len(_ALL)]
        hits = metrics.get(f"{_PREFIX}{name}{_HITS}")
        if hits is None:
            raise RecordError(f"{key} stands without {_PREFIX}{name}{_HITS}")
        if not (value == int(value) and hits == int(hits) and 0 <= hits <= value):
            raise RecordError(f"{_PREFIX}{name}: {hits:g} of {value:g} is no count")
        found[name] = (int(hits), int(value))
    lonely = [key for key in metrics if key.startswith(_PREFIX) and key.endswith(_HITS)]
    if len(lonely) > len(found):
        raise RecordError("hits stand without their number of samples")
    if not sum(count for _, count in found.values()):
        raise RecordError("there are no tallies (subset.<name>.hits and .n)")
    return found


def add_up(parts: Iterable[Mapping[str, Tally]]) -> dict[str, Tally]:
    """The sums, by subset."""
    sums: dict[str, Tally] = {}
    for part in parts:
        for name, (hits, count) in part.items():
            before = sums.get(name, (0, 0))
            sums[name] = (before[0] + hits, before[1] + count)
    return dict(sorted(sums.items()))


def scores(sums: Mapping[str, Tally]) -> dict[str, float]:
    """Metrics of the whole, in percent where they are shares, rounded to two decimals as the benchmark does."""
    present = {name: tally for name, tally in sums.items() if tally[1]}
    hits, count = (sum(tally[side] for tally in present.values()) for side in (0, 1))
    metrics = {"samples": float(count), "overall_accuracy": _percent(hits / count) if count else 0.0}
    categories = [share for share in (_non_live(present), _live(present), _hallucination(present)) if share is not None]
    if categories:
        metrics["normalized_single_turn_score"] = _percent(sum(categories) / len(categories))
    for name, (right, whole) in sums.items():
        metrics[f"{_PREFIX}{name}{_HITS}"] = float(right)
        metrics[f"{_PREFIX}{name}{_ALL}"] = float(whole)
    return metrics


def _percent(share: float) -> float:
    return round(share * 100, 2)


def _share(tally: Tally) -> float:
    return tally[0] / tally[1]


def _mean(shares: list[float]) -> float | None:
    return sum(shares) / len(shares) if shares else None


def _of_live(name: str) -> bool:
    return name.startswith("live_") and not name.endswith("irrelevance") and name not in _NO_CATEGORY


def _non_live(present: Mapping[str, Tally]) -> float | None:
    own = {name: tally for name, tally in present.items() if not name.startswith("live_") and name != "irrelevance"}
    simple = _mean([_share(tally) for name, tally in own.items() if name.startswith("simple_")])
    others = [_share(tally) for name, tally in own.items() if not name.startswith("simple_")]
    return _mean([*([] if simple is None else [simple]), *others])


def _live(present: Mapping[str, Tally]) -> float | None:
    own = [tally for name, tally in present.items() if _of_live(name)]
    return sum(hits for hits, _ in own) / sum(count for _, count in own) if own else None


def _hallucination(present: Mapping[str, Tally]) -> float | None:
    return _mean([_share(tally) for name, tally in present.items() if name.endswith("irrelevance")])
