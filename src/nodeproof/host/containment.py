"""Start a program contained, watch its whole process tree, and end that tree with proof.

::

    containment = Containment()
    with containment.start(["/opt/stream"], cwd="/run/job", output_path="/run/job/output.log") as job:
        while (ended := job.wait(1.0)) is None:
            print(job.output(), job.progress())
    assert ended.empty

Between this process and the program stands a keeper (``host.job_keeper``), a process of its own that ends the tree when this one
dies, by whatever signal. When the keeper itself dies, the program dies with it (parent-death signal), and the next call of
:meth:`Contained.wait`, :meth:`Contained.cancel` or :meth:`Contained.close` here ends what else is left. When both die at once,
:func:`nodeproof.host.job_recovery.recover` does, called by whoever holds the lock of jobs next.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import msgspec

from nodeproof.errors import CommandError, CommandFailure, WriteError
from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.job_board import Board
from nodeproof.host.job_environment import allowed_environment
from nodeproof.host.job_family import Birthmarks, Family
from nodeproof.host.job_keeper import READY
from nodeproof.host.job_output import OutputReader
from nodeproof.host.job_record import JobLimits, JobSpec, boottime_s
from nodeproof.host.job_recovery import end_failed_start, end_without_keeper
from nodeproof.host.process_tree import TOKEN_VARIABLE, Identity, ProcessTree
from nodeproof.model.process import Ended, EndKind, Limits, ProcessSight, Progress

__all__ = ["Contained", "Containment", "new_token"]

_START_PATIENCE_S = 60.0
"""A keeper is up in 50 ms; a machine so busy that it takes a minute cannot be measured anyway."""
_KEEPER_PATIENCE_S = 5.0
"""Beyond the time its own steps may take: after that a keeper counts as stuck."""
_KEEPER_DEATH_S = 2.0
_MAX_REASON_CHARS = 500
_TAIL_BYTES = 16 * 1024
_FAILURES = {2: CommandFailure.NOT_FOUND, 13: CommandFailure.NO_PERMISSION}


def new_token() -> str:
    """A name for a job: 16 hexadecimal digits."""
    return os.urandom(8).hex()


class Contained:
    """A program that runs contained, or ran. Methods may be called from any thread."""

    def __init__(self, spec: JobSpec, keeper: "subprocess.Popen[bytes]", control: socket.socket, board: Board) -> None:
        self.token = spec.token
        self.output_path = spec.output_path
        self.record_path = spec.record_path
        self._spec = spec
        self._keeper = keeper
        self._control = control
        self._board = board
        self._reader = OutputReader(spec.output_path)
        self._lock = threading.RLock()
        self._ended: Ended | None = None
        self._cancel_reason: str | None = None
        self._closed = False
        self._started_s, self._started_wall_s = boottime_s(), time.time()
        self._state: dict[str, object] = {}
        """What the board said last."""
        self.pid = int(str(self._look_at_board()["pid"]))
        """Of the program itself; it may be gone while its descendants run."""

    def __enter__(self) -> Self:
        """The program runs already."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End it if it still runs."""
        self.close()

    @property
    def keeper_pid(self) -> int:
        """The process that ends the tree when this one dies."""
        return self._keeper.pid

    @property
    def ended(self) -> Ended | None:
        """How it ended, once :meth:`wait` or :meth:`cancel` has seen it; None before."""
        return self._ended

    def output(self, limit_bytes: int = 1024 * 1024) -> bytes:
        """What was printed and kept since the last call, at most so much; call again while it brings something.

        Standard output and error in the order in which they came. Raises OSError when the file cannot be read.
        """
        with self._lock:
            return self._reader.new(limit_bytes)

    def tail(self, limit_bytes: int = _TAIL_BYTES) -> bytes:
        """The end of what was printed and kept. Raises OSError."""
        with self._lock:
            return self._reader.tail(limit_bytes)

    def progress(self) -> Progress:
        """The whole tree as the keeper last saw it, at most half a second ago on a machine with few processes.

        Its ``at_mono_s`` tells when: it stands still when the keeper does.
        """
        with self._lock:
            if self._ended is not None and self._ended.progress is not None:
                return self._ended.progress
            return msgspec.convert(self._look_at_board()["progress"], Progress)

    def survivors(self) -> tuple[ProcessSight, ...]:
        """Living processes of the tree at this moment, looked for by every road from outside; the program itself included."""
        with self._lock:
            self._look_at_board()
            family = self._family()
        return tuple(msgspec.convert(sight, ProcessSight) for sight in family.sights(family.members()))

    def request_cancel(self, reason: str = "cancelled", grace_s: float | None = None) -> None:
        """Ask the keeper to end the tree and return at once.

        A second call may only shorten the grace; after the end it does nothing.
        """
        with self._lock:
            if self._ended is not None or self._closed:
                return
            grace = self._spec.limits.grace_s if grace_s is None else max(0.0, grace_s)
            text = " ".join(reason.split())[:_MAX_REASON_CHARS]
            if self._cancel_reason is None:
                self._cancel_reason = text
            with contextlib.suppress(OSError):  # it is gone: wait() will see to it
                self._control.send(f"cancel {grace} {text}".encode())
            self._keeper.send_signal(signal.SIGCONT)  # to one that somebody has stopped

    def cancel(self, grace_s: float | None = None, reason: str = "cancelled") -> Ended:
        """End the tree, TERM first and KILL after ``grace_s`` (0 = KILL at once), and wait for the proof.

        Takes at most the grace, :attr:`Limits.kill_wait_s` and some seconds in which a keeper that does not answer is deposed.
        """
        limits = self._spec.limits
        grace = limits.grace_s if grace_s is None else max(0.0, grace_s)
        self.request_cancel(reason, grace)
        ended = self.wait(grace + limits.kill_wait_s + _KEEPER_PATIENCE_S)
        return ended if ended is not None else self._depose("its keeper did not answer")

    def wait(self, timeout_s: float | None = None) -> Ended | None:
        """Wait for the end of the whole tree; None when it has not come within ``timeout_s`` (None = wait for ever)."""
        deadline_s = boottime_s() + timeout_s if timeout_s is not None else float("inf")
        latest_s = self._latest_end_s()
        while self._ended is None:
            now = boottime_s()
            pause_s = min(deadline_s, latest_s) - now
            poll = select.poll()
            poll.register(self._control, select.POLLIN)
            events = poll.poll(max(0.0, pause_s) * 1000 if pause_s != float("inf") else None)
            if events and self._hung_up():
                return self._collect()
            if boottime_s() >= latest_s:
                return self._depose("its keeper did not end it at its time limit")
            if boottime_s() >= deadline_s:
                return self._ended
        return self._ended

    def close(self) -> None:
        """End the tree if it still runs and give everything back. What was collected stays readable."""
        if self._ended is None and not self._closed:
            self.cancel(reason="its owner let go of it")
        with self._lock:
            if not self._closed:
                self._closed = True
                self._control.close()
                self._board.close()
                self._reader.close()

    # ---- the end

    def _look_at_board(self) -> dict[str, object]:
        if not self._closed:
            self._state = {**self._state, **self._board.read()}  # the last state tells no members any more
        return self._state

    def _latest_end_s(self) -> float:
        limits = self._spec.limits
        if limits.duration_s is None:
            return float("inf")
        steps_s = limits.duration_s + limits.grace_s + limits.linger_s + limits.kill_wait_s
        return self._started_s + steps_s + 2 * _KEEPER_PATIENCE_S

    def _hung_up(self) -> bool:
        """Whether the keeper has closed its end, which it does by ending."""
        try:
            return not self._control.recv(64, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _collect(self) -> Ended:
        with self._lock:
            if self._ended is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._keeper.wait(_KEEPER_DEATH_S)
                state = self._look_at_board()
                if state.get("state") == "ended":
                    self._ended = msgspec.convert(state["ended"], Ended)
                else:
                    fate = str(state.get("error") or f"exit status {self._keeper.returncode}")
                    self._ended = self._sweep(f"its keeper, process {self._keeper.pid}, is gone ({fate})")
            return self._ended

    def _depose(self, why: str) -> Ended:
        """The keeper is stuck or stopped: end it and do its work."""
        with self._lock:
            if self._ended is None:
                self._keeper.kill()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._keeper.wait(_KEEPER_DEATH_S)
                self._ended = self._sweep(why)
            return self._ended

    def _sweep(self, why: str) -> Ended:
        kind, reason = EndKind.KEEPER_LOST, why
        if self._cancel_reason is not None:
            kind, reason = EndKind.CANCELLED, f"{self._cancel_reason}; {why}"
        progress = self._look_at_board().get("progress")
        return end_without_keeper(
            self._family(),
            kind,
            reason,
            record_path=self.record_path,
            output_path=self.output_path,
            kill_wait_s=self._spec.limits.kill_wait_s,
            started_s=self._started_s,
            started_wall_s=self._started_wall_s,
            progress=msgspec.convert(progress, Progress) if progress is not None else None,
        )

    def _family(self) -> Family:
        """The tree as it can be told from outside, with what the board says of it."""
        state = self._state
        keeper: list[int] = state.get("keeper") or [0, 0]  # type: ignore[assignment]  # the keeper's JSON, of the same release
        marks = Birthmarks(self.token, int(str(state.get("mark", 0))), keeper[1])
        cgroup = str(state.get("cgroup", ""))
        alive = self._keeper.returncode is None
        family = Family(
            ProcessTree(), marks, keeper=self._keeper.pid if alive else 0, cgroup=JobCgroup(cgroup) if cgroup else None
        )
        members: list[list[int]] = state.get("members") or []  # type: ignore[assignment]  # as above
        family.known = {Identity(pid, start) for pid, start in members}
        return family


class Containment:
    """Starts contained programs. Holds nothing itself."""

    def __init__(self, *, use_cgroup: bool = True, python: str = sys.executable) -> None:
        self._use_cgroup = use_cgroup
        self._python = python

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        output_path: str,
        environment: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        token: str = "",
        record_path: str = "",
        keep_fds: Sequence[int] = (),
    ) -> Contained:
        """Start ``argv`` in ``cwd`` with its output in ``output_path``, which must not be there yet.

        ``environment`` is all the program gets, beside the token (default: :func:`allowed_environment` of our own). The record
        goes to ``record_path`` (default: ``output_path`` and ``.job.json``). ``keep_fds`` stay open in the keeper until the tree
        is gone: the lock of the job, so that it outlives a killed owner. Raises CommandError when the program cannot be started,
        and WriteError when its output or record cannot be written.
        """
        chosen = dict(allowed_environment(os.environ) if environment is None else environment)
        name = token or new_token()
        output = os.path.abspath(output_path)
        own = ProcessTree().stat(os.getpid())
        spec = JobSpec(
            token=name,
            argv=tuple(argv),
            executable=_resolve(argv[0], chosen, cwd),
            cwd=os.path.abspath(cwd),
            environment={**chosen, TOKEN_VARIABLE: name},
            limits=JobLimits(**msgspec.structs.asdict(limits or Limits())),
            output_path=output,
            record_path=os.path.abspath(record_path) if record_path else f"{output}.job.json",
            owner=own.identity if own is not None else (os.getpid(), 0),
            use_cgroup=self._use_cgroup,
        )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        board = Board.make()
        try:
            with theirs:
                keeper = self._start_keeper(spec, theirs, board, keep_fds)
            _await_start(spec, keeper, ours, board)
        except BaseException:
            ours.close()
            board.close()
            raise
        return Contained(spec, keeper, ours, board)

    def _start_keeper(
        self, spec: JobSpec, control: socket.socket, board: Board, keep_fds: Sequence[int]
    ) -> "subprocess.Popen[bytes]":
        spec_fd = os.memfd_create("nodeproof-spec", os.MFD_CLOEXEC)
        try:
            os.write(spec_fd, spec.to_json())
            fds = [control.fileno(), board.fd, spec_fd, *keep_fds]
            return subprocess.Popen(
                [self._python, "-P", "-m", "nodeproof.host.job_keeper", spec.token, *(str(fd) for fd in fds)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=fds,
                env=_keeper_environment(),
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise CommandError(self._python, CommandFailure.START_FAILED, f"the keeper: {error.strerror}") from None
        finally:
            os.close(spec_fd)


def _await_start(spec: JobSpec, keeper: "subprocess.Popen[bytes]", control: socket.socket, board: Board) -> None:
    """Return when the program runs. Raises CommandError or WriteError when it does not, and then nothing is left of it."""
    control.settimeout(_START_PATIENCE_S)
    try:
        answer = control.recv(16)
    except OSError:
        answer = b""
    control.settimeout(None)
    state = board.read()
    if answer == READY and state.get("state") != "failed":
        return  # a short program may have ended before we came to look
    control.close()
    try:
        keeper.wait(_KEEPER_DEATH_S)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()
    if state.get("state") != "failed":
        end_failed_start(spec.token, spec.record_path)
        detail = str(state.get("error") or f"its keeper ended at once with status {keeper.returncode}")
        raise CommandError(spec.argv[0], CommandFailure.START_FAILED, detail)
    stage, code = str(state["stage"]), int(str(state["code"]))
    if stage in {spec.output_path, spec.record_path}:
        raise WriteError(stage, os.strerror(code), code=code)
    failure = _FAILURES.get(code, CommandFailure.START_FAILED)
    raise CommandError(spec.argv[0], failure, f"{stage}: {os.strerror(code)}")


def _resolve(program: str, environment: Mapping[str, str], cwd: str) -> str:
    """Full path of ``program``: as it stands when it has a slash (from ``cwd`` on), else from the PATH it will have."""
    if "/" in program:
        return os.path.join(os.path.abspath(cwd), program)
    search = environment.get("PATH", os.defpath)
    for folder in search.split(os.pathsep):
        path = os.path.join(folder, program)
        if folder and os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise CommandError(program, CommandFailure.NOT_FOUND, f"not found in {search}")


def _keeper_environment() -> dict[str, str]:
    """Ours, without what belongs to this process alone, and with the way to this package."""
    dropped = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", TOKEN_VARIABLE}
    environment = {key: value for key, value in os.environ.items() if key not in dropped}
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    former = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = root + (os.pathsep + former if former else "")
    return environment
