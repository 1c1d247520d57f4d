"""A recorded machine: a folder of ``/proc`` and ``/sys`` files, outputs of programs, and a clock that only moves when told.

Shipped for authors of collectors: what the built-in collectors are tested with.
"""

from collections.abc import Mapping, Sequence

from nodeproof.clock import Instant
from nodeproof.errors import CommandError, CommandFailure
from nodeproof.host.commands import CommandResult
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine

__all__ = ["ManualClock", "RecordedCommands", "recorded_machine"]


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


class RecordedCommands:
    """Programs whose answers were recorded: the key is the command line, a value an output or an error to raise."""

    def __init__(self, answers: Mapping[str, bytes | CommandResult | CommandError]) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        """Every command line that was run, in order."""

    def find(self, program: str) -> str | None:
        """A made-up path when any recorded command line begins with ``program``."""
        return f"/usr/bin/{program}" if any(line.split()[0] == program for line in self.answers) else None

    def run(self, argv: Sequence[str], *, deadline_s: float) -> CommandResult:  # noqa: ARG002 - recorded programs never hang
        """The recorded answer. Raises CommandError when there is none."""
        line = " ".join(argv)
        self.asked.append(line)
        answer = self.answers.get(line)
        if answer is None:
            raise CommandError(argv[0], CommandFailure.NOT_FOUND, f"not found: {line}")
        if isinstance(answer, CommandError):
            raise answer
        return answer if isinstance(answer, CommandResult) else CommandResult(tuple(argv), 0, answer, b"", 0.01, truncated=False)


def recorded_machine(
    root: str, answers: Mapping[str, bytes | CommandResult | CommandError] | None = None, clock: ManualClock | None = None
) -> Machine:
    """A machine whose files lie below ``root``."""
    return Machine(FileTree(root), RecordedCommands(answers or {}), clock or ManualClock())
