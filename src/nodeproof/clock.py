"""Time, as a thing that is passed in.

Intervals are measured on ``CLOCK_BOOTTIME``: it never steps when an administrator or NTP sets the wall clock, and unlike
``CLOCK_MONOTONIC`` it goes on while the machine is suspended (clock_gettime(2)). Wall time is only ever shown or stored.
"""

import functools
import math
import time
from datetime import datetime
from typing import NamedTuple, Protocol

__all__ = ["Clock", "Instant", "SystemClock", "rfc3339", "rfc3339_parse"]

_MILLION = 1_000_000
_SECOND_CHARS = 19
"""Of ``2026-11-30T22:20:41``."""
_LONGEST = 40
"""No time of ours is longer; what somebody else sends may be."""


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
    second = math.floor(wall_s)
    microseconds = round((wall_s - second) * 1e6)
    if microseconds == _MILLION:
        second, microseconds = second + 1, 0
    head, offset = _second(second, time.timezone, time.altzone)
    return f"{head}.{microseconds:06d}{offset}"


@functools.lru_cache(maxsize=16)
def _second(second: int, *_zone: int) -> tuple[str, str]:
    """Date and time of a whole second, and the offset that holds then; a daemon needs the same one for each of its batches."""
    text = datetime.fromtimestamp(second).astimezone().isoformat()
    return text[:_SECOND_CHARS], text[_SECOND_CHARS:]


def rfc3339_parse(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time, nanoseconds and ``Z`` allowed. Raises ValueError."""
    return _known(text) if len(text) <= _LONGEST else _parsed(text)


def _parsed(text: str) -> float:
    body = text.replace("Z", "+00:00").replace("z", "+00:00")
    if "." in body:
        head, _, tail = body.partition(".")
        digits = len(tail) - len(tail.lstrip("0123456789"))
        body = f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
    moment = datetime.fromisoformat(body)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no offset from UTC")
    return moment.timestamp()


_known = functools.lru_cache(maxsize=128)(_parsed)
"""Of the newest ones: a batch's time is read by each of its readers, and that of a slow group at each judgement."""
