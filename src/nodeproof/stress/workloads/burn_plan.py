"""How much ``gpu_burn`` does: which number formats for how long, how large the matrices, how much memory."""

from typing import Final, NamedTuple

__all__ = ["BurnPlan", "batch_times", "matrix_size", "memory_bytes", "plan_of"]

_MATRIX_BYTES: Final = {"fp64": 8, "fp32": 4, "tf32": 4, "bf16": 2, "fp8": 2}
"""A word of the product; fp8 multiplies into bf16."""
_LARGEST: Final = 16384
_SMALLEST: Final = 256
_STEP: Final = 256
_MATRICES: Final = 6
"""Two factors, product, reference, and room for what the checksum and a comparison need."""
_MATRIX_SHARE: Final = 0.5
_MEMORY_SHARE: Final = 0.9
_BATCH_S: Final = 1.0
_MOST_TIMES: Final = 4096
_SHORTEST_S: Final = 1e-6
"""A clock may show that no time has passed."""


class BurnPlan(NamedTuple):
    """Seconds, and what they are for."""

    precisions: tuple[str, ...]
    precision_s: float
    """For each number format, as far as the device has it."""
    memory_passes: int
    """Patterns through the memory, each read back twice; 0 = until the time is over."""
    memory_s: float


def plan_of(plan: str, seconds: int | None, precisions: tuple[str, ...]) -> BurnPlan:
    """The plan by its name; ``seconds`` in place of its time: a fifth of them for memory."""
    total_s, passes = {"quick": (60.0, 1), "standard": (600.0, 2), "soak": (3600.0, 0)}[plan]
    if seconds is not None:
        total_s = float(seconds)
    memory_s = total_s / 5
    return BurnPlan(precisions, (total_s - memory_s) / len(precisions), passes, memory_s)


def matrix_size(precision: str, free_bytes: int, asked: int | None = None) -> int:
    """Rows of the matrices: as many as half of the free memory holds, at most 16384, in steps that all kernels like."""
    if asked is not None:
        return asked
    room = _MATRIX_SHARE * free_bytes / (_MATRICES * _MATRIX_BYTES[precision])
    return max(_SMALLEST, min(_LARGEST, int(room**0.5) // _STEP * _STEP))


def memory_bytes(free_bytes: int, asked: int | None = None) -> int:
    """How much memory is tested."""
    return asked if asked is not None else int(_MEMORY_SHARE * free_bytes)


def batch_times(took_s: float, times: int) -> int:
    """Multiplications of the next batch, so that verifying comes about once a second and costs little beside it."""
    return max(1, min(int(times * _BATCH_S / max(took_s, _SHORTEST_S)), 4 * times, _MOST_TIMES))
