"""Who belongs to a job: descent, and marks that descent cannot lose.

A process of a job is found by any of four ways, because each has a hole that another closes:

* *descent* from the keeper, which is the subreaper of the job: whatever a process does (two forks, setsid(2), the death of its
  parent), the kernel hands it to the keeper, never to process 1 (PR_SET_CHILD_SUBREAPER, prctl(2));
* *the mark*: a soft and hard RLIMIT_RTTIME that is a random number beyond two million years. It limits nothing, is inherited over
  fork and exec, survives ``env -i``, and ``/proc/PID/limits`` shows it to everybody, also for a process of another user;
* *the token*, ``NODEPROOF_JOB`` in the environment, looked for only where the mark could not be set: reading another process's
  environment takes its memory lock, and waits for ever when the process holds that lock in a dead device's driver;
* *the cgroup*, where there is one (``host.cgroups``).

A process that is dead but not yet waited for (state Z) does nothing and holds nothing: it counts as gone, unless other threads of
it go on, which is what a thread count above 1 says.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

__all__ = ["TOKEN_VARIABLE", "Counters", "Identity", "ProcessStat", "ProcessTree", "descent"]

TOKEN_VARIABLE = "NODEPROOF_JOB"  # noqa: S105 - the name of a variable; its value names a job and opens nothing
_MARK_LINE = b"Max realtime timeout "
_ENVIRON_BYTES = 1024 * 1024
_PID_LIMIT = 1 << 22
"""No process number is larger (PID_MAX_LIMIT, include/linux/threads.h)."""
_MAX_CHASES = 64
_MAX_FRESH = 1000


class Identity(NamedTuple):
    """A process for good: its number may be given away again, number and start together never (until the next boot)."""

    pid: int
    start_ticks: int


class ProcessStat(NamedTuple):
    """What ``/proc/PID/stat`` tells (proc_pid_stat(5))."""

    pid: int
    name: str
    state: str
    parent: int
    cpu_ticks: int
    """User and system time, of waited-for children too."""
    threads: int
    start_ticks: int
    resident_pages: int

    @property
    def identity(self) -> Identity:
        """Number and start."""
        return Identity(self.pid, self.start_ticks)

    @property
    def lives(self) -> bool:
        """It is no zombie, or its other threads go on."""
        return self.state not in {"Z", "X", "x"} or self.threads > 1


class Counters(NamedTuple):
    """What ``/proc/PID/io`` tells, waited-for children included (proc_pid_io(5)), in bytes."""

    read: int
    written: int
    storage_read: int
    storage_written: int


class ProcessTree:
    """The process table under ``root``."""

    def __init__(self, root: str = "/proc") -> None:
        self._root = root
        self._tells_children = True

    def pids(self) -> list[int]:
        """Numbers of all processes that can be seen."""
        return [int(name) for name in os.listdir(self._root) if name.isdigit()]

    def stat(self, pid: int) -> ProcessStat | None:
        """State of ``pid``; None when it is gone."""
        raw = self._read(pid, "stat", 4096)
        # The name in brackets may hold spaces and brackets itself; the fields follow the last one.
        opening, closing = raw.find(b"("), raw.rfind(b")")
        fields = raw[closing + 1 :].split()
        try:
            return ProcessStat(
                pid=pid,
                name=raw[opening + 1 : closing].decode("utf-8", "replace"),
                state=fields[0].decode("ascii", "replace"),
                parent=int(fields[1]),
                cpu_ticks=sum(int(field) for field in fields[11:15]),
                threads=int(fields[17]),
                start_ticks=int(fields[19]),
                resident_pages=max(0, int(fields[21])),
            )
        except (IndexError, ValueError):
            return None

    def newest_first(self) -> Iterator[ProcessStat]:
        """All processes that can be seen, the youngest first, and after them those that have come meanwhile.

        A process may fork and exit before a pass over the table comes to it, its successor again, and so on for ever. So the pass
        begins where processes are made, and at its end looks at every number given away since, until none was.
        """
        last = self._last_pid()
        yield from self._stats(self._by_age(last))
        for _ in range(_MAX_CHASES):
            newest = self._last_pid()
            if newest == last:
                return
            few = last < newest <= last + _MAX_FRESH  # and the numbers did not begin anew
            yield from self._stats(range(newest, last, -1) if few else self._by_age(newest))
            last = newest

    def table(self) -> dict[int, ProcessStat]:
        """All processes that can be seen, as one pass over the table meets them."""
        return {stat.pid: stat for stat in self.newest_first()}

    def descendants(self, ancestor: int) -> list[ProcessStat]:
        """Processes below ``ancestor``, by the lists of children that the kernel keeps; by the whole table where it keeps none.

        One pass is no proof: a process that forks while it is looked at may hide its child until the next.
        """
        if not self._tells_children:
            return descent(self.table(), ancestor)
        found: dict[int, ProcessStat] = {}
        waiting = [ancestor]
        while waiting:
            children = self._children(waiting.pop())
            if children is None:
                self._tells_children = False
                return descent(self.table(), ancestor)
            for pid in children:
                stat = self.stat(pid) if pid not in found else None
                if stat is not None:
                    found[pid] = stat
                    waiting.append(pid)
        return list(found.values())

    def counters(self, pid: int) -> Counters | None:
        """Bytes read and written by ``pid``; None when it is gone or hidden."""
        values: dict[bytes, int] = {}
        for line in self._read(pid, "io", 4096).splitlines():
            key, _, value = line.partition(b": ")
            if value.isdigit():
                values[key] = int(value)
        try:
            return Counters(values[b"rchar"], values[b"wchar"], values[b"read_bytes"], values[b"write_bytes"])
        except KeyError:
            return None

    def bears(self, pid: int, mark: int, token: str) -> bool:
        """Whether ``pid`` carries the mark of a job or, where it has none (0), its token."""
        if mark:
            return self._mark(pid) == mark
        return bool(token) and f"{TOKEN_VARIABLE}={token}".encode() in self._read(pid, "environ", _ENVIRON_BYTES).split(b"\0")

    def wait_channel(self, pid: int) -> str:
        """Kernel function in which ``pid`` sleeps; empty when it runs or may not be looked at."""
        name = self._read(pid, "wchan", 256).decode("ascii", "replace").strip()
        return "" if name == "0" else name

    def _by_age(self, newest: int) -> list[int]:
        """All numbers, that of the youngest process first: they are given in order, and begin anew at the end."""
        return sorted(self.pids(), key=lambda pid: (newest - pid) % _PID_LIMIT)

    def _stats(self, pids: Iterable[int]) -> Iterator[ProcessStat]:
        for pid in pids:
            stat = self.stat(pid)
            if stat is not None:
                yield stat

    def _last_pid(self) -> int:
        """The number that was given away last: to a thread, maybe (proc_loadavg(5), last field)."""
        try:
            with open(f"{self._root}/loadavg", "rb", buffering=0) as file:
                return int(file.read(128).split()[-1])
        except (OSError, ValueError, IndexError):
            return 0

    def _mark(self, pid: int) -> int:
        limits = self._read(pid, "limits", 4096)
        start = limits.find(_MARK_LINE)
        fields = limits[start + len(_MARK_LINE) : start + 120].split() if start >= 0 else []
        return int(fields[0]) if fields and fields[0].isdigit() else 0

    def _children(self, pid: int) -> list[int] | None:
        """Children of all threads of ``pid``; None when this kernel has no such list (CONFIG_PROC_CHILDREN)."""
        found: list[int] = []
        try:
            threads = os.listdir(f"{self._root}/{pid}/task")
        except OSError:
            return found
        for thread in threads:
            path = f"{self._root}/{pid}/task/{thread}"
            try:
                with open(f"{path}/children", "rb", buffering=0) as file:
                    found += [int(word) for word in file.readall().split()]
            except OSError:
                if os.path.exists(f"{path}/stat"):
                    return None
        return found

    def _read(self, pid: int, name: str, limit: int) -> bytes:
        try:
            with open(f"{self._root}/{pid}/{name}", "rb", buffering=0) as file:
                parts = []
                while limit > 0 and (part := file.read(limit)):
                    parts.append(part)
                    limit -= len(part)
                return b"".join(parts)
        except OSError:
            return b""


def descent(table: Mapping[int, ProcessStat], *ancestors: int) -> list[ProcessStat]:
    """Processes of ``table`` below any of ``ancestors``, themselves excluded."""
    below: dict[int, list[ProcessStat]] = {}
    for stat in table.values():
        below.setdefault(stat.parent, []).append(stat)
    found: dict[int, ProcessStat] = {}
    queue = list(ancestors)
    while queue:
        for stat in below.get(queue.pop(), ()):
            if stat.pid not in found and stat.pid not in ancestors:
                found[stat.pid] = stat
                queue.append(stat.pid)
    return list(found.values())
