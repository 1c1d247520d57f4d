"""All processes of one job: find them, signal them, end them, and say what is left.

Used by the keeper, below whom they all descend, and by the owner or its successor when the keeper itself was killed and only the
marks (``host.process_tree``), the cgroup and the list of last known members are left to go by.
"""

import os
import signal
from collections.abc import Callable, Iterable
from typing import NamedTuple

from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.pidfd import Sent, send_signal
from nodeproof.host.process_tree import Identity, ProcessStat, ProcessTree, descent

__all__ = ["Birthmarks", "Family"]

_MAX_SWEEPS = 50
"""A bomb that still grows after so many sweeps is struck at as it stands, and the next strike goes on."""
_KERNEL_THREADS = 2
"""Process from which all threads of the kernel descend."""
_MAX_SIGHTS = 64


class Birthmarks(NamedTuple):
    """What every process of a job has inherited, and none older than the job."""

    token: str
    mark: int
    """0 where it could not be set."""
    since_ticks: int
    """When the first of the job can have started."""


class Family:
    """The processes of one job. ``keeper`` is the process they all descend from, 0 when it is gone."""

    def __init__(self, tree: ProcessTree, marks: Birthmarks, *, keeper: int = 0, cgroup: JobCgroup | None = None) -> None:
        self.tree = tree
        self.cgroup = cgroup
        self.known: set[Identity] = set()
        """Members by acquaintance; only those still of this name and start count."""
        self.marks = marks
        self._keeper = keeper
        self._denied: set[Identity] = set()

    def below_keeper(self) -> list[ProcessStat]:
        """Descendants of the keeper, dead ones that nobody has waited for included: quick, and all unless namespaces come in."""
        return self.tree.descendants(self._keeper)

    def members(self) -> list[ProcessStat]:
        """Living members by every road there is, in one pass over the process table."""
        return self._look(lambda _: None)

    def tell(self, number: signal.Signals, members: Iterable[ProcessStat]) -> None:
        """Send ``number`` to ``members``, and wake those that are stopped so that they can act on it."""
        for stat in members:
            self._send(stat.identity, number)
            if stat.state == "T":
                self._send(stat.identity, signal.SIGCONT)

    def strike(self) -> bool:
        """SIGKILL to all, faster than they can fork: first stop them until none is found that is not. True when one was found.

        A stopped process keeps its place in the process table, so even a bomb that refills every free place runs out of them.
        """
        if self.cgroup is not None:
            self.cgroup.kill()
        stopped: set[Identity] = set()

        def stop(stat: ProcessStat) -> None:
            if stat.identity not in stopped:
                self._send(stat.identity, signal.SIGSTOP)
                stopped.add(stat.identity)

        for _ in range(_MAX_SWEEPS):
            before = len(stopped)
            self._look(stop)
            if len(stopped) == before:
                break
        for identity in stopped:
            self._send(identity, signal.SIGKILL)
        return bool(stopped)

    def sights(self, members: Iterable[ProcessStat]) -> list[dict[str, object]]:
        """``members`` as fields of :class:`nodeproof.model.process.ProcessSight`, at most 64."""
        return [
            {
                "pid": stat.pid,
                "start_ticks": stat.start_ticks,
                "name": stat.name,
                "state": stat.state,
                "threads": stat.threads,
                "wait": self.tree.wait_channel(stat.pid),
                "note": self._why(stat),
            }
            for stat in list(members)[:_MAX_SIGHTS]
        ]

    def _look(self, meet: Callable[[ProcessStat], None]) -> list[ProcessStat]:
        """Living members; each is handed to ``meet`` the moment it is found, before it can be gone."""
        here = os.getpid()
        in_group = set(self.cgroup.pids()) if self.cgroup is not None else set()
        table: dict[int, ProcessStat] = {}
        found: dict[int, ProcessStat] = {}
        for stat in self.tree.newest_first():
            table[stat.pid] = stat
            if stat.pid not in {here, self._keeper} and stat.lives and self._belongs(stat, in_group):
                found[stat.pid] = stat
                meet(stat)
        ancestors = (self._keeper,) if self._keeper else ()
        for stat in descent(table, *ancestors, *found):
            if stat.lives and stat.pid not in {here, self._keeper}:
                found[stat.pid] = stat
                meet(stat)
        return list(found.values())

    def _belongs(self, stat: ProcessStat, in_group: set[int]) -> bool:
        """By mark, group or acquaintance."""
        if stat.start_ticks < self.marks.since_ticks or _KERNEL_THREADS in {stat.pid, stat.parent}:
            return False
        if stat.pid in in_group or stat.identity in self.known:
            return True
        return self.tree.bears(stat.pid, self.marks.mark, self.marks.token)

    def _why(self, stat: ProcessStat) -> str:
        if stat.identity in self._denied:
            return "it belongs to another user, whose processes may not be signalled"
        if stat.state == "D":
            return "it waits in the kernel, where no signal reaches it; it ends when that wait does"
        return ""

    def _send(self, identity: Identity, number: signal.Signals) -> None:
        if send_signal(identity, number, self.tree) is Sent.DENIED:
            self._denied.add(identity)
