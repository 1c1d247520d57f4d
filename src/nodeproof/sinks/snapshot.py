"""The snapshot directory: one file a component after each of its batches, and one for the node.

Compact JSON, written beside and renamed, readable by the group. A file that cannot be written costs that file only: it is told of
once, counted, and written again as soon as that works. One daemon owns the directory (``host.locks``); what an earlier one left
behind is cleaned up at start, and what is not ours is never touched.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from nodeproof.clock import Clock, Instant, rfc3339
from nodeproof.errors import SnapshotError, WriteError
from nodeproof.host import atomic, locks
from nodeproof.host.remade_file import RemadeFile
from nodeproof.model.health import HealthScore, Verdict
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.model.snapshot import SCHEMA_VERSION, CollectorInfo
from nodeproof.sinks.base import Trouble
from nodeproof.sinks.history import DEFAULT_POINTS, ComponentHistory
from nodeproof.sinks.snapshot_names import GLOBAL_FILE, component_file, component_of_file
from nodeproof.sinks.static_specs import SpecStash

__all__ = [
    "ComponentSnapshots",
    "GlobalSnapshots",
    "Origin",
    "SnapshotDirectory",
    "global_stale_after_s",
]

_MAX_FILE_BYTES = 64 * 1024 * 1024
_encode = msgspec.json.Encoder().encode


class Origin(NamedTuple):
    """Who writes, as readers need it to tell the living from the dead."""

    boot_id: str
    pid: int

    @classmethod
    def here(cls) -> "Origin":
        """This process on this boot."""
        return cls(locks.boot_id(), os.getpid())


def global_stale_after_s(interval_s: float) -> float:
    """Age at which ``snapshot.json`` proves that its daemon no longer writes: three intervals, and at least five seconds."""
    return max(5.0, 3 * interval_s)


class SnapshotDirectory:
    """A directory that this daemon owns from :meth:`open` to :meth:`close`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.origin = Origin.here()
        self._lock = locks.DirectoryLock(path, remedy="stop that daemon, or set snapshot.dir of this one to another directory")

    def open(self, components: Collection[str]) -> list[str]:
        """Take the directory and clean it up; names of the files that were removed. Raises SnapshotError."""
        self._lock.acquire()
        return atomic.remove_leftovers(self.path) + self.tidy(components)

    def tidy(self, components: Collection[str]) -> list[str]:
        """Remove snapshots of components that are not among ``components``; their names."""
        removed = []
        for name in sorted(os.listdir(self.path)):
            component = component_of_file(name)
            path = os.path.join(self.path, name)
            if component is None or component in components or not _is_snapshot_of(path, component):
                continue
            with contextlib.suppress(OSError):
                os.unlink(path)
                removed.append(name)
        return removed

    def renew(self) -> None:
        """Hold the lock even though somebody removed the directory. Raises SnapshotError when another daemon was quicker."""
        self._lock.renew()

    def close(self) -> None:
        """Give the directory back."""
        self._lock.release()


class _Owner(msgspec.Struct):
    component: str


def _is_snapshot_of(path: str, component: str) -> bool:
    """Whether the file is what its name says; anything else is somebody else's."""
    try:
        if os.path.islink(path) or os.path.getsize(path) > _MAX_FILE_BYTES:
            return False
        with open(path, "rb", buffering=0) as file:
            return msgspec.json.decode(file.read(), type=_Owner).component == component
    except (OSError, msgspec.MsgspecError):
        return False


class _CompFile(msgspec.Struct, frozen=True, kw_only=True):
    """:class:`~nodeproof.model.snapshot.CompSnapshot` with the parts that are JSON already."""

    component: str
    timestamp: str
    metrics: Sequence[Metric]
    history: msgspec.Raw
    specs: msgspec.Raw | msgspec.UnsetType
    schema: int
    sequence: int
    stale_after_ms: int
    boot_id: str
    monotonic_s: float
    pid: int
    missing: Sequence[Missing]
    history_series: msgspec.Raw


class _Component:
    """What outlives a batch."""

    def __init__(self, component: str, directory: str, points: int) -> None:
        self.file = RemadeFile(os.path.join(directory, component_file(component)))
        self.history = ComponentHistory(component, points)
        self.specs = SpecStash(component)
        self.lock = threading.Lock()
        self.written: Batch | None = None
        """The newest batch that reached its file."""

    def says_nothing_new(self, batch: Batch, stale_after_s: float) -> bool:
        """Whether ``batch`` tells, as the file does, that this node has no such thing, and the file is still far from stale."""
        before = self.written
        return (
            before is not None
            and not batch.metrics
            and not before.metrics
            and batch.missing == before.missing
            and 0 <= batch.mono_s - before.mono_s < stale_after_s / 2
        )


class ComponentSnapshots:
    """The sink that writes ``snapshot_<component>.json``."""

    name = "snapshot"

    def __init__(
        self,
        directory: str,
        clock: Clock,
        stale_after_s: Callable[[str], float],
        *,
        origin: Origin | None = None,
        history_points: int = DEFAULT_POINTS,
    ) -> None:
        self.trouble = Trouble("snapshot")
        self._directory = directory
        self._clock = clock
        self._stale_after_s = stale_after_s
        self._origin = origin or Origin.here()
        self._points = history_points
        self._lock = threading.Lock()
        self._components: dict[str, _Component] = {}

    def set_comp_specs(self, component: str, specs: Sequence[Metric]) -> None:
        """Identity of the hardware behind ``component``, for its next file and all that follow. Raises SnapshotError."""
        self._component(component).specs.set_identity(specs)

    def go_on_from(self, other: "ComponentSnapshots | None", components: Collection[str]) -> None:
        """Take over histories and specs of ``components`` from a sink of this directory that was closed."""
        for component, kept in (other._components if other is not None else {}).items():  # noqa: SLF001 - another of this class
            if component in components:
                kept.written = None
                self._components[component] = kept

    def write(self, batch: Batch) -> None:
        """Write the file of the batch's component. A file that cannot be written is counted and told of once, never raised."""
        kept = self._component(batch.component)
        with kept.lock:
            stale_after_s = self._stale_after_s(batch.component)
            kept.specs.merge(batch.metrics)
            kept.history.update(batch, stale_after_s)
            if kept.says_nothing_new(batch, stale_after_s):
                return
            try:
                kept.file.put(self._encoded(batch, kept))
            except WriteError as error:
                self.trouble.failed(str(error), batch.component)
            else:
                kept.written = batch
                self.trouble.healed(batch.component)

    def flush(self, now: Instant) -> None:
        """Nothing is ever due."""

    def close(self) -> None:
        """Give the files' descriptors back."""
        for kept in self._components.values():
            with kept.lock:
                kept.file.close()

    def _component(self, component: str) -> _Component:
        kept = self._components.get(component)
        if kept is None:
            with self._lock:
                kept = self._components.setdefault(component, _Component(component, self._directory, self._points))
        return kept

    def _encoded(self, batch: Batch, kept: _Component) -> bytes:
        return _encode(
            _CompFile(
                component=batch.component,
                timestamp=rfc3339(self._clock.now().wall_s),
                metrics=batch.metrics,
                history=kept.history.numbers_json(),
                specs=kept.specs.json(),
                schema=SCHEMA_VERSION,
                sequence=batch.sequence,
                stale_after_ms=round(self._stale_after_s(batch.component) * 1000),
                boot_id=self._origin.boot_id,
                monotonic_s=round(batch.mono_s, 3),
                pid=self._origin.pid,
                missing=batch.missing,
                history_series=kept.history.series_json(),
            )
        )


class _GlobalFile(msgspec.Struct, frozen=True, kw_only=True):
    """:class:`~nodeproof.model.snapshot.GlobalSnapshot` with the parts that are JSON already."""

    session_id: str
    timestamp: str
    refresh_interval_ms: int
    intervals_ms: msgspec.Raw | msgspec.UnsetType
    health: msgspec.Raw
    collectors: msgspec.Raw
    system_specs: msgspec.Raw | msgspec.UnsetType
    schema: int
    sequence: int
    stale_after_ms: int
    boot_id: str
    monotonic_s: float
    pid: int
    verdict: msgspec.Raw | msgspec.UnsetType
    stopped: bool | msgspec.UnsetType


class _Encoded:
    """JSON of things that stay the same for many a file; made anew when another one is given."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, msgspec.Raw]] = {}

    def raw(self, name: str, value: object) -> msgspec.Raw:
        kept = self._kept.get(name)
        if kept is None or kept[0] is not value:
            kept = self._kept[name] = (value, msgspec.Raw(_encode(value)))
        return kept[1]

    def unless_empty(self, name: str, value: object) -> msgspec.Raw | msgspec.UnsetType:
        return self.raw(name, value) if value else msgspec.UNSET


class GlobalSnapshots:
    """Writes ``snapshot.json``."""

    def __init__(
        self,
        directory: str,
        clock: Clock,
        interval_s: float,
        *,
        origin: Origin | None = None,
        renew: Callable[[], None] | None = None,
    ) -> None:
        """``renew`` is called before each file: :meth:`SnapshotDirectory.renew` of a daemon that owns the directory."""
        self.trouble = Trouble("snapshot.json")
        self._renew = renew
        self.interval_s = interval_s
        self._file = RemadeFile(os.path.join(directory, GLOBAL_FILE))
        self._clock = clock
        self._origin = origin or Origin.here()
        self._session_id = str(int(clock.now().wall_s))
        self._sequence = 0
        self._collectors: list[CollectorInfo] = []
        self._intervals_ms: dict[str, int] = {}
        self._system_specs: list[Metric] = []
        self._encoded = _Encoded()
        self._health: HealthScore | None = None
        self._verdict: Verdict | None = None

    def go_on_from(self, other: "GlobalSnapshots | None") -> None:
        """Be the same session as a writer of this file that was closed."""
        if other is not None:
            self._session_id, self._sequence = other._session_id, other._sequence  # noqa: SLF001 - another of this class
            self._system_specs = other._system_specs  # noqa: SLF001 - the same

    def set_collectors(self, collectors: Sequence[CollectorInfo]) -> None:
        """Which collectors there are."""
        self._collectors = list(collectors)

    def set_intervals(self, intervals_ms: Mapping[str, int]) -> None:
        """Cadence by component, in milliseconds."""
        self._intervals_ms = dict(intervals_ms)

    def set_system_specs(self, specs: Sequence[Metric]) -> None:
        """Identity of the node."""
        self._system_specs = list(specs)

    def write(self, health: HealthScore, verdict: Verdict | None = None) -> None:
        """Write the file with this health and the verdict on it. What cannot be written is counted and told of once."""
        self._health, self._verdict = health, verdict
        self._put(health, stopped=False)

    def close(self, *, handed_on: bool = False) -> None:
        """Say, in a last file, that the daemon was stopped in good order. Without one before, there is nothing to say.

        ``handed_on``: somebody in this process goes on writing here, so nothing was stopped.
        """
        if self._health is not None and not handed_on:
            self._put(self._health, stopped=True)
        self._file.close()

    def _put(self, health: HealthScore, *, stopped: bool) -> None:
        self._sequence += 1
        now = self._clock.now()
        same = self._encoded
        snapshot = _GlobalFile(
            session_id=self._session_id,
            timestamp=rfc3339(now.wall_s),
            refresh_interval_ms=round(self.interval_s * 1000),
            intervals_ms=same.unless_empty("intervals_ms", self._intervals_ms),
            health=same.raw("health", health),
            collectors=same.raw("collectors", self._collectors),
            system_specs=same.unless_empty("system_specs", self._system_specs),
            schema=SCHEMA_VERSION,
            sequence=self._sequence,
            stale_after_ms=round(global_stale_after_s(self.interval_s) * 1000),
            boot_id=self._origin.boot_id,
            monotonic_s=round(now.mono_s, 3),
            pid=self._origin.pid,
            verdict=same.unless_empty("verdict", self._verdict),
            stopped=stopped or msgspec.UNSET,
        )
        try:
            if self._renew is not None:
                self._renew()
            self._file.put(_encode(snapshot))
        except (SnapshotError, WriteError) as error:
            # SnapshotError: the directory was removed, and another daemon was quicker. Its file is not ours to replace.
            self.trouble.failed(str(error))
        else:
            self.trouble.healed()
