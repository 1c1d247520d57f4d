"""The daemon's own cost and its verdict on the node, as a batch like any other."""

import threading
from collections.abc import Callable, Mapping, Sequence

from nodeproof.clock import Clock, rfc3339
from nodeproof.host import own_process
from nodeproof.model.catalogue import component_specs
from nodeproof.model.health import Grade, HealthScore, Severity
from nodeproof.model.metric import Batch, Labels, Metric
from nodeproof.scheduler.loop import CollectorCost
from nodeproof.sinks.base import SinkStatus

__all__ = ["COMPONENT", "SelfCost"]

COMPONENT = "daemon"


class SelfCost:
    """Measures this process; shaped like a collector, so that the scheduler can run it beside the others."""

    name = COMPONENT
    component = COMPONENT
    default_interval_s = 5.0

    def __init__(
        self,
        clock: Clock,
        costs: Callable[[], Mapping[str, CollectorCost]],
        commands_total: Callable[[], int],
        health: Callable[[], HealthScore | None] = lambda: None,
        statuses: Callable[[], Sequence[SinkStatus]] = tuple,
    ) -> None:
        """``health`` gives the newest verdict on the node, None before there is one; ``statuses`` tell how sinks fare."""
        self._clock = clock
        self._costs = costs
        self._commands_total = commands_total
        self._health = health
        self._statuses = statuses
        self._units = {name: spec.unit for name, spec in component_specs(COMPONENT).items()}
        self._labels: dict[str, Labels] = {}
        self._sink_labels: dict[str, Labels] = {}
        self._sequence = 0

    def forget(self) -> None:
        """Nothing is kept between cycles."""

    def collect(self) -> Batch:
        """Figures of this moment."""
        at = self._clock.now()
        self._sequence += 1
        sheet = _Sheet(self._units, rfc3339(at.wall_s))
        self._add_costs(sheet.add)
        for status in self._statuses():
            labels = self._sink_labels.setdefault(status.name, {"sink": status.name})
            sheet.add("sink_failing", int(bool(status.problem)), labels)
        health = self._health()
        if health is not None:
            _add_health(health, sheet.add)
        return Batch(COMPONENT, sheet.timestamp, at.mono_s, sheet.metrics, [], self._sequence)

    def _add_costs(self, add: "_Add") -> None:
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
        add("commands_total", self._commands_total(), None)
        add("cpu_total", round(own_process.cpu_s(), 3), None)
        add("resident_memory", own_process.resident_bytes(), None)
        add("open_descriptors", own_process.descriptors(), None)
        add("threads", threading.active_count(), None)


_Add = Callable[[str, float, Labels | None], None]


class _Sheet:
    def __init__(self, units: Mapping[str, str], timestamp: str) -> None:
        self.timestamp = timestamp
        self.metrics: list[Metric] = []
        self._units = units

    def add(self, name: str, value: float, labels: Labels | None = None) -> None:
        self.metrics.append(Metric(COMPONENT, name, value, self._units[name], labels, self.timestamp))


def _add_health(health: HealthScore, add: _Add) -> None:
    add("health_score", health.score, None)
    add("health_coverage", round(100 * health.coverage, 2), None)
    add("health_grade", list(Grade).index(health.grade), {"grade": str(health.grade)})
    for severity in Severity:
        add("health_findings", sum(one.severity is severity for one in health.findings), {"severity": str(severity)})
    for component, score in health.components.items():
        add("health_component_score", score.score, {"component": component})
        add("health_component_max", score.max, {"component": component})
