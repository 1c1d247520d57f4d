"""Metrics of component memory (observe.md 1.3), and what an administrator of such nodes needs beyond them."""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = [
    "CGROUP_PERIOD_S",
    "ECC_MODULE_PERIOD_S",
    "ECC_PERIOD_S",
    "METRICS",
    "NUMA_PERIOD_S",
    "POWER_PERIOD_S",
    "SETTING_PERIOD_S",
    "SMBIOS_PERIOD_S",
    "ZONE_PERIOD_S",
    "ZRAM_PERIOD_S",
]

_ALL = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_SHOWN = (Feature.WEB,)
_MEMINFO = "/proc/meminfo"
_VMSTAT = "/proc/vmstat"
_PRESSURE = "/proc/pressure/memory"
_EDAC = "/sys/devices/system/edac/mc"
_SMBIOS = "/sys/firmware/dmi/tables/DMI, dmidecode"
_CGROUP = "/sys/fs/cgroup"

ECC_PERIOD_S = 5.0
ECC_MODULE_PERIOD_S = 60.0
CGROUP_PERIOD_S = 5.0
POWER_PERIOD_S = 10.0
NUMA_PERIOD_S = 30.0
SMBIOS_PERIOD_S = 30.0
"""Statics are read again at this cadence until they are there."""
ZRAM_PERIOD_S = 30.0
SETTING_PERIOD_S = 60.0
ZONE_PERIOD_S = 60.0


def _row(
    name: str,
    unit: str,
    kind: Kind,
    meaning: str,
    source: str,
    *labels: str,
    priority: Priority = Priority.MEDIUM,
    default: bool = True,
    features: tuple[Feature, ...] = (Feature.WEB, Feature.HEALTH),
    period_s: float = 0.0,
    reference: bool = False,
) -> MetricSpec:
    return MetricSpec("memory", name, unit, kind, meaning, source, labels, priority, default, features, period_s, reference)


def _pages(name: str, what: str) -> MetricSpec:
    return _row(name, "count", Kind.GAUGE, what, _VMSTAT, priority=Priority.LOW, default=False, reference=True)


_USE_ROWS = (
    _row(
        "usage",
        "%",
        Kind.GAUGE,
        "Share of memory that could not be given to a new program without swapping: total less available.",
        _MEMINFO,
        priority=Priority.HIGH,
        reference=True,
    ),
    _row(
        "usage_detail",
        "MB",
        Kind.GAUGE,
        "Memory by state: total, used (total less available), available, free, buffers, cached, sreclaimable, unevictable.",
        _MEMINFO,
        "field",
        features=_ALL,
        reference=True,
    ),
    _row(
        "swap_usage",
        "%",
        Kind.GAUGE,
        "Share of swap in use; 0 on a machine without swap.",
        _MEMINFO,
        priority=Priority.HIGH,
        reference=True,
    ),
    _row("swap_detail", "MB", Kind.GAUGE, "Swap: total, used, free.", _MEMINFO, "field", features=_ALL, reference=True),
    _row(
        "breakdown",
        "MB",
        Kind.GAUGE,
        "Memory by what it is used for, as far as the kernel tells; the parts overlap and do not add up to the total.",
        _MEMINFO,
        "field",
    ),
    _row(
        "commit_usage",
        "%",
        Kind.GAUGE,
        "Memory promised to programs against the commit limit, which binds only under overcommit policy 2.",
        _MEMINFO,
        priority=Priority.LOW,
    ),
    _row(
        "hardware_corrupted",
        "MB",
        Kind.GAUGE,
        "Memory that the kernel took out of use because it is broken.",
        _MEMINFO,
        priority=Priority.HIGH,
    ),
)

_ACTIVITY_ROWS = (
    _row("swap_in", "count/s", Kind.GAUGE, "Pages read from swap a second.", _VMSTAT, reference=True),
    _row("swap_out", "count/s", Kind.GAUGE, "Pages written to swap a second.", _VMSTAT, reference=True),
    _row(
        "page_faults",
        "count/s",
        Kind.GAUGE,
        "Page faults a second: major ones waited for a disk, minor ones did not.",
        _VMSTAT,
        "type",
        priority=Priority.LOW,
        default=False,
        reference=True,
    ),
    _pages("isolated_pages", "Pages taken off their list to be moved or freed, of both kinds."),
    _pages("isolated_anon_pages", "Anonymous pages taken off their list to be moved or freed."),
    _pages("isolated_file_pages", "File pages taken off their list to be moved or freed."),
    _pages("free_pages", "Free pages."),
    _row(
        "oom_count",
        "count",
        Kind.COUNTER,
        "Processes killed for want of memory, one each, since boot; without the kernel's counter, as far as its log reaches.",
        f"{_VMSTAT}, /dev/kmsg",
        reference=True,
    ),
    _row(
        "allocation_stalls",
        "count/s",
        Kind.GAUGE,
        "Allocations a second that had to free memory themselves before they got any.",
        _VMSTAT,
    ),
    _row(
        "refaults",
        "count/s",
        Kind.GAUGE,
        "Pages a second that were needed again soon after they had been evicted: high and steady is thrashing.",
        _VMSTAT,
        "type",
    ),
    _row(
        "saturation",
        "%",
        Kind.GAUGE,
        "Share of time in which some task waited for memory, averaged by the kernel.",
        _PRESSURE,
        "interval",
        reference=True,
    ),
    _row(
        "pressure",
        "%",
        Kind.GAUGE,
        "Share of time in which all tasks waited for memory (stall full), averaged by the kernel; some is metric saturation.",
        _PRESSURE,
        "stall",
        "interval",
    ),
    _row(
        "pressure_stall_time",
        "s",
        Kind.COUNTER,
        "Time in which some tasks, or all of them (full), waited for memory, since boot.",
        _PRESSURE,
        "stall",
    ),
    _row(
        "fragmentation",
        "%",
        Kind.GAUGE,
        "Share of a zone's free memory that lies in single pages.",
        "/proc/buddyinfo",
        "node",
        "zone",
        period_s=ZONE_PERIOD_S,
        reference=True,
    ),
    _row(
        "power",
        "W",
        Kind.GAUGE,
        "Power drawn by memory, by the sensors of the BMC.",
        "ipmitool sensor",
        "sensor",
        period_s=POWER_PERIOD_S,
        reference=True,
    ),
)

_ECC_ROWS = (
    _row(
        "ecc_ce_errors",
        "count",
        Kind.COUNTER,
        "Memory errors corrected by a controller, since its driver was loaded.",
        _EDAC,
        "mc",
        priority=Priority.HIGH,
        period_s=ECC_PERIOD_S,
        reference=True,
    ),
    _row(
        "ecc_uce_errors",
        "count",
        Kind.COUNTER,
        "Memory errors that a controller could not correct, since its driver was loaded.",
        _EDAC,
        "mc",
        priority=Priority.HIGH,
        period_s=ECC_PERIOD_S,
        reference=True,
    ),
    _row(
        "ecc_dimm_ce_errors",
        "count",
        Kind.COUNTER,
        "Memory errors corrected in one module, rank or channel, since the driver was loaded.",
        _EDAC,
        "mc",
        "dimm",
        "label",
        "location",
        priority=Priority.HIGH,
        period_s=ECC_MODULE_PERIOD_S,
    ),
    _row(
        "ecc_dimm_uce_errors",
        "count",
        Kind.COUNTER,
        "Memory errors not corrected in one module, rank or channel, since the driver was loaded.",
        _EDAC,
        "mc",
        "dimm",
        "label",
        "location",
        priority=Priority.HIGH,
        period_s=ECC_MODULE_PERIOD_S,
    ),
    _row(
        "ecc_dimm_size",
        "MB",
        Kind.STATIC,
        "Size of a module, as the memory controller knows it.",
        _EDAC,
        "mc",
        "dimm",
        "label",
        "location",
        priority=Priority.LOW,
        features=_SHOWN,
        period_s=ECC_MODULE_PERIOD_S,
    ),
    _row(
        "ecc_noinfo_errors",
        "count",
        Kind.COUNTER,
        "Memory errors, corrected (ce) and not (uce), that a controller could lay to no module.",
        _EDAC,
        "mc",
        "type",
        period_s=ECC_MODULE_PERIOD_S,
    ),
    _row(
        "ecc_controller_info",
        "MB",
        Kind.INFO,
        "A memory controller: the memory behind it, its model, and how it corrects errors.",
        _EDAC,
        "mc",
        "model",
        "mode",
        priority=Priority.LOW,
        features=_SHOWN,
        period_s=ECC_MODULE_PERIOD_S,
    ),
)

_LAYOUT_ROWS = (
    _row(
        "numa_detail",
        "MB",
        Kind.GAUGE,
        "Memory of a NUMA node: total, free, used (page cache included).",
        "/sys/devices/system/node/node*/meminfo",
        "node",
        "field",
        period_s=NUMA_PERIOD_S,
    ),
    _row(
        "numa_allocations_total",
        "count",
        Kind.COUNTER,
        "Pages given out by a NUMA node: hit as wished, miss instead of another node, foreign on another node in its place, and "
        "interleave_hit, local, other by where the task ran.",
        "/sys/devices/system/node/node*/numastat",
        "node",
        "type",
        priority=Priority.LOW,
        features=_SHOWN,
        period_s=NUMA_PERIOD_S,
    ),
    _row(
        "hugepages",
        "count",
        Kind.GAUGE,
        "Pages of a pool of huge pages: total, free, reserved, surplus.",
        "/sys/kernel/mm/hugepages",
        "size",
        "field",
        features=_SHOWN,
        period_s=SETTING_PERIOD_S,
    ),
    _row(
        "transparent_hugepages",
        "",
        Kind.STATE,
        "Whether the kernel gives out huge pages by itself: 0 never, 1 where programs ask for it (madvise), 2 always.",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "state",
        priority=Priority.LOW,
        features=_SHOWN,
        period_s=SETTING_PERIOD_S,
    ),
    _row(
        "overcommit_policy",
        "",
        Kind.STATE,
        "How the kernel judges promises of memory: 0 heuristic, 1 always granted, 2 never beyond the commit limit.",
        "/proc/sys/vm/overcommit_memory",
        "policy",
        priority=Priority.LOW,
        features=_SHOWN,
        period_s=SETTING_PERIOD_S,
    ),
    _row(
        "zram_detail",
        "MB",
        Kind.GAUGE,
        "Compressed memory device: its size (disk), what was written to it (original, compressed), what it costs (used).",
        "/sys/block/zram*/mm_stat",
        "device",
        "field",
        priority=Priority.LOW,
        features=_SHOWN,
        period_s=ZRAM_PERIOD_S,
    ),
)

_CGROUP_ROWS = (
    _row(
        "cgroup_limit",
        "MB",
        Kind.GAUGE,
        "Memory that a container, service or job around this process may use, and the file that says so.",
        _CGROUP,
        "cgroup",
        "source",
        period_s=CGROUP_PERIOD_S,
    ),
    _row(
        "cgroup_usage",
        "%",
        Kind.GAUGE,
        "Use of that limit: what is charged to the cgroup, less page cache that goes first.",
        _CGROUP,
        "cgroup",
        period_s=CGROUP_PERIOD_S,
    ),
    _row(
        "cgroup_detail",
        "MB",
        Kind.GAUGE,
        "What is charged to that cgroup (current), without page cache that goes first (working_set), swap and its limit.",
        _CGROUP,
        "cgroup",
        "field",
        period_s=CGROUP_PERIOD_S,
    ),
    _row(
        "cgroup_oom_kills",
        "count",
        Kind.COUNTER,
        "Processes of that cgroup killed for want of memory, since it was made.",
        _CGROUP,
        "cgroup",
        period_s=CGROUP_PERIOD_S,
    ),
)


def _module(name: str, unit: str, kind: Kind, meaning: str, *labels: str, reference: bool = False) -> MetricSpec:
    return _row(
        name,
        unit,
        kind,
        meaning,
        _SMBIOS,
        *labels,
        priority=Priority.LOW,
        period_s=SMBIOS_PERIOD_S,
        reference=reference,
    )


_MODULE_ROWS = (
    _module("module_num", "count", Kind.STATIC, "Memory modules that are in place.", reference=True),
    _module("module_size", "MB", Kind.STATIC, "Size of a memory module.", "locator", reference=True),
    _module(
        "module_info",
        "MB",
        Kind.INFO,
        "A memory module: its size, kind, the speed it was set to, its maker and part number.",
        "locator",
        "type",
        "speed",
        "manufacturer",
        "part_number",
        reference=True,
    ),
    _module("module_slots", "count", Kind.STATIC, "Memory slots, empty ones included."),
    _module("installed_size", "MB", Kind.STATIC, "All memory modules together, as the firmware sees them."),
    _module(
        "module_speed_downclocked",
        "",
        Kind.STATE,
        "Whether a module was set to a lower speed than it is rated for: 1 yes, 0 no.",
        "locator",
        "rated",
        "configured",
    ),
    _module(
        "ecc_capability",
        "",
        Kind.STATE,
        "Whether the memory can correct errors, as the firmware says: 1 yes, 0 no.",
        "type",
    ),
)

METRICS: tuple[MetricSpec, ...] = (
    *_USE_ROWS,
    *_ACTIVITY_ROWS,
    *_ECC_ROWS,
    *_LAYOUT_ROWS,
    *_CGROUP_ROWS,
    *_MODULE_ROWS,
)
