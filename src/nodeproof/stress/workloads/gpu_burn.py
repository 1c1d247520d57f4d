"""GPUs under full load with every product verified: matrix multiply in each number format, then patterns over free memory."""

import argparse
import sys

from nodeproof.stress.workloads import launch
from nodeproof.stress.workloads.burn_device import PRECISIONS, parse_inject

__all__ = ["main"]

_DESCRIPTION = (
    "Every accelerator under full load: matrix multiply in fp64, fp32, tf32, bf16 and fp8 as far as it has them, each product "
    "compared bit by bit on the device, then patterns over most of its free memory."
)
_KINDS = ("auto", "cuda", "npu", "xpu", "cpu")


def _precisions(text: str) -> tuple[str, ...]:
    found = tuple(text.split(","))
    unknown = sorted(set(found) - set(PRECISIONS))
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)} not among {', '.join(PRECISIONS)}")
    return found


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kind", choices=_KINDS, default="auto", help="devices of this kind (default: accelerators; cpu only when named)"
    )
    parser.add_argument("--devices", help="numbers of the devices, with commas between (default: all of the kind)")
    parser.add_argument("--precisions", type=_precisions, default=PRECISIONS, help="number formats, with commas between")
    parser.add_argument("--size", type=launch.positive, help="rows of the matrices (default: by free memory)")
    parser.add_argument("--mib", type=launch.positive, help="memory to test, in MiB (default: nine tenths of what is free)")
    parser.add_argument("--driver", default="nodeproof.stress.workloads.burn_torch:TorchDriver", help=argparse.SUPPRESS)
    parser.add_argument("--silence", type=float, default=120.0, help=argparse.SUPPRESS)
    parser.add_argument("--inject", type=parse_inject, help=argparse.SUPPRESS)  # DEVICE/WHERE/OFFSET/BITS, for tests


def main(arguments: list[str] | None = None) -> int:
    """The program; its exit status."""
    return launch.main("gpu_burn", _DESCRIPTION, _configure, "gpu_burn_job", arguments, libraries=(), extra="gpu")


if __name__ == "__main__":
    sys.exit(main())
