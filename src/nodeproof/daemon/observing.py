"""What is observed, and how: collectors at their cadence, the newest values, and what rules remember.

It outlives a reload that does not touch it: rates need no second first sample then, histories have no gap, and no node is unknown
for a moment because somebody changed a port.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nodeproof.config.schema import CollectionConfig, CollectorConfig, Config, HealthConfig
from nodeproof.daemon.assembly import assemble, available
from nodeproof.health.evaluator import Evaluator
from nodeproof.host.machine import Machine
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Batch
from nodeproof.scheduler.loop import CollectorCost, CollectorPlan
from nodeproof.scheduler.scheduler import Scheduler, spread
from nodeproof.scheduler.self_cost import SelfCost
from nodeproof.sinks.base import Sink, Sinks, SinkStatus, StaleAfter
from nodeproof.sinks.latest import LatestStore

__all__ = ["Observing"]

_log = logging.getLogger(__name__)
_STOP_S = 5.0
_LOOK_S = 0.005


class Observing:
    """Collectors and their newest batches, from :meth:`start` to :meth:`stop`."""

    def __init__(self, config: Config, machine: Machine, before: "Observing | None" = None) -> None:
        """Nothing runs yet. Raises ConfigError for what only the installed collectors can tell is wrong.

        What rules remember of ``before`` (growth of counters, since when) goes on where both judge the same things.
        """
        self.machine = machine
        self._asked = _asked(config)
        self._offers = available()
        self.entries = assemble(config, machine)
        self.health: HealthScore | None = None
        """The newest verdict, which is told among the daemon's own readings."""
        self.scheduler = Scheduler(self._plans(), self._publish, machine.clock)
        self.interval_s = min((entry.interval_s for entry in self.entries if entry.enabled), default=1.0)
        """Cadence of the quickest collector."""
        self.intervals_s = {loop.plan.collector.component: loop.plan.interval_s for loop in self.scheduler.loops}
        self.stale_after = StaleAfter(self.intervals_s)
        self.latest = LatestStore(machine.clock, self.stale_after)
        self.judges_by: HealthConfig = config.health
        self.evaluator: Evaluator = Evaluator(config.health.ruleset, config.health.weight_scheme)
        if before is not None and before.judges_by == config.health and before.components == self.components:
            self.evaluator = before.evaluator
        self._sinks = Sinks([self.latest])
        self._ended = False
        self._lock = threading.Lock()
        self._inside: Counter[Sinks] = Counter()
        """Batches on their way through sinks."""
        self._statuses: Callable[[], Sequence[SinkStatus]] = self._sinks.statuses

    @property
    def components(self) -> frozenset[str]:
        """What is observed."""
        return frozenset(self.intervals_s)

    def serves(self, config: Config) -> bool:
        """Whether this observes just what ``config`` asks for, and nothing of it is out of order: a reload may mend that."""
        return (
            not self._ended
            and _asked(config) == self._asked
            and available() == self._offers
            and not any(entry.problem for entry in self.entries)
            and not any(cost.hung_s for cost in self.scheduler.costs().values())
        )

    def start(self) -> None:
        """Let the collectors run."""
        self.scheduler.start()

    def stop(self) -> None:
        """End collectors and programs in flight, and give everything back."""
        self._ended = True
        for name in self.scheduler.stop(_STOP_S):
            _log.warning("collector %s did not come back within %g s; left behind", name, _STOP_S)
        self.machine.close()

    def give_to(self, sinks: Sequence[Sink], statuses: Callable[[], Sequence[SinkStatus]] = tuple) -> Sinks:
        """Hand batches to the newest values and to ``sinks`` from now on; none that was given before gets another one.

        ``statuses`` tells how those fare; it stands among the daemon's own readings.
        """
        fresh = Sinks([self.latest, *sinks])
        with self._lock:
            before, self._sinks, self._statuses = self._sinks, fresh, statuses
        # A batch that is stuck in a sink (a dead server behind the data directory) must not keep a reload from coming.
        until = time.monotonic() + _STOP_S
        while self._inside[before] and time.monotonic() < until:
            time.sleep(_LOOK_S)
        return fresh

    def _publish(self, batch: Batch) -> None:
        self.evaluator.note(batch)
        with self._lock:
            sinks = self._sinks
            self._inside[sinks] += 1
        try:
            sinks.write(batch)
        finally:
            with self._lock:
                self._inside[sinks] -= 1
                if not self._inside[sinks]:
                    del self._inside[sinks]

    def _costs(self) -> dict[str, CollectorCost]:
        return self.scheduler.costs()

    def _sinks_fare(self) -> Sequence[SinkStatus]:
        return self._statuses()

    def _plans(self) -> list[CollectorPlan]:
        own = SelfCost(
            self.machine.clock,
            self._costs,
            lambda: self.machine.commands.started_total,
            lambda: self.health,
            self._sinks_fare,
        )
        collectors = [(entry.collector, entry.interval_s, entry.deadline_s) for entry in self.entries if entry.enabled]
        return spread([*collectors, (own, own.default_interval_s, None)])


class _Asked(NamedTuple):
    """All of a configuration that concerns what is observed."""

    collectors: dict[str, CollectorConfig]
    collection: CollectionConfig
    features: tuple[str, ...]
    health: HealthConfig


def _asked(config: Config) -> _Asked:
    return _Asked(config.collectors, config.collection, config.features, config.health)
