"""Running outside programs that may hang, flood, fork or crash.

A command runs in a session of its own under ``LC_ALL=C``, with its standard input closed, a deadline on the monotonic clock and
a limit on what it may print. When it has ended or must end, its whole process group is killed. A program that even SIGKILL does
not end (waiting in the kernel for a dead device) is remembered: it is not started again until that one is gone.
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

from nodeproof.errors import CommandError, CommandFailure

__all__ = ["CommandResult", "Commands", "HostCommands"]

_MAX_OUTPUT_BYTES = 8 * 1024 * 1024
_TERM_GRACE_S = 0.5
_KILL_GRACE_S = 1.0
_PIPE_GRACE_S = 0.2
"""How long a grandchild that inherited the pipe may keep us after the program itself has ended."""
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

    def find(self, program: str) -> str | None:
        """Full path of ``program``, or None."""
        ...

    def run(self, argv: Sequence[str], *, deadline_s: float) -> CommandResult:
        """Run ``argv`` to its end. Raises CommandError."""
        ...


class HostCommands:
    """Programs of this machine."""

    def __init__(self, search_path: str | None = None, max_output_bytes: int = _MAX_OUTPUT_BYTES) -> None:
        self._search_path = search_path if search_path is not None else os.environ.get("PATH", "") + os.pathsep + _PATH
        self._max_output_bytes = max_output_bytes
        self._stuck: dict[str, subprocess.Popen[bytes]] = {}
        self._lock = threading.Lock()
        self._in_flight: set[subprocess.Popen[bytes]] = set()
        self._closing = threading.Event()
        self.started_total = 0
        """Commands started since the program began, for the self-metrics."""

    def close(self) -> None:
        """End every program in flight and start no more: nothing of ours outlives the daemon."""
        with self._lock:
            self._closing.set()
            for child in self._in_flight:
                if child.returncode is None:
                    _signal_group(child.pid, signal.SIGKILL)

    def find(self, program: str) -> str | None:
        """Full path of ``program``, or None when no directory of the search path has it."""
        for folder in self._search_path.split(os.pathsep):
            path = os.path.join(folder, program)
            if folder and os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return None

    def run(self, argv: Sequence[str], *, deadline_s: float) -> CommandResult:
        """Run ``argv`` to its end, at most ``deadline_s`` seconds. Raises CommandError."""
        program = argv[0]
        self._refuse_while_stuck(program)
        path = self.find(program)
        if path is None:
            raise CommandError(program, CommandFailure.NOT_FOUND, f"not found in {self._search_path}")
        started = time.monotonic()
        child = self._begin(program, path, argv)
        try:
            out, err, truncated, in_time = self._drain(child, started + deadline_s)
        finally:
            ended = self._end(program, child)
            with self._lock:
                self._in_flight.discard(child)
        if not ended:
            raise CommandError(
                program,
                CommandFailure.STUCK,
                f"does not end even when killed (pid {child.pid}); it waits in the kernel",
            )
        if not in_time:
            raise CommandError(program, CommandFailure.TIMED_OUT, f"gave no answer in {deadline_s:g} s and was ended")
        return CommandResult(tuple(argv), child.returncode, out, err, time.monotonic() - started, truncated)

    def _begin(self, program: str, path: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        refusal = CommandError(program, CommandFailure.START_FAILED, "not started: this program is ending")
        if self._closing.is_set():
            raise refusal
        # Not under the lock: starting a program that lies on a dead mount blocks.
        child = self._start(program, path, argv)
        with self._lock:
            self.started_total += 1
            self._in_flight.add(child)
            closed = self._closing.is_set()
        if closed:
            self._end(program, child)
            raise refusal
        return child

    def _refuse_while_stuck(self, program: str) -> None:
        earlier = self._stuck.get(program)
        if earlier is None:
            return
        if earlier.poll() is None:
            raise CommandError(
                program,
                CommandFailure.STUCK,
                f"an earlier run (pid {earlier.pid}) still waits in the kernel; not started again",
            )
        del self._stuck[program]

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
                    return bytes(parts[out_fd]), bytes(parts[err_fd]), truncated, child.poll() is not None
                if gone_since is None and child.poll() is not None:
                    gone_since = now
                if gone_since is not None and now - gone_since > _PIPE_GRACE_S:
                    break
                for key, _ in selector.select(min(deadline - now, 0.05 if gone_since is None else _PIPE_GRACE_S)):
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fd)
                    parts[key.fd] += chunk[: max(0, self._max_output_bytes - len(parts[key.fd]))]
                    truncated = truncated or len(parts[key.fd]) >= self._max_output_bytes
                if truncated:
                    break
        in_time = truncated or self._wait(child, max(0.0, deadline - time.monotonic()))
        return bytes(parts[out_fd]), bytes(parts[err_fd]), truncated, in_time

    @staticmethod
    def _wait(child: subprocess.Popen[bytes], seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(seconds)
            return True
        return False

    def _end(self, program: str, child: subprocess.Popen[bytes]) -> bool:
        """Kill the whole group, the child politely first; False when the child cannot be ended."""
        if child.poll() is None:
            _signal_group(child.pid, signal.SIGTERM)
            self._wait(child, _TERM_GRACE_S)
        _signal_group(child.pid, signal.SIGKILL)
        ended = self._wait(child, _KILL_GRACE_S)
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
        if not ended:
            self._stuck[program] = child
        return ended


def _signal_group(pgid: int, number: signal.Signals) -> None:
    # The group lives on while any of its members does, so this also reaches children that outlive their parent.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, number)
