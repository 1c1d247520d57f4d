"""The latest readings of every component, arranged for rules."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from nodeproof.clock import Instant, rfc3339_parse
from nodeproof.model.catalogue import CATALOGUE, MetricSpec
from nodeproof.model.metric import Batch, Metric, Missing

__all__ = ["Readings", "touched_names"]


def touched_names(before: Batch | None, now: Batch | None) -> frozenset[str] | None:
    """Names of the metrics of which ``now`` tells other readings or absences than ``before``; None = of all.

    Most of what a component tells comes from slow groups, which hand out what they read last.
    """
    if before is None or now is None:
        return None
    old, new = before.by_name, now.by_name
    touched = {name for name, metrics in new.items() if old.get(name) != metrics}
    touched.update(old.keys() - new.keys())
    told = _touched_absences(before.missing, now.missing)
    return None if "*" in told else frozenset(touched | told)


def _touched_absences(before: Sequence[Missing], now: Sequence[Missing]) -> set[str]:
    """Names whose absence is another one; that it was told again later is nothing new."""
    if len(before) != len(now):
        return {entry.name for entries in (before, now) for entry in entries}
    return {
        name
        for old, new in zip(before, now, strict=True)
        if old is not new and (old.name, old.state, old.reason, old.labels) != (new.name, new.state, new.reason, new.labels)
        for name in (old.name, new.name)
    }


class Readings:
    """What is known now, by component and name. Each component is arranged when it is first asked for."""

    __slots__ = ("_batches", "_metrics", "_missing", "catalogue")

    def __init__(self, batches: Mapping[str, Batch], catalogue: Mapping[tuple[str, str], MetricSpec] = CATALOGUE) -> None:
        """``batches``: component to its newest batch; a stale component holds its metrics as missing, state STALE."""
        self._batches = batches
        self.catalogue = catalogue
        self._metrics: dict[str, Mapping[str, list[Metric]]] = {}
        self._missing: dict[str, dict[str, list[Missing]]] = {}

    def metrics(self, component: str, name: str) -> Sequence[Metric]:
        """Every reading of one metric, in the order they were read; empty when there is none."""
        index = self._metrics.get(component)
        if index is None:
            index = self._arrange(component)
        return index.get(name, ())

    def missing(self, component: str, name: str) -> Sequence[Missing]:
        """Every absence that was reported for one metric, or for all of the component (``*``: its collector failed)."""
        if component not in self._metrics:
            self._arrange(component)
        missing = self._missing[component]
        found = missing.get(name)
        return found if found is not None else missing.get("*", ())

    def components(self) -> Mapping[str, Batch]:
        """The newest batch of every component."""
        return self._batches

    def batch(self, component: str) -> Batch | None:
        """The newest batch of ``component``."""
        return self._batches.get(component)

    def derive(self, component: str, metrics: Sequence[Metric]) -> None:
        """Add what was concluded from the readings, under a component of its own."""
        index: dict[str, list[Metric]] = {}
        for metric in metrics:
            index.setdefault(metric.name, []).append(metric)
        self._metrics[component] = index
        self._missing[component] = {}

    def age_of(self, metric: Metric, at: Instant) -> float:
        """Seconds since ``metric`` was read: a slow source's reading is older than the batch that passes it on."""
        batch = self._batches.get(metric.component)
        if batch is None:
            return 0.0
        age_s = at.mono_s - batch.mono_s
        if metric.timestamp not in {"", batch.timestamp}:
            with suppress(ValueError):
                age_s += rfc3339_parse(batch.timestamp) - rfc3339_parse(metric.timestamp)
        return max(0.0, age_s)

    def _arrange(self, component: str) -> Mapping[str, list[Metric]]:
        metrics: Mapping[str, list[Metric]] = {}
        missing: dict[str, list[Missing]] = {}
        batch = self._batches.get(component)
        if batch is not None:
            metrics = batch.by_name
            for absence in batch.missing:
                missing.setdefault(absence.name, []).append(absence)
        self._metrics[component] = metrics
        self._missing[component] = missing
        return metrics
