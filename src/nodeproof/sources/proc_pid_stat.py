"""``/proc/<pid>/stat``: ``412 (kworker/0:1) D 2 0 0 0 -1 69238880 0 0 ...`` (proc_pid_stat(5), fs/proc/array.c).

The name stands in parentheses and may itself hold anything, parentheses and line breaks included: the fields begin after the last
``)``.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["STATES", "ProcessStat", "parse"]

STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "disk_sleep",
    "T": "stopped",
    "t": "traced",
    "Z": "zombie",
    "X": "dead",
    "x": "dead",
    "I": "idle",
    "P": "parked",
    "K": "wakekill",
    "W": "waking",
}
"""State letters of every kernel since 2.6 and our words for them; ``disk_sleep`` is the uninterruptible state D."""

_THREADS = 17
"""Place of ``num_threads`` after the name (field 20)."""
_START = 19
"""Place of ``starttime`` after the name (field 22)."""


class ProcessStat(NamedTuple):
    """What we use of the line."""

    name: str
    state: str
    """The letter."""
    threads: int
    start_ticks: int
    """Time of its start after boot; with the pid it names a process for good."""


def parse(raw: bytes, /) -> ProcessStat:
    """Read the line. Raises ParseError."""
    opening, closing = raw.find(b"("), raw.rfind(b")")
    fields = raw[closing + 1 :].split() if 0 <= opening < closing else []
    try:
        state = fields[0].decode("ascii")
        threads, start = int(fields[_THREADS]), int(fields[_START])
    except (IndexError, ValueError):
        raise ParseError("/proc/PID/stat", 1, raw[:60].decode("utf-8", "replace"), "pid (name) state and 19 numbers") from None
    return ProcessStat(raw[opening + 1 : closing].decode("utf-8", "replace"), state, max(0, threads), start)
