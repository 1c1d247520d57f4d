"""Constants of the hardware, kept: they are read once or seldom, and belong into every snapshot all the same."""

import operator
import threading
from collections.abc import Iterable, Sequence

import msgspec

from nodeproof.model.catalogue import CATALOGUE, Kind
from nodeproof.model.metric import Metric

__all__ = ["STATIC_METRIC_NAMES", "SpecStash", "filter_static"]

STATIC_METRIC_NAMES = frozenset(
    {
        "model_info",
        "numa_node_num",
        "core_num",
        "numa_core_num",
        "cpu_num",
        "min_freq",
        "max_freq",
        "l1d_cache_size",
        "l1i_cache_size",
        "l2_cache_size",
        "l3_cache_size",
        "module_info",
        "module_size",
        "module_num",
    }
)
"""The names that the reference keeps (observe.md 4.5)."""

_encoder = msgspec.json.Encoder()


def filter_static(metrics: Iterable[Metric]) -> list[Metric]:
    """The readings whose names are in :data:`STATIC_METRIC_NAMES`, in their order."""
    return [metric for metric in metrics if metric.name in STATIC_METRIC_NAMES]


class SpecStash:
    """The constants of one component: what its batches brought, by name and labels, then the identity that was set.

    A batch that brings a part replaces that part; nothing is lost by a batch that brings less.
    """

    def __init__(self, component: str) -> None:
        ours = {spec.name for spec in CATALOGUE.values() if spec.component == component and spec.kind is Kind.STATIC}
        self._names = STATIC_METRIC_NAMES | ours
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, tuple[tuple[str, str], ...]], Metric] = {}
        self._seen: list[Metric] = []
        self._identity: tuple[Metric, ...] = ()
        self._json: msgspec.Raw | None = None

    def set_identity(self, specs: Sequence[Metric]) -> None:
        """What this component is made of, read by somebody else."""
        with self._lock:
            self._identity = tuple(specs)
            self._json = None

    def merge(self, metrics: Iterable[Metric]) -> None:
        """Keep the constants among ``metrics``."""
        names = self._names
        found = [metric for metric in metrics if metric.name in names]
        # Groups that run seldom hand out the same objects cycle after cycle.
        if not found or (len(found) == len(self._seen) and all(map(operator.is_, found, self._seen))):
            return
        with self._lock:
            self._seen = found
            for metric in found:
                self._kept[metric.name, tuple(sorted((metric.labels or {}).items()))] = metric
            self._json = None

    def specs(self) -> list[Metric]:
        """Everything that is kept."""
        with self._lock:
            return [*self._kept.values(), *self._identity]

    def json(self) -> msgspec.Raw | msgspec.UnsetType:
        """JSON of :meth:`specs`, encoded anew only after a change; UNSET when there is nothing."""
        with self._lock:
            if self._json is None:
                self._json = msgspec.Raw(_encoder.encode([*self._kept.values(), *self._identity]))
            return self._json if self._kept or self._identity else msgspec.UNSET
