"""What one GPU told at one moment, whoever asked it: NVML, nvidia-smi, amd-smi, rocm-smi or the kernel.

Readings are named by :data:`Key`: a metric of component gpu and the values of its labels after ``gpu_id``, in the catalogue's
order. So every source speaks the same language, and joining two of them is joining two dictionaries.
"""

import re
from enum import IntEnum

import msgspec

from nodeproof.errors import Absence

__all__ = ["CardReading", "CardState", "GpuProcess", "Key", "Untold", "is_blank", "normal_address"]

Key = tuple[str, ...]
"""``("temperature",)``, ``("throttle_time", "hw_thermal")``."""

_BLANK_INT32, _LAST_INT32 = 0x7FFFFFF0, 0x7FFFFFFF
_BLANK_FP64 = 140737488355328.0
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")


class CardState(IntEnum):
    """Whether a card answers; the value of metric ``card_state``. The gravest is the largest."""

    ANSWERS = 0
    SILENT = 1
    """Its driver did not answer in time: it hangs, or waits for a card that does."""
    RESET_REQUIRED = 2
    """The driver says that it must be reset before it can be used again."""
    LOST = 3
    """It fell off the bus, or the driver gave it up."""


class Untold(msgspec.Struct, frozen=True):
    """One reading that a card did not give, and why."""

    state: Absence
    reason: str


class GpuProcess(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process on a card."""

    pid: int
    name: str = ""
    used_mib: float | None = None
    """Memory of the card that it holds; None where it is not told."""
    graphics: bool = False
    """It draws rather than computes: no workload."""


class CardReading(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One card."""

    address: str
    """PCI address as the kernel writes it: ``0000:17:00.0``. What a card is known by: numbers shift when one is lost."""
    vendor: str
    index: int | None = None
    """Number that its tool gives it now."""
    state: CardState = CardState.ANSWERS
    reason: str = ""
    """What was said of a card that does not answer."""
    identity: dict[str, str] = {}
    """``name``, ``uuid``, ``driver``, ``vbios`` and ``serial``, as far as told."""
    values: dict[Key, float] = {}
    untold: dict[Key, Untold] = {}
    processes: tuple[GpuProcess, ...] | None = None
    """None = not listed."""


def is_blank(value: float) -> bool:
    """Whether a number is one of the marks that driver layers put where they know nothing.

    Those are the last 16 numbers of 32-bit integers, the last 16 of 64-bit ones, and 2^47 in floating point, with what lies above
    each (dcgm_structs.h: DCGM_INT32_BLANK, DCGM_INT64_BLANK, DCGM_FP64_BLANK).
    """
    return value >= _BLANK_FP64 or _BLANK_INT32 <= value <= _LAST_INT32


def normal_address(text: str) -> str | None:
    """A PCI address in the kernel's form: ``00000000:0C:00.0`` and ``0C:00.0`` are ``0000:0c:00.0``; None for anything else."""
    found = _ADDRESS.fullmatch(text.strip().lower())
    if found is None:
        return None
    domain, bus, device, function = found.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function}"
