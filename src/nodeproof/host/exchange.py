"""Two directories that trade places in one step: whoever looks sees the old content or the new one, and never none.

renameat2(2) with RENAME_EXCHANGE. Some network file systems have it not; there two renames must do, and the gap between them is
as short as can be.
"""

import ctypes
import errno
import os

__all__ = ["exchange"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


def exchange(one: str, other: str) -> None:
    """Let ``one`` and ``other``, on one file system, trade places. Raises OSError, and then nothing has moved."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        rename = libc.renameat2
    except AttributeError:  # a C library before glibc 2.28
        code = errno.ENOSYS
    else:
        if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
            return
        code = ctypes.get_errno()
    if code not in _UNSUPPORTED:
        raise OSError(code, os.strerror(code), other)
    _in_turn(one, other)


def _in_turn(one: str, other: str) -> None:
    aside = f"{other}.aside-{os.getpid()}"
    os.rename(other, aside)
    try:
        os.rename(one, other)
    except OSError:
        os.rename(aside, other)
        raise
    os.rename(aside, one)
