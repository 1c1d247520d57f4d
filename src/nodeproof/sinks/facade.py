"""The snapshot package of the reference, for Python: the same names and the same semantics.

What needs rooms above this one comes from outside: :func:`collect_hw_specs` takes the function that reads the hardware, and
:class:`GlobalWriter` the one that judges health. ``nodeproof.daemon.snapshot_facade`` fills in both.
"""

import logging
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from nodeproof.clock import Clock, SystemClock, rfc3339
from nodeproof.errors import NodeproofError, SnapshotError
from nodeproof.host import atomic, locks
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Batch, Metric, by_name
from nodeproof.model.snapshot import CollectorInfo, CompSnapshot, GlobalSnapshot, Snapshot
from nodeproof.sinks.base import StaleAfter, Trouble, finite
from nodeproof.sinks.history import DEFAULT_POINTS, TRACKED_SERIES, pick
from nodeproof.sinks.snapshot import ComponentSnapshots, GlobalSnapshots
from nodeproof.sinks.snapshot_reader import read, read_comp, read_global, read_state
from nodeproof.sinks.static_specs import STATIC_METRIC_NAMES, filter_static

__all__ = [
    "STATIC_METRIC_NAMES",
    "TRACKED_SERIES",
    "CollectorInfo",
    "CompSnapshot",
    "GlobalSnapshot",
    "GlobalWriter",
    "History",
    "MetricSource",
    "PerCompWriter",
    "Snapshot",
    "Storage",
    "collect_hw_specs",
    "filter_static",
    "read",
    "read_comp",
    "read_global",
    "read_state",
    "write_atomic",
    "write_json_atomic",
]

_log = logging.getLogger(__name__)
_DEFAULT_INTERVAL_S = 5.0


class Storage(Protocol):
    """Somewhere that a batch of readings can go."""

    def write(self, metrics: Sequence[Metric], /) -> None:
        """Store one batch; raises when it cannot."""
        ...


class MetricSource(Protocol):
    """The newest readings of all components together."""

    def all_metrics(self) -> list[Metric]:
        """All of them."""
        ...

    def ready(self) -> bool:
        """Whether there are any yet."""
        ...


def write_json_atomic(path: str, value: object) -> None:
    """Put ``value`` as JSON in the place of ``path``; readers see the old file or the new one.

    Raises SnapshotError when it is no JSON (a NaN, a function), WriteError when the file cannot be written.
    """
    try:
        place = _not_finite(msgspec.to_builtins(value), "$")
        if place:
            raise SnapshotError(f"{path}: not written, the value at {place} is no finite number")
        data = msgspec.json.encode(value)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise SnapshotError(f"{path}: not written, {error}") from None
    atomic.replace_file(path, data)


def write_atomic(path: str, snapshot: Snapshot) -> None:
    """Put the combined ``snapshot`` in the place of ``path``. Raises as :func:`write_json_atomic`."""
    write_json_atomic(path, snapshot)


def collect_hw_specs(gather: Callable[[], Iterable[Metric]]) -> list[Metric]:
    """What the hardware is (server, cards, disks, ports), read once with ``gather``. Nothing readable = an empty list."""
    try:
        return list(gather())
    except NodeproofError as error:
        _log.warning("hardware identity could not be read: %s", error)
        return []


class History:
    """Rings of numbers; ``cap`` <= 0 means 60."""

    def __init__(self, cap: int = DEFAULT_POINTS) -> None:
        self._cap = cap if cap > 0 else DEFAULT_POINTS
        self._rings: dict[str, deque[float]] = {}

    def update(self, metrics: Sequence[Metric]) -> dict[str, list[float]]:
        """Add one point to each tracked series that ``metrics`` has a reading of; a copy of all rings."""
        for component in dict.fromkeys(metric.component for metric in metrics):
            for key, metric in pick(component, by_name(metric for metric in metrics if metric.component == component)).items():
                self._rings.setdefault(key, deque(maxlen=self._cap)).append(metric.value)
        return {key: list(ring) for key, ring in self._rings.items()}


class PerCompWriter:
    """A storage around another one: after each batch that ``inner`` took, the snapshot of its component is written."""

    def __init__(
        self, inner: Storage, directory: str, cap: int = DEFAULT_POINTS, *, clock: Clock | None = None, stale_after_s: float = 0.0
    ) -> None:
        """``stale_after_s`` is written into the files; 0 = the default of a component whose cadence is not known."""
        self._inner = inner
        self._clock = clock or SystemClock()
        known = StaleAfter()
        self._files = ComponentSnapshots(
            directory, self._clock, (lambda _: stale_after_s) if stale_after_s > 0 else known, history_points=cap
        )
        self._sequences: dict[str, int] = {}

    def set_comp_specs(self, component: str, specs: Sequence[Metric]) -> None:
        """Hardware identity of ``component``, for all its files from the next one on."""
        self._files.set_comp_specs(component, specs)

    def write(self, metrics: Sequence[Metric]) -> None:
        """Hand the batch on, then write the snapshots of its components. What ``inner`` raises is passed on, without a file."""
        self._inner.write(metrics)
        now = self._clock.now()
        for component in dict.fromkeys(metric.component for metric in metrics):
            own = [metric for metric in metrics if metric.component == component]
            sequence = self._sequences[component] = self._sequences.get(component, 0) + 1
            self._files.write(finite(Batch(component, rfc3339(now.wall_s), now.mono_s, own, [], sequence)))


class GlobalWriter:
    """Writes ``snapshot.json`` from a source of readings at its own cadence; ``interval_s`` <= 0 means 5 s."""

    def __init__(
        self,
        source: MetricSource,
        directory: str,
        interval_s: float = _DEFAULT_INTERVAL_S,
        *,
        assess: Callable[[Sequence[Metric]], HealthScore],
        clock: Clock | None = None,
    ) -> None:
        self.interval_s = interval_s if interval_s > 0 else _DEFAULT_INTERVAL_S
        self._source = source
        self._assess = assess
        self.trouble = Trouble("snapshot.json")
        self._lock = locks.DirectoryLock(directory)
        self._file = GlobalSnapshots(directory, clock or SystemClock(), self.interval_s)

    def set_collectors(self, collectors: Sequence[CollectorInfo]) -> None:
        """Which collectors there are."""
        self._file.set_collectors(collectors)

    def set_intervals(self, intervals_ms: Mapping[str, int]) -> None:
        """Cadence by component, in milliseconds."""
        self._file.set_intervals(intervals_ms)

    def set_system_specs(self, specs: Sequence[Metric]) -> None:
        """Identity of the node."""
        self._file.set_system_specs(specs)

    def run(self, stop: threading.Event) -> None:
        """Write now and then every interval until ``stop`` is set; nothing while the source is not ready.

        The directory is locked meanwhile. Raises SnapshotError when another process holds it.
        """
        self._lock.acquire()
        try:
            self._write()
            while not stop.wait(self.interval_s):
                self._write()
            self._file.close()
        finally:
            self._lock.release()

    def _write(self) -> None:
        if not self._source.ready():
            return
        try:
            health = self._assess(self._source.all_metrics())
        except Exception as error:  # noqa: BLE001 - a rule's bug must not end the writer
            self.trouble.failed(f"not written, health could not be judged: {type(error).__name__}: {error}")
            return
        self.trouble.healed()
        self._file.write(health)


def _not_finite(value: object, place: str) -> str:
    """Where in plain ``value`` there is a number that JSON cannot hold; empty when there is none."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else place
    members: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        members = value.items()
    elif isinstance(value, (list, tuple)):
        members = enumerate(value)
    return next((found for key, member in members if (found := _not_finite(member, f"{place}.{key}"))), "")
