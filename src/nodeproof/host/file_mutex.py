"""Mutual exclusion between threads and processes of one machine, for as long as a block of code takes.

flock(2) on a file that stays. The kernel lets go when the holder ends, however it ends.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator

from nodeproof.errors import WriteError
from nodeproof.host.atomic import FILE_MODE, make_directory, write_error

__all__ = ["file_mutex", "lock_whole_file"]

_PAUSE_S = 0.005


@contextlib.contextmanager
def file_mutex(path: str, *, timeout_s: float) -> Iterator[None]:
    """Hold the lock on ``path`` while inside; the file is made when it is not there. Raises WriteError, also when time is up."""
    try:
        make_directory(os.path.dirname(path) or ".")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    except OSError as error:
        raise write_error(path, error) from None
    try:
        ends_s = time.monotonic() + timeout_s
        while not lock_whole_file(fd):
            if time.monotonic() >= ends_s:
                raise WriteError(path, f"another process has held this lock for {timeout_s:g} s", remedy="end that process")
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(fd)


def lock_whole_file(fd: int) -> bool:
    """Take the lock on an open file without waiting; whether it was to be had. It lasts until ``fd`` is closed."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in {errno.EAGAIN, errno.EACCES}:
            return False
        raise
    return True
