"""One collector on its own thread, at its own cadence, at arm's length.

A cycle that raises, hangs or returns rubbish costs its own collector only. Ticks lie on a fixed grid of CLOCK_BOOTTIME, so a late
cycle does not shift the next, and ticks missed (by a hang or a suspended machine) are skipped and counted, never made up for.
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.clock import Clock
from nodeproof.collectors.base import Collector
from nodeproof.model.metric import Batch

__all__ = ["CollectorCost", "CollectorLoop", "CollectorPlan"]

_log = logging.getLogger(__name__)


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
        """Cost so far, and whether the cycle in flight hangs."""
        since = self._running_since
        overrun = 0.0 if since is None else self._clock.now().mono_s - since - self.plan.deadline_s
        return self._cost._replace(hung_s=max(0.0, overrun))

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
        at = self._clock.now().mono_s
        self._running_since = at
        cpu = time.thread_time()
        error = ""
        try:
            batch = self.plan.collector.collect()
            self._publish(checked(batch, self.plan.collector.component))
        except Exception as problem:  # noqa: BLE001 - whatever a plug-in does, the others go on
            error = f"{type(problem).__name__}: {problem}"
            if error != self._cost.last_error:
                _log.warning("collector %s failed: %s", self.plan.collector.name, error)
        finally:
            self._running_since = None
            wall = self._clock.now().mono_s - at
            cost = self._cost
            self._cost = CollectorCost(
                cost.cycles + 1,
                cost.failures + bool(error),
                cost.skipped,
                cost.cpu_s + time.thread_time() - cpu,
                cost.wall_s + wall,
                wall,
                0.0,
                error,
            )


def checked(batch: object, component: str) -> Batch:
    """The batch, if it is one of ``component``. Raises TypeError or ValueError: a plug-in may return anything."""
    if not isinstance(batch, Batch):
        raise TypeError(f"returned {type(batch).__name__}, not a Batch")
    if batch.component != component:
        raise ValueError(f"returned a batch of component {batch.component!r}")
    return batch
