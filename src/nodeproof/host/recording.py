"""Keeping what collectors ask a machine for: files, listings, links, space, answers of programs and of NVML.

A recording is made of *looks*. Within one look the same question has the same answer, however often it is asked, and the clock
stands still: so whoever replays the recording (:mod:`nodeproof.host.replay`) sees what the collectors saw, to the last digit.
Slow sources run between two looks, never beside one; their answers belong to the look before them.
"""

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, cast

from nodeproof.clock import Clock, Instant
from nodeproof.errors import Absence, CommandError, NoData
from nodeproof.host.background import Background
from nodeproof.host.commands import CommandResult, Commands
from nodeproof.host.files import FileTree
from nodeproof.host.filesystems import Space
from nodeproof.host.kmsg import KmsgChannel
from nodeproof.host.machine import Machine
from nodeproof.host.nvml import Nvml, NvmlCard

__all__ = ["KMSG", "GatedMachine", "Look", "Question", "RecordingMachine", "cards_key"]

_T = TypeVar("_T")
KMSG = "/dev/kmsg"
_MAX_FILE_BYTES = 1 << 20
_MAX_TOTAL_BYTES = 48 << 20
_KMSG_TURN = 1000
_GATE_S = 60.0
_NETLINK = struct.Struct("=IH")
_NETLINK_HEAD_BYTES, _STATE_AT = 16, 17

Question = tuple[str, str]
"""What was asked (``read``, ``names``, ``link``, ``exists``, ``can_read``, ``space``, ``sockets``, ``adjtimex``, ``run``,
``find``, ``cards``), and of what: a path, a command line."""


class Look:
    """Everything that was asked at one moment; an answer is a value, or the error that it was."""

    def __init__(self, at: Instant) -> None:
        self.at = at
        self.answers: dict[Question, object] = {}

    def of(self, kind: str) -> Iterator[tuple[str, object]]:
        """Questions of one kind with their answers, in order."""
        return ((asked, answer) for (what, asked), answer in sorted(self.answers.items(), key=lambda one: one[0]) if what == kind)


class _Notebook:
    """The looks so far, and the room that is left for more."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._room = _MAX_TOTAL_BYTES
        self._lock = threading.Lock()
        self.looks = [Look(clock.now())]
        self.left_out: dict[str, str] = {}

    def turn(self) -> None:
        """Begin the next look."""
        with self._lock:
            self.looks.append(Look(self._clock.now()))

    def noted(self, kind: str, asked: str, ask: Callable[[], _T], size: Callable[[_T], int] = lambda _: 0) -> _T:
        """The answer of this look: as it is noted, or asked for now, and noted. Raises NoData and CommandError."""
        look = self.looks[-1]
        question = (kind, asked)
        if question not in look.answers:
            try:
                answer: object = ask()
                kept = self._fits(asked, size(cast("_T", answer)))
            except (NoData, CommandError) as error:
                answer, kept = error.again(), True
            if not kept:
                return cast("_T", answer)
            look.answers.setdefault(question, answer)
        found = look.answers[question]
        if isinstance(found, NoData | CommandError):
            raise found.again()
        return cast("_T", found)

    def _fits(self, what: str, size: int) -> bool:
        with self._lock:
            if size > _MAX_FILE_BYTES:
                self.left_out[what] = f"{size} bytes, more than {_MAX_FILE_BYTES}"
            elif size > self._room:
                self.left_out[what] = f"the recording is full: {_MAX_TOTAL_BYTES} bytes"
            else:
                self._room -= size
                return True
            return False


class _RecordingFiles(FileTree):
    """Files whose every answer is noted."""

    def __init__(self, inner: FileTree, notes: _Notebook) -> None:
        super().__init__(inner.root, inner.opener)
        self.opener = self._open
        self._inner = inner
        self._notes = notes

    def read(self, path: str) -> bytes:
        """As the machine's. Raises NoData."""
        return self._notes.noted("read", path, lambda: self._inner.read(path), len)

    def read_kept(self, path: str) -> bytes:
        """The same: a recording opens everything once a look. Raises NoData."""
        return self.read(path)

    def names(self, path: str) -> list[str]:
        """As the machine's. Raises NoData."""
        return list(self._notes.noted("names", path, lambda: self._inner.names(path)))

    def exists(self, path: str) -> bool:
        """As the machine's."""
        return self._notes.noted("exists", path, lambda: self._inner.exists(path))

    def can_read(self, path: str) -> bool:
        """As the machine's."""
        return self._notes.noted("can_read", path, lambda: self._inner.can_read(path))

    def link_target(self, path: str) -> str:
        """As the machine's. Raises NoData."""
        return self._notes.noted("link", path, lambda: self._inner.link_target(path))

    def statvfs(self, path: str) -> Space:
        """As the machine's. Raises NoData."""
        return self._notes.noted("space", path, lambda: self._inner.statvfs(path))

    def adjtimex(self) -> bytes:
        """As the machine's. Raises NoData."""
        return self._notes.noted("adjtimex", "", self._inner.adjtimex)

    def tcp_sockets(self, family: int) -> bytes:
        """The states of the machine's sockets; whose they are and whom they reach is not kept. Raises NoData."""
        return self._notes.noted("sockets", str(family), lambda: _states_only(self._inner.tcp_sockets(family)), len)

    def forget(self, path: str) -> None:
        """Nothing is kept open."""

    def close(self) -> None:
        """Give back what the machine's own files hold."""
        self._inner.close()

    def _open(self, real: str) -> int:
        """What collectors open themselves: the kernel's log, whose records so far become a text that ends."""
        if real != self.real(KMSG):
            return self._inner.opener(real)
        try:
            text = self._notes.noted("read", KMSG, self._kernel_log, len)
        except NoData:
            return self._inner.opener(real)
        fd = os.memfd_create("kmsg", os.MFD_CLOEXEC)
        with open(fd, "wb", closefd=False) as file:
            file.write(text)
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def _kernel_log(self) -> bytes:
        """The newest records that there is room for. Raises NoData."""
        channel = KmsgChannel(self.real(KMSG), KMSG, opener=self._inner.opener)
        records: list[bytes] = []
        try:
            channel.open()
            while True:
                drained = channel.drain(_KMSG_TURN)
                records += drained.records
                if drained.at_end:
                    break
        finally:
            channel.close()
        size = 0
        for number in range(len(records) - 1, -1, -1):
            size += len(records[number]) + 1
            if size > _MAX_FILE_BYTES:
                del records[: number + 1]
                break
        return b"".join(record.rstrip(b"\n") + b"\n" for record in records)


def _states_only(raw: bytes) -> bytes:
    """Messages of sock_diag(7) with everything blanked but their lengths, kinds and states."""
    bare = bytearray(raw)
    place = 0
    while place + _NETLINK_HEAD_BYTES <= len(raw):
        length, _ = _NETLINK.unpack_from(raw, place)
        if length < _NETLINK_HEAD_BYTES:
            break
        end = min(place + length, len(raw))
        blank = place + _STATE_AT + 1
        bare[blank:end] = bytes(max(0, end - blank))
        place += (length + 3) & ~3
    return bytes(bare)


class _RecordingCommands:
    """Programs whose every answer is noted."""

    def __init__(self, inner: Commands, notes: _Notebook) -> None:
        self._inner = inner
        self._notes = notes

    @property
    def started_total(self) -> int:
        """As the machine's."""
        return self._inner.started_total

    @started_total.setter
    def started_total(self, value: int) -> None:
        self._inner.started_total = value

    def find(self, program: str) -> str | None:
        """As the machine's."""
        return self._notes.noted("find", program, lambda: self._inner.find(program))

    def lent(self, program: str) -> bool:
        """As the machine's."""
        return self._notes.noted("lent", program, lambda: self._inner.lent(program))

    def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
        """As the machine's. Raises CommandError."""

        def size(result: CommandResult) -> int:
            return len(result.stdout) + len(result.stderr)

        return self._notes.noted(
            "run", " ".join(argv), lambda: self._inner.run(argv, deadline_s=deadline_s, subject=subject), size
        )

    def close(self) -> None:
        """Ends what still runs."""
        self._inner.close()


def cards_key(addresses: Sequence[str], *, deep: bool) -> str:
    """How a question to NVML is noted."""
    return f"{'deep' if deep else 'quick'} {' '.join(addresses)}"


class _RecordingNvml:
    """NVML whose every answer is noted."""

    def __init__(self, inner: Nvml, notes: _Notebook) -> None:
        self._inner = inner
        self._notes = notes

    def look(self, addresses: Sequence[str], *, deep: bool) -> list[NvmlCard]:
        """As the machine's. Raises NoData."""
        return self._notes.noted("cards", cards_key(addresses, deep=deep), lambda: self._inner.look(addresses, deep=deep))

    def close(self) -> None:
        """Ends what serves it."""
        self._inner.close()


class GatedMachine(Machine):
    """A machine whose slow sources run only in :meth:`settle`: what one look sees depends on no thread's speed."""

    def __init__(self, files: FileTree, commands: Commands, clock: Clock, nvml: Nvml | None = None) -> None:
        super().__init__(files, commands, clock, nvml)
        self._gate = threading.Event()
        self._closed = False

    def background(self, name: str, call: Callable[[], _T], *, interval_s: float, deadline_s: float) -> Background[_T]:
        """As any machine's, behind the gate."""

        def wait_and_call() -> _T:
            if not self._gate.wait(_GATE_S) or self._closed:
                raise NoData(Absence.UNKNOWN, f"{name} was asked in the last look")
            return call()

        return super().background(name, wait_and_call, interval_s=interval_s, deadline_s=deadline_s)

    @contextlib.contextmanager
    def open_gate(self) -> Iterator[None]:
        """Slow sources run while inside: for callers that wait for them themselves."""
        self._gate.set()
        try:
            yield
        finally:
            self._gate.clear()

    def settle(self, timeout_s: float) -> None:
        """Let the slow calls that wait run, and wait for them, at most so long in all; this clock stands still meanwhile."""
        deadline_s = time.monotonic() + timeout_s
        with self._lock:
            slow = list(self._slow)
        with self.open_gate():
            for source in slow:
                source.wait(max(0.0, deadline_s - time.monotonic()))

    def close(self) -> None:
        """Give everything back; calls that wait end."""
        self._closed = True
        self._gate.set()
        super().close()


class _LookClock:
    """A clock that stands still during a look and goes on with :meth:`sleep`."""

    def __init__(self, inner: Clock) -> None:
        self._inner = inner
        self.notes = _Notebook(inner)

    def now(self) -> Instant:
        """When this look began."""
        return self.notes.looks[-1].at

    def sleep(self, seconds: float) -> None:
        """Wait, and begin the next look."""
        self._inner.sleep(seconds)
        self.notes.turn()


class RecordingMachine(GatedMachine):
    """``inner``, with every answer noted. :meth:`looks` tells what was asked, :attr:`left_out` what was too much to keep."""

    def __init__(self, inner: Machine) -> None:
        clock = _LookClock(inner.clock)
        self._notes = clock.notes
        nvml = inner.nvml
        super().__init__(
            _RecordingFiles(inner.files, self._notes),
            cast("Commands", _RecordingCommands(inner.commands, self._notes)),
            clock,
            None if nvml is None else _RecordingNvml(nvml, self._notes),
        )
        self.asks_dcmi = inner.dcmi is not None

    @property
    def looks(self) -> list[Look]:
        """Each look so far."""
        return self._notes.looks

    @property
    def left_out(self) -> dict[str, str]:
        """What was asked and is not kept, and why."""
        return dict(self._notes.left_out)
