"""The daemon's own cost, as a batch like any other."""

import threading
from collections.abc import Callable, Mapping

from nodeproof.clock import Clock, rfc3339
from nodeproof.host import own_process
from nodeproof.model.catalogue import component_specs
from nodeproof.model.metric import Batch, Labels, Metric
from nodeproof.scheduler.loop import CollectorCost

__all__ = ["COMPONENT", "SelfCost"]

COMPONENT = "daemon"


class SelfCost:
    """Measures this process; shaped like a collector, so that the scheduler can run it beside the others."""

    name = COMPONENT
    component = COMPONENT
    default_interval_s = 5.0

    def __init__(self, clock: Clock, costs: Callable[[], Mapping[str, CollectorCost]], commands_total: Callable[[], int]) -> None:
        self._clock = clock
        self._costs = costs
        self._commands_total = commands_total
        self._units = {name: spec.unit for name, spec in component_specs(COMPONENT).items()}
        self._labels: dict[str, Labels] = {}
        self._sequence = 0

    def forget(self) -> None:
        """Nothing is kept between cycles."""

    def collect(self) -> Batch:
        """Figures of this moment."""
        at = self._clock.now()
        timestamp = rfc3339(at.wall_s)
        self._sequence += 1
        metrics: list[Metric] = []

        def add(name: str, value: float, labels: Labels | None = None) -> None:
            metrics.append(Metric(COMPONENT, name, value, self._units[name], labels, timestamp))

        for collector, cost in self._costs().items():
            labels = self._labels.setdefault(collector, {"collector": collector})
            add("collector_cycles_total", cost.cycles, labels)
            add("collector_failures_total", cost.failures, labels)
            add("collector_skipped_total", cost.skipped, labels)
            add("collector_cpu_total", round(cost.cpu_s, 6), labels)
            add("collector_wall_total", round(cost.wall_s, 6), labels)
            add("collector_last_wall", round(cost.last_wall_s, 6), labels)
            add("collector_hung", round(cost.hung_s, 3), labels)
            add("collector_failing", int(cost.failing), labels)
        add("commands_total", self._commands_total())
        add("cpu_total", round(own_process.cpu_s(), 3))
        add("resident_memory", own_process.resident_bytes())
        add("open_descriptors", own_process.descriptors())
        add("threads", threading.active_count())
        return Batch(COMPONENT, timestamp, at.mono_s, metrics, [], self._sequence)
