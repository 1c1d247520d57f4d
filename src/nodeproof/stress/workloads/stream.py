"""STREAM: sustained memory bandwidth of four simple kernels over arrays far larger than the caches."""

import argparse
import sys

from nodeproof.stress.workloads import launch

__all__ = ["main"]

_DESCRIPTION = "nodeproof's own implementation of the STREAM benchmark: four kernels, a thread on each CPU."


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--elements",
        type=launch.positive,
        help="elements of each of the three arrays (default: four times the last-level caches)",
    )
    parser.add_argument(
        "--ntimes", type=launch.positive, help="turns of the four kernels, 2 to 200 (default: 10; 50 with --plan standard)"
    )
    parser.add_argument(
        "--stores",
        choices=("streaming", "regular"),
        default="streaming",
        help="streaming: results go past the caches, so that the bytes counted are the bytes moved (default); "
        "regular: as most compilers have it, each line is first read from memory",
    )
    parser.add_argument("--inject", help=argparse.SUPPRESS)  # ARRAY:INDEX, for tests: spoil that element before the validation


def main(arguments: list[str] | None = None) -> int:
    """The program; its exit status."""
    return launch.main("stream", _DESCRIPTION, _configure, "stream_job", arguments)


if __name__ == "__main__":
    sys.exit(main())
