"""Time, as a thing that is passed in.

Intervals are measured on ``CLOCK_BOOTTIME``: it never steps when an administrator or NTP sets the wall clock, and unlike
``CLOCK_MONOTONIC`` it goes on while the machine is suspended (clock_gettime(2)). Wall time is only ever shown or stored.
"""

import time
from datetime import datetime
from typing import NamedTuple, Protocol

__all__ = ["Clock", "Instant", "SystemClock", "rfc3339", "rfc3339_parse"]


class Instant(NamedTuple):
    """One moment on both clocks, in seconds."""

    wall_s: float
    """Seconds since the epoch."""
    mono_s: float
    """Seconds since boot, suspended time included."""


class Clock(Protocol):
    """What the rest of the program knows of time."""

    def now(self) -> Instant:
        """This moment."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> Instant:
        """This moment."""
        return Instant(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME))

    def sleep(self, seconds: float) -> None:
        """Wait, at least ``seconds``."""
        time.sleep(seconds)


def rfc3339(wall_s: float) -> str:
    """``wall_s`` as RFC 3339 with microseconds and the local offset: ``2026-11-30T22:20:41.123456+00:00``."""
    return datetime.fromtimestamp(wall_s).astimezone().isoformat(timespec="microseconds")


def rfc3339_parse(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time, nanoseconds and ``Z`` allowed. Raises ValueError."""
    body = text.replace("Z", "+00:00").replace("z", "+00:00")
    if "." in body:
        head, _, tail = body.partition(".")
        digits = len(tail) - len(tail.lstrip("0123456789"))
        body = f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
    moment = datetime.fromisoformat(body)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    return moment.timestamp()
