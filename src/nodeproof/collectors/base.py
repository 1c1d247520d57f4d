"""What a collector is, and the frame that the built-in ones share.

A collector is a set of *groups*. A group reads one source (or a few that belong together), names every metric it can bring, and
has a cadence of its own when its source is dear. The frame runs the groups somebody wants, keeps what slow groups brought between
their runs, and turns whatever a group raises into :class:`Missing` readings of that group alone.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import Absence, NoData, NodeproofError
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue import MetricSpec, component_specs
from nodeproof.model.metric import Batch, Labels, Metric, Missing

__all__ = ["Collector", "Cycle", "Group", "GroupCollector", "Selection"]


class Selection(Protocol):
    """Which metrics somebody wants."""

    def wants(self, component: str, name: str) -> bool:
        """Whether this metric is to be collected."""
        ...


class Collector(Protocol):
    """What the scheduler drives; entry points of ``nodeproof.collectors`` name its factory, ``create(machine, selection)``."""

    name: str
    component: str
    default_interval_s: float

    def collect(self) -> Batch:
        """One cycle. Never raises for a source that is missing or broken: that is in the batch."""
        ...

    def forget(self) -> None:
        """Run every group at the next cycle, however recently it ran: for commands that read only once."""
        ...


class Cycle:
    """One run of one group: where its read function puts what it found."""

    __slots__ = ("_specs", "_wanted", "at", "component", "metrics", "missing", "timestamp")

    def __init__(
        self, component: str, specs: Mapping[str, MetricSpec], wanted: Collection[str], at: Instant, timestamp: str
    ) -> None:
        self.component = component
        self.at = at
        self.timestamp = timestamp
        self.metrics: list[Metric] = []
        self.missing: list[Missing] = []
        self._specs = specs
        self._wanted = wanted

    def wants(self, name: str) -> bool:
        """Whether metric ``name`` is wanted; for work worth leaving out."""
        return name in self._wanted

    def add(self, name: str, value: float, labels: Labels | None = None) -> None:
        """A reading of metric ``name``; ``labels`` must not change afterwards. Not finite = missing."""
        if name not in self._wanted:
            return
        if value - value != 0:  # NaN and both infinities
            self.miss(name, Absence.READ_ERROR, f"{value} is no finite number", labels)
            return
        self.metrics.append(Metric(self.component, name, value, self._specs[name].unit, labels, self.timestamp))

    def miss(
        self,
        name: str,
        state: Absence,
        reason: str,
        labels: Labels | None = None,
        *,
        remedy: str = "",
        source: str = "",
    ) -> None:
        """No reading of metric ``name``, and why."""
        if name in self._wanted:
            self.missing.append(
                Missing(
                    self.component,
                    name,
                    state,
                    reason,
                    labels,
                    source or self._specs[name].source,
                    remedy,
                    self.timestamp,
                )
            )

    def as_of(self, at: Instant) -> "Cycle":
        """An empty cycle of the same group for what a slow source read at ``at``: readings bear the time they were taken."""
        return Cycle(self.component, self._specs, self._wanted, at, rfc3339(at.wall_s))

    def take(self, other: "Cycle") -> None:
        """Everything that ``other`` holds, as it stands."""
        self.metrics += other.metrics
        self.missing += other.missing

    def miss_all(self, names: Iterable[str], absence: NoData, labels: Labels | None = None) -> None:
        """The same absence for several metrics."""
        for name in names:
            self.miss(name, absence.state, absence.reason, labels, remedy=absence.remedy)


class Group(NamedTuple):
    """One source of a collector."""

    names: tuple[str, ...]
    """Every metric it can bring."""
    read: Callable[[Cycle], None]
    """Reads the source once; raises NoData or any error when the whole source has nothing to give."""
    every_s: float = 0.0
    """Shortest time between two runs; 0 = every cycle."""


class _Kept(NamedTuple):
    """What a group brought the last time it ran."""

    at: Instant
    metrics: Sequence[Metric]
    missing: Sequence[Missing]
    runs: int
    """How often the group has run."""
    unsettled: bool
    """It left readings unknown."""

    def due(self, at: Instant, every_s: float) -> bool:
        """Whether the group runs again in a cycle that begins at ``at``."""
        if not every_s or at.mono_s - self.at.mono_s >= every_s - _EARLY_S:
            return True
        return self.unsettled and self.runs < _EAGER_RUNS


class GroupCollector:
    """A collector made of groups."""

    def __init__(
        self,
        component: str,
        groups: Sequence[Group],
        machine: Machine,
        selection: Selection,
        *,
        default_interval_s: float = 3.0,
    ) -> None:
        self.name = component
        self.component = component
        self.default_interval_s = default_interval_s
        self._machine = machine
        self._specs = component_specs(component)
        self._wanted = frozenset(name for name in self._specs if selection.wants(component, name))
        self._groups = [group for group in groups if not self._wanted.isdisjoint(group.names)]
        self._kept: dict[int, _Kept] = {}
        self._sequence = 0

    def collect(self) -> Batch:
        """Run the groups that are due and give everything that is known now."""
        at = self._machine.clock.now()
        timestamp = rfc3339(at.wall_s)
        self._sequence += 1
        metrics: list[Metric] = []
        missing: list[Missing] = []
        for number, group in enumerate(self._groups):
            kept = self._kept.get(number)
            if kept is None or kept.due(at, group.every_s):
                kept = self._kept[number] = self._run(group, at, timestamp, 1 if kept is None else kept.runs + 1)
            metrics += kept.metrics
            missing += kept.missing
        return Batch(self.component, timestamp, at.mono_s, metrics, missing, self._sequence)

    def _run(self, group: Group, at: Instant, timestamp: str, runs: int) -> _Kept:
        cycle = Cycle(self.component, self._specs, self._wanted, at, timestamp)
        try:
            group.read(cycle)
        except NoData as absence:
            _miss_unread(cycle, group, absence)
        except NodeproofError as error:
            _miss_unread(cycle, group, NoData(Absence.READ_ERROR, str(error)))
        except Exception as error:  # noqa: BLE001 - one group's bug must not take its neighbours down
            _miss_unread(cycle, group, NoData(Absence.READ_ERROR, f"{type(error).__name__}: {error}"))
        unsettled = any(entry.state is Absence.UNKNOWN for entry in cycle.missing)
        return _Kept(at, cycle.metrics, cycle.missing, runs, unsettled)

    def forget(self) -> None:
        """Run every group at the next cycle, however recently it ran."""
        self._kept.clear()


_EARLY_S = 0.5
"""A slow group may run this much early, so that a cadence of 10 s on a cycle of 1 s does not become 11 s."""

_EAGER_RUNS = 5
"""A slow group with readings still unknown (a tool that has not answered yet, a rate that needs a second sample) runs at each
cycle until it has run this often, so that a new daemon need not wait a whole period for them."""


def _miss_unread(cycle: Cycle, group: Group, absence: NoData) -> None:
    """The group's absence, for each metric it had not brought before it gave up."""
    brought = {metric.name for metric in cycle.metrics} | {entry.name for entry in cycle.missing}
    cycle.miss_all((name for name in group.names if name not in brought), absence)
