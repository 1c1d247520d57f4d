"""All collectors of a daemon together."""

import time
from collections.abc import Callable, Sequence

from nodeproof.clock import Clock
from nodeproof.collectors.base import Collector
from nodeproof.model.metric import Batch
from nodeproof.scheduler.loop import CollectorCost, CollectorLoop, CollectorPlan
from nodeproof.scheduler.self_cost import COMPONENT as SELF

__all__ = ["Scheduler", "spread"]

_MIN_DEADLINE_S = 10.0
_GAP_S = 0.004
"""Between two collectors of one beat."""


class Scheduler:
    """Runs collectors side by side and hands each batch to ``publish``."""

    def __init__(self, plans: Sequence[CollectorPlan], publish: Callable[[Batch], None], clock: Clock) -> None:
        self.loops = [CollectorLoop(plan, publish, clock) for plan in plans]

    def start(self) -> None:
        """Begin all loops."""
        for loop in self.loops:
            loop.start()

    def stop(self, timeout_s: float) -> list[str]:
        """End all loops, waiting at most so long in all; names of the collectors that did not come back."""
        for loop in self.loops:
            loop.ask_to_stop()
        deadline = time.monotonic() + timeout_s
        return [loop.plan.collector.name for loop in self.loops if not loop.join(max(0.0, deadline - time.monotonic()))]

    def completed(self) -> int:
        """Good cycles so far. The daemon's look at itself proves nothing of the node and counts only where there is no other."""
        costs = self.costs()
        observing = [cost for name, cost in costs.items() if name != SELF] or list(costs.values())
        return sum(cost.cycles - cost.failures for cost in observing)

    def costs(self) -> dict[str, CollectorCost]:
        """Cost by collector name."""
        return {loop.plan.collector.name: loop.cost() for loop in self.loops}


def spread(collectors: Sequence[tuple[Collector, float, float | None]]) -> list[CollectorPlan]:
    """Plans for (collector, interval, deadline or None), their phases spread.

    The quickest interval is the beat. Collectors of a slower cadence are dealt out over the beats of their interval, so that no
    beat has to carry them all; within a beat they follow each other closely, because a processor that is woken once for all of
    them finds the interpreter in its caches, and one that is woken for each does not (a third of the daemon's CPU time).
    """
    beat_s = min((interval for _, interval, _ in collectors), default=1.0)
    dealt: dict[float, int] = {}
    plans = []
    for number, (collector, interval, deadline_s) in enumerate(collectors):
        turn = dealt[interval] = dealt.get(interval, -1) + 1
        beats = max(1, round(interval / beat_s))
        phase_s = min(turn % beats * beat_s + number * _GAP_S, 0.9 * interval)
        deadline = deadline_s if deadline_s is not None else max(_MIN_DEADLINE_S, 3 * interval)
        plans.append(CollectorPlan(collector, interval, deadline, phase_s))
    return plans
