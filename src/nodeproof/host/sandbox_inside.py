"""``python -m nodeproof.host.sandbox_inside SPEC``: the inside of :mod:`nodeproof.host.sandbox`.

Connects to its owner first, shuts the machine out, and then does what it is asked: commands in its working directory, files of
that directory, requests to servers that commands have started. It is the first process of its process namespace, so that
everything started here ends with it, and nothing here can signal, trace or even name a process of the machine.

A message in either direction is four bytes of length and as much JSON.
"""

import contextlib
import errno
import os
import select
import signal
import socket
import stat
import sys
import time

import msgspec

from nodeproof.host import namespaces
from nodeproof.host.prctl import become_subreaper, die_with_parent
from nodeproof.host.process_tree import ProcessTree

__all__ = ["Answer", "Order", "Spec", "main", "receive", "transmit"]

_LOOK_S = 0.01
_MOST_FILES = 4000
_MAX_MESSAGE_BYTES = 64 << 20
_HTTP_BYTES = 64 << 10
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""By Python, and therefore not by what it starts."""
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")


class Spec(msgspec.Struct, kw_only=True):
    """How it is to be."""

    socket_path: str
    work: str
    """Working directory where there is no isolation; with it, an empty one takes its place."""
    isolation: str = "required"
    """``required``, or ``best``: go on without what cannot be had."""
    scratch_bytes: int = 1 << 30
    memory_bytes: int = 8 << 30
    file_bytes: int = 256 << 20
    hidden: list[str] = []
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Order(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What is to be done."""

    op: str
    """``run``, ``start``, ``stop``, ``write``, ``read``, ``list``, ``reserve``, ``get``, ``processes``."""
    command: str = ""
    path: str = ""
    data: bytes = b""
    timeout_s: float = 60.0
    limit_bytes: int = 65536
    environment: dict[str, str] = {}
    port: int = 0


class Answer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What came of it."""

    ok: bool = True
    problem: str = ""
    exit_code: int = 0
    """Negative: ended by that signal."""
    timed_out: bool = False
    data: bytes = b""
    size: int = 0
    """Of all there was, where :attr:`data` is a part."""
    seconds: float = 0.0
    files: list[tuple[str, int]] = []
    notes: list[str] = []
    isolated: bool = False
    number: int = 0


def transmit(channel: socket.socket, message: Order | Answer) -> None:
    """Send a message. Raises OSError."""
    data = msgspec.json.encode(message)
    channel.sendall(len(data).to_bytes(4, "big") + data)


def receive(channel: socket.socket) -> bytes | None:
    """The next message; None when the other side has closed. Raises OSError."""
    head = _exactly(channel, 4)
    if head is None:
        return None
    size = int.from_bytes(head, "big")
    if size > _MAX_MESSAGE_BYTES:
        raise OSError(errno.EMSGSIZE, f"a message of {size} bytes")
    return _exactly(channel, size)


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        piece = channel.recv(min(size - len(data), 1 << 20))
        if not piece:
            return None
        data += piece
    return data


def main(arguments: list[str]) -> int:
    """Confine, then serve."""
    spec = msgspec.json.decode(arguments[0], type=Spec)
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    channel.connect(spec.socket_path)
    problem = ""
    try:
        namespaces.enter()
    except OSError as error:
        problem = error.strerror or str(error)
    if problem and spec.isolation != "best":
        transmit(channel, Answer(ok=False, problem=f"this machine cannot be shut out: {problem}"))
        return 1
    parent = os.getpid()
    child = os.fork()
    if child:
        channel.close()
        return _outlive(child)
    with contextlib.suppress(OSError):
        die_with_parent()
    if not problem and os.getpid() != 1 and os.getppid() != parent:
        return 1
    return _Inside(spec, channel, problem).serve()


def _outlive(child: int) -> int:
    """Wait for the first process inside, and end as it did."""
    while True:
        with contextlib.suppress(InterruptedError):
            _, status = os.waitpid(child, 0)
            return os.waitstatus_to_exitcode(status) & 0xFF


class _Inside:
    """Does what it is asked."""

    def __init__(self, spec: Spec, channel: socket.socket, problem: str) -> None:
        self._spec, self._channel = spec, channel
        self._problem = problem
        self._work = spec.work
        self._out = ""
        self._commands = 0
        self._ended: dict[int, int] = {}
        self._background = 0
        self._held: socket.socket | None = None

    def serve(self) -> int:
        """Until the owner closes."""
        try:
            notes = self._confine()
        except OSError as error:
            transmit(self._channel, Answer(ok=False, problem=f"this machine cannot be shut out: {error.strerror or error}"))
            return 1
        transmit(self._channel, Answer(notes=notes, isolated=not self._problem))
        while True:
            if not select.select([self._channel], [], [], 1.0)[0]:
                self._reap()
                continue
            data = receive(self._channel)
            if data is None:
                return 0
            try:
                answer = self._do(msgspec.json.decode(data, type=Order))
            except Exception as error:  # noqa: BLE001 - one order that goes wrong must not end the place
                answer = Answer(ok=False, problem=str(getattr(error, "strerror", "") or error) or type(error).__name__)
            transmit(self._channel, answer)

    def _confine(self) -> list[str]:
        """All that shuts the machine out; what is lacking."""
        spec = self._spec
        notes = [f"not isolated: {self._problem}"] if self._problem else []
        if not self._problem:
            notes += namespaces.isolate_files(spec.scratch_bytes, spec.hidden)
            namespaces.loopback_up()
            self._work = "/tmp/work"  # noqa: S108 - in a /tmp of our own
        else:
            become_subreaper()
        self._out = os.path.join(os.path.dirname(self._work), "output")
        for path, mode in ((self._work, 0o755), (self._out, 0o700)):
            os.mkdir(path, mode)
        namespaces.limit(spec.memory_bytes, spec.file_bytes)
        if not self._problem:
            namespaces.confine_rights([self._work, self._out])
            with contextlib.suppress(OSError):
                die_with_parent()  # a change of rights drops it
        os.chdir(self._work)
        return notes

    def _do(self, order: Order) -> Answer:
        work = {
            "run": self._run,
            "start": self._start,
            "stop": self._stop,
            "write": self._write,
            "read": self._read,
            "list": self._list,
            "reserve": self._reserve,
            "get": self._get,
            "processes": self._processes,
        }.get(order.op)
        return Answer(ok=False, problem=f"no such order {order.op!r}") if work is None else work(order)

    # Commands

    def _run(self, order: Order) -> Answer:
        """A command to its end, or to the end of its time."""
        begun_s = time.monotonic()
        pid, path = self._spawn(order)
        timed_out = False
        while pid not in self._ended:
            self._reap()
            if pid in self._ended:
                break
            if time.monotonic() - begun_s > order.timeout_s or self._hung_up():
                timed_out = True
                self._kill(pid)
                break
            time.sleep(_LOOK_S)
        code = self._await(pid)
        data, size = _ends(path, order.limit_bytes)
        return Answer(exit_code=code, timed_out=timed_out, data=data, size=size, seconds=time.monotonic() - begun_s)

    def _start(self, order: Order) -> Answer:
        """A command that goes on while others are asked for."""
        self._background, _ = self._spawn(order)
        return Answer(number=self._background)

    def _stop(self, order: Order) -> Answer:
        """End the command that :meth:`_start` began, and tell what it printed."""
        pid = order.port
        self._reap()
        alive = pid not in self._ended
        if alive:
            self._kill(pid)
        code = self._await(pid)
        data, size = _ends(os.path.join(self._out, f"{pid}.log"), order.limit_bytes)
        return Answer(exit_code=code, data=data, size=size, ok=True, timed_out=alive)

    def _spawn(self, order: Order) -> tuple[int, str]:
        shell = next((path for path in _SHELLS if os.path.exists(path)), _SHELLS[-1])
        self._commands += 1
        path = os.path.join(self._out, f"{self._commands}.out")
        environment = {"PATH": self._spec.path, "HOME": self._work, "TMPDIR": self._work, "LC_ALL": "C.UTF-8", "TERM": "dumb"}
        environment |= order.environment
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        pid = os.posix_spawn(
            shell, [shell, "-c", order.command], environment, file_actions=actions, setsid=True, setsigdef=_IGNORED
        )
        with contextlib.suppress(OSError):
            os.rename(path, os.path.join(self._out, f"{pid}.log"))
        return pid, os.path.join(self._out, f"{pid}.log")

    def _kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)

    def _await(self, pid: int) -> int:
        while pid not in self._ended:
            if not self._reap():
                time.sleep(_LOOK_S)
        return self._ended[pid]

    def _reap(self) -> bool:
        """Take leave of children that have ended, adopted ones included; whether there was any."""
        found = False
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                self._ended[pid] = os.waitstatus_to_exitcode(status)
                found = True
        return found

    def _hung_up(self) -> bool:
        """Whether the owner is gone."""
        if not select.select([self._channel], [], [], 0)[0]:
            return False
        return not self._channel.recv(1, socket.MSG_PEEK)

    def _processes(self, order: Order) -> Answer:
        """Processes below this one, to which all that lose their parent are handed; with ``command`` ``end`` they are ended."""
        self._reap()
        found = [stat.pid for stat in ProcessTree().descendants(os.getpid()) if stat.lives]
        if order.command == "end":
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        return Answer(number=len(found))

    # Files

    def _write(self, order: Order) -> Answer:
        with contextlib.ExitStack() as stack:
            folder, name = self._place(stack, order.path, make=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            with os.fdopen(os.open(name, flags, 0o644, dir_fd=folder), "wb") as file:
                file.write(order.data)
        return Answer(size=len(order.data))

    def _read(self, order: Order) -> Answer:
        with contextlib.ExitStack() as stack:
            folder, name = self._place(stack, order.path, make=False)
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(handle, "rb") as file:
                status = os.fstat(handle)
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EINVAL, "no regular file")
                return Answer(data=file.read(order.limit_bytes), size=status.st_size)

    def _place(self, stack: contextlib.ExitStack, path: str, *, make: bool) -> tuple[int, str]:
        """Directory and name of a path below the working directory, which no link leads out of. Raises OSError."""
        if os.path.isabs(path):
            path = os.path.relpath(path, self._work)
        parts = [part for part in os.path.normpath(path).split("/") if part]
        if not parts or ".." in parts or parts == ["."]:
            raise OSError(errno.EACCES, f"{path!r} does not lie below the working directory")
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        folder = os.open(self._work, flags)
        stack.callback(os.close, folder)
        for part in parts[:-1]:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=folder)
            folder = os.open(part, flags, dir_fd=folder)
            stack.callback(os.close, folder)
        return folder, parts[-1]

    def _list(self, order: Order) -> Answer:
        """Regular files with their sizes; links are not followed, and not told."""
        del order
        found: list[tuple[str, int]] = []
        for folder, folders, names in os.walk(self._work):
            folders[:] = [name for name in folders if name not in {".git", "node_modules", "target", "__pycache__"}]
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    status = os.lstat(path)
                    if stat.S_ISREG(status.st_mode):
                        found.append((os.path.relpath(path, self._work), status.st_size))
                if len(found) >= _MOST_FILES:
                    return Answer(files=found, problem=f"only the first {_MOST_FILES} files are told")
        return Answer(files=found)

    # Servers

    def _reserve(self, order: Order) -> Answer:
        """A port that nobody else gets until it is given free by asking again with that port."""
        if self._held is not None:
            self._held.close()
            self._held = None
        if order.port:
            return Answer(number=order.port)
        self._held = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._held.bind(("127.0.0.1", 0))
        self._held.listen(1)
        return Answer(number=int(self._held.getsockname()[1]))

    def _get(self, order: Order) -> Answer:
        """Status and body of a GET from a server on loopback, asked until it answers or time is up."""
        ends_s = time.monotonic() + order.timeout_s
        problem = "it was not asked"
        while time.monotonic() < ends_s:
            self._reap()
            try:
                return _fetch(order.port, order.path, ends_s)
            except OSError as error:
                problem = error.strerror or str(error)
                time.sleep(0.05)
        return Answer(ok=False, problem=f"no answer within {order.timeout_s:g} s: {problem}")


def _fetch(port: int, path: str, ends_s: float) -> Answer:
    """One GET. Raises OSError. Written by hand: once rights are given up, no module of the library may be readable any more."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as asked:
        asked.settimeout(max(0.1, ends_s - time.monotonic()))
        asked.connect(("127.0.0.1", port))
        asked.sendall(b"GET %b HTTP/1.0\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n" % path.encode())
        data = b""
        while len(data) < _HTTP_BYTES and (piece := asked.recv(65536)):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    words = head.split()
    if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
        raise OSError(errno.EPROTO, "what answers is no HTTP")
    return Answer(number=int(words[1]), data=body)


def _ends(path: str, limit_bytes: int) -> tuple[bytes, int]:
    """Beginning and end of a file of output, and its size."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size <= limit_bytes:
                return file.read(limit_bytes), size
            half = limit_bytes // 2
            begin = file.read(half)
            file.seek(size - half)
            return begin + b"\n...\n" + file.read(half), size
    except OSError:
        return b"", 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
