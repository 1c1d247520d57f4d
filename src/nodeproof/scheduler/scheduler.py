"""All collectors of a daemon together."""

import heapq
import logging
import threading
import time
from collections.abc import Callable, Sequence

from nodeproof.clock import Clock
from nodeproof.collectors.base import Collector
from nodeproof.model.metric import Batch
from nodeproof.scheduler.loop import CollectorCost, CollectorLoop, CollectorPlan
from nodeproof.scheduler.self_cost import COMPONENT as SELF

__all__ = ["Scheduler", "spread"]

_log = logging.getLogger(__name__)
_MIN_DEADLINE_S = 10.0
_GAP_S = 0.0005
"""Between two collectors of one beat: less than one takes, so that they follow each other without a pause."""
_TOGETHER_S = 0.005
"""What is due so soon runs at once: a thread that sleeps for a millisecond between two collectors is woken twice."""
_PATIENCE_S = 1.0
"""How long one collector may keep the thread that all share."""


class Scheduler:
    """Runs collectors and hands each batch to ``publish``.

    One thread, the leader, runs whatever is due, one collector after the other: a processor that is woken once for all of them
    finds the interpreter in its caches, and one that is woken for each does not (a quarter of the daemon's CPU time). A second
    thread looks on. A collector that keeps the leader for longer than it may gets that thread for itself, and a new leader goes
    on with the rest; so a hang costs the others a late tick, once.
    """

    def __init__(self, plans: Sequence[CollectorPlan], publish: Callable[[Batch], None], clock: Clock) -> None:
        self.loops = [CollectorLoop(plan, publish, clock) for plan in plans]
        self._clock = clock
        self._patience_s = min([_PATIENCE_S, *(plan.interval_s for plan in plans)])
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._queue = [(loop.due_s, number, loop) for number, loop in enumerate(self.loops)]
        """What the leader runs, the next one first."""
        self._leader: threading.Thread | None = None
        self._led: tuple[CollectorLoop, float] | None = None
        """The collector that the leader runs now, and since when."""
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Begin: every collector once, at once, then each on its grid."""
        with self._lock:
            self._hire_leader()
        onlooker = threading.Thread(target=self._look_on, name="scheduler:relief", daemon=True)
        self._threads.append(onlooker)
        onlooker.start()

    def stop(self, timeout_s: float) -> list[str]:
        """End, waiting at most so long for cycles in flight; names of the collectors that did not come back."""
        for loop in self.loops:
            loop.end()
        self._stop.set()
        deadline = time.monotonic() + timeout_s
        for thread in list(self._threads):
            thread.join(max(0.0, deadline - time.monotonic()))
        return [loop.plan.collector.name for loop in self.loops if loop.running]

    def _hire_leader(self) -> None:
        """Called with the lock held. Raises RuntimeError when no thread is to be had; all stays as it was then."""
        thread = threading.Thread(target=self._lead, name="scheduler", daemon=True)
        thread.start()  # it waits for the lock
        self._led = None
        self._leader = thread
        self._threads = [*(one for one in self._threads if one.is_alive()), thread]

    def _lead(self) -> None:
        me = threading.current_thread()
        while not self._stop.is_set():
            with self._lock:
                if not self._queue:
                    return
                due_s, number, loop = self._queue[0]
                now_s = self._clock.now().mono_s
                if now_s >= due_s - _TOGETHER_S:
                    heapq.heappop(self._queue)
                    self._led = loop, now_s
            if now_s < due_s - _TOGETHER_S:
                self._stop.wait(due_s - now_s)
                continue
            loop.run()
            with self._lock:
                relieved = self._leader is not me
                if not relieved:
                    self._led = None
                    heapq.heappush(self._queue, (loop.due_s, number, loop))
            if relieved:
                self._serve(loop)

    def _serve(self, loop: CollectorLoop) -> None:
        """Run one collector alone until the end."""
        while not self._stop.wait(max(0.0, loop.due_s - self._clock.now().mono_s)):
            loop.run()

    def _look_on(self) -> None:
        while not self._stop.wait(self._patience_s):
            led = self._led
            if led is not None and self._clock.now().mono_s - led[1] > self._patience_s:
                self._relieve(led)

    def _relieve(self, led: tuple[CollectorLoop, float]) -> None:
        """Leave the leader alone with what it has run for too long, unless it has come back in the meantime."""
        with self._lock:
            # Two leaders would take each other's collectors out of the queue, and lose one for good.
            if self._led is not led:
                return
            try:
                self._hire_leader()
            except RuntimeError as error:
                _log.warning("no thread to go on with beside collector %s: %s", led[0].plan.collector.name, error)

    def completed(self) -> int:
        """Good cycles so far. The daemon's look at itself proves nothing of the node and counts only where there is no other."""
        observing = [loop for loop in self.loops if loop.plan.collector.name != SELF] or self.loops
        return sum(loop.good for loop in observing)

    def overrun(self) -> set[str]:
        """Names of the collectors whose cycle in flight has overrun its deadline."""
        now_s = self._clock.now().mono_s
        return {loop.plan.collector.name for loop in self.loops if loop.overrun_s(now_s)}

    def costs(self) -> dict[str, CollectorCost]:
        """Cost by collector name."""
        return {loop.plan.collector.name: loop.cost() for loop in self.loops}


def spread(collectors: Sequence[tuple[Collector, float, float | None]]) -> list[CollectorPlan]:
    """Plans for (collector, interval, deadline or None), their phases spread.

    The quickest interval is the beat. Collectors of a slower cadence are dealt out over the beats of their interval, so that no
    beat has to carry them all; within a beat they follow each other closely.
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
