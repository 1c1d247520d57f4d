"""What a sink is, and the fan-out that keeps sinks apart."""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import msgspec

from nodeproof.clock import Instant
from nodeproof.errors import Absence
from nodeproof.model.metric import Batch, Metric, Missing

__all__ = ["Sink", "SinkStatus", "Sinks", "StaleAfter", "Trouble", "finite"]

_log = logging.getLogger(__name__)
_MIN_STALE_AFTER_S = 5.0
_INTERVALS = 3
_DEFAULT_STALE_AFTER_S = 15.0
_PLAIN = frozenset({int, float})
_TELL_AGAIN_S = 60.0
_MOST_TOLD = 256
"""Problems remembered, so that one whose text never repeats cannot fill the memory."""


class Trouble:
    """Failures of one sink: counted each time, told once when they begin or change, and once when they end.

    One that comes and goes is told of once a minute, and one that all parts share once for all of them.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._problems: dict[str, str] = {}
        self._told: dict[str, float] = {}
        """When each line was told last, in seconds of CLOCK_MONOTONIC."""
        self._told_parts: set[str] = set()
        """Those whose end is to be told of, since their beginning was."""
        self.total = 0

    @property
    def problem(self) -> str:
        """What is wrong now; empty when nothing is."""
        return next(iter(self._problems.values()), "")

    def failed(self, problem: str, part: str = "") -> None:
        """``part`` of it failed, for this reason."""
        with self._lock:
            self.total += 1
            fresh = self._problems.get(part) != problem and self._may_tell(problem)
            self._problems[part] = problem
            if fresh:
                self._told_parts.add(part)
        if fresh:
            _log.error("%s: %s", self._what, problem)

    def healed(self, part: str = "") -> None:
        """``part`` of it worked."""
        if part not in self._problems:
            return
        what = f"{self._what} {part}".strip()
        with self._lock:
            self._problems.pop(part, None)
            fresh = part in self._told_parts and self._may_tell(what)
            self._told_parts.discard(part)
        if fresh:
            _log.warning("%s: works again (%s failures so far)", what, self.total)

    def _may_tell(self, line: str) -> bool:
        now_s = time.monotonic()
        if now_s - self._told.get(line, -math.inf) < _TELL_AGAIN_S:
            return False
        if len(self._told) >= _MOST_TOLD:
            self._told.clear()
        self._told[line] = now_s
        return True


class Sink(Protocol):
    """Takes every batch. May be called from several threads, but never twice at once for one component."""

    name: str
    trouble: Trouble

    def write(self, batch: Batch) -> None:
        """Take one batch."""
        ...

    def flush(self, now: Instant) -> None:
        """Do what is due; called every few seconds."""
        ...

    def close(self) -> None:
        """Bring everything to its end; nothing is written afterwards."""
        ...


class SinkStatus(NamedTuple):
    """How a sink fares."""

    name: str
    errors_total: int
    problem: str
    """What is wrong now; empty when nothing is."""


class StaleAfter:
    """Age at which the newest batch of a component is no longer the present: three intervals, and at least five seconds."""

    def __init__(self, intervals_s: Mapping[str, float] | None = None) -> None:
        self._intervals_s = dict(intervals_s or {})

    def set_intervals(self, intervals_s: Mapping[str, float]) -> None:
        """Other cadences, after a reload."""
        self._intervals_s = dict(intervals_s)

    def __call__(self, component: str) -> float:
        """Seconds."""
        interval_s = self._intervals_s.get(component)
        return _DEFAULT_STALE_AFTER_S if interval_s is None else max(_MIN_STALE_AFTER_S, _INTERVALS * interval_s)


def finite(batch: Batch) -> Batch:
    """``batch`` with every value that is no finite number turned into a missing reading: JSON has no way to write it.

    A truth value becomes 0 or 1, which it is to Python and is not to JSON.
    """
    values = [metric.value for metric in batch.metrics]
    # One set and one sum tell whether any of thousands needs a look.
    if _PLAIN.issuperset(map(type, values)):
        total = sum(values)
        if total - total == 0:
            return batch
    metrics: list[Metric] = []
    missing = list(batch.missing)
    for metric in batch.metrics:
        value = _number(metric.value)
        if value is not None:
            metrics.append(msgspec.structs.replace(metric, value=value))
        else:
            reason = f"{str(metric.value)[:80]!r} is no finite number"
            missing.append(
                Missing(metric.component, metric.name, Absence.READ_ERROR, reason, metric.labels, timestamp=metric.timestamp)
            )
    return msgspec.structs.replace(batch, metrics=metrics, missing=missing)


def _number(value: object) -> float | None:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) else None
    return None


class Sinks:
    """All sinks as one: a sink that raises is told of, counted and passed over."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)
        self._parts: dict[str, str] = {}

    def write(self, batch: Batch) -> None:
        """Hand ``batch`` to every sink, in order."""
        batch = finite(batch)
        part = self._parts.get(batch.component) or self._parts.setdefault(batch.component, f"(write {batch.component})")
        for sink in self._sinks:
            try:
                sink.write(batch)
            except Exception as error:  # noqa: BLE001 - one sink must not cost another its batch
                sink.trouble.failed(f"{type(error).__name__}: {error}", part)
            else:
                sink.trouble.healed(part)

    def flush(self, now: Instant) -> None:
        """Let every sink do what is due."""
        for sink in self._sinks:
            self._guard(sink, "(flush)", partial(sink.flush, now))

    def close(self) -> None:
        """Close every sink."""
        for sink in self._sinks:
            self._guard(sink, "(close)", sink.close)

    def statuses(self) -> list[SinkStatus]:
        """How each sink fares."""
        return [SinkStatus(sink.name, sink.trouble.total, sink.trouble.problem) for sink in self._sinks]

    @staticmethod
    def _guard(sink: Sink, part: str, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - one sink must not cost another its batch
            sink.trouble.failed(f"{type(error).__name__}: {error}", part)
        else:
            sink.trouble.healed(part)
