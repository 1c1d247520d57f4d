"""What this box should reach: ranges with their reasons, from its cores, clocks, vector width and memory modules.

A bound is a range on purpose. The clock under load lies somewhere between base and boost, two modules on a channel clock down,
and which cores have a second vector unit is not written anywhere. In a virtual machine neither clock nor memory is knowable;
then there is no bound, and only the machine's own history can say what is normal.
"""

from typing import NamedTuple

import msgspec

__all__ = ["CpuFacts", "FlopsPerCycle", "Range", "compute_bound", "fastest_flops", "flops_per_cycle", "memory_bound"]


class FlopsPerCycle(NamedTuple):
    """Double precision operations of one core in one cycle, a fused multiply-add counted as two."""

    low: int
    high: int
    why: str


class CpuFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the processors. None or empty = unknown."""

    cores: int
    """Physical cores that may be used; two threads of a core share its vector units."""
    vendor: str = ""
    family: int | None = None
    model: int | None = None
    flags: frozenset[str] = frozenset()
    arm_parts: tuple[tuple[int, int], ...] = ()
    base_hz: float | None = None
    highest_hz: float | None = None
    """The highest clock seen under load, or the highest the processor offers."""
    virtual: bool = False


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """From ``low`` to ``high``; both None when nothing can be said; ``reason`` says how it was worked out, or why not."""

    low: float | None
    high: float | None
    reason: str


# Public micro-architecture descriptions: the vendors' optimisation guides, and the same figures in the HPC field's own tables.
_AMD = (
    (0x17, 0x00, 0x2F, 8, "Zen and Zen+: 256-bit operations in two halves"),
    (0x17, 0x30, 0xFF, 16, "Zen 2: two 256-bit multiply-add units"),
    (0x19, 0x00, 0xFF, 16, "Zen 3 and Zen 4: two 256-bit multiply-add units, 512-bit operations in two halves"),
    (0x1A, 0x00, 0xFF, 32, "Zen 5: two 512-bit multiply-add units"),
)
_ARM = {
    (0x41, 0xD0C): (8, "Neoverse N1: two 128-bit multiply-add units"),
    (0x41, 0xD49): (8, "Neoverse N2: two 128-bit multiply-add units"),
    (0x41, 0xD40): (16, "Neoverse V1: two 256-bit multiply-add units"),
    (0x41, 0xD4F): (16, "Neoverse V2: four 128-bit multiply-add units"),
    (0x46, 0x001): (32, "A64FX: two 512-bit multiply-add units"),
    (0x48, 0xD01): (8, "TSV110 (Kunpeng 920): two 128-bit multiply-add units, by public notes"),
    (0xC0, 0xAC3): (8, "AmpereOne: two 128-bit multiply-add units"),
}
_X86 = (
    ("avx512f", 16, 32, "AVX-512 with one or two multiply-add units"),
    ("fma", 16, 16, "AVX2 with two multiply-add units"),
    ("avx", 8, 8, "AVX: one addition and one multiplication of 256 bits"),
    ("sse2", 4, 4, "SSE2: one addition and one multiplication of 128 bits"),
)
_BOOST = 1.6
"""No processor's boost is further above its nominal clock."""
_FASTEST_HZ = 6e9
_BYTES_A_TRANSFER = 8
_STREAM_LOW, _STREAM_HIGH = 0.6, 0.92
"""Share of the modules' rate that STREAM's Triad reaches on sound servers: 63 to 89 % in published figures."""


def flops_per_cycle(cpu: CpuFacts) -> FlopsPerCycle | None:
    """From the processor's model where it is known, else from its vector instructions; None when neither is."""
    for family, first, last, count, why in _AMD:
        if cpu.vendor == "AuthenticAMD" and cpu.family == family and cpu.model is not None and first <= cpu.model <= last:
            return FlopsPerCycle(count, count, why)
    known = [_ARM[part] for part in cpu.arm_parts if part in _ARM]
    if known and len(known) == len(cpu.arm_parts):
        return FlopsPerCycle(min(known)[0], max(known)[0], " and ".join(why for _, why in known))
    for flag, low, high, why in _X86:
        if flag in cpu.flags:
            return FlopsPerCycle(low, high, why)
    if "asimd" in cpu.flags:
        return FlopsPerCycle(4, 32 if "sve" in cpu.flags else 16, "vectors of 128 bits or more, an unknown number of units")
    return None


def compute_bound(cpu: CpuFacts) -> Range:
    """Floating point operations a second that the cores can do at most, at base and at the highest clock."""
    width = flops_per_cycle(cpu)
    if cpu.virtual:
        return _unknown("in a virtual machine the clock is not knowable; hold the figure against this machine's own history")
    if width is None:
        return _unknown("the processor's vector instructions are not known")
    clocks = sorted(clock for clock in (cpu.base_hz, cpu.highest_hz) if clock)
    if not clocks:
        return _unknown("neither base clock nor highest clock can be read")
    low, high = clocks[0], clocks[-1]
    return Range(
        low=cpu.cores * low * width.low,
        high=cpu.cores * high * width.high,
        reason=f"{cpu.cores} cores x {low / 1e9:.2f} to {high / 1e9:.2f} GHz x {_span(width)} operations a cycle ({width.why})",
    )


def fastest_flops(cpu: CpuFacts) -> float | None:
    """A rate that the box cannot exceed, for sizing only: known in a virtual machine too. None when nothing is known."""
    width = flops_per_cycle(cpu)
    if width is None:
        return None
    nominal = cpu.base_hz or 0.0
    clock = max(cpu.highest_hz or 0.0, nominal * _BOOST) or _FASTEST_HZ
    return cpu.cores * min(clock, _FASTEST_HZ) * width.high


def memory_bound(transfers_per_second: list[float], *, channels: int | None = None, virtual: bool = False) -> Range:
    """Bytes a second that STREAM's Triad should reach.

    ``transfers_per_second`` holds the configured rate of each populated module (SMBIOS type 17 "Configured Memory Speed", not
    "Speed"). Without the number of populated ``channels`` each module may have one to itself, or share it with another.
    """
    if virtual:
        return _unknown("in a virtual machine the memory modules are not knowable; hold the figure against its own history")
    rates = [rate for rate in transfers_per_second if rate > 0]
    if not rates:
        return _unknown("the configured speed of the memory modules cannot be read")
    slowest = min(rates)
    most = channels or len(rates)
    least = channels or -(-len(rates) // 2)
    note = "" if channels else ", one or two modules a channel"
    return Range(
        low=_STREAM_LOW * least * slowest * _BYTES_A_TRANSFER,
        high=_STREAM_HIGH * most * slowest * _BYTES_A_TRANSFER,
        reason=f"{len(rates)} modules at {slowest / 1e6:.0f} MT/s x {_BYTES_A_TRANSFER} bytes{note}; "
        f"STREAM reaches {_STREAM_LOW:.0%} to {_STREAM_HIGH:.0%} of that",
    )


def _span(width: FlopsPerCycle) -> str:
    """``16``, or ``16 to 32``."""
    return str(width.low) if width.low == width.high else f"{width.low} to {width.high}"


def _unknown(reason: str) -> Range:
    """No bound, and why."""
    return Range(low=None, high=None, reason=reason)
