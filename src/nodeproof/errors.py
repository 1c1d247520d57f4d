"""Everything nodeproof raises on purpose.

::

    NodeproofError
    ├── UsageError          the command line asked for something impossible
    ├── ConfigError         the configuration file, by key path
    ├── ParseError          text from outside that is not what it should be
    ├── NoData              there is no reading, and why (quiet: not a failure)
    ├── CommandError        an outside program could not do its work
    ├── SnapshotError       a snapshot directory or file cannot be used
    ├── WriteError          a file could not be written; the old one is intact
    ├── RunError            a benchmark or stress job could not do its work
    │   ├── ParamError      a parameter of it is unknown, missing or out of its domain
    │   ├── RunCancelled    it saw that it should stop
    │   └── RecordError     what is kept of a run cannot be read, written or believed
    └── AddressInUseError   a port or socket already has an owner

Every message names the thing, the place and the remedy. Only the command line turns them into exit codes.
"""

from enum import StrEnum
from typing import Self

__all__ = [
    "Absence",
    "AddressInUseError",
    "CommandError",
    "CommandFailure",
    "ConfigError",
    "NoData",
    "NodeproofError",
    "ParamError",
    "ParseError",
    "RecordError",
    "RunCancelled",
    "RunError",
    "SnapshotError",
    "UsageError",
    "WriteError",
]


class Absence(StrEnum):
    """Why there is no reading. None of these is ever shown as 0, or as healthy."""

    UNKNOWN = "unknown"
    """It should exist and could not be told (a first sample, an implausible or saturated value)."""
    NOT_APPLICABLE = "not_applicable"
    """This machine has no such thing (a virtual machine has no memory controller)."""
    UNSUPPORTED = "unsupported"
    """Kernel, driver or tool here cannot tell."""
    NO_PERMISSION = "no_permission"
    """It exists, and this user may not read it."""
    READ_ERROR = "read_error"
    """Reading failed: I/O error, bad content, tool failed or timed out."""
    STALE = "stale"
    """The last reading is too old to be believed."""


class NodeproofError(Exception):
    """Base of all errors raised on purpose."""

    def again(self) -> Self:
        """The same error without a past: to keep one that was caught, and to raise one that is kept.

        An exception remembers each frame that it passes through, each time it is raised, and keeps alive all that they held.
        """
        fresh = type(self).__new__(type(self), *self.args)
        fresh.__dict__.update(self.__dict__)
        return fresh


class UsageError(NodeproofError):
    """The command line asked for something that cannot be done."""


class ConfigError(NodeproofError):
    """A configuration problem at ``path`` (``collectors.cpu.interval``) of ``source``."""

    def __init__(self, path: str, problem: str, *, source: str = "", remedy: str = "") -> None:
        self.path = path
        self.problem = problem
        self.source = source
        self.remedy = remedy
        super().__init__(": ".join(part for part in (source, path, problem) if part) + (f" ({remedy})" if remedy else ""))


class ParseError(NodeproofError):
    """Text of ``source`` is not what it should be; ``line_no`` counts from 1, 0 when no line is meant."""

    def __init__(self, source: str, line_no: int, item: str, expected: str) -> None:
        self.source = source
        self.line_no = line_no
        self.item = item
        self.expected = expected
        place = f"{source}, line {line_no}" if line_no else source
        super().__init__(f"{place}: found {item[:120]!r}, expected {expected}")


class NoData(NodeproofError):  # noqa: N818 - it is an answer, not a failure
    """There is no reading: ``state`` says of which kind, ``reason`` in words, ``remedy`` what would help."""

    def __init__(self, state: Absence, reason: str, *, remedy: str = "") -> None:
        self.state = state
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{state}: {reason}")


class CommandFailure(StrEnum):
    """How an outside program let us down."""

    NOT_FOUND = "not_found"
    NO_PERMISSION = "no_permission"
    TIMED_OUT = "timed_out"
    STUCK = "stuck"
    START_FAILED = "start_failed"


class CommandError(NodeproofError):
    """An outside program could not be run to its end. A non-zero exit status alone is no CommandError."""

    def __init__(self, program: str, failure: CommandFailure, detail: str) -> None:
        self.program = program
        self.failure = failure
        self.detail = detail
        super().__init__(f"{program}: {detail}")


class SnapshotError(NodeproofError):
    """A snapshot directory or file cannot be used."""


class WriteError(NodeproofError):
    """``path`` could not be written; what was there before is intact. ``code`` is the error number, 0 when there is none."""

    def __init__(self, path: str, reason: str, *, remedy: str = "", code: int = 0) -> None:
        self.path = path
        self.reason = reason
        self.remedy = remedy
        self.code = code
        super().__init__(f"{path}: {reason}" + (f"; {remedy}" if remedy else ""))


class AddressInUseError(NodeproofError):
    """Something already listens at ``address``; the message names it where it can be found."""

    def __init__(self, address: str, holder: str, remedy: str) -> None:
        self.address = address
        self.holder = holder
        super().__init__(f"{address} is already in use by {holder}; {remedy}")


class RunError(NodeproofError):
    """A benchmark or stress job could not do its work; the message names what is missing."""


class ParamError(RunError):
    """A parameter is unknown, missing, of the wrong type or out of its domain. ``key`` names it, empty when several are meant."""

    def __init__(self, key: str, problem: str) -> None:
        self.key = key
        super().__init__(problem)


class RunCancelled(RunError):  # noqa: N818 - it is an order followed, not a failure
    """The work saw that it should stop, and stopped."""


class RecordError(RunError):
    """A run's record, its store or an artifact cannot be read, written or believed."""
