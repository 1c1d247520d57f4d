"""A place where programs run that nobody has read: contained, without network, other processes, or files to change.

::

    with Sandbox.start(folder="/run/job", limits=SandboxLimits()) as sandbox:
        sandbox.write("a.py", b"print(6 * 7)")
        done = sandbox.run("python3 a.py", timeout_s=10)
        done.output, done.exit_code

The program inside (:mod:`nodeproof.host.sandbox_inside`) runs under the same keeper as every workload, so nothing of it outlives
its owner. Its working directory is in memory, of a limited size, and gone with it: what is worth keeping is read out. Where the
kernel does not let this user shut the machine out, nothing is run unless the caller says that it may run all the same.
"""

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from nodeproof.errors import RunCancelled, RunError
from nodeproof.host.containment import Contained, Containment
from nodeproof.host.job_environment import allowed_environment
from nodeproof.host.sandbox_inside import Answer, Order, Spec, receive, transmit
from nodeproof.model.process import Limits

__all__ = ["Done", "Sandbox", "SandboxError", "SandboxLimits"]

_START_S = 30.0
_MARGIN_S = 15.0
_LOOK_S = 0.25
_GRACE_S = 1.0
_SECRETS = (".ssh", ".gnupg", ".aws", ".azure", ".config", ".kube", ".docker", ".local/state")
"""Hidden where the whole home cannot be, since the interpreter lies in it."""


class SandboxError(RunError):
    """The place cannot be made, or is lost."""


class SandboxLimits(NamedTuple):
    """What may be used."""

    memory_bytes: int = 4 << 30
    """Of all processes together; beyond it all of them are ended."""
    scratch_bytes: int = 1 << 30
    """Of all files together."""
    file_bytes: int = 256 << 20
    processes: int = 512
    duration_s: float = 3600.0


class Done(NamedTuple):
    """A command that has ended."""

    exit_code: int
    """Negative: ended by that signal."""
    output: bytes
    """Standard output and error; of much, beginning and end."""
    output_bytes: int
    timed_out: bool
    seconds: float


class Sandbox:
    """One such place. ``with`` ends it."""

    def __init__(
        self,
        contained: Contained,
        channel: socket.socket,
        place: str,
        limits: SandboxLimits,
        should_stop: Callable[[], bool],
    ) -> None:
        self.notes: list[str] = []
        """What it has to do without."""
        self.isolated = False
        """Whether the machine is shut out."""
        self._contained, self._channel, self._place = contained, channel, place
        self._limits, self._should_stop = limits, should_stop

    @classmethod
    def start(
        cls,
        folder: str,
        name: str,
        *,
        limits: SandboxLimits = SandboxLimits(),  # noqa: B008 - immutable
        required: bool = True,
        should_stop: Callable[[], bool] = lambda: False,
        hidden: tuple[str, ...] = (),
    ) -> Self:
        """Make one; its own output goes to ``folder/name.log``. ``hidden``: directories that cannot even be read from inside.

        Raises SandboxError when the machine cannot be shut out and that is ``required``, or it does not start.
        """
        place = tempfile.mkdtemp(prefix="nodeproof-sandbox-")
        try:
            return cls._start(place, folder, name, limits, should_stop, required=required, hidden=hidden)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise

    @classmethod
    def _start(
        cls,
        place: str,
        folder: str,
        name: str,
        limits: SandboxLimits,
        should_stop: Callable[[], bool],
        *,
        required: bool,
        hidden: tuple[str, ...],
    ) -> Self:
        path = os.path.join(place, "control")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind(path)
            listener.listen(1)
            listener.settimeout(_START_S)
            contained = _contain(_spec(place, limits, required=required, hidden=hidden), folder, name, limits)
            try:
                channel, _ = listener.accept()
            except BaseException as error:
                tail = " ".join(contained.tail().decode("utf-8", "replace").split())[-200:]
                contained.close()
                if isinstance(error, OSError):
                    raise SandboxError(f"the sandbox did not start within {_START_S:g} s: {tail or error}") from None
                raise
        os.unlink(path)
        made = cls(contained, channel, place, limits, should_stop)
        try:
            made._begin()
        except BaseException:
            made.close()
            raise
        return made

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def run(
        self,
        command: str,
        *,
        timeout_s: float,
        limit_bytes: int = 65536,
        environment: Mapping[str, str] | None = None,
    ) -> Done:
        """Have the shell run ``command`` in the working directory; servers that it leaves in the background go on.

        Raises SandboxError when the place is lost (its memory used up, for one), RunCancelled.
        """
        order = Order(
            op="run", command=command, timeout_s=timeout_s, limit_bytes=limit_bytes, environment=dict(environment or {})
        )
        answer = self._ask(order, timeout_s)
        return Done(answer.exit_code, answer.data, answer.size, answer.timed_out, answer.seconds)

    def begin(self, command: str, environment: Mapping[str, str] | None = None) -> int:
        """Start a command that goes on; its number for :meth:`end`."""
        return self._ask(Order(op="start", command=command, environment=dict(environment or {})), _MARGIN_S).number

    def end(self, number: int, limit_bytes: int = 65536) -> Done:
        """End it, if it still runs, with its whole process group."""
        answer = self._ask(Order(op="stop", port=number, limit_bytes=limit_bytes), _MARGIN_S)
        return Done(answer.exit_code, answer.data, answer.size, answer.timed_out, answer.seconds)

    def write(self, path: str, data: bytes) -> None:
        """Make a file below the working directory. Raises OSError when it cannot be."""
        self._file(Order(op="write", path=path, data=data))

    def read(self, path: str, limit_bytes: int = 1 << 20) -> bytes:
        """A file below the working directory, or its beginning. Raises OSError when it cannot be read."""
        return self._file(Order(op="read", path=path, limit_bytes=limit_bytes)).data

    def files(self) -> dict[str, int]:
        """Sizes of regular files below the working directory."""
        return dict(self._ask(Order(op="list"), _MARGIN_S).files)

    def reserve_port(self) -> int:
        """A port that nothing inside can take until :meth:`free_port`."""
        return self._ask(Order(op="reserve"), _MARGIN_S).number

    def free_port(self, port: int) -> None:
        """Let whoever comes take it."""
        self._ask(Order(op="reserve", port=port), _MARGIN_S)

    def get(self, port: int, path: str, *, timeout_s: float) -> tuple[int, bytes]:
        """Status and body of a GET from a server inside, asked until it answers; status 0 and the reason when it does not."""
        answer = self._ask(Order(op="get", port=port, path=path, timeout_s=timeout_s), timeout_s)
        return (answer.number, answer.data) if answer.ok else (0, answer.problem.encode())

    def processes(self, *, end: bool = False) -> int:
        """Processes that commands have left; with ``end`` they are ended."""
        return self._ask(Order(op="processes", command="end" if end else ""), _MARGIN_S).number

    def close(self) -> None:
        """End all that runs inside, and the place with it."""
        with contextlib.suppress(OSError):
            self._channel.close()
        with contextlib.suppress(OSError):
            self._contained.wait(_GRACE_S)  # it ends by itself when nobody asks any more
            self._contained.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def _begin(self) -> None:
        answer = self._await(time.monotonic() + _START_S)
        if not answer.ok:
            raise SandboxError(
                f"{answer.problem}; run as root, or let users make user namespaces (sysctl user.max_user_namespaces)"
            )
        self.notes, self.isolated = answer.notes, answer.isolated
        if self.isolated:  # its files are in memory of its own
            shutil.rmtree(self._place, ignore_errors=True)

    def _file(self, order: Order) -> Answer:
        answer = self._ask(order, _MARGIN_S)
        if not answer.ok:
            raise OSError(f"{order.path}: {answer.problem}")
        return answer

    def _ask(self, order: Order, timeout_s: float) -> Answer:
        try:
            transmit(self._channel, order)
        except OSError as error:
            raise self._lost(error.strerror or "it hung up") from None
        return self._await(time.monotonic() + timeout_s + _MARGIN_S)

    def _await(self, ends_s: float) -> Answer:
        """The next answer, with an eye on memory and on orders to stop."""
        while True:
            self._channel.settimeout(_LOOK_S)
            try:
                if self._channel.recv(1, socket.MSG_PEEK):
                    self._channel.settimeout(_MARGIN_S)
                    data = receive(self._channel)
                    if data is not None:
                        return msgspec.json.decode(data, type=Answer)
                raise self._lost("it hung up")
            except TimeoutError:
                pass
            except OSError as error:
                raise self._lost(error.strerror or str(error)) from None
            self._look(ends_s)

    def _look(self, ends_s: float) -> None:
        if self._should_stop():
            self._contained.request_cancel("the run is to stop", 0.0)
            raise RunCancelled("the run is to stop")
        used = self._contained.progress().resident_bytes
        if used > self._limits.memory_bytes:
            self._contained.cancel(0.0, "it used more memory than it may")
            limit_mib = self._limits.memory_bytes >> 20
            raise SandboxError(
                f"what runs in the sandbox used {used >> 20} MiB of memory, limit {limit_mib} MiB; all of it was ended"
            )
        if time.monotonic() > ends_s:
            self._contained.cancel(0.0, "it did not answer")
            raise SandboxError("the sandbox did not answer in time; all of it was ended")

    def _lost(self, why: str) -> SandboxError:
        ended = self._contained.wait(_GRACE_S)
        reason = ended.reason if ended is not None else why
        return SandboxError(f"the sandbox is lost: {reason}")


def _spec(place: str, limits: SandboxLimits, *, required: bool, hidden: tuple[str, ...]) -> Spec:
    needed = [os.path.realpath(prefix) for prefix in (sys.prefix, sys.base_prefix, os.path.dirname(__file__))]
    home = os.path.expanduser("~")
    places = [*hidden, "/root", "/home", home, *(os.path.join(home, name) for name in _SECRETS)]
    return Spec(
        socket_path=os.path.join(place, "control"),
        work=os.path.join(place, "work"),
        isolation="required" if required else "best",
        scratch_bytes=limits.scratch_bytes,
        memory_bytes=limits.memory_bytes,
        file_bytes=limits.file_bytes,
        hidden=[folder for folder in places if not any(_within(prefix, folder) for prefix in needed)],
    )


def _contain(spec: Spec, folder: str, name: str, limits: SandboxLimits) -> Contained:
    return Containment().start(
        [sys.executable, "-P", "-m", "nodeproof.host.sandbox_inside", msgspec.json.encode(spec).decode()],
        cwd="/",
        output_path=os.path.join(folder, f"{name}.log"),
        environment=allowed_environment(os.environ),
        limits=Limits(
            duration_s=limits.duration_s, grace_s=_GRACE_S, processes=limits.processes, output_bytes=1 << 20, oom_score_adj=900
        ),
    )


def _within(path: str, folder: str) -> bool:
    real = os.path.realpath(folder)
    return path == real or path.startswith(f"{real}/")
