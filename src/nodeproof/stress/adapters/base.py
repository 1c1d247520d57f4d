"""What every way to run a benchmark offers alike."""

from typing import NamedTuple, Protocol

import msgspec

from nodeproof.errors import RunError
from nodeproof.model.job import ExecutionProfile
from nodeproof.model.run import Provenance
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.sizing import Plan

__all__ = ["Adapter", "DescribeError", "ItemRequest", "Launch", "LaunchError", "Signature"]

Signature = tuple[int, int, str]
"""Size, modification time in ns and SHA-256 of a result file."""


class DescribeError(RunError):
    """A benchmark could not be described, or its description cannot be believed; it is unavailable then."""


class LaunchError(RunError):
    """Something that the run needs is missing now, though it was there when it was described."""


class ItemRequest(NamedTuple):
    """What is asked of one item of a job."""

    benchmark: str
    plan: Plan = Plan.STANDARD
    seconds: int = 0
    """Run for about so long instead of the plan's time; 0 = the plan's."""
    limit_s: float = 0.0
    """When it will be stopped, for checks before the start; 0 = unknown."""


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A program ready to be started."""

    argv: tuple[str, ...]
    cwd: str
    """Empty = a directory of its own, removed afterwards."""
    environment: dict[str, str] = {}
    """Over what every contained program gets."""
    watch: WatchPolicy = WatchPolicy()
    files: dict[str, str] = {}
    """Written into its own directory before the start."""
    result_dir: str = ""
    """Where the program leaves its result file; empty = in its own directory, or its output is the result."""
    before: dict[str, Signature] = {}
    """Result files that lay there before the start."""
    provenance: tuple[Provenance, ...] = ()
    llc_bytes: int | None = None
    devices: frozenset[int] | None = None
    """Accelerators that are to be tested; None = not known, or none."""


class Adapter(Protocol):
    """One way to run benchmarks. Callable from any thread; holds no state of a run."""

    @property
    def kind(self) -> str:
        """``builtin``, ``script`` or ``native``."""
        ...

    def stamp(self, request: ItemRequest) -> object:
        """Changes when what :meth:`describe` would say may have changed; quick, never raises."""
        ...

    def describe(self, request: ItemRequest) -> ExecutionProfile:
        """What a start would run, with all checks; read-only, takes seconds at most. Raises DescribeError."""
        ...

    def launch(self, request: ItemRequest) -> Launch:
        """The program to start now. Raises LaunchError."""
        ...

    def judge(self, request: ItemRequest, launch: Launch, output: bytes) -> Judgement:
        """What the output, or the result file that the run left, proves."""
        ...
