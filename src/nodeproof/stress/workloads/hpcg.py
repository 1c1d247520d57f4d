"""HPCG: multigrid-preconditioned conjugate gradients on a sparse system, rated as the official benchmark rates it."""

import argparse
import sys

from nodeproof.stress.workloads import launch

__all__ = ["main"]

_DESCRIPTION = "nodeproof's own implementation of the HPCG benchmark: one process, a thread on each CPU."


def _configure(parser: argparse.ArgumentParser) -> None:
    for axis in "xyz":
        parser.add_argument(f"--n{axis}", type=launch.positive, help=f"points along {axis} (default: by plan, caches and memory)")
    parser.add_argument(
        "--order",
        choices=("chunks", "levels"),
        help="how threads share a Gauss-Seidel sweep (default: chunks where they are long enough)",
    )
    parser.add_argument(
        "--seed", type=launch.positive, default=42, help="of the random vectors of the symmetry test (default: 42)"
    )


def main(arguments: list[str] | None = None) -> int:
    """The program; its exit status."""
    return launch.main("hpcg", _DESCRIPTION, _configure, "hpcg_job", arguments)


if __name__ == "__main__":
    sys.exit(main())
