"""Reading everything once, for commands that print and end."""

import threading
from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.collectors.base import Collector
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Batch, Missing

__all__ = ["Observation", "observe_once"]

_SETTLE_S = 8.0
"""How long slow tools may take before their readings count as not there yet."""
_APART_S = 1.0
"""Rates and shares of time need two readings this far apart."""
_DEADLINE_S = 30.0


class Observation(NamedTuple):
    """What one look at the node brought."""

    batches: dict[str, Batch]
    failures: dict[str, str]
    """By collector: what it raised, or that it hangs."""


def observe_once(
    collectors: Sequence[Collector], machine: Machine, *, settle_s: float = _SETTLE_S, apart_s: float = _APART_S
) -> Observation:
    """Run every collector twice, ``apart_s`` apart, and give what the second cycle brought; one that hangs costs only itself."""
    began = machine.clock.now().mono_s
    _collect_all(collectors)
    machine.settle(settle_s)
    machine.clock.sleep(max(0.0, apart_s - (machine.clock.now().mono_s - began)))
    for collector in collectors:
        collector.forget()
    return _collect_all(collectors)


def _collect_all(collectors: Sequence[Collector]) -> Observation:
    batches: dict[str, Batch] = {}
    failures = {collector.name: f"has not come back in {_DEADLINE_S:g} s" for collector in collectors}

    def work(collector: Collector) -> None:
        try:
            batches[collector.component] = collector.collect()
            del failures[collector.name]
        except Exception as error:  # noqa: BLE001 - a plug-in's bug costs only itself
            failures[collector.name] = f"{type(error).__name__}: {error}"

    threads = [threading.Thread(target=work, args=(collector,), daemon=True) for collector in collectors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_DEADLINE_S)
    for collector in collectors:
        if collector.name in failures:
            absence = Missing(collector.component, "*", Absence.READ_ERROR, f"collector {failures[collector.name]}")
            batches.setdefault(collector.component, Batch(collector.component, "", 0.0, [], [absence]))
    return Observation(batches, failures)
