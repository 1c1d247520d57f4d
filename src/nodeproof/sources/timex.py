"""What the kernel knows of how well its clock is kept: ``status 8193`` and its sisters (adjtimex(2), include/uapi/linux/timex.h).

``state`` is what the call returned (5 = TIME_ERROR), ``status`` a set of bits, ``offset`` in nanoseconds when bit 0x2000 is set
and else in microseconds, ``maxerror`` and ``esterror`` in microseconds, ``freq`` in 2^-16 parts per million.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["ClockState", "parse"]

_TIME_ERROR = 5
_STA_UNSYNC = 0x0040
_STA_NANO = 0x2000
_STA_CLOCKERR = 0x1000
_NEEDED = ("state", "status", "offset", "maxerror", "esterror")
_PPM_SCALE = 65536
_MAX_DIGITS = 19


class ClockState(NamedTuple):
    """How the clock is kept."""

    synced: bool
    """Something disciplines it, and the kernel believes it to be right."""
    offset_s: float | None
    """Time still to be slewed away; None when nothing disciplines the clock (the field is then 0 and means nothing)."""
    max_error_s: float
    """Bound of the error; grows by 500 ppm until the next update, 16 s = nobody ever set it."""
    estimated_error_s: float
    frequency_ppm: float | None
    """Correction of the clock's rate."""


def parse(raw: bytes, /) -> ClockState:
    """Read the lines. Raises ParseError."""
    values: dict[str, int] = {}
    for line in raw.decode("utf-8", "replace").splitlines():
        key, _, number = line.partition(" ")
        digits = number.removeprefix("-")
        if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS:
            values[key] = int(number)
    lacking = [key for key in _NEEDED if key not in values]
    if lacking:
        raise ParseError("adjtimex(2)", 0, raw[:40].decode("utf-8", "replace"), f"a number for {', '.join(lacking)}")
    status = values["status"]
    synced = values["state"] != _TIME_ERROR and not status & (_STA_UNSYNC | _STA_CLOCKERR)
    offset_s = values["offset"] * (1e-9 if status & _STA_NANO else 1e-6)
    frequency = values.get("freq")
    return ClockState(
        synced,
        offset_s if synced else None,
        values["maxerror"] * 1e-6,
        values["esterror"] * 1e-6,
        None if frequency is None else frequency / _PPM_SCALE,
    )
