"""Which metrics are collected, and how often (observe.md 2.3, 3.3, 3.4)."""

from collections.abc import Collection, Mapping

from nodeproof.config.schema import CollectionConfig, CollectorConfig
from nodeproof.model.catalogue import CATALOGUE, FEATURE_INTERVALS_S, Feature, Kind, MetricSpec, Priority

__all__ = ["MetricSelection", "interval_s"]

_RANK = {Priority.LOW: 0, Priority.MEDIUM: 1, Priority.HIGH: 2}
_MINIMUM = {"low": 0, "medium": 1, "high": 2}


class MetricSelection:
    """The choice that features, priority and the needs of rules make together.

    With features, a metric is wanted when one of them lists it and its priority is high enough or it is static; without, when the
    catalogue collects it by default. ``always`` holds what a rule, a fault or a KPI needs: it is wanted whatever else is said.
    """

    def __init__(self, features: Collection[str], min_priority: str = "low", always: Collection[tuple[str, str]] = ()) -> None:
        self._features = frozenset(Feature(name) for name in features)
        self._minimum = _MINIMUM[min_priority]
        self._always = frozenset(always)

    def wants(self, component: str, name: str) -> bool:
        """Whether this metric is collected; unknown ones, of third parties, always are."""
        spec = CATALOGUE.get((component, name))
        if spec is None or spec.key in self._always:
            return True
        listed = not self._features.isdisjoint(spec.features) if self._features else spec.default
        return listed and (self._matters(spec) or spec.kind is Kind.STATIC)

    def _matters(self, spec: MetricSpec) -> bool:
        return _RANK[spec.priority] >= self._minimum


def interval_s(
    component: str,
    default_s: float,
    features: Collection[str],
    collection: CollectionConfig,
    collectors: Mapping[str, CollectorConfig],
) -> float:
    """Seconds between two cycles of a collector.

    The quickest enabled feature that names the component decides, even against an entry of ``collectors``, as in the reference;
    with ``collection.interval_from: collectors``, or where no feature names it, the entry does, else the collector's own.
    """
    entry = collectors.get(component)
    own = entry.interval_s if entry is not None and entry.interval_s is not None else default_s
    if collection.interval_from == "collectors":
        return own
    declared = [table[component] for name in features if component in (table := FEATURE_INTERVALS_S[Feature(name)])]
    return min(declared, default=own)
