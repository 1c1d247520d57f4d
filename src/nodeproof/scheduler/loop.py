"""One collector at its own cadence, at arm's length.

A cycle that raises, hangs or returns rubbish costs its own collector only. Ticks lie on a fixed grid of CLOCK_BOOTTIME, so a late
cycle does not shift the next, and ticks missed (by a hang or a suspended machine) are skipped and counted, never made up for.
"""

import logging
import math
import time
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.clock import Clock
from nodeproof.collectors.base import Collector
from nodeproof.errors import Absence
from nodeproof.model.metric import Batch
from nodeproof.scheduler.intake import accepted, failed_batch, words

__all__ = ["CollectorCost", "CollectorLoop", "CollectorPlan"]

_log = logging.getLogger(__name__)
_FAILING_S = 60.0
"""So long after its last failed cycle, or two intervals, a collector counts as failing: it may fail only now and then."""
_TELL_AGAIN_S = 60.0
"""A collector whose error comes and goes, or reads differently each time, is told of no more often than this."""

_NOTHING_HERE_S = 3.0
"""A collector that finds nothing to read (no GPU, no BMC) comes back no sooner than this."""


class CollectorPlan(NamedTuple):
    """How one collector is to run."""

    collector: Collector
    interval_s: float
    deadline_s: float
    """A cycle that takes longer counts as hung."""
    phase_s: float = 0.0
    """Shift of the grid, so that collectors with one cadence do not all run at the same moment."""


class CollectorCost(NamedTuple):
    """What a collector has cost and done so far."""

    cycles: int
    failures: int
    skipped: int
    """Ticks that passed while a cycle was still running, or while the machine slept."""
    cpu_s: float
    wall_s: float
    last_wall_s: float
    hung_s: float
    """How long the cycle in flight has overrun its deadline; 0 when it has not."""
    last_error: str
    """What the newest failed cycle said; empty after a good one."""
    failing: bool = False
    """Whether a cycle has failed lately."""


class CollectorLoop:
    """Runs one collector when it is due, on whichever thread calls; one cycle at a time."""

    def __init__(self, plan: CollectorPlan, publish: Callable[[Batch], None], clock: Clock) -> None:
        self.plan = plan
        self._publish = publish
        self._clock = clock
        self._ended = False
        self._began_s = clock.now().mono_s
        # The second cycle comes between half an interval and one and a half after the first.
        self._tick = -1 if plan.phase_s >= plan.interval_s / 2 else 0
        self.due_s = self._began_s
        """When it is to run next, in seconds since boot: at once, then on the grid."""
        self._running_since: float | None = None
        self._cost = CollectorCost(0, 0, 0, 0.0, 0.0, 0.0, 0.0, "")
        self._failed_s = -math.inf
        self._told = ""
        """The error that was told of last; empty after a good cycle."""
        self._told_s = -math.inf

    @property
    def running(self) -> bool:
        """Whether a cycle is in flight."""
        return self._running_since is not None

    def end(self) -> None:
        """Publish nothing more: what hung too long must not come after its successor's."""
        self._ended = True

    def run(self) -> None:
        """One cycle now; :attr:`due_s` then says when the next one is due."""
        pause = self._cycle()
        passed = self._clock.now().mono_s - self._began_s - self.plan.phase_s
        due = max(self._tick + pause, int(passed // self.plan.interval_s) + 1)
        if due > self._tick + pause:
            self._cost = self._cost._replace(skipped=self._cost.skipped + due - self._tick - pause)
        self._tick = due
        self.due_s = self._began_s + self.plan.phase_s + due * self.plan.interval_s

    def cost(self) -> CollectorCost:
        """Cost so far, whether the cycle in flight hangs, and whether one has failed lately."""
        now_s = self._clock.now().mono_s
        failing = now_s - self._failed_s <= max(_FAILING_S, 2 * self.plan.interval_s)
        return self._cost._replace(hung_s=self.overrun_s(now_s), failing=failing)

    def overrun_s(self, now_s: float) -> float:
        """How long the cycle in flight has overrun its deadline; 0 when it has not."""
        since = self._running_since
        return 0.0 if since is None else max(0.0, now_s - since - self.plan.deadline_s)

    @property
    def good(self) -> int:
        """Good cycles so far."""
        return self._cost.cycles - self._cost.failures

    def _cycle(self) -> int:
        """Run the collector once; how many ticks on it is to run again."""
        at = self._clock.now()
        self._running_since = at.mono_s
        cpu = time.thread_time()
        error = ""
        try:
            batch = accepted(self.plan.collector.collect(), self.plan.collector, at, self._cost.cycles + 1)
        except BaseException as problem:  # noqa: BLE001 - whatever a plug-in does, SystemExit included, the others go on
            error = words(problem)
            batch = failed_batch(self.plan.collector, error, at)
        try:
            self._hand_on(batch)
        except Exception as problem:  # noqa: BLE001 - the next cycle may fare better
            error = words(problem)
        self._tell(error, at.mono_s)
        self._count(error, self._clock.now().mono_s - at.mono_s, time.thread_time() - cpu)
        return max(1, int(_NOTHING_HERE_S / self.plan.interval_s)) if _nothing_here(batch) else 1

    def _hand_on(self, batch: Batch) -> None:
        if not self._ended:
            self._publish(batch)

    def _tell(self, error: str, now_s: float) -> None:
        if not error:
            self._told = ""
            return
        self._failed_s = now_s
        if error != self._told and now_s - self._told_s >= _TELL_AGAIN_S:
            self._told, self._told_s = error, now_s
            _log.warning("collector %s failed: %s", self.plan.collector.name, error)

    def _count(self, error: str, wall_s: float, cpu_s: float) -> None:
        self._running_since = None
        cost = self._cost
        self._cost = CollectorCost(
            cost.cycles + 1,
            cost.failures + bool(error),
            cost.skipped,
            cost.cpu_s + cpu_s,
            cost.wall_s + wall_s,
            wall_s,
            0.0,
            error,
        )


def _nothing_here(batch: Batch) -> bool:
    """Whether this node has nothing of the kind."""
    return not batch.metrics and bool(batch.missing) and all(entry.state is Absence.NOT_APPLICABLE for entry in batch.missing)
