"""One owner for a directory, and proof for everybody else that the owner lives.

The owner holds flock(2) on a file in the directory. The kernel lets go of it when the process ends, however it ends, so a lock
that is free proves that no daemon is there, and one that is held proves that its process exists; neither depends on a clock.
"""

import errno
import fcntl
import os
import time
from typing import NamedTuple

from nodeproof.errors import SnapshotError, WriteError
from nodeproof.host.atomic import FILE_MODE, make_directory, write_error

__all__ = ["LOCK_NAME", "DirectoryLock", "LockState", "boot_id", "probe_lock", "process_state"]

LOCK_NAME = "daemon.lock"
_TRIES = 10
_TRY_PAUSE_S = 0.03
"""A reader that probes holds a shared lock for microseconds; it must not turn a daemon away."""


class LockState(NamedTuple):
    """What can be told of a lock from outside."""

    held: bool | None
    """None = could not be told."""
    pid: int
    """Process that wrote its number into the lock, 0 when there is none. Only meaningful while held."""
    detail: str


class DirectoryLock:
    """The right to be the one daemon of ``directory``; held until :meth:`release` or the end of the process."""

    def __init__(self, directory: str, *, name: str = LOCK_NAME, remedy: str = "") -> None:
        self.path = os.path.join(directory, name)
        self._directory = directory
        self._remedy = remedy or "stop that one first, or give this one a directory of its own"
        self._fd = -1

    def acquire(self) -> None:
        """Take the lock. Raises SnapshotError, naming the holder, when another process has it, or when it cannot be made."""
        if self._fd >= 0:
            return
        try:
            make_directory(self._directory)
            fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        except WriteError as error:
            raise SnapshotError(str(error)) from None
        except OSError as error:
            raise SnapshotError(str(write_error(self.path, error))) from None
        try:
            self._take(fd)
            os.fchmod(fd, FILE_MODE)
            os.ftruncate(fd, 0)
            os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        except SnapshotError:
            os.close(fd)
            raise
        except OSError as error:
            os.close(fd)
            raise SnapshotError(str(write_error(self.path, error))) from None
        self._fd = fd

    def renew(self) -> None:
        """Take the lock anew when its file was removed, or the directory made again. Raises SnapshotError as :meth:`acquire`."""
        if self._fd >= 0:
            try:
                named = os.stat(self.path)
                ours = os.fstat(self._fd)
            except OSError:
                self.release()
            else:
                if (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino):
                    return
                self.release()
        self.acquire()

    def release(self) -> None:
        """Let go. The file stays: removing it would let two owners lock two files of one name."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self, fd: int) -> None:
        for attempt in range(_TRIES):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in {errno.EAGAIN, errno.EACCES}:
                    raise
                if attempt + 1 < _TRIES:
                    time.sleep(_TRY_PAUSE_S)
            else:
                return
        pid = _read_pid(fd)
        holder = f"process {pid}" if pid else "another process"
        raise SnapshotError(f"{self._directory} is in use by {holder} (it holds {self.path}); {self._remedy}")


def probe_lock(directory: str, name: str = LOCK_NAME) -> LockState:
    """Whether a daemon holds the lock of ``directory``. Changes nothing; never raises."""
    path = os.path.join(directory, name)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return LockState(held=False, pid=0, detail=f"{path} does not exist: no daemon has run here")
    except OSError as error:
        return LockState(held=None, pid=0, detail=f"{path}: {os.strerror(error.errno or 0)}")
    try:
        pid = _read_pid(fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in {errno.EAGAIN, errno.EACCES}:
                return LockState(held=True, pid=pid, detail=f"{path} is held by process {pid}")
            return LockState(held=None, pid=pid, detail=f"{path}: {os.strerror(error.errno or 0)}")
        return LockState(held=False, pid=0, detail=f"nobody holds {path}")
    finally:
        os.close(fd)


def _read_pid(fd: int) -> int:
    digits = os.pread(fd, 32, 0).strip()
    return int(digits) if digits.isdigit() else 0


def boot_id() -> str:
    """The kernel's random name for the time since this boot (random(4)); empty where it cannot be read."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as file:
            return file.read(64).decode("ascii", "replace").strip()
    except OSError:
        return ""


def process_state(pid: int) -> str:
    """State letter of process ``pid`` (proc_pid_stat(5)): R, S, D, Z, T ...; empty when it is gone or hidden."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            # The name in brackets may hold spaces and brackets itself; the state follows the last one.
            return file.read(4096).rpartition(b")")[2].split()[0].decode("ascii", "replace")
    except (OSError, IndexError):
        return ""
