"""Vector instructions and clock in ``/proc/cpuinfo``: ``flags : fpu vme ... avx2 avx512f``, on arm64 ``Features : fp asimd``.

Only the first processor is looked at, and the parts of all. Written by arch/x86/kernel/cpu/proc.c and
arch/arm64/kernel/cpuinfo.c. ``cpu MHz`` on x86 is what the processor ran at a moment ago (or its nominal clock in a virtual
machine), not its base clock.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["CpuIsa", "parse"]


class CpuIsa(NamedTuple):
    """What decides how many operations a core does in a cycle. None or empty = not said."""

    flags: frozenset[str]
    vendor: str
    family: int | None
    model: int | None
    arm_parts: tuple[tuple[int, int], ...]
    """Every different (implementer, part)."""
    mhz: float | None


def parse(raw: bytes, /, source: str = "/proc/cpuinfo") -> CpuIsa:
    """Read the first processor, and the parts of all. Raises ParseError when no line has a name and a colon."""
    first: dict[str, str] = {}
    parts: dict[tuple[int, int], None] = {}
    implementer: int | None = None
    for line in raw.decode("utf-8", "replace").split("\n"):
        name, separator, value = (piece.strip() for piece in line.partition(":"))
        if not separator:
            continue
        first.setdefault(name, value)
        if name == "CPU implementer":
            implementer = _number(value)
        elif name == "CPU part" and implementer is not None and (part := _number(value)) is not None:
            parts[implementer, part] = None
    if not first:
        raise ParseError(source, 0, raw[:60].decode("utf-8", "replace"), "lines such as 'flags : fpu vme'")
    mhz = first.get("cpu MHz", "")
    return CpuIsa(
        frozenset((first.get("flags") or first.get("Features") or "").split()),
        first.get("vendor_id", ""),
        _number(first.get("cpu family", "")),
        _number(first.get("model", "")),
        tuple(parts),
        float(mhz) if mhz.replace(".", "", 1).isdecimal() and mhz.isascii() and 0 < float(mhz) < 20000 else None,
    )


def _number(text: str) -> int | None:
    """A decimal or ``0x`` number; None for anything else."""
    try:
        return int(text, 0) if text[:1].isdecimal() and len(text) <= 20 else None
    except ValueError:
        return None
