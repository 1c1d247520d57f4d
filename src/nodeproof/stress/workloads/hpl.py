"""HPL: solve a dense random system by LU with partial pivoting, count its operations, check the scaled residual."""

import argparse
import sys

from nodeproof.stress.workloads import launch

__all__ = ["main"]

_DESCRIPTION = "nodeproof's own implementation of the HPL benchmark: one process, a thread on each CPU, the BLAS of scipy."


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--order", type=launch.positive, help="order N of the system (default: by plan, memory and speed)")
    parser.add_argument("--nb", type=launch.positive, help="columns of a panel (default: by the number of threads)")
    parser.add_argument("--tests", type=launch.positive, help="solve so many systems (default: as many as the time needs)")
    parser.add_argument("--seed", type=launch.positive, default=42, help="of the random matrix (default: 42)")


def main(arguments: list[str] | None = None) -> int:
    """The program; its exit status."""
    return launch.main("hpl", _DESCRIPTION, _configure, "hpl_job", arguments)


if __name__ == "__main__":
    sys.exit(main())
