"""A lock that many may hold together, or one alone: flock(2) on a file that stays. The kernel lets go when a holder ends."""

import errno
import fcntl
import os
import time

from nodeproof.errors import WriteError
from nodeproof.host.atomic import FILE_MODE, make_directory, write_error

__all__ = ["SharedLock"]

_PAUSE_S = 0.01
_BUSY = {errno.EAGAIN, errno.EACCES}


class SharedLock:
    """The lock on the file at ``path``, not held yet; the file is made when it is not there. Raises WriteError."""

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            make_directory(os.path.dirname(path) or ".")
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        except OSError as error:
            raise write_error(path, error) from None

    def take(self, *, alone: bool, timeout_s: float) -> bool:
        """Hold it, together with others or ``alone``; whether it was to be had in time. What was held before is given up."""
        ends_s = time.monotonic() + timeout_s
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        while True:
            try:
                fcntl.flock(self._fd, kind | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in _BUSY:
                    raise write_error(self.path, error) from None
                if time.monotonic() >= ends_s:
                    return False
                time.sleep(_PAUSE_S)
            else:
                return True

    def holders(self) -> list[int]:
        """Processes that hold it, as far as the kernel tells us (proc_locks(5)); this one apart."""
        found = os.fstat(self._fd)
        place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
        try:
            with open("/proc/locks", "rb", buffering=0) as file:
                lines = file.read().decode("ascii", "replace").splitlines()
        except OSError as error:
            raise WriteError("/proc/locks", str(error)) from None
        rows = [line.split() for line in lines]
        return sorted(
            {
                int(row[4])
                for row in rows
                if len(row) > 5 and row[1] == "FLOCK" and row[5] == place and row[4].isdigit() and int(row[4]) != os.getpid()
            }
        )

    def close(self) -> None:
        """Let go."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
