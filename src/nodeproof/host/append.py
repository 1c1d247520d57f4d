"""Files that only grow: whole lines, appended with one system call, repaired after a crash, compressed when they are done."""

import contextlib
import errno
import os
import threading
import zlib

from nodeproof.errors import WriteError
from nodeproof.host.atomic import FILE_MODE, make_directory, sync_directory, temporary_beside, write_error

__all__ = ["AppendFile", "compress_file", "file_sizes", "free_bytes", "lower_priority"]

_BLOCK_BYTES = 65536
_GZIP = 31
"""Window bits of zlib that stand for a gzip wrapper."""
_LEVEL = 6
_BACKGROUND_NICENESS = 19


class AppendFile:
    """One file of lines, open for appending. Made with its directory when it is not there."""

    def __init__(self, path: str) -> None:
        """Raises WriteError. A last line without its end, which a crash leaves, is cut off; :attr:`cut_bytes` says how much."""
        self.path = path
        self.cut_bytes = 0
        self._lock = threading.Lock()
        try:
            self._fd = self._open()
            self.size = os.fstat(self._fd).st_size
            self.cut_bytes = self._repair()
        except OSError as error:
            raise write_error(path, error) from None

    def append(self, lines: bytes) -> None:
        """Add ``lines``, all of them or, with WriteError, none."""
        with self._lock:
            if self._fd < 0:
                raise WriteError(self.path, "is closed")
            try:
                written = 0
                while written < len(lines):
                    written += os.write(self._fd, lines[written:])
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(self._fd, self.size)
                raise write_error(self.path, error) from None
            self.size += len(lines)

    def sync(self) -> None:
        """Wait until all of it is on the disk. Raises WriteError."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise write_error(self.path, error) from None

    def still_there(self) -> bool:
        """Whether the name still stands for this file: somebody may have removed or replaced it."""
        try:
            named, ours = os.stat(self.path), os.fstat(self._fd)
        except OSError:
            return False
        return (named.st_dev, named.st_ino) == (ours.st_dev, ours.st_ino)

    def close(self) -> None:
        """Give the descriptor back."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            fd = os.open(self.path, flags, FILE_MODE)
        except FileNotFoundError:
            make_directory(os.path.dirname(self.path) or ".")
            fd = os.open(self.path, flags, FILE_MODE)
        with contextlib.suppress(PermissionError):
            os.fchmod(fd, FILE_MODE)
        return fd

    def _repair(self) -> int:
        """Cut what follows the last line end; how many bytes that was."""
        end = self.size
        while end > 0:
            start = max(0, end - _BLOCK_BYTES)
            found = os.pread(self._fd, end - start, start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        cut = self.size - end
        if cut:
            os.ftruncate(self._fd, end)
            self.size = end
        return cut


def compress_file(path: str) -> str:
    """Put ``path.gz`` in the place of ``path``; its name. Raises WriteError, leaving ``path``.

    ``path`` goes only after the compressed file is on the disk, so a crash leaves one of them whole, or both.
    """
    target = f"{path}.gz"
    try:
        with temporary_beside(target) as temporary:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                _compress(source, temporary)
            finally:
                os.close(source)
            os.rename(temporary, target)
        sync_directory(os.path.dirname(path) or ".")
        os.unlink(path)
    except OSError as error:
        raise write_error(target, error) from None
    return target


def _compress(source: int, temporary: str) -> None:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    target = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    try:
        os.fchmod(target, FILE_MODE)
        while block := os.read(source, _BLOCK_BYTES):
            _write_all(target, packer.compress(block))
        _write_all(target, packer.flush())
        os.fsync(target)
    finally:
        os.close(target)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def file_sizes(directory: str) -> dict[str, int]:
    """Size of every plain file in ``directory``, by name; empty when there is no such directory. Raises WriteError."""
    sizes = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False):
                        sizes[entry.name] = entry.stat(follow_symlinks=False).st_size
    except OSError as error:
        if error.errno == errno.ENOENT:
            return {}
        raise write_error(directory, error) from None
    return sizes


def free_bytes(path: str) -> int | None:
    """Bytes an ordinary user may still write on the file system of ``path``; None when it cannot be told."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def lower_priority() -> None:
    """Let the calling thread run only when nobody else wants the processor."""
    with contextlib.suppress(OSError):
        # On Linux the number of a thread stands for that thread alone.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _BACKGROUND_NICENESS)
