"""One collector on its own thread, at its own cadence, at arm's length.

A cycle that raises, hangs or returns rubbish costs its own collector only. Ticks lie on a fixed grid of CLOCK_BOOTTIME, so a late
cycle does not shift the next, and ticks missed (by a hang or a suspended machine) are skipped and counted, never made up for.
"""

import logging
import math
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.clock import Clock
from nodeproof.collectors.base import Collector
from nodeproof.model.metric import Batch
from nodeproof.scheduler.intake import accepted, failed_batch

__all__ = ["CollectorCost", "CollectorLoop", "CollectorPlan"]

_log = logging.getLogger(__name__)
_FAILING_S = 60.0
"""So long after its last failed cycle, or two intervals, a collector counts as failing: it may fail only now and then."""
_TELL_AGAIN_S = 60.0
"""A collector whose error comes and goes, or reads differently each time, is told of no more often than this."""


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
    """Drives one collector until stopped."""

    def __init__(self, plan: CollectorPlan, publish: Callable[[Batch], None], clock: Clock) -> None:
        self.plan = plan
        self._publish = publish
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"collect:{plan.collector.name}", daemon=True)
        self._running_since: float | None = None
        self._cost = CollectorCost(0, 0, 0, 0.0, 0.0, 0.0, 0.0, "")
        self._failed_s = -math.inf
        self._told = ""
        """The error that was told of last; empty after a good cycle."""
        self._told_s = -math.inf

    def start(self) -> None:
        """Begin: the first cycle at once, the rest on the grid."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """End after the cycle in flight."""
        self._stop.set()

    def join(self, timeout_s: float) -> bool:
        """Wait for the end; False when the cycle in flight does not come back."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def cost(self) -> CollectorCost:
        """Cost so far, whether the cycle in flight hangs, and whether one has failed lately."""
        now_s, since = self._clock.now().mono_s, self._running_since
        overrun = 0.0 if since is None else now_s - since - self.plan.deadline_s
        failing = now_s - self._failed_s <= max(_FAILING_S, 2 * self.plan.interval_s)
        return self._cost._replace(hung_s=max(0.0, overrun), failing=failing)

    def _run(self) -> None:
        began = self._clock.now().mono_s
        # The second cycle comes between half an interval and one and a half after the first.
        tick = -1 if self.plan.phase_s >= self.plan.interval_s / 2 else 0
        while not self._stop.is_set():
            self._cycle()
            passed = self._clock.now().mono_s - began - self.plan.phase_s
            due = max(tick + 1, int(passed // self.plan.interval_s) + 1)
            if due > tick + 1:
                self._cost = self._cost._replace(skipped=self._cost.skipped + due - tick - 1)
            tick = due
            self._stop.wait(max(0.0, due * self.plan.interval_s - passed))

    def _cycle(self) -> None:
        at = self._clock.now()
        self._running_since = at.mono_s
        cpu = time.thread_time()
        error = ""
        try:
            batch = accepted(self.plan.collector.collect(), self.plan.collector, at, self._cost.cycles + 1)
        except BaseException as problem:  # noqa: BLE001 - whatever a plug-in does, SystemExit included, the others go on
            error = _words(problem)
            batch = failed_batch(self.plan.collector, error, at)
        try:
            self._hand_on(batch)
        except Exception as problem:  # noqa: BLE001 - the next cycle may fare better
            error = _words(problem)
        self._tell(error, at.mono_s)
        self._count(error, self._clock.now().mono_s - at.mono_s, time.thread_time() - cpu)

    def _hand_on(self, batch: Batch) -> None:
        """Publish, unless the loop was told to end meanwhile: what hung too long must not come after its successor's."""
        if not self._stop.is_set():
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


def _words(problem: BaseException) -> str:
    """Kind and text of an error of anybody's code."""
    try:
        return f"{type(problem).__name__}: {problem}"
    except Exception:  # noqa: BLE001 - even its text may raise
        return type(problem).__name__
