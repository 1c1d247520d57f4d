"""Metrics of a record against the bounds of an entry."""

import math
from collections.abc import Mapping

from nodeproof.bench.gate.instrument import day
from nodeproof.bench.gate.judgement import Check
from nodeproof.bench.gate.schema import Bound, Entry

__all__ = ["check_bounds"]


def check_bounds(entry: Entry, metrics: Mapping[str, float], now_s: float) -> list[Check]:
    """Every bound of ``entry``, whether or not the record has its metric."""
    return [_check(bound, metrics.get(bound.metric), now_s) for bound in entry.metrics.values()]


def _check(bound: Bound, value: float | None, now_s: float) -> Check:
    limit = bound.words()
    if bound.valid_from is not None and bound.valid_from > now_s:
        text = f"{bound.metric}: {limit}, in force from {day(bound.valid_from)} on"
        return Check(metric=bound.metric, value=value, limit=limit, met=None, text=text, in_force=False)
    if value is None or not math.isfinite(value):
        return Check(metric=bound.metric, value=None, limit=limit, met=None, text=f"{bound.metric} was not measured ({limit})")
    unit = f" {bound.unit}" if bound.unit else ""
    met = bound.keeps(value)
    text = f"{bound.metric} is {value:.6g}{unit}, {limit}"
    return Check(metric=bound.metric, value=value, limit=limit, met=met, text=text)
