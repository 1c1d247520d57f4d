"""How actions of a command say their errors, and to whom they print."""

import argparse
import sys
from collections.abc import Callable

from nodeproof.cli.table import printable_lines
from nodeproof.errors import NodeproofError, UsageError

__all__ = ["complain", "read_by_a_program", "told"]

_FAILED = 1


def read_by_a_program(output: str | None) -> bool:
    """Whether the output is to be JSON: as asked with ``output``, else unless a person is looking."""
    return output == "json" or (output is None and not sys.stdout.isatty())


def complain(words: str, text: str) -> None:
    """Say an error of the command ``words`` on standard error."""
    print(printable_lines(f"{words}: {text}"), file=sys.stderr)


def told(words: str, function: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """``function`` with every error said, and exit code 1 for it; wrong arguments are the caller's."""

    def run(options: argparse.Namespace) -> int:
        try:
            return function(options)
        except UsageError:
            raise
        except NodeproofError as error:
            complain(words, str(error))
            return _FAILED

    return run
