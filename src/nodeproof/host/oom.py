"""Whether the kernel killed a process of a job for want of memory.

A process that the out-of-memory killer ended looks like any that got SIGKILL. What tells them apart, best first:

* the kernel's log names the victim: ``Memory cgroup out of memory: Killed process 4711 (xhpl) total-vm:...`` (mm/oom_kill.c);
* the job's own cgroup counted a kill; nothing but the job is in it;
* the cgroup that the job shares with its starter counted one, which may have been another process there;
* ``oom_kill`` of ``/proc/vmstat`` counted one, which may have been anywhere on the machine.
"""

import contextlib
import os
import re
import time
from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

from nodeproof.host.cgroups import JobCgroup, memory_events, own_groups

__all__ = ["Nearness", "OomFinding", "OomWitness"]

_VICTIM = re.compile(rb"(?:^|: )(?:Out of memory|Memory cgroup out of memory)[^:]*: Killed process (\d+) \(")
_RECORD_BYTES = 16384
_MAX_RECORDS = 20_000


_LOG_LAG_S = (0.0, 0.01, 0.05)
"""The kernel logs the kill after it has sent the signal (mm/oom_kill.c), so that the victim may be gone first."""


class Nearness(IntEnum):
    """How near to the job a kill was seen."""

    NOWHERE = 0
    MACHINE = 1
    CGROUP = 2
    """In the cgroup that the job shares with its starter."""
    JOB = 3


class OomFinding(NamedTuple):
    """What was found since :meth:`OomWitness.begin`."""

    nearness: Nearness
    kills: int
    """Processes killed there."""
    evidence: str


class OomWitness:
    """Notes the counters before the job starts and compares them when it has ended."""

    def __init__(self, proc: str = "/proc", kmsg: str = "/dev/kmsg") -> None:
        self._proc = proc
        self._kmsg_path = kmsg
        self._kmsg = -1
        self._shared: int | None = None
        self._machine: int | None = None

    def begin(self) -> None:
        """Note where the counters and the log stand."""
        with contextlib.suppress(OSError):
            self._kmsg = os.open(self._kmsg_path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._kmsg, 0, os.SEEK_END)
        self._shared = memory_events(own_groups(self._proc))
        self._machine = self._vmstat()

    def finding(self, pids: Collection[int], cgroup: JobCgroup | None, *, wait: bool) -> OomFinding:
        """What happened to the job, whose processes had the numbers ``pids``; ``wait`` for a log line that may be on its way."""
        victims: set[int] = set()
        for pause_s in _LOG_LAG_S if wait and self._kmsg >= 0 else (0.0,):
            time.sleep(pause_s)
            victims |= self._victims().intersection(pids)
            if victims:
                listed = ", ".join(str(pid) for pid in sorted(victims)[:8])
                return OomFinding(Nearness.JOB, len(victims), f"the kernel's log names {listed} as killed for want of memory")
        own = memory_events({"": cgroup.path}) if cgroup is not None else None
        if own:
            return OomFinding(Nearness.JOB, own, f"the job's own cgroup counts {own} killed for want of memory")
        shared = _grown(self._shared, memory_events(own_groups(self._proc)))
        if shared:
            return OomFinding(Nearness.CGROUP, shared, f"the cgroup of its starter counts {shared} killed for want of memory")
        machine = _grown(self._machine, self._vmstat())
        if machine:
            return OomFinding(Nearness.MACHINE, machine, f"this machine counts {machine} killed for want of memory meanwhile")
        return OomFinding(Nearness.NOWHERE, 0, "")

    def close(self) -> None:
        """Give the log back."""
        if self._kmsg >= 0:
            os.close(self._kmsg)
            self._kmsg = -1

    def _victims(self) -> set[int]:
        found: set[int] = set()
        if self._kmsg < 0:
            return found
        for _ in range(_MAX_RECORDS):
            try:
                record = os.read(self._kmsg, _RECORD_BYTES)
            except BlockingIOError:
                break
            except OSError:  # EPIPE: records were overwritten; the next read goes on behind the gap
                continue
            if not record:
                break
            match = _VICTIM.search(record.partition(b";")[2])
            if match is not None:
                found.add(int(match[1]))
        return found

    def _vmstat(self) -> int | None:
        with contextlib.suppress(OSError, ValueError), open(f"{self._proc}/vmstat", "rb", buffering=0) as file:
            for line in file.readall().splitlines():
                key, _, value = line.partition(b" ")
                if key == b"oom_kill":
                    return int(value)
        return None


def _grown(before: int | None, after: int | None) -> int:
    return max(0, after - before) if before is not None and after is not None else 0
