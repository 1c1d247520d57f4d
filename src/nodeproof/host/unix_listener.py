"""A Unix socket that is nobody else's: what lies at its path is looked at before anything is touched.

A socket that somebody answers on is never taken over, a dead one is replaced, and any other file stays. The path is claimed under
a lock beside it, so that two programs which start at once do not both find it dead.
"""

import fcntl
import os
import socket

from nodeproof.errors import AddressInUseError, UsageError
from nodeproof.host.dead_socket import clear_dead_socket
from nodeproof.host.socket_holder import peer_of_socket

__all__ = ["UnixListener"]

_BACKLOG = 32
_OTHERS = 0o007


class UnixListener:
    """Listens at ``path`` from :meth:`open` to :meth:`close`."""

    def __init__(self, path: str, *, mode: int = 0o660, gid: int = -1) -> None:
        """``gid``: group of the socket, -1 = that of the process. Raises UsageError for a relative path or an open mode."""
        if not path.startswith("/") or len(os.fsencode(path)) > 100:
            raise UsageError(f"socket {path!r}: expected an absolute path of at most 100 bytes")
        if mode & _OTHERS or mode & ~0o777:
            raise UsageError(f"socket mode {mode:04o}: it must give others nothing, such as 0660")
        self.path = path
        self._mode = mode
        self._gid = gid
        self._lock_fd = -1
        self._socket: socket.socket | None = None
        self._identity = (0, 0)

    def open(self) -> socket.socket:
        """The listening socket. Raises AddressInUseError, naming the holder, and UsageError."""
        try:
            self._claim()
            self._clear_the_way()
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                self._bind(listener)
            except OSError:
                listener.close()
                raise
        except OSError as error:
            self.close()
            raise UsageError(f"cannot listen on {self.path}: {os.strerror(error.errno or 0)}; name another --socket") from None
        except Exception:
            self.close()
            raise
        self._socket = listener
        return listener

    def close(self) -> None:
        """Stop listening and remove the socket, if it is still ours."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None
            try:
                facts = os.lstat(self.path)
                if (facts.st_dev, facts.st_ino) == self._identity:
                    os.unlink(self.path)
            except OSError:
                pass
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _claim(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._lock_fd = os.open(f"{self.path}.lock", flags, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._taken() from None

    def _clear_the_way(self) -> None:
        try:
            free = clear_dead_socket(self.path)
        except FileExistsError:
            raise UsageError(f"{self.path} is there and is no socket; it stays. Move it, or name another --socket") from None
        if not free:
            raise self._taken()

    def _taken(self) -> AddressInUseError:
        holder = peer_of_socket(self.path) or "a process that is just starting"
        return AddressInUseError(f"unix:{self.path}", holder, "stop that process, or name another --socket")

    def _bind(self, listener: socket.socket) -> None:
        """Bind so that at no moment others than meant may connect: nobody can before listen(2)."""
        listener.bind(self.path)
        facts = os.lstat(self.path)
        self._identity = (facts.st_dev, facts.st_ino)
        if self._gid >= 0:
            os.chown(self.path, -1, self._gid, follow_symlinks=False)
        os.chmod(self.path, self._mode)
        listener.listen(_BACKLOG)
