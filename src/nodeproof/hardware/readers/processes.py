"""Who uses the processors: the run's own process tree, and everybody else.

Each look reads ``/proc/<pid>/stat`` of every process and adds up what each used since the last look: its own time, and of the
time of its dead children what had not been counted while they lived. So a compiler that starts and ends between two looks still
counts for the shell that waited for it. Threads of the kernel are neither own nor foreign.

A process is the run's own when it is one of the roots, descends from one, is named by the caller, or was so once: one that left
the tree by forking twice stays the run's own.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.sources import proc_pid_times
from nodeproof.sources.proc_pid_times import TICKS_PER_S, ProcessTimes

__all__ = ["OwnPids", "ProcessUse", "Processes", "User"]

OwnPids = Callable[[], Iterable[int]]
"""Process numbers that belong to the run now, as far as the caller knows."""

_FULL_EVERY = 20
"""Threads of the kernel are looked at anew every so many looks, for numbers are given out again."""
_BORN_SLACK_TICKS = 2
_TOP = 5


class User(NamedTuple):
    """One foreign process, and what it used since the last look."""

    pid: int
    name: str
    used_s: float


class ProcessUse(NamedTuple):
    """CPU time since the first look, in ticks of a hundredth of a second: whole numbers, whose sums are exact."""

    own_ticks: int
    foreign_ticks: int
    sees_all: bool
    """All processes of the machine can be seen; otherwise ``foreign_ticks`` is a lower bound."""
    hidden: str
    """Why not all can be seen; empty when they can."""
    top: tuple[User, ...]
    """Foreign processes that used most since the last look."""


class _Known(NamedTuple):
    times: ProcessTimes
    own: bool


class Processes:
    """The table of processes between looks. Not for more than one thread at a time."""

    def __init__(self, machine: Machine, roots: Iterable[int], own_pids: OwnPids | None, allowed: frozenset[int] | None) -> None:
        """``allowed`` = count foreign processes only while they run there; None = everywhere."""
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._roots = frozenset(roots)
        self._own_pids = own_pids
        self._allowed = allowed
        self._known: dict[int, _Known] = {}
        self._kernel: set[int] = set()
        self._looks = 0
        self._then_ticks = 0.0
        self._own_ticks = 0
        self._foreign_ticks = 0

    def is_own(self, pid: int) -> bool:
        """Whether ``pid`` was the run's own at the last look, or is a root."""
        known = self._known.get(pid)
        return pid in self._roots or (known is not None and known.own)

    def read(self, at: Instant) -> ProcessUse:
        """Look at all processes. Raises NoData when they cannot be listed."""
        times = self._times()
        own = self._own(times)
        first = self._looks == 0
        inherited = self._inherited(times)
        foreign: list[User] = []
        for pid, now in times.items():
            used = 0 if first else self._used_ticks(pid, now, inherited.get(pid, 0))
            if pid in own:
                self._own_ticks += used
            elif used > 0 and self._counts(now):
                self._foreign_ticks += used
                foreign.append(User(pid, now.name, used / TICKS_PER_S))
        self._known = {pid: _Known(now, pid in own) for pid, now in times.items()}
        self._looks += 1
        self._then_ticks = at.mono_s * TICKS_PER_S
        foreign.sort(key=lambda user: -user.used_s)
        hidden = self._hidden(times)
        return ProcessUse(self._own_ticks, self._foreign_ticks, not hidden, hidden, tuple(foreign[:_TOP]))

    def _times(self) -> dict[int, ProcessTimes]:
        if self._looks % _FULL_EVERY == 0:
            self._kernel.clear()
        found: dict[int, ProcessTimes] = {}
        for name in self._files.names("/proc"):
            if not name.isdecimal():
                continue
            pid = int(name)
            if pid in self._kernel:
                continue
            try:
                times = proc_pid_times.parse(self._files.read(f"/proc/{name}/stat"))
            except (NoData, ParseError):
                continue  # gone meanwhile
            if times.kernel_thread:
                self._kernel.add(pid)
            else:
                found[pid] = times
        return found

    def _own(self, times: dict[int, ProcessTimes]) -> set[int]:
        own = {pid for pid in self._roots if pid in times}
        if self._own_pids is not None:
            own.update(pid for pid in self._own_pids() if pid in times)
        own.update(pid for pid, known in self._known.items() if known.own and self._same(pid, times.get(pid)))
        children: dict[int, list[int]] = {}
        for pid, now in times.items():
            children.setdefault(now.ppid, []).append(pid)
        waiting = list(own)
        while waiting:
            for child in children.get(waiting.pop(), ()):
                if child not in own:
                    own.add(child)
                    waiting.append(child)
        return own

    def _same(self, pid: int, now: ProcessTimes | None) -> bool:
        known = self._known.get(pid)
        return known is not None and now is not None and known.times.start_ticks == now.start_ticks

    def _inherited(self, times: dict[int, ProcessTimes]) -> dict[int, int]:
        """Ticks of vanished processes that were counted while they lived, by the nearest living ancestor, who inherits them."""
        inherited: dict[int, int] = {}
        for pid, known in self._known.items():
            if self._same(pid, times.get(pid)):
                continue
            heir = known.times.ppid
            while not self._same(heir, times.get(heir)):
                above = self._known.get(heir)
                if above is None or above.times.ppid == heir:
                    break
                heir = above.times.ppid
            inherited[heir] = inherited.get(heir, 0) + known.times.own_ticks + known.times.child_ticks
        return inherited

    def _used_ticks(self, pid: int, now: ProcessTimes, inherited_ticks: int) -> int:
        if not self._same(pid, now):
            born_since = now.start_ticks >= self._then_ticks - _BORN_SLACK_TICKS
            return now.own_ticks + now.child_ticks if born_since else 0
        then = self._known[pid].times
        by_children = now.child_ticks - then.child_ticks - inherited_ticks
        return max(0, now.own_ticks - then.own_ticks) + max(0, by_children)

    def _counts(self, now: ProcessTimes) -> bool:
        return self._allowed is None or now.processor is None or now.processor in self._allowed

    def _hidden(self, times: dict[int, ProcessTimes]) -> str:
        if 1 not in times:
            return "other users' processes are hidden from this one (/proc is mounted with hidepid)"
        container = self._platform.container
        return f"a container ({container}) sees only its own processes" if container is not None else ""
