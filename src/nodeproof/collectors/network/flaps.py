"""Links that went down within the last hour: by the kernel log, and by the carrier counters as they are watched."""

from collections import deque
from collections.abc import Callable, Mapping

from nodeproof.clock import Instant
from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.network.common import LINK_PERIOD_S, listing
from nodeproof.collectors.network.links import LinkState
from nodeproof.collectors.services.kernel_log import KernelCounts, KernelLog
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine

__all__ = ["Flaps"]

_WINDOW_S = 3600.0
"""A link that held for so long has earned trust again: what it did before no longer counts."""
_MAX_KEPT = 64
"""Downs of one interface that are remembered; more tell nobody more."""


class _Watched:
    """Downs of one interface that its carrier counter showed."""

    __slots__ = ("count", "downs", "since_s")

    def __init__(self, count: int, since_s: float) -> None:
        self.count = count
        self.since_s = since_s
        self.downs: deque[float] = deque(maxlen=_MAX_KEPT)

    def step(self, count: int, at_s: float) -> None:
        """A new reading of the counter; one that stepped back belongs to a new interface of the same name."""
        self.downs.extend([at_s] * min(max(0, count - self.count), _MAX_KEPT))
        self.count = count
        while self.downs and self.downs[0] <= at_s - _WINDOW_S:
            self.downs.popleft()


class _Log:
    """What the kernel log can say for sure."""

    def __init__(self, machine: Machine) -> None:
        self._log = machine.shared(KernelLog)
        self._lost = 0
        self._lost_at_s: float | None = None

    def read(self, at_s: float) -> tuple[KernelCounts | None, NoData | None]:
        """The log's counts; beside them why it does not cover the window, None when it does."""
        try:
            counts = self._log.counts()
        except NoData as absence:
            return None, absence
        if counts.lost_records > self._lost:
            self._lost, self._lost_at_s = counts.lost_records, at_s
        if self._lost_at_s is not None and at_s - self._lost_at_s < _WINDOW_S:
            return counts, NoData(Absence.UNKNOWN, "records of the kernel log were lost within the last hour")
        if not counts.complete and counts.since_s > at_s - _WINDOW_S:
            return counts, NoData(Absence.UNKNOWN, "the kernel log does not reach back an hour")
        return counts, None


class Flaps:
    """Counts per interface; what vanished interfaces left is dropped with them."""

    def __init__(self, machine: Machine, states: Callable[[], Mapping[str, LinkState]]) -> None:
        self._log = _Log(machine)
        self._states = states
        self._watched: dict[str, _Watched] = {}

    def groups(self) -> tuple[Group, ...]:
        """The one group of this source."""
        return (Group(("link_flaps",), self.read, LINK_PERIOD_S),)

    def read(self, cycle: Cycle) -> None:
        """A number where something was seen, or where nothing can have been missed; else an absence."""
        states = self._states()
        self._watch(states, cycle.at)
        log, gap = self._log.read(cycle.at.mono_s)
        untold: list[str] = []
        for name in states:
            watched = self._watched.get(name)
            seen = max(_logged(log, name, cycle.at.mono_s), len(watched.downs) if watched else 0)
            never_down = watched is not None and watched.count == 0
            watched_throughout = watched is not None and cycle.at.mono_s - watched.since_s >= _WINDOW_S
            if seen or gap is None or never_down or watched_throughout:
                labels = {"interface": name}
                cycle.add("link_flaps", seen, labels)
            else:
                untold.append(name)
        if untold and gap is not None:
            cycle.miss("link_flaps", gap.state, f"{gap.reason}; not yet watched that long: {listing(untold)}", remedy=gap.remedy)

    def _watch(self, states: Mapping[str, LinkState], at: Instant) -> None:
        kept: dict[str, _Watched] = {}
        for name, link in states.items():
            if link.carrier_downs is None:
                continue
            watched = self._watched.get(name) or _Watched(link.carrier_downs, at.mono_s)
            watched.step(link.carrier_downs, at.mono_s)
            kept[name] = watched
        self._watched = kept


def _logged(log: KernelCounts | None, name: str, at_s: float) -> int:
    changes = log.link_changes.get(name, ()) if log is not None else ()
    return sum(1 for change in changes if not change.up and change.mono_s > at_s - _WINDOW_S)
