"""The newest batch of every component, for whoever asks: exporter, health, command line.

A batch that is older than its component's limit is never handed out as the present: its readings come as missing, state STALE.
"""

import threading
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.clock import Clock, Instant
from nodeproof.errors import Absence
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.sinks.base import Trouble

__all__ = ["Entry", "LatestStore", "stale_batch"]


class Entry(NamedTuple):
    """One component as it stands at the moment of asking."""

    batch: Batch
    """The batch as it was written, however old."""
    age_s: float
    expired: bool


class LatestStore:
    """A sink that keeps one batch a component. A new batch takes the place of the old one as a whole: what is gone is gone."""

    name = "latest"

    def __init__(self, clock: Clock, stale_after_s: Callable[[str], float]) -> None:
        self.trouble = Trouble("latest values")
        self._clock = clock
        self._stale_after_s = stale_after_s
        self._lock = threading.Lock()
        self._batches: dict[str, Batch] = {}
        self._tell: Callable[[Batch], None] | None = None

    @property
    def ready(self) -> bool:
        """Whether anything has been read yet."""
        return bool(self._batches)

    def write(self, batch: Batch) -> None:
        """Keep ``batch`` in the place of its component's last one."""
        with self._lock:
            # A new dict, so that whoever holds the old one sees it unchanged.
            self._batches = {**self._batches, batch.component: batch}
        if self._tell is not None:
            self._tell(batch)

    def tell(self, whom: Callable[[Batch], None] | None = None) -> None:
        """Call ``whom`` with each batch from now on, once it is the newest; without one, nobody."""
        self._tell = whom

    def flush(self, now: Instant) -> None:
        """Nothing is ever due."""

    def close(self) -> None:
        """Nothing is held."""

    def forget(self, component: str) -> None:
        """Drop a component that is no longer collected."""
        with self._lock:
            self._batches = {name: batch for name, batch in self._batches.items() if name != component}

    def entries(self, at: Instant | None = None) -> dict[str, Entry]:
        """Every component by name, sorted, with the age of its batch."""
        now = at if at is not None else self._clock.now()
        batches = self._batches
        found = {}
        for component in sorted(batches):
            batch = batches[component]
            age_s = max(0.0, now.mono_s - batch.mono_s)
            found[component] = Entry(batch, age_s, age_s > self._stale_after_s(component))
        return found

    def batches(self, at: Instant | None = None) -> dict[str, Batch]:
        """The newest batch of every component; an expired one with its readings as missing, state STALE."""
        return {
            component: stale_batch(entry.batch, entry.age_s) if entry.expired else entry.batch
            for component, entry in self.entries(at).items()
        }

    def metrics(self, at: Instant | None = None) -> list[Metric]:
        """All readings of the present, component after component."""
        return [metric for entry in self.entries(at).values() if not entry.expired for metric in entry.batch.metrics]


def stale_batch(batch: Batch, age_s: float) -> Batch:
    """``batch`` without its numbers: one STALE entry for each name that it held."""
    reason = f"the last reading is {age_s:.0f} s old"
    names = dict.fromkeys([metric.name for metric in batch.metrics] + [entry.name for entry in batch.missing])
    missing = [Missing(batch.component, name, Absence.STALE, reason, timestamp=batch.timestamp) for name in names]
    return Batch(batch.component, batch.timestamp, batch.mono_s, [], missing, batch.sequence)
