"""The kernel's clock discipline: adjtimex(2) with no bit set in ``modes``, which reads and changes nothing.

No library call of Python gives it, and asking a daemon (``chronyc``, ``ntpq``) would be a program per reading that knows only
its own kind. The answer is given as text, one ``key value`` a line, so that it can be recorded: ``status 8193``.
"""

import ctypes
import os

__all__ = ["adjtimex"]


class _Timex(ctypes.Structure):
    """``struct timex`` (include/uapi/linux/timex.h), as far as it is defined; the C library pads it with 11 int."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("time_s", ctypes.c_long),
        ("time_fraction", ctypes.c_long),
        ("tick", ctypes.c_long),
        ("ppsfreq", ctypes.c_long),
        ("jitter", ctypes.c_long),
        ("shift", ctypes.c_int),
        ("stabil", ctypes.c_long),
        ("jitcnt", ctypes.c_long),
        ("calcnt", ctypes.c_long),
        ("errcnt", ctypes.c_long),
        ("stbcnt", ctypes.c_long),
        ("tai", ctypes.c_int),
        ("padding", ctypes.c_int * 11),
    )


def adjtimex() -> bytes:
    """``state`` (the call's return value) and the fields in use, a line each. Raises OSError (a container may forbid it)."""
    libc = ctypes.CDLL(None, use_errno=True)
    timex = _Timex()
    state = libc.adjtimex(ctypes.byref(timex))
    if state < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    fields = ("status", "offset", "freq", "maxerror", "esterror", "tai")
    lines = [f"state {state}", *(f"{name} {getattr(timex, name)}" for name in fields)]
    return ("\n".join(lines) + "\n").encode()
