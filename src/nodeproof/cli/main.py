"""Entry point: reads argv and environment, runs one command, turns errors into exit codes.

Exit codes: 0 done, 1 failed, 2 the command line or the configuration is wrong, 130 interrupted; ``check`` has its own.
"""

import os
import sys
from collections.abc import Mapping, Sequence

from nodeproof.cli.parser import make_parser
from nodeproof.errors import ConfigError, NodeproofError, UsageError

__all__ = ["main"]

_FAILED = 1
_USAGE = 2
_INTERRUPTED = 130
_PIPE_CLOSED = 141


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run the command that ``argv`` names; without any, ``up``. Returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = make_parser().parse_args(arguments or ["up"])
    options.environ = os.environ if environ is None else environ
    try:
        return int(options.run(options))
    except (UsageError, ConfigError) as error:
        print(f"nodeproof: {error}", file=sys.stderr)
        return _USAGE
    except NodeproofError as error:
        print(f"nodeproof: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain again while it closes the pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
