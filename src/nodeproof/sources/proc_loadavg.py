"""``/proc/loadavg``: ``0.35 0.25 0.15 2/287 12345`` (proc_loadavg(5))."""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["LoadAverage", "parse"]

_LIMIT = 2.0**32
"""The kernel counts tasks in 32 bits, and a load is an average of such counts."""


class LoadAverage(NamedTuple):
    """Load averages and counts of scheduling entities."""

    load1: float
    load5: float
    load15: float
    running: int
    total: int


def parse(raw: bytes, /) -> LoadAverage:
    """Read the one line. Raises ParseError."""
    fields = raw.split()
    try:
        running, _, total = fields[3].partition(b"/")
        load = LoadAverage(float(fields[0]), float(fields[1]), float(fields[2]), int(running), int(total))
    except (IndexError, ValueError):
        load = None
    if load is None or not all(0 <= number < _LIMIT for number in load):
        raise ParseError("/proc/loadavg", 1, raw.decode("utf-8", "replace"), "three averages, running/total and a pid")
    return load
