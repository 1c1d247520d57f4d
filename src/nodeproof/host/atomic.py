"""Files that a reader never sees half-written.

Both ways write a temporary file beside the target and rename it over it, so that at every moment, a crash included, the target
is either the old content or the new one. :func:`replace_file` stops there: it is for snapshots, which are remade every cycle.
:func:`store_file` also waits for the disk, file and directory (fsync(2)), so that a record survives a power failure.
"""

import contextlib
import errno
import itertools
import os
import re
import time
from collections.abc import Iterator

from nodeproof.errors import WriteError

__all__ = [
    "DIRECTORY_MODE",
    "FILE_MODE",
    "make_directory",
    "remove_leftovers",
    "replace_file",
    "store_file",
    "sync_directory",
    "temporary_beside",
    "temporary_name",
    "write_error",
]

FILE_MODE = 0o640
"""Owner writes, group reads, whatever the umask."""
DIRECTORY_MODE = 0o750

_LEFTOVER = re.compile(r"^\.(?P<target>.+)\.(?P<pid>[0-9]+)-[0-9]+\.np-tmp$")
_LEFTOVER_AGE_S = 60.0
"""A temporary file of another process that lives is its business for so long; none is needed for longer."""
_MAX_NAME_CHARS = 50
"""So much of the target's name goes into that of its temporary file: four bytes a character stay below NAME_MAX (255)."""
_counter = itertools.count(1)
_in_flight: set[str] = set()

_REMEDIES = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "raise the quota or free some space there",
    errno.EROFS: "mount it for writing, or name another directory",
    errno.EACCES: "give this user the right to write there, or name another directory",
    errno.EPERM: "give this user the right to write there, or name another directory",
    errno.EFBIG: "raise the limit on file size (ulimit -f)",
    errno.EMFILE: "raise the limit on open files (ulimit -n)",
    errno.ENOTDIR: "move the file that stands in the way of the directory",
    errno.EISDIR: "move the directory that stands in the way of the file",
}


def write_error(path: str, error: OSError) -> WriteError:
    """``error`` on ``path``, with the remedy that fits its number."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    return WriteError(path, reason, remedy=_REMEDIES.get(error.errno or 0, ""), code=error.errno or 0)


def make_directory(path: str, mode: int = DIRECTORY_MODE) -> None:
    """Make ``path`` and whatever of its parents is not there, whatever the umask. Raises WriteError."""
    missing: list[str] = []
    folder = os.path.abspath(path)
    while not os.path.isdir(folder) and folder != os.path.dirname(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for folder in reversed(missing):
        try:
            os.mkdir(folder, mode)
            os.chmod(folder, mode)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise WriteError(folder, "is no directory", remedy=_REMEDIES[errno.ENOTDIR], code=errno.ENOTDIR) from None
        except OSError as error:
            raise write_error(folder, error) from None


def replace_file(path: str, data: bytes, *, mode: int = FILE_MODE) -> None:
    """Put ``data`` in the place of ``path``; its directory is made when it is not there. Raises WriteError."""
    _put(path, data, mode, durable=False)


def store_file(path: str, data: bytes, *, mode: int = FILE_MODE) -> None:
    """As :func:`replace_file`, and on the disk when this returns. Raises WriteError."""
    _put(path, data, mode, durable=True)


def sync_directory(path: str) -> None:
    """Wait until names that were made, renamed or removed in ``path`` are on the disk. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def temporary_name(path: str) -> str:
    """A name beside ``path`` that :func:`remove_leftovers` knows, never the same twice in this process."""
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:_MAX_NAME_CHARS]}.{os.getpid()}-{next(_counter)}.np-tmp")


@contextlib.contextmanager
def temporary_beside(path: str) -> Iterator[str]:
    """A name beside ``path`` for a file to be renamed over it, which :func:`remove_leftovers` knows; gone after an error."""
    temporary = temporary_name(path)
    _in_flight.add(temporary)
    try:
        yield temporary
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    finally:
        _in_flight.discard(temporary)


def remove_leftovers(directory: str) -> list[str]:
    """Remove temporary files that a crash left in ``directory``; their names. Files of other makers stay.

    A temporary file of a living process other than this one is left alone while it is young.
    """
    removed: list[str] = []
    try:
        names = os.listdir(directory)
    except OSError:
        return removed
    for name in names:
        match = _LEFTOVER.match(name)
        path = os.path.join(directory, name)
        if match is None or _in_use(int(match["pid"]), path):
            continue
        with contextlib.suppress(OSError):
            os.unlink(path)
            removed.append(name)
    return removed


def _in_use(pid: int, path: str) -> bool:
    if pid == os.getpid():
        # In a container the daemon before us had our number, too.
        return path in _in_flight
    if not os.path.exists(f"/proc/{pid}"):
        return False
    try:
        return time.time() - os.lstat(path).st_mtime < _LEFTOVER_AGE_S
    except OSError:
        return False


def _put(path: str, data: bytes, mode: int, *, durable: bool) -> None:
    try:
        with temporary_beside(path) as temporary:
            fd = _create(temporary, mode)
            try:
                os.fchmod(fd, mode)
                _write_all(fd, data)
                if durable:
                    os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(temporary, path)
        if durable:
            sync_directory(os.path.dirname(path) or ".")
    except OSError as error:
        raise write_error(path, error) from None


def _create(temporary: str, mode: int) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(temporary, flags, mode)
    except FileNotFoundError:
        make_directory(os.path.dirname(temporary) or ".")
    except FileExistsError:
        # A process that had our number died here before us.
        os.unlink(temporary)
    return os.open(temporary, flags, mode)


def _write_all(fd: int, data: bytes) -> None:
    written = os.write(fd, data)
    while written < len(data):
        # A short write comes before the error that explains it.
        written += os.write(fd, data[written:])
