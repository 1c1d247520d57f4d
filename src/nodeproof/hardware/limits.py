"""What is known of a class of hardware: temperatures, memory and times that its campaigns go by. Data, and how it is checked.

The keys are those of the reference's ``HARDWARE.toml``, table ``[benchmarks.limits]`` (bench.md 3.5). A class without limits has
none: it never borrows another's.
"""

import math
from collections.abc import Mapping

import msgspec

from nodeproof.errors import ConfigError
from nodeproof.hardware.class_ids import KNOWN
from nodeproof.hardware.policy import Ceilings

__all__ = ["LIMITS", "ClassLimits", "Equivalence", "Memory", "Thermal", "Timing", "ceilings_of", "limits_of", "read_limits"]


class Thermal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Temperatures in °C."""

    chassis_park_c: float
    """A campaign leaves the node alone above this; the precheck's ceiling for zones."""
    chassis_resume_c: float
    """It comes back below this."""
    chassis_equivalence_delta_c: float
    """Two boxes further apart than this are not one for speed numbers."""
    gpu_ceiling_c: float
    """The precheck's ceiling for accelerators."""


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Memory before a server may start."""

    min_free_fraction: float


class Timing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Allowances of a campaign, in seconds."""

    serve_allowance_s: float
    boot_timeout_s: float
    shard_overhead_s: float
    shard_floor_s: float
    build_allowance_s: float


class Equivalence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shares by which two boxes may differ and still be one."""

    clock_spread: float
    mem_spread: float


class ClassLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All limits of one class."""

    thermal: Thermal
    memory: Memory
    timing: Timing
    equivalence: Equivalence


LIMITS: dict[str, ClassLimits] = {
    "gb10": ClassLimits(
        Thermal(chassis_park_c=80, chassis_resume_c=70, chassis_equivalence_delta_c=15, gpu_ceiling_c=75),
        Memory(min_free_fraction=0.85),
        Timing(serve_allowance_s=600, boot_timeout_s=900, shard_overhead_s=420, shard_floor_s=300, build_allowance_s=1800),
        Equivalence(clock_spread=0.01, mem_spread=0.05),
    )
}
"""Classes that were measured."""


def limits_of(class_name: str, table: Mapping[str, ClassLimits] = LIMITS) -> ClassLimits:
    """Limits of a class. Raises ConfigError, saying whether the class is not known, or known and not yet measured."""
    found = table.get(class_name)
    if found is not None:
        return found
    if class_name in KNOWN:
        raise ConfigError(class_name, "this class of hardware is known, and nothing was measured for it yet")
    raise ConfigError(class_name, "this is no known class of hardware", remedy=f"known: {', '.join(KNOWN)}")


def ceilings_of(class_name: str, table: Mapping[str, ClassLimits] = LIMITS) -> Ceilings:
    """Ceilings for the precheck; none where the class declares none."""
    found = table.get(class_name)
    return Ceilings() if found is None else Ceilings(gpu_c=found.thermal.gpu_ceiling_c, chassis_c=found.thermal.chassis_park_c)


def read_limits(document: Mapping[str, object], source: str = "HARDWARE.toml") -> ClassLimits | None:
    """Limits out of a decoded ``HARDWARE.toml``; None when it has no table ``benchmarks.limits``. Raises ConfigError."""
    benchmarks = document.get("benchmarks")
    table = benchmarks.get("limits") if isinstance(benchmarks, Mapping) else None
    if table is None:
        return None
    try:
        limits = msgspec.convert(table, ClassLimits)
    except msgspec.ValidationError as error:
        raise ConfigError("benchmarks.limits", str(error), source=source) from None
    problem = _problem(limits)
    if problem:
        raise ConfigError(f"benchmarks.limits.{problem[0]}", problem[1], source=source)
    return limits


def _problem(limits: ClassLimits) -> tuple[str, str] | None:
    """First contradiction: key and what is wrong with it."""
    tables = {"thermal": limits.thermal, "memory": limits.memory, "timing": limits.timing, "equivalence": limits.equivalence}
    for name, table in tables.items():
        for key in table.__struct_fields__:
            if not math.isfinite(getattr(table, key)):
                return f"{name}.{key}", "must be a finite number"
    thermal, timing = limits.thermal, limits.timing
    checks = (
        ("thermal.chassis_resume_c", thermal.chassis_resume_c < thermal.chassis_park_c, "must lie below chassis_park_c"),
        ("thermal.chassis_equivalence_delta_c", thermal.chassis_equivalence_delta_c > 0, "must be above 0"),
        ("memory.min_free_fraction", 0 < limits.memory.min_free_fraction < 1, "must lie between 0 and 1"),
        ("equivalence.clock_spread", limits.equivalence.clock_spread > 0, "must be above 0"),
        ("equivalence.mem_spread", limits.equivalence.mem_spread > 0, "must be above 0"),
        ("timing.serve_allowance_s", timing.serve_allowance_s > 0, "must be above 0"),
        ("timing.boot_timeout_s", timing.boot_timeout_s > 0, "must be above 0"),
        ("timing.build_allowance_s", timing.build_allowance_s > 0, "must be above 0"),
        ("timing.shard_overhead_s", timing.shard_overhead_s >= 0, "must not be negative"),
        ("timing.shard_floor_s", timing.shard_floor_s >= 0, "must not be negative"),
    )
    return next(((key, problem) for key, holds, problem in checks if not holds), None)
