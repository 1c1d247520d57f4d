"""Reading files of ``/proc`` and ``/sys`` under a root that can be moved.

Hot files are kept open: ``pread`` on a kept descriptor costs a third of open, read and close, and the kernel makes the content
anew each time. Every failure becomes :class:`NoData` with the state that fits the error number.
"""

import errno
import os
import threading
from collections.abc import Callable
from typing import TypeVar

from nodeproof.errors import Absence, NoData
from nodeproof.host.filesystems import Space, space

__all__ = ["FileTree", "KeptFile", "Opener", "absence_of", "legible", "open_here"]

_T = TypeVar("_T")
Opener = Callable[[str], int]
"""Opens a path for reading without waiting; raises OSError."""

_CHUNK_BYTES = 65536
_MAX_BYTES = 64 * 1024 * 1024
"""No file of the kernel is larger; whatever is has no business being read each second."""

_ABSENT = {errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO, errno.ESRCH}
_DENIED = {errno.EACCES, errno.EPERM}
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.ENODATA, errno.EINVAL}


def open_here(path: str) -> int:
    """Open ``path`` with the rights of this process. Raises OSError."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)


def legible(name: str) -> str:
    """A file name for labels and messages: its bytes that are no UTF-8, which no encoder takes as listed, are replaced."""
    return name if name.isascii() else name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def absence_of(error: OSError, path: str) -> NoData:
    """The kind of absence that ``error`` on ``path`` means."""
    path = legible(path)
    text = os.strerror(error.errno) if error.errno else str(error)
    reason = f"{path}: {text}"
    if error.errno in _ABSENT:
        return NoData(Absence.UNSUPPORTED, reason)
    if error.errno in _DENIED:
        return NoData(Absence.NO_PERMISSION, reason, remedy=f"run as root, or give this user the right to read {path}")
    if error.errno in _UNSUPPORTED:
        return NoData(Absence.UNSUPPORTED, reason)
    return NoData(Absence.READ_ERROR, reason)


class KeptFile:
    """One hot file, opened once and read from its start each time."""

    def __init__(self, path: str, shown: str, opener: Opener = open_here) -> None:
        self._path = path
        self._shown = shown
        self._opener = opener
        self._fd = -1
        self._lock = threading.Lock()

    def read(self) -> bytes:
        """The whole content now. Raises NoData; the descriptor is made anew after any error."""
        with self._lock:
            try:
                if self._fd < 0:
                    self._fd = self._opener(self._path)
                return _pread_all(self._fd)
            except OSError as error:
                self._close()
                raise absence_of(error, self._shown) from None

    def close(self) -> None:
        """Give the descriptor back."""
        with self._lock:
            self._close()

    def __del__(self) -> None:
        """A tree that is dropped without :meth:`FileTree.close` takes its descriptors with it."""
        self._close()

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _pread_all(fd: int) -> bytes:
    first = os.pread(fd, _CHUNK_BYTES, 0)
    if not first:
        return first
    parts = [first]
    offset = len(first)
    # seq_file gives a page at a time, so only an empty read means the end.
    while part := os.pread(fd, _CHUNK_BYTES, offset):
        parts.append(part)
        offset += len(part)
        if offset > _MAX_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return b"".join(parts)


class FileTree:
    """Files of one machine, or of a recorded one, below ``root``.

    Paths are given as the machine itself would write them (``/proc/stat``); messages show them that way too.
    """

    def __init__(self, root: str = "/", opener: Opener = open_here) -> None:
        self.root = root.rstrip("/")
        self.opener = opener
        self._kept: dict[str, KeptFile] = {}

    def real(self, path: str) -> str:
        """Where ``path`` lies for us."""
        return f"{self.root}{path}"

    def read(self, path: str) -> bytes:
        """Content of ``path``, opened for this once. Raises NoData."""
        return self._guard(path, self._read_once)

    def read_kept(self, path: str) -> bytes:
        """Content of ``path`` through a descriptor that stays open. Raises NoData."""
        kept = self._kept.get(path)
        if kept is None:
            kept = self._kept[path] = KeptFile(self.real(path), path, self.opener)
        return kept.read()

    def read_text(self, path: str) -> str:
        """Content of ``path`` without white space around it, undecodable bytes replaced. Raises NoData."""
        return self.read(path).decode("utf-8", "replace").strip()

    def read_int(self, path: str) -> int:
        """The one integer in ``path``. Raises NoData."""
        text = self.read_text(path)
        try:
            return int(text)
        except ValueError:
            raise NoData(Absence.READ_ERROR, f"{legible(path)}: {text[:40]!r} is no integer") from None

    def names(self, path: str) -> list[str]:
        """Sorted names in the directory ``path``, as paths need them; :func:`legible` makes labels of them. Raises NoData."""
        return sorted(self._guard(path, os.listdir))

    def exists(self, path: str) -> bool:
        """Whether ``path`` can be seen."""
        return os.path.exists(self.real(path))

    def link_target(self, path: str) -> str:
        """Target of the symbolic link ``path``, as it is written there. Raises NoData."""
        return self._guard(path, os.readlink)

    def statvfs(self, path: str) -> Space:
        """Space of the file system at ``path``. Raises NoData; may block for ever, so it belongs in a background call."""
        return self._guard(path, space)

    def can_read(self, path: str) -> bool:
        """Whether this process may read ``path``."""
        return os.access(self.real(path), os.R_OK)

    def forget(self, path: str) -> None:
        """Close a kept file whose owner has gone away."""
        kept = self._kept.pop(path, None)
        if kept is not None:
            kept.close()

    def adjtimex(self) -> bytes:
        """The kernel's clock discipline as ``key value`` lines (:mod:`nodeproof.host.timex`). Raises NoData."""
        from nodeproof.host.timex import adjtimex  # noqa: PLC0415 - ctypes costs memory: only where somebody asks

        return self._guard("adjtimex(2)", lambda _: adjtimex())

    def tcp_sockets(self, family: int) -> bytes:
        """Every TCP socket of an address family as netlink messages (:mod:`nodeproof.host.sock_diag`). Raises NoData.

        The kernel tells of our own network namespace only: below a moved root that is another one.
        """
        if self.root:
            raise NoData(Absence.UNSUPPORTED, "sock_diag(7) tells of the namespace of this process only")
        from nodeproof.host.sock_diag import tcp_sockets  # noqa: PLC0415 - a socket only where somebody asks

        return self._guard("sock_diag(7)", lambda _: tcp_sockets(family))

    def close(self) -> None:
        """Close all kept files."""
        for kept in self._kept.values():
            kept.close()
        self._kept.clear()

    def _guard(self, path: str, action: Callable[[str], _T]) -> _T:
        try:
            return action(self.real(path))
        except OSError as error:
            raise absence_of(error, path) from None

    def _read_once(self, real: str) -> bytes:
        fd = self.opener(real)
        try:
            return _read_all(fd)
        finally:
            os.close(fd)


def _read_all(fd: int) -> bytes:
    parts: list[bytes] = []
    total = 0
    while part := os.read(fd, _CHUNK_BYTES):
        parts.append(part)
        total += len(part)
        if total > _MAX_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return b"".join(parts)
