"""Metrics of component cpu (observe.md 1.2), and what an administrator of such nodes needs beyond them."""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["METRICS"]

_ALL = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_STAT = "/proc/stat"


def _time(name: str, what: str) -> MetricSpec:
    return MetricSpec(
        "cpu",
        f"{name}_time",
        "jiffies",
        Kind.COUNTER,
        f"Time spent {what}, since boot.",
        _STAT,
        ("core",),
        default=False,
        features=_ALL,
        reference=True,
    )


def _util(name: str, what: str) -> MetricSpec:
    return MetricSpec(
        "cpu",
        f"{name}_util",
        "%",
        Kind.GAUGE,
        f"Share of the last interval spent {what}.",
        _STAT,
        ("core",),
        reference=True,
    )


METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(
        "cpu",
        "usage",
        "%",
        Kind.GAUGE,
        "Share of the last interval that was neither idle nor waiting: guest time is counted once, iowait counts as busy.",
        _STAT,
        ("core",),
        Priority.HIGH,
        reference=True,
    ),
    MetricSpec(
        "cpu",
        "load_average",
        "",
        Kind.GAUGE,
        "Runnable and uninterruptible tasks, averaged by the kernel.",
        "/proc/loadavg",
        ("interval",),
        Priority.HIGH,
        features=_ALL,
        reference=True,
    ),
    MetricSpec(
        "cpu",
        "context_switches",
        "count/s",
        Kind.GAUGE,
        "Context switches a second.",
        _STAT,
        priority=Priority.LOW,
        default=False,
        reference=True,
    ),
    MetricSpec(
        "cpu",
        "process_count",
        "count",
        Kind.GAUGE,
        "Scheduling entities: running now, and in all.",
        "/proc/loadavg",
        ("type",),
        Priority.LOW,
        default=False,
        reference=True,
    ),
    _time("user", "in user mode, guests included"),
    _time("nice", "in user mode at low priority"),
    _time("system", "in the kernel"),
    _time("idle", "idle"),
    _time("iowait", "idle with I/O outstanding"),
    _time("irq", "serving interrupts"),
    _time("softirq", "serving soft interrupts"),
    _time("steal", "runnable while the hypervisor ran others"),
    _util("user", "in user mode, nice included"),
    _util("system", "in the kernel"),
    _util("idle", "idle"),
    _util("iowait", "idle with I/O outstanding"),
    MetricSpec(
        "cpu",
        "online_core_num",
        "count",
        Kind.GAUGE,
        "Logical processors that the kernel schedules on.",
        "/sys/devices/system/cpu/online",
        reference=True,
    ),
)
