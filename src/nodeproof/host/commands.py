"""Running outside programs that may hang, flood, fork or crash.

A command runs in a session of its own under ``LC_ALL=C``, with its standard input closed, a deadline on the monotonic clock and
a limit on what it may print. When it has ended or must end, its whole process group is killed: while its leader is still
unreaped, so that the number of the group cannot have gone to a stranger. A program that even SIGKILL does not end (waiting in the
kernel for a dead device) is remembered: it is not started again, for that device, until that one is gone.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from nodeproof.errors import Absence, CommandError, CommandFailure, NoData

__all__ = ["CommandResult", "Commands", "HostCommands", "absence_of_command"]

_MAX_OUTPUT_BYTES = 8 * 1024 * 1024
_TERM_GRACE_S = 0.5
_KILL_GRACE_S = 1.0
_PIPE_GRACE_S = 0.2
"""How long a grandchild that inherited the pipe may keep us after the program itself has ended."""
_POLL_S = 0.05
"""How often an ending that no pipe tells of (a grandchild keeps it open) is looked for."""
_CHUNK_BYTES = 65536
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class CommandResult(NamedTuple):
    """What a program that ran to its end left."""

    argv: tuple[str, ...]
    exit_code: int
    """Exit status; negative = ended by that signal."""
    stdout: bytes
    stderr: bytes
    duration_s: float
    truncated: bool
    """It printed more than it may: what is here is the beginning."""

    def first_error_line(self) -> str:
        """First line on standard error, for messages."""
        return next((line for line in self.stderr.decode("utf-8", "replace").splitlines() if line.strip()), "")[:200]


class Commands(Protocol):
    """The one way to run a program; tests put a recorded one in its place."""

    started_total: int
    """Programs started so far."""

    def find(self, program: str) -> str | None:
        """Full path of ``program``, or None."""
        ...

    def lent(self, program: str) -> bool:
        """Whether a process with more rights runs ``program`` for us (:mod:`nodeproof.host.reader`)."""
        ...

    def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
        """Run ``argv`` to its end. Raises CommandError.

        ``subject`` names the device it works on: a program stuck on one is still run for the others.
        """
        ...

    def close(self) -> None:
        """Kill what still runs and start nothing more: nothing outlives the program that started it."""
        ...


def absence_of_command(error: CommandError, *, package: str) -> NoData:
    """The kind of absence that a program's failure means for what it should have told; ``package`` is what brings the program."""
    if error.failure is CommandFailure.NOT_FOUND:
        return NoData(Absence.UNSUPPORTED, f"{error.program} is not installed", remedy=f"install {package}")
    if error.failure is CommandFailure.NO_PERMISSION:
        return NoData(Absence.NO_PERMISSION, str(error), remedy=f"let this user execute {error.program}, or run as root")
    return NoData(Absence.READ_ERROR, str(error))


class HostCommands:
    """Programs of this machine."""

    def __init__(self, search_path: str | None = None, max_output_bytes: int = _MAX_OUTPUT_BYTES) -> None:
        self._search_path = search_path if search_path is not None else os.environ.get("PATH", "") + os.pathsep + _PATH
        self._max_output_bytes = max_output_bytes
        self._stuck: dict[tuple[str, str], subprocess.Popen[bytes]] = {}
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.started_total = 0
        """Commands started since the program began, for the self-metrics."""

    def find(self, program: str) -> str | None:
        """Full path of ``program``, or None when no directory of the search path has it."""
        for folder in self._search_path.split(os.pathsep):
            path = os.path.join(folder, program)
            if folder and os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return None

    def lent(self, program: str) -> bool:
        """Never: they run with the rights of this process."""
        del program
        return False

    def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
        """Run ``argv`` to its end, at most ``deadline_s`` seconds. Raises CommandError."""
        program = argv[0]
        self._refuse_while_stuck(program, subject)
        path = self.find(program)
        if path is None:
            raise CommandError(program, CommandFailure.NOT_FOUND, f"not found in {self._search_path}")
        started = time.monotonic()
        with self._lock:  # so that close() sees every child that was started
            if self._closed:
                raise CommandError(program, CommandFailure.START_FAILED, "not started: the program is ending")
            self.started_total += 1
            child = self._start(program, path, argv)
            self._running.add(child)
        try:
            out, err, truncated, in_time = self._drain(child, started + deadline_s)
        finally:
            ended = self._end(child)
            if not ended:
                with self._lock:
                    self._stuck[program, subject] = child
        if not ended:
            raise CommandError(
                program,
                CommandFailure.STUCK,
                f"does not end even when killed (pid {child.pid}); it waits in the kernel",
            )
        if not in_time:
            raise CommandError(program, CommandFailure.TIMED_OUT, f"gave no answer in {deadline_s:g} s and was ended")
        return CommandResult(tuple(argv), child.returncode, out, err, time.monotonic() - started, truncated)

    def close(self) -> None:
        """Kill what still runs and start nothing more: nothing outlives the program that started it."""
        with self._lock:
            self._closed = True
            for child in self._running:
                _signal_group(child.pid, signal.SIGKILL)

    def _refuse_while_stuck(self, program: str, subject: str) -> None:
        with self._lock:
            earlier = self._stuck.get((program, subject))
            if earlier is None:
                return
            if earlier.poll() is None:
                raise CommandError(
                    program,
                    CommandFailure.STUCK,
                    f"an earlier run (pid {earlier.pid}) still waits in the kernel; not started again",
                )
            self._running.discard(earlier)
            del self._stuck[program, subject]

    @staticmethod
    def _start(program: str, path: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LANGUAGE"}
        }
        environment |= {"LC_ALL": "C", "LANG": "C"}
        try:
            return subprocess.Popen(
                list(argv),
                executable=path,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
                close_fds=True,
            )
        except PermissionError as error:
            raise CommandError(program, CommandFailure.NO_PERMISSION, f"{path}: {error.strerror}") from None
        except OSError as error:
            raise CommandError(program, CommandFailure.START_FAILED, f"{path}: {error.strerror}") from None

    def _drain(self, child: subprocess.Popen[bytes], deadline: float) -> tuple[bytes, bytes, bool, bool]:
        """Read both pipes until their end, the child's end, the limit or the deadline: out, err, truncated, in time."""
        out_fd, err_fd = (pipe.fileno() for pipe in (child.stdout, child.stderr) if pipe is not None)
        parts: dict[int, bytearray] = {out_fd: bytearray(), err_fd: bytearray()}
        truncated = False
        with selectors.DefaultSelector() as selector:
            for fd in parts:
                selector.register(fd, selectors.EVENT_READ)
            gone_since: float | None = None
            while selector.get_map():
                now = time.monotonic()
                if now >= deadline:
                    return bytes(parts[out_fd]), bytes(parts[err_fd]), truncated, _has_ended(child)
                if gone_since is None and _has_ended(child):
                    gone_since = now
                if gone_since is not None and now - gone_since > _PIPE_GRACE_S:
                    break
                for key, _ in selector.select(min(deadline - now, _POLL_S)):
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fd)
                    parts[key.fd] += chunk[: max(0, self._max_output_bytes - len(parts[key.fd]))]
                    truncated = truncated or len(parts[key.fd]) >= self._max_output_bytes
                if truncated:
                    break
        in_time = truncated or _wait(child, max(0.0, deadline - time.monotonic()))
        return bytes(parts[out_fd]), bytes(parts[err_fd]), truncated, in_time

    def _end(self, child: subprocess.Popen[bytes]) -> bool:
        """Kill the whole group, the child politely first, then reap it; False when the child cannot be ended."""
        if not _has_ended(child):
            _signal_group(child.pid, signal.SIGTERM)
            _wait(child, _TERM_GRACE_S)
        _signal_group(child.pid, signal.SIGKILL)
        ended = _wait(child, _KILL_GRACE_S)
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
        if ended:
            with self._lock:  # afterwards its number may be another's
                self._running.discard(child)
            child.wait()
        return ended


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    """Whether the child is dead; it stays unreaped, which keeps its number, and that of its group, from being given away."""
    if child.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # SIGCHLD is ignored in this process, so the kernel reaped it
        return True


def _wait(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for the child's end without reaping it; True when it has ended."""
    deadline = time.monotonic() + seconds
    pause_s = 0.0005
    while not _has_ended(child):
        if time.monotonic() >= deadline:
            return False
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _POLL_S)
    return True


def _signal_group(pgid: int, number: signal.Signals) -> None:
    # The group lives on while any of its members does, so this also reaches children that outlive their parent.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, number)
