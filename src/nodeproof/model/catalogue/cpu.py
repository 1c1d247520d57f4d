"""Metrics of component cpu (observe.md 1.2), and what an administrator of such nodes needs beyond them."""

from nodeproof.model.catalogue.cpu_hardware import FREQUENCY_PERIOD_S, HARDWARE, STATIC_PERIOD_S, static
from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["ADVISORY_PERIOD_S", "METRICS", "ZONE_PERIOD_S"]

_ALL = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_SHOWN = (Feature.WEB,)
_STAT = "/proc/stat"
_CPU = "/sys/devices/system/cpu"
_TOPOLOGY = f"{_CPU}/cpu*/topology"
_NODES = "/sys/devices/system/node/node*/cpulist"
_CACHES = f"{_CPU}/cpu*/cache/index*"

ZONE_PERIOD_S = 60.0
ADVISORY_PERIOD_S = 3600.0


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


def _util(name: str, what: str, *, reference: bool = True) -> MetricSpec:
    return MetricSpec(
        "cpu",
        f"{name}_util",
        "%",
        Kind.GAUGE,
        f"Share of the last interval spent {what}.",
        _STAT,
        ("core",),
        reference=reference,
    )


def _rate(name: str, what: str, *, reference: bool = False) -> MetricSpec:
    return MetricSpec(
        "cpu",
        name,
        "count/s",
        Kind.GAUGE,
        f"{what} a second.",
        _STAT,
        priority=Priority.LOW,
        default=False,
        reference=reference,
    )


def _cores(name: str, meaning: str, source: str, *, reference: bool = True) -> MetricSpec:
    return MetricSpec("cpu", name, "count", Kind.GAUGE, meaning, source, period_s=FREQUENCY_PERIOD_S, reference=reference)


_TIMES = (
    MetricSpec(
        "cpu",
        "usage",
        "%",
        Kind.GAUGE,
        "Share of the last interval that was not idle: guest time is counted once, iowait counts as busy.",
        _STAT,
        ("core",),
        Priority.HIGH,
        reference=True,
    ),
    _util("user", "in user mode, nice included"),
    _util("system", "in the kernel"),
    _util("idle", "idle"),
    _util("iowait", "idle with I/O outstanding"),
    _util("irq", "serving interrupts, all processors together", reference=False),
    _util("softirq", "serving soft interrupts, all processors together", reference=False),
    _util("steal", "runnable while the hypervisor ran others, all processors together", reference=False),
    _time("user", "in user mode, guests included"),
    _time("nice", "in user mode at low priority"),
    _time("system", "in the kernel"),
    _time("idle", "idle"),
    _time("iowait", "idle with I/O outstanding"),
    _time("irq", "serving interrupts"),
    _time("softirq", "serving soft interrupts"),
    _time("steal", "runnable while the hypervisor ran others"),
    _rate("context_switches", "Context switches", reference=True),
    _rate("interrupts", "Interrupts served"),
    _rate("softirqs", "Soft interrupts served"),
    _rate("forks", "Processes and threads created"),
    MetricSpec("cpu", "procs_blocked", "count", Kind.GAUGE, "Tasks that wait for I/O and cannot be interrupted.", _STAT),
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
    MetricSpec(
        "cpu",
        "pressure",
        "%",
        Kind.GAUGE,
        "Share of time in which some tasks, or all of them (full), waited for a processor, averaged by the kernel.",
        "/proc/pressure/cpu",
        ("stall", "interval"),
    ),
    MetricSpec(
        "cpu",
        "pressure_stall_time",
        "s",
        Kind.COUNTER,
        "Time in which some tasks, or all of them (full), waited for a processor, since boot.",
        "/proc/pressure/cpu",
        ("stall",),
    ),
)

_TOPOLOGY_ROWS = (
    _cores("online_core_num", "Logical processors that the kernel schedules on.", f"{_CPU}/online"),
    _cores("offline_core_num", "Logical processors that are present and switched off.", f"{_CPU}/offline"),
    _cores("isolated_core_num", "Logical processors kept free of ordinary tasks (isolcpus).", f"{_CPU}/isolated"),
    _cores(
        "allowed_core_num",
        "Logical processors that this process, and so its container, may run on.",
        "/proc/self/status",
        reference=False,
    ),
    MetricSpec(
        "cpu",
        "cgroup_limit_cores",
        "cores",
        Kind.GAUGE,
        "Processor time that the control group of this process may use: the tightest quota divided by its period.",
        "/sys/fs/cgroup",
        ("source",),
        period_s=FREQUENCY_PERIOD_S,
    ),
    MetricSpec(
        "cpu",
        "smt_active",
        "",
        Kind.STATE,
        "Whether cores run more than one thread: 0 no, 1 yes.",
        f"{_CPU}/smt",
        ("control",),
        Priority.LOW,
        features=_SHOWN,
        period_s=STATIC_PERIOD_S,
    ),
    MetricSpec(
        "cpu",
        "model_info",
        "cores",
        Kind.STATIC,
        "Processor model; the value is the number of cores of one socket.",
        "/proc/cpuinfo",
        ("model_name", "cache_size"),
        Priority.LOW,
        period_s=STATIC_PERIOD_S,
        reference=True,
    ),
    static("core_num", "count", "Logical processors that are present.", f"{_CPU}/present"),
    static("cpu_num", "count", "Processor sockets.", _TOPOLOGY),
    static("numa_node_num", "count", "NUMA nodes.", "/sys/devices/system/node/online"),
    static("numa_core_num", "count", "Logical processors of a NUMA node.", _NODES, "node"),
    MetricSpec(
        "cpu",
        "die_core_num",
        "count",
        Kind.STATIC,
        "Cores of a die of the first socket. Dropped by the reference in its 0.3.5.",
        _TOPOLOGY,
        ("die",),
        Priority.LOW,
        default=False,
        features=(),
        period_s=STATIC_PERIOD_S,
        reference=True,
    ),
    static("l1d_cache_size", "KB", "Level 1 data cache of a core, in KiB.", _CACHES, "core"),
    static("l1i_cache_size", "KB", "Level 1 instruction cache of a core, in KiB.", _CACHES, "core"),
    static("l2_cache_size", "KB", "Level 2 cache that a core uses, in KiB.", _CACHES, "core"),
    static("l3_cache_size", "KB", "Level 3 cache that a core uses, in KiB.", _CACHES, "core"),
    MetricSpec(
        "cpu",
        "numa_order_num",
        "count",
        Kind.GAUGE,
        "Sizes of free blocks that the page allocator distinguishes.",
        "/proc/buddyinfo",
        ("node", "zone"),
        Priority.LOW,
        default=False,
        period_s=ZONE_PERIOD_S,
        reference=True,
    ),
    MetricSpec(
        "cpu",
        "numa_info",
        "order",
        Kind.GAUGE,
        "Highest order with a free block: 2^order pages can be had in one piece.",
        "/proc/buddyinfo",
        ("node", "zone"),
        Priority.LOW,
        default=False,
        period_s=ZONE_PERIOD_S,
        reference=True,
    ),
    MetricSpec(
        "cpu",
        "microcode_info",
        "count",
        Kind.INFO,
        "Microcode in use; 1 for each version, a sound machine has one.",
        "/proc/cpuinfo",
        ("version",),
        Priority.LOW,
        features=_SHOWN,
        period_s=ADVISORY_PERIOD_S,
    ),
    MetricSpec(
        "cpu",
        "vulnerability",
        "",
        Kind.STATE,
        "What the kernel says of a known flaw of processors: 0 not affected, 1 mitigated, 2 vulnerable.",
        f"{_CPU}/vulnerabilities",
        ("vulnerability", "detail"),
        Priority.LOW,
        default=False,
        features=(),
        period_s=ADVISORY_PERIOD_S,
    ),
)

METRICS: tuple[MetricSpec, ...] = (*_TIMES, *_TOPOLOGY_ROWS, *HARDWARE)
