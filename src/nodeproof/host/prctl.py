"""Three calls of prctl(2) that Python's library does not have."""

import ctypes
import os
import signal

__all__ = ["become_subreaper", "die_with_parent", "set_name"]

_SET_PDEATHSIG = 1
_SET_NAME = 15
_SET_CHILD_SUBREAPER = 36
"""include/uapi/linux/prctl.h; the last since Linux 3.4."""


def become_subreaper() -> None:
    """Be handed every descendant whose parent dies, in the place of process 1. Raises OSError."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: signal.Signals = signal.SIGKILL) -> None:
    """Have the kernel send ``number`` to this process when the *thread* that made it ends. Raises OSError.

    Not inherited by children, and dropped by the exec of a program with set-user-ID bit or capabilities.
    """
    _prctl(_SET_PDEATHSIG, int(number))


def set_name(name: str) -> None:
    """Name this thread, at most 15 bytes, as ``ps`` and ``/proc/PID/comm`` show it. Raises OSError."""
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    _prctl(_SET_NAME, ctypes.addressof(buffer))


def _prctl(option: int, argument: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)
    if libc.prctl(option, argument, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
