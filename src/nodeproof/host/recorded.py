"""A recorded machine: a folder of ``/proc`` and ``/sys`` files, outputs of programs, and a clock that only moves when told.

Shipped for authors of collectors: what the built-in collectors are tested with.
"""

from collections.abc import Mapping, Sequence

import msgspec

from nodeproof.clock import Instant
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.host.commands import CommandResult
from nodeproof.host.files import FileTree
from nodeproof.host.filesystems import Space
from nodeproof.host.machine import Machine

__all__ = ["ManualClock", "RecordedCommands", "RecordedFiles", "recorded_machine"]


class ManualClock:
    """A clock that a test moves."""

    def __init__(self, wall_s: float = 1_790_000_000.0, mono_s: float = 1000.0) -> None:
        self.wall_s = wall_s
        self.mono_s = mono_s

    def now(self) -> Instant:
        """This moment."""
        return Instant(self.wall_s, self.mono_s)

    def sleep(self, seconds: float) -> None:
        """Move on at once."""
        self.advance(seconds)

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass on both clocks."""
        self.wall_s += seconds
        self.mono_s += seconds


class RecordedFiles(FileTree):
    """Files below a root, and space of file systems out of its ``statvfs.json``.

    That file maps a mount point (undecodable bytes replaced) to ``[block_bytes, blocks, blocks_free, blocks_available, inodes,
    inodes_free]``, or to the state and reason of an absence: ``["no_permission", "Permission denied"]``.
    """

    def adjtimex(self) -> bytes:
        """The recorded lines, ``/adjtimex``. Raises NoData."""
        return self.read("/adjtimex")

    def statvfs(self, path: str) -> Space:
        """The recorded numbers. Raises NoData."""
        shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        table = msgspec.json.decode(self.read("/statvfs.json"), type=dict[str, list[int | str]])
        found = table.get(shown)
        if found is None:
            raise NoData(Absence.UNSUPPORTED, f"{shown}: no numbers were recorded")
        if isinstance(found[0], str):
            raise NoData(Absence(found[0]), f"{shown}: {found[1]}")
        return Space(*map(int, found))


class RecordedCommands:
    """Programs whose answers were recorded: the key is the command line, a value an output or an error to raise."""

    def __init__(self, answers: Mapping[str, bytes | CommandResult | CommandError]) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        """Every command line that was run, in order."""
        self.started_total = 0

    def find(self, program: str) -> str | None:
        """A made-up path when any recorded command line begins with ``program``."""
        return f"/usr/bin/{program}" if any(line.split()[0] == program for line in self.answers) else None

    def lent(self, program: str) -> bool:
        """Never."""
        del program
        return False

    def run(
        self,
        argv: Sequence[str],
        *,
        deadline_s: float,  # noqa: ARG002 - recorded programs never hang
        subject: str = "",  # noqa: ARG002 - and never get stuck
    ) -> CommandResult:
        """The recorded answer. Raises CommandError when there is none."""
        line = " ".join(argv)
        self.asked.append(line)
        self.started_total += 1
        answer = self.answers.get(line)
        if answer is None:
            raise CommandError(argv[0], CommandFailure.NOT_FOUND, f"not found: {line}")
        if isinstance(answer, CommandError):
            raise answer.again()
        return answer if isinstance(answer, CommandResult) else CommandResult(tuple(argv), 0, answer, b"", 0.01, truncated=False)

    def close(self) -> None:
        """Nothing runs here."""


def recorded_machine(
    root: str, answers: Mapping[str, bytes | CommandResult | CommandError] | None = None, clock: ManualClock | None = None
) -> Machine:
    """A machine whose files lie below ``root``."""
    return Machine(RecordedFiles(root), RecordedCommands(answers or {}), clock or ManualClock())
