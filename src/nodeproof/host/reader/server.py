"""The reader: answers questions on its socket, one thread a connection, until it is told to end."""

import contextlib
import logging
import os
import socket
import threading
from collections.abc import Collection

import msgspec

from nodeproof.errors import CommandError, CommandFailure, UsageError
from nodeproof.host.commands import HostCommands
from nodeproof.host.dead_socket import clear_dead_socket
from nodeproof.host.peer import peer_of
from nodeproof.host.reader.rights import may_open, may_run, subject_of
from nodeproof.host.reader.wire import Answer, Question, receive, send

__all__ = ["ReaderServer", "listening_socket"]

_log = logging.getLogger(__name__)
_MAX_CONNECTIONS = 8
_MAX_DEADLINE_S = 300.0
_FIRST_LISTEN_FD = 3
"""Where systemd leaves sockets (sd_listen_fds(3))."""
_EPERM = 1
_PATIENCE_S = 5.0
"""A client that says nothing gives its place to another after that time; each question has a connection of its own."""
_REFUSED_S = 0.2


def listening_socket(path: str, environ: dict[str, str] | os._Environ[str]) -> socket.socket:
    """The socket that the service manager hands over, else a new one at ``path``, for root alone. Raises UsageError."""
    if environ.get("LISTEN_PID") == str(os.getpid()) and environ.get("LISTEN_FDS", "0") != "0":
        return socket.socket(fileno=_FIRST_LISTEN_FD)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        clear_dead_socket(path, socket.SOCK_SEQPACKET)  # one that lives is told of by the bind
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(_MAX_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise UsageError(f"cannot listen on {path}: {error.strerror}; start nodeproof-reader.socket") from None
    return listener


class ReaderServer:
    """Serves ``listener``; ``users`` may ask, beside root."""

    def __init__(self, listener: socket.socket, users: Collection[int], commands: HostCommands | None = None) -> None:
        self._listener = listener
        self._users = {0, *users}
        self._commands = commands or HostCommands()
        self._places = threading.BoundedSemaphore(_MAX_CONNECTIONS)

    def serve(self) -> None:
        """Until :meth:`close`."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if not self._places.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._talk, args=(connection,), name="reader", daemon=True).start()

    def close(self) -> None:
        """End, with what runs."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._commands.close()

    def _talk(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(_PATIENCE_S)
                peer = peer_of(connection)
                if peer.uid not in self._users:
                    _log.warning("uid %d, process %d, asked and may not", peer.uid, peer.pid)
                    connection.settimeout(_REFUSED_S)
                    with contextlib.suppress(TimeoutError):
                        self._next(connection)  # closing on a question that was not read would reset the answer away
                    send(connection, Answer(error=f"uid {peer.uid} may not ask the reader", number=_EPERM))
                    return
                while packet := self._next(connection):
                    self._answer(connection, packet)
        except OSError as error:
            _log.debug("a connection ended: %s", error)
        finally:
            self._places.release()

    @staticmethod
    def _next(connection: socket.socket) -> bytes:
        data, fds = receive(connection)
        for fd in fds:  # nobody asks with descriptors
            os.close(fd)
        return data

    def _answer(self, connection: socket.socket, packet: bytes) -> None:
        try:
            question = msgspec.json.decode(packet, type=Question)
        except msgspec.DecodeError as error:
            send(connection, Answer(error=f"no question: {error}"))
            return
        if question.run:
            self._run(connection, question)
        else:
            self._open(connection, question.open)

    @staticmethod
    def _open(connection: socket.socket, path: str) -> None:
        if not may_open(path):
            _log.warning("refused to open %.200r: it is not on the list", path)
            send(connection, Answer(error="it is not on the reader's list", number=_EPERM))
            return
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError as error:
            send(connection, Answer(error=os.strerror(error.errno or 0), number=error.errno or 0))
            return
        try:
            send(connection, Answer(), [fd])
        finally:
            os.close(fd)

    def _run(self, connection: socket.socket, question: Question) -> None:
        argv = question.run
        if not may_run(argv):
            _log.warning("refused to run %.200r: it is not on the list", argv)
            send(connection, Answer(error="it is not on the reader's list", failure=CommandFailure.NO_PERMISSION))
            return
        deadline_s = min(max(question.deadline_s, 0.0), _MAX_DEADLINE_S)
        try:
            result = self._commands.run(argv, deadline_s=deadline_s, subject=subject_of(argv))
        except CommandError as error:
            send(connection, Answer(error=error.detail, failure=error.failure))
            return
        fds = [_in_memory(result.stdout), _in_memory(result.stderr)]
        try:
            send(connection, Answer(exit_code=result.exit_code, duration_s=result.duration_s, truncated=result.truncated), fds)
        finally:
            for fd in fds:
                os.close(fd)


def _in_memory(data: bytes) -> int:
    fd = os.memfd_create("nodeproof-reader", os.MFD_CLOEXEC)
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
