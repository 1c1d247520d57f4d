"""A file that is made anew every second, without making a file every second.

On ext4 a new inode and a rename over the old one cost about a millisecond of CPU; eight times a second that is more than the rest
of the daemon. Here two files of one name take turns: the new content goes into the one that readers cannot see, and
``renameat2(RENAME_EXCHANGE)`` swaps the names, so a reader sees the old content or the new, never a mixture.

A reader may still hold the file that it opened before the last swap. Before that file is written again, a write lease
(``fcntl(F_SETLEASE)``, granted only when nobody else has the file open) proves that there is no such reader; when there is one,
the file is left to it and a new one is made. File systems that know no leases or no exchange get the plain way of
``host.atomic``, and so does a process that has not called :func:`allow_leases`.
"""

import contextlib
import ctypes
import errno
import fcntl
import functools
import os
import signal

from nodeproof.host import atomic

__all__ = ["RemadeFile", "allow_leases"]

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
"""include/uapi/linux/fs.h, since Linux 3.15."""
_UNSUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EPERM}


def allow_leases() -> None:
    """Ignore SIGIO in this process, for good: the kernel sends it when somebody wants to break a lease, and it would end us.

    For the main thread only.
    """
    signal.signal(signal.SIGIO, signal.SIG_IGN)


class RemadeFile:
    """The file ``path``, whose content is replaced again and again by :meth:`put`. For use by one thread at a time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._shown = -1
        """Descriptor of the file that bears the name, when we made it."""
        self._spare = -1
        """Descriptor of the file that is written next."""
        self._spare_path = ""
        self._lengths: dict[int, int] = {}
        """Length of the file behind each descriptor."""
        self._identities: dict[int, tuple[int, int]] = {}
        """Device and inode of the same."""
        self._plain = signal.getsignal(signal.SIGIO) is not signal.SIG_IGN

    def put(self, data: bytes) -> None:
        """Make ``data`` the content. Raises WriteError; the old content then stays, and the next call begins afresh."""
        if self._plain:
            atomic.replace_file(self.path, data)
            return
        try:
            if self._spare >= 0 and self._spare_is_ours() and _alone(self._spare):
                self._write_and_swap(data)
                return
            self._begin(data)
        except OSError as error:
            self.close()
            raise atomic.write_error(self.path, error) from None

    def close(self) -> None:
        """Give the descriptors back and remove the spare file."""
        for fd in (self._shown, self._spare):
            if fd >= 0:
                os.close(fd)
        self._shown = self._spare = -1
        if self._spare_path:
            with contextlib.suppress(OSError):
                os.unlink(self._spare_path)
            self._spare_path = ""

    def _begin(self, data: bytes) -> None:
        """Put ``data`` in place the plain way, and make a spare for the next time."""
        self.close()
        atomic.replace_file(self.path, data)
        self._shown = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        self._spare_path = atomic.temporary_name(self.path)
        self._spare = os.open(self._spare_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, atomic.FILE_MODE)
        os.fchmod(self._spare, atomic.FILE_MODE)
        self._lengths = {self._shown: len(data), self._spare: 0}
        self._identities = {fd: (status.st_dev, status.st_ino) for fd in self._lengths for status in (os.fstat(fd),)}

    def _spare_is_ours(self) -> bool:
        """Whether the name of the spare is that of our file, and its only one: anybody may have moved, linked or removed it."""
        try:
            named = os.lstat(self._spare_path)
        except OSError:
            return False
        return named.st_nlink == 1 and (named.st_dev, named.st_ino) == self._identities[self._spare]

    def _write_and_swap(self, data: bytes) -> None:
        written = 0
        while written < len(data):
            written += os.pwrite(self._spare, data[written:], written)
        if len(data) < self._lengths[self._spare]:
            os.ftruncate(self._spare, len(data))
        self._lengths[self._spare] = len(data)
        try:
            _exchange(self._spare_path, self.path)
        except OSError as error:
            if error.errno == errno.ENOENT:  # the shown file was removed
                self._begin(data)
                return
            if error.errno not in _UNSUPPORTED:
                raise
            self.close()
            self._plain = True
            atomic.replace_file(self.path, data)
            return
        self._shown, self._spare = self._spare, self._shown


def _alone(fd: int) -> bool:
    """Whether nobody but us has the file open. False also where that cannot be told."""
    try:
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _exchange(one: str, other: str) -> None:
    if _libc().renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
