"""Asking the reader, for a process that is not root."""

import errno
import os
import socket
import threading
import time
from collections.abc import Sequence

import msgspec

from nodeproof.errors import CommandError, CommandFailure
from nodeproof.host.commands import CommandResult, Commands, HostCommands
from nodeproof.host.files import Opener, open_here
from nodeproof.host.reader.rights import OWN_FIRST, SOCKET, may_open, may_run
from nodeproof.host.reader.wire import Answer, Question, receive, send

__all__ = ["LentCommands", "ReaderClient", "own_or_lent"]

_OPEN_S = 2.0
_AGAIN_S = 60.0
_SLACK_S = 5.0
"""Beyond a command's own deadline: until then the reader has ended it."""
_WORTH_ASKING = {errno.EACCES, errno.EPERM, errno.ENOENT}
"""A service may not even see a device that is there (PrivateDevices=)."""


class ReaderClient:
    """Each question has a connection of its own, so that one which hangs delays no other. For any thread."""

    def __init__(self, path: str = SOCKET) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._refused: dict[str, float] = {}
        """When a file was refused last: it is not asked for again at each cycle."""

    def open(self, path: str) -> int:
        """A descriptor for reading ``path``. Raises OSError, the kernel's own where the reader could not open it either."""
        if not may_open(path) or time.monotonic() - self._refused.get(path, -_AGAIN_S) < _AGAIN_S:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        answer, fds = self._ask(Question(open=path), _OPEN_S)
        if fds:
            return fds[0]
        number = answer.number or errno.EACCES
        with self._lock:
            self._refused[path] = time.monotonic()
        raise OSError(number, os.strerror(number), path)

    def run(self, argv: Sequence[str], deadline_s: float) -> CommandResult:
        """Have a command run. Raises CommandError."""
        try:
            answer, fds = self._ask(Question(run=list(argv), deadline_s=deadline_s), deadline_s + _SLACK_S)
        except OSError as error:
            detail = f"the reader at {self._path} did not answer: {error.strerror or error}"
            raise CommandError(argv[0], CommandFailure.START_FAILED, detail) from None
        if answer.failure is not None or len(fds) != 2:
            for fd in fds:
                os.close(fd)
            raise CommandError(
                argv[0], answer.failure or CommandFailure.START_FAILED, answer.error or "the reader gave no output"
            )
        out, err = (_content(fd) for fd in fds)
        return CommandResult(tuple(argv), answer.exit_code, out, err, answer.duration_s, answer.truncated)

    def _ask(self, question: Question, patience_s: float) -> tuple[Answer, list[int]]:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.settimeout(patience_s)
            connection.connect(self._path)
            send(connection, question)
            data, fds = receive(connection)
        try:
            return msgspec.json.decode(data, type=Answer), fds
        except msgspec.DecodeError:
            for fd in fds:
                os.close(fd)
            raise OSError(errno.EPROTO, os.strerror(errno.EPROTO)) from None


class LentCommands:
    """This machine's programs; those on the reader's list are run by the reader."""

    def __init__(self, reader: ReaderClient, own: HostCommands | None = None) -> None:
        self._reader = reader
        self._own = own or HostCommands()
        self._takes_root: set[str] = set()
        """Programs that failed for us and did not for the reader."""
        self.started_total = 0
        """Programs started so far, by either."""

    def find(self, program: str) -> str | None:
        """Full path of ``program``, or None."""
        return self._own.find(program)

    def lent(self, program: str) -> bool:
        """Whether the reader runs it for us."""
        return program in {"smartctl", "ipmitool", "dmidecode"}

    def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
        """Run ``argv`` to its end. Raises CommandError."""
        self.started_total += 1
        if not may_run(argv):
            return self._own.run(argv, deadline_s=deadline_s, subject=subject)
        if argv[0] in OWN_FIRST and argv[0] not in self._takes_root:
            return self._own_else_lent(argv, deadline_s, subject)
        return self._reader.run(argv, deadline_s)

    def _own_else_lent(self, argv: Sequence[str], deadline_s: float, subject: str) -> CommandResult:
        """With our own rights; by the reader where that fails, and from then on at once if it did better. Raises CommandError."""
        own = self._own.run(argv, deadline_s=deadline_s, subject=subject)
        if own.exit_code == 0:
            return own
        try:
            lent = self._reader.run(argv, deadline_s)
        except CommandError:
            return own
        if lent.exit_code != 0:
            return own
        self._takes_root.add(argv[0])
        return lent

    def close(self) -> None:
        """Kill what still runs here; the reader ends its own."""
        self._own.close()


def own_or_lent(path: str = SOCKET) -> tuple[Opener, Commands]:
    """How files are opened and programs run by a process that is not root: with its own rights, else by the reader's."""
    if not os.path.exists(path):
        return open_here, HostCommands()
    reader = ReaderClient(path)

    def opener(path: str) -> int:
        try:
            return open_here(path)
        except OSError as error:
            if error.errno in _WORTH_ASKING and may_open(path):
                return reader.open(path)
            raise

    return opener, LentCommands(reader)


def _content(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as file:
        return file.read()
