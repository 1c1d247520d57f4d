"""Memory errors: march and address patterns over most of the free memory, each word read back after the caches forgot it."""

import argparse
import sys

from nodeproof.stress.workloads import launch

__all__ = ["main"]

_DESCRIPTION = "Address-in-address and march patterns over most of the memory that may be used; errors are named by address."


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--mib", type=launch.positive, help="MiB to test (default: nine tenths of what may be used)")
    parser.add_argument("--passes", type=launch.positive, help="whole passes (default: by plan and time)")
    parser.add_argument(
        "--inject", help=argparse.SUPPRESS
    )  # WORD:BIT, for tests: flip that bit after the first pattern is written


def main(arguments: list[str] | None = None) -> int:
    """The program; its exit status."""
    return launch.main("memory_pattern", _DESCRIPTION, _configure, "memory_pattern_job", arguments)


if __name__ == "__main__":
    sys.exit(main())
