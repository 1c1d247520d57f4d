"""What is still to be run until everything that ``bench.toml`` requires is proven, and with which parameters."""

from collections.abc import Callable
from typing import NamedTuple

from nodeproof.bench.gate.instrument import SHARD
from nodeproof.bench.gate.judgement import Judgement, Standing
from nodeproof.bench.gate.schema import Bound, Entry
from nodeproof.errors import ConfigError
from nodeproof.runs.benchmark import Descriptor

__all__ = ["ALLOWANCE_S", "TIMEOUT_FACTOR", "Unit", "fill_thresholds", "plan_entry"]

TIMEOUT_FACTOR = 3.0
"""A unit may take so many times what it is expected to."""
ALLOWANCE_S = 600.0
"""And so much more, for what an endpoint needs until it answers."""


class Unit(NamedTuple):
    """One run that is owed."""

    entry: Entry
    descriptor: Descriptor
    params: dict[str, str]
    shard: str
    """``i/n``; empty where the work is not divided."""
    expected_s: float
    why: str
    """Why it is owed."""

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.entry.title} shard {self.shard}" if self.shard else self.entry.title

    def deadline_s(self, factor: float) -> float:
        """When it is given up."""
        return ALLOWANCE_S + self.expected_s * factor


def plan_entry(
    entry: Entry,
    descriptor: Descriptor,
    judgement: Judgement,
    owed_shards: Callable[[], tuple[list[int], int]],
    expected_s: float,
    *,
    again: bool,
) -> list[Unit]:
    """Runs owed by an entry. What failed is owed only ``again``: a failure is not measured away. Raises ConfigError."""
    wanted = {Standing.MISSING, Standing.REFUSED, *((Standing.FAIL,) if again else ())}
    if not entry.required or judgement.standing not in wanted:
        return []
    params = {**fill_thresholds(entry, descriptor), **entry.param_overrides}
    why = judgement.reasons[0] if judgement.reasons else str(judgement.standing)
    if not entry.shards:
        return [Unit(entry, descriptor, params, "", expected_s, why)]
    indices, count = owed_shards()
    if judgement.standing is Standing.FAIL:
        indices, count = list(range(entry.shards)), entry.shards
    return [
        Unit(entry, descriptor, {**params, SHARD: f"{index}/{count}"}, f"{index}/{count}", expected_s / count, why)
        for index in indices
    ]


def fill_thresholds(entry: Entry, descriptor: Descriptor) -> dict[str, str]:
    """Parameters that follow from bounds (bench.md 6.3). Raises ConfigError for a metric with both bounds."""
    filled = {}
    for param, metric in descriptor.threshold_params:
        bound = entry.metrics.get(metric)
        if bound is not None:
            limit = _limit(entry, bound)
            filled[param] = f"{limit:g}" if float(f"{limit:g}") == limit else repr(limit)
    return filled


def _limit(entry: Entry, bound: Bound) -> float:
    if bound.min is not None and bound.max is not None:
        path = f"{entry.place}.metrics.{bound.metric}"
        raise ConfigError(path, f"has min and max, but one parameter of {entry.id} takes its limit; keep one of them")
    if bound.max is not None:
        return bound.max + bound.noise
    return (bound.min or 0.0) - bound.noise
