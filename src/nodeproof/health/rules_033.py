"""The scored rules of version 0.3.3 (observe.md 5.3), for those who compare with old scores.

Penalties are shares of a component's points, or points for each error of each processor or memory controller; the latter were
totals since boot, and are gains within a window here. They need not add to 100: the share of a concern only says what hangs on it
in ``coverage``, and is its gravest penalty, or for errors counted one by one what 0.3.5 gives them.

Without a core count the reference compared the load with 8; here that rule is unknown then.
"""

from nodeproof.health import rules_035 as new
from nodeproof.health.rules import Compare, Concern, Limit, Probe, Tier
from nodeproof.model.health import Severity

__all__ = ["CONCERNS"]

_SPACE = Probe("disk", ("space_usage",), entity=("device", "mount_point"))
_TEXTS = {concern.key: (concern.help, concern.remedy) for concern in new.CONCERNS}


def _concern(component: str, name: str, share: float, *tiers: Tier, texts: str = "") -> Concern:
    meaning, remedy = _TEXTS[f"{component}.{texts or name}"]
    return Concern(component, name, share, tiers, meaning, remedy)


def _each(rule: str, probe: Probe, points: float, *, enter: int, severity: Severity = Severity.INFO) -> Tier:
    return Tier(rule, Limit(probe, Compare.ABOVE, 0, enter=enter, leave_s=0), 0, severity, points)


def _npu_ecc(memory: str, kind: str) -> Concern:
    rule = f"{memory}_{kind}_ecc"
    probe = new.npu_ecc(memory, kind)
    if kind == "double":
        return _concern("npu", rule, 20, new.uncorrected(rule, probe, 20), texts=f"{memory}_ecc")
    return _concern("npu", rule, 10, new.corrected(rule, probe, 10), texts=f"{memory}_ecc")


CONCERNS: tuple[Concern, ...] = (
    _concern(
        "cpu",
        "usage",
        20,
        new.above("usage>90%", new.USAGE, 90, 20, clear=88),
        new.above("usage>80%", new.USAGE, 80, 10, clear=78),
    ),
    _concern(
        "cpu",
        "temperature",
        30,
        new.above("temp>85C", new.CPU_TEMPERATURE, 85, 30, clear=82),
        new.above("temp>75C", new.CPU_TEMPERATURE, 75, 15, clear=72),
    ),
    _concern("cpu", "load", 10, new.above("load>cores*2", new.LOAD, 2, 10, clear=1.8)),
    _concern("cpu", "corrected_errors", 10, _each("cpu_ce_error", new.CPU_CORRECTED, 2, enter=2)),
    _concern(
        "cpu", "uncorrected_errors", 20, _each("cpu_uce_error", new.CPU_UNCORRECTED, 10, enter=1, severity=Severity.CRITICAL)
    ),
    _concern(
        "memory",
        "usage",
        30,
        new.above("usage>90%", new.MEMORY_USAGE, 90, 30, clear=88),
        new.above("usage>80%", new.MEMORY_USAGE, 80, 15, clear=78),
    ),
    _concern("memory", "swap", 10, new.above("swap>50%", new.SWAP, 50, 10, clear=45)),
    _concern("memory", "corrected_errors", 10, _each("ce_error", new.MEMORY_CORRECTED, 2, enter=2)),
    _concern(
        "memory", "uncorrected_errors", 30, _each("uce_error", new.MEMORY_UNCORRECTED, 10, enter=1, severity=Severity.CRITICAL)
    ),
    _concern("memory", "saturation", 15, new.above("saturation>80%", new.SATURATION, 80, 15, clear=70)),
    _concern("memory", "fragmentation", 10, new.above("fragmentation>80%", new.FRAGMENTATION, 80, 10, clear=75)),
    Concern(
        "disk",
        "space",
        40,
        (new.above("space>90%", _SPACE, 90, 40, clear=89), new.above("space>80%", _SPACE, 80, 20, clear=79)),
        "Space in use on the fullest file system.",
        "Find what fills it (df -h, du -xh).",
    ),
    _concern("disk", "io_wait", 10, new.above("io_wait>20%", new.IO_WAIT, 20, 10, clear=15)),
    _concern("disk", "smart", 30, new.smart_failed(30)),
    _concern(
        "gpu",
        "temperature",
        30,
        new.above("temp>90C", new.GPU_TEMPERATURE, 90, 30, clear=87),
        new.above("temp>80C", new.GPU_TEMPERATURE, 80, 15, clear=77),
    ),
    _concern("gpu", "memory", 10, new.above("mem>95%", new.GPU_MEMORY, 95, 10, clear=93)),
    _concern("gpu", "utilization", 10, new.above("util>95%", new.GPU_UTILIZATION, 95, 10, clear=90)),
    _concern("gpu", "ecc", 20, new.uncorrected("ecc_error", new.GPU_ECC, 20)),
    _concern(
        "npu",
        "temperature",
        30,
        new.above("temp>90C", new.NPU_TEMPERATURE, 90, 30, clear=87),
        new.above("temp>80C", new.NPU_TEMPERATURE, 80, 15, clear=77),
    ),
    _concern("npu", "memory", 10, new.above("mem>95%", new.NPU_MEMORY, 95, 10, clear=93)),
    _concern("npu", "health", 30, new.npu_health("health_alarm", 3, 30), new.npu_health("health_warning", 2, 15)),
    _concern("npu", "utilization", 10, new.above("util>95%", new.NPU_UTILIZATION, 95, 10, clear=90)),
    _npu_ecc("hbm", "double"),
    _npu_ecc("ddr", "double"),
    _npu_ecc("hbm", "single"),
    _npu_ecc("ddr", "single"),
    _concern(
        "npu", "error_code", 10, Tier("error_code", Limit(new.NPU_ERROR_CODE, Compare.ABOVE, 0, enter=2), 10, Severity.WARNING)
    ),
)
"""Every concern, component by component, in the order of the reference's table."""
