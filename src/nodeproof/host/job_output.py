"""What a contained program prints, kept on disk: all of it up to a limit, and its very end in any case.

A file whose program printed more than the limit holds the beginning, one line that says what is missing, and the end::

    ...
    [nodeproof: 199229440 bytes left out here; the limit on output is 1048576 bytes]
    ...

The mark stands on a line of its own. Whoever reads the file (:class:`OutputReader`) is no concern of the program's: it writes
into a pipe that the keeper empties whatever happens, to the file or, when the disk is full, to nowhere.
"""

import os

from nodeproof.host.atomic import FILE_MODE

__all__ = ["OutputFile", "OutputReader"]

_MAX_READ_BYTES = 1024 * 1024


class OutputFile:
    """The writing end. Never raises after it is open: :attr:`error` says what went wrong."""

    def __init__(self, path: str, limit_bytes: int, tail_bytes: int) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
        os.fchmod(self._fd, FILE_MODE)
        self._limit = limit_bytes
        self._tail_limit = tail_bytes
        self._tail = bytearray()
        """The last bytes that went to no file."""
        self._last = b"\n"
        self.total_bytes = 0
        self.kept_bytes = 0
        self.error = ""

    def write(self, data: bytes) -> None:
        """Take what the program printed."""
        self.total_bytes += len(data)
        room = self._limit - self.kept_bytes if not self.error else 0
        kept = self._put(data[:room]) if room > 0 else 0
        if kept < len(data):
            self._tail += data[kept:]
            if len(self._tail) > 2 * self._tail_limit:
                del self._tail[: -self._tail_limit]

    def close(self) -> None:
        """Put the mark and the end behind what was kept, and wait for the disk."""
        if self._fd < 0:
            return
        missing = self.total_bytes - self.kept_bytes
        if missing:
            tail = bytes(self._tail[-min(self._tail_limit, missing) :]) if self._tail_limit else b""
            why = f"it could not be kept: {self.error}" if self.error else f"the limit on output is {self._limit} bytes"
            left_out = missing - len(tail)
            if left_out:
                break_before = b"" if self._last == b"\n" else b"\n"
                self._put(break_before + f"[nodeproof: {left_out} bytes left out here; {why}]\n".encode(), counts=False)
            self._put(tail)
        try:
            os.fsync(self._fd)
        except OSError as error:
            self.error = self.error or os.strerror(error.errno or 0)
        os.close(self._fd)
        self._fd = -1

    def _put(self, data: bytes, *, counts: bool = True) -> int:
        """Write to the file; how much of it went there."""
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, data[written:])
        except OSError as error:
            self.error = os.strerror(error.errno or 0)
        if written:
            self._last = data[written - 1 : written]
        if counts:
            self.kept_bytes += written
        return written


class OutputReader:
    """The reading end: what is new since the last look, and the end. For one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = -1
        self._offset = 0

    def new(self, limit_bytes: int = _MAX_READ_BYTES) -> bytes:
        """Bytes that came since the last call, at most so many; empty when there are none. Raises OSError."""
        if not self._open():
            return b""
        data = os.pread(self._fd, limit_bytes, self._offset)
        self._offset += len(data)
        return data

    def tail(self, limit_bytes: int) -> bytes:
        """The last bytes of the file. Raises OSError."""
        if not self._open():
            return b""
        return os.pread(self._fd, limit_bytes, max(0, os.fstat(self._fd).st_size - limit_bytes))

    def close(self) -> None:
        """Give the descriptor back."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _open(self) -> bool:
        if self._fd < 0:
            try:
                self._fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        return True
