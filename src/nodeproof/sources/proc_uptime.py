"""``/proc/uptime``: ``350735.47 234388.90`` (proc_uptime(5)).

Seconds since boot, suspended time included, and the idle time of all cores together.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["Uptime", "parse"]


class Uptime(NamedTuple):
    """The two numbers."""

    up_s: float
    idle_s: float
    """Summed over all processors."""


def parse(raw: bytes, /) -> Uptime:
    """Read the one line. Raises ParseError."""
    fields = raw.split()
    try:
        uptime = Uptime(float(fields[0]), float(fields[1]))
    except (IndexError, ValueError):
        uptime = Uptime(-1.0, -1.0)
    if not (0 <= uptime.up_s < float("inf") and 0 <= uptime.idle_s < float("inf")):
        raise ParseError("/proc/uptime", 1, raw[:60].decode("utf-8", "replace"), "two numbers of seconds")
    return uptime
