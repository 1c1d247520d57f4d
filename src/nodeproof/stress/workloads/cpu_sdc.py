"""Silent data corruption: computations with known answers on every core at the same time; any bit that differs names the core."""

import argparse
import sys

from nodeproof.stress.workloads import launch

__all__ = ["main"]

_DESCRIPTION = (
    "Computations with known answers, a thread pinned to each CPU: integer, float, vector, matrix, hash, compression, sort."
)


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rounds", type=launch.positive, help="rounds of all kernels on each CPU (default: as many as the time allows)"
    )
    parser.add_argument(
        "--inject", action="append", help=argparse.SUPPRESS
    )  # KERNEL:CPU:BIT, for tests: flip that bit of one answer


def main(arguments: list[str] | None = None) -> int:
    """The program; its exit status."""
    return launch.main("cpu_sdc", _DESCRIPTION, _configure, "cpu_sdc_job", arguments)


if __name__ == "__main__":
    sys.exit(main())
