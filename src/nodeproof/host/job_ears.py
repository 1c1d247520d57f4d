"""Everything a keeper waits for at once: its owner's commands and death, signals, the death of a child, output."""

import contextlib
import os
import select
import signal
import socket
import types
from typing import NamedTuple

from nodeproof.host.job_verdict import Cause
from nodeproof.host.pidfd import open_process

__all__ = ["Ears", "Heard"]

_OWNER_GRACE_S = 0.25
"""Grace for the tree of an owner that died is this long at least, however short its own was."""


class Heard(NamedTuple):
    """What one wait brought."""

    causes: list[Cause]
    """Reasons to end the tree, in the order in which they came."""
    output: bool
    """The program's pipe has something to read, or no writer any more."""


class Ears:
    """One per keeper, made in its main thread; takes over the signals of the process."""

    def __init__(self, control: socket.socket, owner_pid: int, grace_s: float) -> None:
        self._control = control
        self._owner_pid = owner_pid
        self._grace_s = grace_s
        self._output = -1
        self._poll = select.poll()
        self._wake, wake_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _ignore)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
        self._owner_fd = -1
        with contextlib.suppress(ProcessLookupError):
            self._owner_fd = open_process(owner_pid)
        for fd in (self._wake, control.fileno(), self._owner_fd):
            if fd >= 0:
                self._poll.register(fd, select.POLLIN)

    def has_owner(self) -> bool:
        """Whether the owner lives: it is our parent until it dies."""
        return os.getppid() == self._owner_pid

    def attend(self, output: int) -> None:
        """Also wait for ``output``."""
        self._output = output
        self._poll.register(output, select.POLLIN)

    def forget_output(self) -> None:
        """Every process has closed its output, which is no end."""
        self._poll.unregister(self._output)

    def listen(self, wait_s: float) -> Heard:
        """Wait for whatever comes first, at most so long."""
        causes: list[Cause] = []
        output = False
        for fd, _ in self._poll.poll(max(0.0, wait_s) * 1000):
            if fd == self._output:
                output = True
            elif fd == self._wake:
                causes += self._signals()
            elif fd == self._owner_fd:
                self._poll.unregister(fd)
                causes.append(self._owner_lost())
            else:
                causes += self._command()
        if self._owner_fd < 0 and not self.has_owner():
            causes.append(self._owner_lost())
        return Heard(causes, output)

    def _signals(self) -> list[Cause]:
        numbers = b""
        with contextlib.suppress(BlockingIOError):
            numbers = os.read(self._wake, 4096)
        names = [signal.Signals(number).name for number in numbers if number != signal.SIGCHLD]
        return [Cause("cancelled", f"its keeper was told to end ({name})", self._grace_s) for name in names]

    def _command(self) -> list[Cause]:
        data = b""
        with contextlib.suppress(OSError):
            data = self._control.recv(4096)
        if not data:
            self._poll.unregister(self._control.fileno())
            return [self._owner_lost()]
        _, seconds, reason = data.decode("utf-8", "replace").split(" ", 2)
        return [Cause("cancelled", reason, float(seconds))]

    def _owner_lost(self) -> Cause:
        return Cause("owner_lost", f"its owner, process {self._owner_pid}, is gone", max(self._grace_s, _OWNER_GRACE_S))


def _ignore(number: int, frame: types.FrameType | None) -> None:
    """The wakeup descriptor has already told."""
    del number, frame
