"""CPU time in ``/proc/<pid>/stat``: ``412 (xhpl) R 400 412 400 0 -1 4194304 10 0 0 0 8300 120 0 0 20 0 2 0 99000 ...``.

proc_pid_stat(5), fs/proc/array.c. The name in parentheses may hold anything; the fields begin after the last ``)``. Times are
ticks of USER_HZ. The time of children counts only those that ended and were waited for, with all they had waited for themselves.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["TICKS_PER_S", "ProcessTimes", "parse"]

TICKS_PER_S = 100
"""USER_HZ of every architecture we run on."""

_PPID = 1
_FLAGS = 6
_UTIME, _STIME, _CUTIME, _CSTIME = 11, 12, 13, 14
_START = 19
_PROCESSOR = 36
"""Places after the name: field 39 of the manual is number 36."""
_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD (include/linux/sched.h)."""


class ProcessTimes(NamedTuple):
    """What one process has used."""

    name: str
    ppid: int
    start_ticks: int
    """Start after boot; with the pid it names a process for good."""
    own_ticks: int
    """Its own time, in user and kernel mode."""
    child_ticks: int
    """Time of its children that are gone."""
    processor: int | None
    """Where it ran last; None on kernels before 2.2.8 or in a shortened line."""
    kernel_thread: bool


def parse(raw: bytes, /) -> ProcessTimes:
    """Read the line. Raises ParseError."""
    opening, closing = raw.find(b"("), raw.rfind(b")")
    fields = raw[closing + 1 :].split() if 0 <= opening < closing else []
    try:
        times = [int(fields[place]) for place in (_UTIME, _STIME, _CUTIME, _CSTIME)]
        ppid, flags, start = int(fields[_PPID]), int(fields[_FLAGS]), int(fields[_START])
        processor = int(fields[_PROCESSOR]) if len(fields) > _PROCESSOR else None
    except (IndexError, ValueError):
        raise ParseError("/proc/PID/stat", 1, raw[:60].decode("utf-8", "replace"), "pid (name) state and 19 numbers") from None
    if start < 0 or min(times) < 0:
        raise ParseError("/proc/PID/stat", 1, raw[:60].decode("utf-8", "replace"), "times that are not negative")
    name = raw[opening + 1 : closing].decode("utf-8", "replace")
    own, child = times[0] + times[1], times[2] + times[3]
    return ProcessTimes(name, ppid, start, own, child, processor, bool(flags & _KERNEL_THREAD))
