"""Reading everything once, for commands that print and end."""

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.collectors.base import Collector
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Batch
from nodeproof.scheduler.intake import accepted, failed_batch, words
from nodeproof.sinks.base import finite

__all__ = ["Observation", "observe_once"]

_SETTLE_S = 8.0
"""How long slow tools may take before their readings count as not there yet."""
_APART_S = 1.0
"""Rates and shares of time need two readings this far apart."""
_DEADLINE_S = 30.0
"""For one look of all collectors together."""


class Observation(NamedTuple):
    """What two looks at the node, or more, brought."""

    batches: dict[str, Batch]
    """The last look, by component."""
    failures: dict[str, str]
    """By collector: what it raised, or that it hangs."""
    first: dict[str, Batch]
    """The look before it: what counters stood at, for rules that judge growth."""


def observe_once(
    collectors: Sequence[Collector],
    machine: Machine,
    *,
    settle_s: float = _SETTLE_S,
    apart_s: float = _APART_S,
    looks: int = 2,
) -> Observation:
    """Run every collector ``looks`` times, ``apart_s`` apart; one that hangs or raises costs only itself."""
    taken = _Looks(collectors, machine)
    first: dict[str, Batch] = {}
    for _ in range(looks - 1):
        began = machine.clock.now().mono_s
        first = taken.take()
        machine.settle(settle_s)
        machine.clock.sleep(max(0.0, apart_s - (machine.clock.now().mono_s - began)))
    return Observation(taken.take(), taken.failures, first)


class _Looks:
    """Cycles of all collectors side by side. One that does not come back is asked no more."""

    def __init__(self, collectors: Sequence[Collector], machine: Machine) -> None:
        self._collectors = list(collectors)
        self._clock = machine.clock
        self._hung: set[str] = set()
        self._number = 0
        self.failures: dict[str, str] = {}
        """Of the newest look."""

    def take(self) -> dict[str, Batch]:
        """One batch of every collector, within the deadline for all of them together."""
        self._number += 1
        at = self._clock.now()
        answers: dict[str, Batch | str] = {}
        threads = []
        for collector in self._collectors:
            if collector.name not in self._hung:
                thread = threading.Thread(target=self._work, args=(collector, answers, at), daemon=True)
                thread.start()
                threads.append((collector.name, thread))
        deadline = time.monotonic() + _DEADLINE_S
        for name, thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
            if thread.is_alive():
                self._hung.add(name)
        batches: dict[str, Batch] = {}
        self.failures = {}
        for collector in self._collectors:
            answer = answers.get(collector.name, f"has not come back in {_DEADLINE_S:g} s")
            if isinstance(answer, str):
                self.failures[collector.name] = answer
                answer = failed_batch(collector, answer, at)
            batches[collector.component] = answer
        return batches

    def _work(self, collector: Collector, answers: dict[str, Batch | str], at: Instant) -> None:
        try:
            collector.forget()
            answers[collector.name] = finite(accepted(collector.collect(), collector, at, self._number))
        except BaseException as error:  # noqa: BLE001 - a plug-in's bug costs only itself
            answers[collector.name] = words(error)
