"""Entry point: reads argv and environment, runs one command, turns errors into exit codes.

Exit codes: 0 done, 1 failed, 2 the command line or the configuration is wrong, 130 interrupted, 141 the reader of our output has
gone. ``check`` has its own, and whatever goes wrong in it is 3: unknown.
"""

import io
import os
import sys
from collections.abc import Mapping, Sequence

from nodeproof.cli.parser import make_parser
from nodeproof.cli.quiet import drop_output
from nodeproof.cli.stress_options import STRESS_ACTIONS
from nodeproof.cli.table import printable_lines
from nodeproof.errors import ConfigError, NodeproofError, UsageError

__all__ = ["main"]

_FAILED = 1
_USAGE = 2
_UNKNOWN = 3
_INTERRUPTED = 130
_PIPE_CLOSED = 141
_SILENT = ("up", "daemon", "check")
"""Commands whose work is not what they print."""


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run the command that ``argv`` names; without any, ``up``. Returns the exit code."""
    if argv is None:
        from nodeproof.host import inherited  # noqa: PLC0415 - what embeds us has signals and descriptors of its own

        inherited.put_right()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in {"-h", "--help", "--version"}):
        arguments.insert(0, "up")
    if arguments[0] == "stress" and (len(arguments) == 1 or arguments[1] not in {*STRESS_ACTIONS, "-h", "-help", "--help"}):
        arguments.insert(1, "run")
    wrong = _wrong(arguments)
    try:
        _lend_streams(arguments[0])
        code = _run(arguments, os.environ if environ is None else environ)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain again while it closes the pipe.
        drop_output()
        code = _PIPE_CLOSED
    except (UsageError, ConfigError) as error:
        _complain(str(error))
        code = wrong or _USAGE
    except NodeproofError as error:
        _complain(str(error))
        code = wrong or _FAILED
    except KeyboardInterrupt:
        code = _INTERRUPTED if arguments[0] == "bench" else wrong or _INTERRUPTED
    except OSError as error:
        # Nothing of ours raises one on purpose: this is the output (a full disk behind it, a closed descriptor).
        _complain(f"cannot write to standard output: {error.strerror or error}")
        drop_output()
        code = wrong or _FAILED
    return code


def _wrong(arguments: list[str]) -> int:
    """The exit code of whatever goes wrong, where the usual ones are verdicts; 0 = the usual ones."""
    if arguments[0] == "check" or arguments[:2] == ["faults", "active"]:
        return _UNKNOWN
    return _FAILED if arguments[0] == "bench" else 0


def _run(arguments: list[str], environ: Mapping[str, str]) -> int:
    try:
        options, rest = make_parser(arguments[0]).parse_known_args(arguments)
        if rest:
            options.parser.error(f"unrecognized arguments: {' '.join(rest)}")
    except SystemExit as end:
        code = int(end.code or 0)
        return (_wrong(arguments) or code) if code else 0
    options.environ = environ
    if options.command != "check":
        from nodeproof.cli import lean  # noqa: F401, PLC0415 - check needs no msgspec at all

    if options.command not in _SILENT:
        from nodeproof import log  # noqa: PLC0415 - check logs nothing, the daemon sets it up by its own options

        log.setup("warning")
    return int(options.run(options))


def _lend_streams(command: str) -> None:
    """Give closed streams a place to go, and let no locale stand in the way of a character. Raises UsageError."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as we do
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - the same
        if command not in _SILENT:
            raise UsageError("standard output is closed; there is nowhere to print to")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _complain(text: str) -> None:
    print(printable_lines(f"nodeproof: {text}"), file=sys.stderr)
