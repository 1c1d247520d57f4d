"""The snapshot package of the reference, complete: ``nodeproof.sinks.facade`` with this machine's hardware and our health rules.

It stands here because only a composition root may bring collectors, health and sinks together.
"""

from collections.abc import Sequence

from nodeproof.clock import Clock, SystemClock
from nodeproof.collectors.services import identity
from nodeproof.daemon.runtime import IDENTITIES
from nodeproof.health import Evaluator, Readings
from nodeproof.host.machine import Machine
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Batch, Metric
from nodeproof.sinks import facade
from nodeproof.sinks.facade import (
    STATIC_METRIC_NAMES,
    TRACKED_SERIES,
    CollectorInfo,
    CompSnapshot,
    GlobalSnapshot,
    History,
    MetricSource,
    PerCompWriter,
    Snapshot,
    Storage,
    filter_static,
    read,
    read_comp,
    read_global,
    read_state,
    write_atomic,
    write_json_atomic,
)

__all__ = [
    "STATIC_METRIC_NAMES",
    "TRACKED_SERIES",
    "CollectorInfo",
    "CompSnapshot",
    "GlobalSnapshot",
    "GlobalWriter",
    "History",
    "MetricSource",
    "PerCompWriter",
    "Snapshot",
    "Storage",
    "assess",
    "collect_hw_specs",
    "filter_static",
    "read",
    "read_comp",
    "read_global",
    "read_state",
    "write_atomic",
    "write_json_atomic",
]

_SETTLE_S = 5.0


def collect_hw_specs(machine: Machine | None = None) -> list[Metric]:
    """What this machine is made of (server, disks, ports), read now; tools that are asked for it have five seconds."""
    here = machine if machine is not None else Machine.here()
    try:
        identity.collect_hw_specs(here, IDENTITIES)
        here.settle(_SETTLE_S)
        return facade.collect_hw_specs(lambda: identity.collect_hw_specs(here, IDENTITIES))
    finally:
        if machine is None:
            here.close()


def assess(metrics: Sequence[Metric], evaluator: Evaluator | None = None, clock: Clock | None = None) -> HealthScore:
    """Health by readings alone, as of now; without ``evaluator``, every condition counts at once."""
    now = (clock or SystemClock()).now()
    batches = {}
    for component in dict.fromkeys(metric.component for metric in metrics):
        own = [metric for metric in metrics if metric.component == component]
        batches[component] = Batch(component, own[0].timestamp, now.mono_s, own, [])
    return (evaluator or Evaluator(confirm=False)).evaluate(Readings(batches), now)


class GlobalWriter(facade.GlobalWriter):
    """Writes ``snapshot.json`` from ``source``, judged by the default rules; ``interval_s`` <= 0 means 5 s."""

    def __init__(self, source: MetricSource, directory: str, interval_s: float = 0.0, *, clock: Clock | None = None) -> None:
        evaluator = Evaluator()
        super().__init__(source, directory, interval_s, assess=lambda metrics: assess(metrics, evaluator, clock), clock=clock)
