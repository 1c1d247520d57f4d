"""Metrics of component disk (observe.md 1.4, 1.9, 1.11), and what an administrator of such nodes needs beyond them."""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["ERRORS_PERIOD_S", "METRICS", "RAID_PERIOD_S", "SMART_PERIOD_S", "SPACE_PERIOD_S", "TEMPERATURE_PERIOD_S"]

_ALL = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_STATS = "/proc/diskstats"
_SPACE = "/proc/self/mountinfo, statvfs"
_SMART = "smartctl --json=c -n standby -x"
_MD = "/sys/block/md*/md, /proc/mdstat"
_MOUNT_LABELS = ("device", "mount_point", "fstype")

SPACE_PERIOD_S = 5.0
RAID_PERIOD_S = 10.0
ERRORS_PERIOD_S = 30.0
SMART_PERIOD_S = 60.0
"""How often answers are looked at; smartctl itself runs every ten minutes."""
TEMPERATURE_PERIOD_S = 10.0


def _rate(
    name: str, unit: str, meaning: str, *labels: str, features: tuple[Feature, ...] = _ALL, reference: bool = True
) -> MetricSpec:
    return MetricSpec(
        "disk", name, unit, Kind.GAUGE, meaning, _STATS, ("device", *labels), features=features, reference=reference
    )


def _total(name: str, unit: str, meaning: str) -> MetricSpec:
    return MetricSpec("disk", name, unit, Kind.COUNTER, meaning, _STATS, ("device",), features=_ALL, reference=True)


def _count(name: str, unit: str, kind: Kind, meaning: str) -> MetricSpec:
    return MetricSpec("disk", name, unit, kind, meaning, _STATS, ("device",))


def _mount(name: str, unit: str, kind: Kind, meaning: str, priority: Priority, *labels: str, reference: bool) -> MetricSpec:
    return MetricSpec(
        "disk",
        name,
        unit,
        kind,
        meaning,
        _SPACE,
        (*_MOUNT_LABELS, *labels),
        priority,
        period_s=SPACE_PERIOD_S,
        reference=reference,
    )


def _raid(name: str, unit: str, kind: Kind, meaning: str, priority: Priority, *labels: str) -> MetricSpec:
    return MetricSpec("disk", name, unit, kind, meaning, _MD, ("device", "level", *labels), priority, period_s=RAID_PERIOD_S)


def _smart(
    name: str,
    unit: str,
    kind: Kind,
    meaning: str,
    *labels: str,
    priority: Priority = Priority.MEDIUM,
    default: bool = True,
    reference: bool = False,
) -> MetricSpec:
    return MetricSpec(
        "disk",
        f"smart_{name}",
        unit,
        kind,
        meaning,
        _SMART,
        ("device", *labels),
        priority,
        default,
        period_s=SMART_PERIOD_S,
        reference=reference,
    )


_SPACE_METRICS = (
    _mount(
        "read_only",
        "",
        Kind.STATE,
        "1 = the file system is mounted read-only, so nobody can write to it; 0 = not.",
        Priority.MEDIUM,
        reference=False,
    ),
    _mount(
        "space_usage",
        "%",
        Kind.GAUGE,
        "Share of the blocks that is in use, blocks reserved for root counted as free; one row per device.",
        Priority.HIGH,
        reference=True,
    ),
    _mount(
        "space_detail",
        "MB",
        Kind.GAUGE,
        "Space by field: total, used, and available to ordinary users.",
        Priority.MEDIUM,
        "field",
        reference=True,
    ),
    _mount(
        "inode_usage",
        "%",
        Kind.GAUGE,
        "Share of the inodes that is in use; absent where inodes are made as needed (btrfs, vfat).",
        Priority.MEDIUM,
        reference=False,
    ),
    MetricSpec(
        "disk",
        "read_only_remount",
        "",
        Kind.STATE,
        "1 = the file system is read-only although /etc/fstab or an earlier reading has it writable, or the kernel log says that "
        "an error made it so; 0 = not.",
        "/proc/self/mountinfo, /etc/fstab, /dev/kmsg",
        _MOUNT_LABELS,
        Priority.HIGH,
        period_s=SPACE_PERIOD_S,
    ),
)

_TMPFS_METRICS = (
    MetricSpec(
        "disk",
        "tmpfs_usage",
        "%",
        Kind.GAUGE,
        "Share of a file system in memory (/dev/shm, /run, /tmp) that is in use; absent for one without a limit.",
        _SPACE,
        ("mount_point",),
        period_s=SPACE_PERIOD_S,
    ),
    MetricSpec(
        "disk",
        "tmpfs_detail",
        "MB",
        Kind.GAUGE,
        "Space of a file system in memory by field: total, used, available.",
        _SPACE,
        ("mount_point", "field"),
        period_s=SPACE_PERIOD_S,
    ),
    MetricSpec(
        "disk",
        "tmpfs_inode_usage",
        "%",
        Kind.GAUGE,
        "Share of the inodes of a file system in memory that is in use.",
        _SPACE,
        ("mount_point",),
        period_s=SPACE_PERIOD_S,
    ),
)

_IO_METRICS = (
    _rate("iops", "count/s", "Requests completed a second, by direction.", "direction"),
    _rate("throughput", "MB/s", "Data moved a second, by direction, in MiB.", "direction"),
    _rate(
        "read_latency",
        "ms",
        "Average time of the reads completed in the last interval, queueing included; none completed = no reading.",
        features=_ALL,
    ),
    _rate(
        "write_latency",
        "ms",
        "Average time of the writes completed in the last interval, queueing included; none completed = no reading.",
        features=_ALL,
    ),
    _rate(
        "io_util",
        "%",
        "Share of the last interval with at least one request in flight; parallel devices can do more at 100.",
        features=(Feature.WEB, Feature.HEALTH),
        reference=False,
    ),
    _rate(
        "queue_depth",
        "count",
        "Requests in flight, averaged over the last interval.",
        features=(Feature.WEB, Feature.HEALTH),
        reference=False,
    ),
    _rate(
        "discard_throughput",
        "MB/s",
        "Space discarded (trimmed) a second, in MiB; only for devices that can discard.",
        features=(Feature.WEB,),
        reference=False,
    ),
    _count("reads_completed", "count", Kind.COUNTER, "Reads completed since the device appeared."),
    _count("writes_completed", "count", Kind.COUNTER, "Writes completed since the device appeared."),
    _count("io_time", "ms", Kind.COUNTER, "Time with at least one request in flight since the device appeared; wraps at 2^32."),
    _count(
        "weighted_io_time",
        "ms",
        Kind.COUNTER,
        "Time in flight summed over all requests since the device appeared: its growth over time is the queue; wraps at 2^32.",
    ),
    _count("in_flight", "count", Kind.GAUGE, "Requests in flight at the moment of reading."),
    _total("read_sectors_total", "", "Sectors of 512 bytes read since the device appeared."),
    _total("written_sectors_total", "", "Sectors of 512 bytes written since the device appeared."),
    _total("read_time_total", "ms", "Time spent by all reads since the device appeared; wraps at 2^32."),
    _total("write_time_total", "ms", "Time spent by all writes since the device appeared; wraps at 2^32."),
    MetricSpec(
        "disk",
        "io_wait",
        "%",
        Kind.GAUGE,
        "Share of the last interval that processors were idle with I/O outstanding.",
        "/proc/stat",
        reference=True,
    ),
    MetricSpec(
        "disk",
        "pressure",
        "%",
        Kind.GAUGE,
        "Share of time in which some, or all, tasks stood still for want of I/O, averaged by the kernel.",
        "/proc/pressure/io",
        ("stall", "interval"),
    ),
    MetricSpec(
        "disk",
        "pressure_stall_time",
        "s",
        Kind.COUNTER,
        "Time in which some tasks, or all of them (full), waited for I/O, since boot.",
        "/proc/pressure/io",
        ("stall",),
    ),
)

_ERROR_METRICS = (
    MetricSpec(
        "disk",
        "io_errors",
        "count",
        Kind.COUNTER,
        "Requests that the block layer gave up since the oldest record of the kernel log: in all (no label), and by device.",
        "/dev/kmsg",
        ("device",),
        Priority.LOW,
        default=False,
        reference=True,
    ),
    MetricSpec(
        "disk",
        "storage_resets",
        "count",
        Kind.COUNTER,
        "Time-outs and resets of storage controllers and links since the oldest record of the kernel log: in all, and by each.",
        "/dev/kmsg",
        ("device",),
    ),
    MetricSpec(
        "disk",
        "filesystem_errors",
        "count",
        Kind.COUNTER,
        "Errors that a file system has on record: ext4 since its last check, btrfs by kind since its counters were reset.",
        "/sys/fs/ext4/*/errors_count, /sys/fs/btrfs/*/devinfo/*/error_stats",
        ("device", "fstype", "error"),
        Priority.HIGH,
        period_s=ERRORS_PERIOD_S,
    ),
)

_RAID_METRICS = (
    _raid(
        "raid_state",
        "",
        Kind.STATE,
        "State of a software RAID array: 0 = all members in use, 1 = degraded, 2 = inactive, 3 = failed (too few members).",
        Priority.HIGH,
    ),
    _raid("raid_members", "count", Kind.GAUGE, "Members by state: wanted, active, failed, spare.", Priority.MEDIUM, "state"),
    _raid(
        "raid_sync_progress",
        "%",
        Kind.GAUGE,
        "Progress of the resync, recovery, reshape, check or repair that runs; 0 while it waits, absent when none does.",
        Priority.MEDIUM,
        "action",
    ),
    _raid(
        "raid_mismatches",
        "count",
        Kind.GAUGE,
        "Sectors that the last check found to differ between members; mirrors that hold swap may show some without harm.",
        Priority.MEDIUM,
    ),
)

_SMART_METRICS = (
    _smart(
        "status",
        "",
        Kind.STATE,
        "The disk's own verdict: 1 = passed (label WARNING: too hot or cold, not failing), 0 = failed; no answer, no verdict.",
        "status",
        reference=True,
    ),
    MetricSpec(
        "disk",
        "smart_temperature",
        "°C",
        Kind.GAUGE,
        "Temperature of the disk; of an NVMe disk the composite one.",
        f"/sys/class/hwmon (nvme, drivetemp), {_SMART}",
        ("device",),
        Priority.LOW,
        default=False,
        period_s=TEMPERATURE_PERIOD_S,
        reference=True,
    ),
    _smart("temperature_limit", "°C", Kind.GAUGE, "Temperatures at which the disk warns, and protects itself.", "limit"),
    _smart(
        "sensor_temperature",
        "°C",
        Kind.GAUGE,
        "Further sensors of an NVMe disk; for diagnosis, never for a verdict.",
        "sensor",
        priority=Priority.LOW,
        default=False,
    ),
    _smart(
        "failing_attributes",
        "count",
        Kind.GAUGE,
        "ATA attributes that foretell failure and stand at or below their maker's threshold now.",
        priority=Priority.HIGH,
    ),
    _smart("reallocated_sectors", "count", Kind.COUNTER, "Sectors replaced by spares (ATA 5, SCSI grown defect list)."),
    _smart("pending_sectors", "count", Kind.GAUGE, "Sectors that cannot be read and wait to be written again (ATA 197)."),
    _smart("offline_uncorrectable", "count", Kind.GAUGE, "Sectors found unreadable by the disk's own scan (ATA 198)."),
    _smart("crc_errors", "count", Kind.COUNTER, "Damaged transfers between disk and controller, mostly cabling (ATA 199)."),
    _smart(
        "media_errors", "count", Kind.COUNTER, "Data the disk could not deliver unharmed (NVMe media errors, SCSI uncorrected)."
    ),
    _smart("power_on_time", "h", Kind.COUNTER, "Time under power."),
    _smart("percentage_used", "%", Kind.GAUGE, "Share of the rated endurance that is used up; 100 or more is worn, not failed."),
    _smart(
        "available_spare", "%", Kind.GAUGE, "Spare capacity of an NVMe disk: current, and the threshold it warns below.", "field"
    ),
    _smart(
        "critical_warning",
        "",
        Kind.STATE,
        "Warnings of an NVMe disk, a sum: 1 spare low, 2 temperature, 4 unreliable, 8 read-only, 16 backup of cache failed, 32 "
        "persistent memory.",
        priority=Priority.HIGH,
    ),
    _smart(
        "unsafe_shutdowns", "count", Kind.COUNTER, "Losses of power without notice (NVMe).", priority=Priority.LOW, default=False
    ),
    _smart(
        "error_log_entries",
        "count",
        Kind.COUNTER,
        "Entries in the disk's own error log over its life; refused commands count as well.",
        priority=Priority.LOW,
        default=False,
    ),
    _smart(
        "note",
        "",
        Kind.INFO,
        "A remark of smartctl that is no verdict: bits 2 and 4 to 7 of its exit status, or temperature sensors that disagree.",
        "note",
        priority=Priority.LOW,
    ),
)

_IDENTITY = MetricSpec(
    "disk",
    "disk_info",
    "GB",
    Kind.INFO,
    "Size of a whole disk in 10^9 bytes, and in labels what it is; in the snapshot's specs only.",
    f"/sys/block, {_SMART}",
    ("device", "model", "serial", "interface", "firmware"),
    Priority.LOW,
    features=(Feature.WEB,),
    reference=True,
)

METRICS: tuple[MetricSpec, ...] = (
    *_SPACE_METRICS,
    *_TMPFS_METRICS,
    *_IO_METRICS,
    *_ERROR_METRICS,
    *_RAID_METRICS,
    *_SMART_METRICS,
    _IDENTITY,
)
