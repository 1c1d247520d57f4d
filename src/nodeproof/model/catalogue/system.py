"""Component system: the node as a whole, beyond the reference's seven components. Identity is that of observe.md 1.9."""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["METRICS"]

_KMSG = "/dev/kmsg"
_PROCESSES = "/proc/*/stat"
_CLOCK = "adjtimex(2)"
_AER = "/sys/bus/pci/devices/*/aer_dev_*"


def _spec(
    name: str,
    unit: str,
    kind: Kind,
    text: str,
    source: str,
    labels: tuple[str, ...] = (),
    priority: Priority = Priority.MEDIUM,
    period_s: float = 0.0,
) -> MetricSpec:
    return MetricSpec("system", name, unit, kind, text, source, labels, priority, period_s=period_s)


def _identity(name: str, text: str, source: str, labels: tuple[str, ...]) -> MetricSpec:
    return MetricSpec("system", name, "", Kind.INFO, text, source, labels, Priority.LOW, features=(Feature.WEB,), reference=True)


METRICS: tuple[MetricSpec, ...] = (
    _spec("uptime", "s", Kind.GAUGE, "Time since boot, suspended time included.", "/proc/uptime"),
    _spec(
        "boot_info",
        "",
        Kind.INFO,
        "Boot this is: always 1, the label changes with each boot.",
        "/proc/sys/kernel/random/boot_id",
        ("boot_id",),
        Priority.LOW,
        3600.0,
    ),
    _spec(
        "platform_info",
        "",
        Kind.INFO,
        "Bare metal (none), hypervisor, and container if we run in one: always 1.",
        "/proc/cpuinfo, /sys/class/dmi/id",
        ("virtualization", "container"),
        Priority.LOW,
        3600.0,
    ),
    _spec(
        "clock_synced",
        "",
        Kind.STATE,
        "1 = a time daemon disciplines the kernel's clock and the kernel believes it; 0 = no one does (STA_UNSYNC)."
        " chrony only says so with rtcsync.",
        _CLOCK,
        (),
        Priority.HIGH,
        10.0,
    ),
    _spec(
        "clock_offset",
        "s",
        Kind.GAUGE,
        "Time that the kernel still has to slew away; unknown while nobody disciplines the clock.",
        _CLOCK,
        period_s=10.0,
    ),
    _spec(
        "clock_max_error",
        "s",
        Kind.GAUGE,
        "Bound of the clock's error; 16 s means that it was never set.",
        _CLOCK,
        period_s=10.0,
    ),
    _spec(
        "clock_estimated_error",
        "s",
        Kind.GAUGE,
        "The kernel's estimate of the clock's error, as whoever disciplines it has set it.",
        _CLOCK,
        period_s=10.0,
    ),
    _spec(
        "clock_frequency_error",
        "ppm",
        Kind.GAUGE,
        "Correction of the clock's rate; a quartz that needs more than 500 cannot be kept.",
        _CLOCK,
        period_s=10.0,
    ),
    _spec(
        "clock_steps_total",
        "count",
        Kind.COUNTER,
        "Jumps of the wall clock by more than half a second between two cycles, since this process began.",
        "clock_gettime(2)",
        ("direction",),
    ),
    _spec(
        "processes",
        "count",
        Kind.GAUGE,
        "Processes by state of their first thread; disk_sleep is the uninterruptible state D.",
        _PROCESSES,
        ("state",),
        Priority.HIGH,
        15.0,
    ),
    _spec("threads", "count", Kind.GAUGE, "Threads of all processes.", _PROCESSES, (), Priority.MEDIUM, 15.0),
    _spec(
        "disk_sleep_longest",
        "s",
        Kind.GAUGE,
        "Longest time that one process was found in the same sleep in state D (looks 15 s or more apart); 0 = none twice.",
        _PROCESSES,
        (),
        Priority.MEDIUM,
        15.0,
    ),
    _spec(
        "disk_sleep_task",
        "",
        Kind.INFO,
        "The process of disk_sleep_longest: always 1, absent when there is none.",
        _PROCESSES,
        ("pid", "command"),
        Priority.LOW,
        15.0,
    ),
    _spec("file_handles", "count", Kind.GAUGE, "Open file handles of the whole machine.", "/proc/sys/fs/file-nr", period_s=15.0),
    _spec(
        "file_handles_usage",
        "%",
        Kind.GAUGE,
        "Open file handles as a share of fs.file-max.",
        "/proc/sys/fs/file-nr",
        period_s=15.0,
    ),
    _spec(
        "pid_usage",
        "%",
        Kind.GAUGE,
        "Threads as a share of the smaller of kernel.pid_max and kernel.threads-max.",
        "/proc/loadavg, /proc/sys/kernel/{pid_max,threads-max}",
        period_s=15.0,
    ),
    _spec(
        "entropy",
        "",
        Kind.GAUGE,
        "Bits in the kernel's random pool; always 256 from Linux 5.18 on.",
        "/proc/sys/kernel/random/entropy_avail",
        (),
        Priority.LOW,
        60.0,
    ),
    _spec(
        "kernel_taint",
        "",
        Kind.STATE,
        "Taint bits of the kernel since boot, in words in the label; 0 = untainted.",
        "/proc/sys/kernel/tainted",
        ("flags",),
        Priority.MEDIUM,
        60.0,
    ),
    _spec(
        "kernel_events_total",
        "count",
        Kind.COUNTER,
        "Events in the kernel log since boot, or since the oldest record that it still held (kernel_log_complete 0).",
        _KMSG,
        ("kind", "severity"),
        Priority.HIGH,
    ),
    _spec(
        "kernel_log_complete",
        "",
        Kind.STATE,
        "1 = the kernel log was read from its first record on; 0 = older records were already overwritten.",
        _KMSG,
        (),
        Priority.LOW,
    ),
    _spec(
        "kernel_log_lost_total",
        "count",
        Kind.COUNTER,
        "Records overwritten before they could be read.",
        _KMSG,
        (),
        Priority.LOW,
    ),
    _spec(
        "kernel_log_unverified_total",
        "count",
        Kind.COUNTER,
        "Records that look like kernel events but were written by a program; counted nowhere else.",
        _KMSG,
        (),
        Priority.LOW,
    ),
    _spec(
        "pcie_errors_total",
        "count",
        Kind.COUNTER,
        "Errors that PCIe devices reported (AER), summed over all devices.",
        _AER,
        ("severity",),
        Priority.MEDIUM,
        60.0,
    ),
    _spec(
        "pcie_device_errors_total",
        "count",
        Kind.COUNTER,
        "Errors that one PCIe device reported (AER); devices without any have no row.",
        _AER,
        ("device", "severity"),
        Priority.MEDIUM,
        60.0,
    ),
    _identity(
        "device_model",
        "Make and model of the machine; in the snapshot's specs only. The serial number takes root.",
        "/sys/class/dmi/id, /proc/device-tree/model",
        ("manufacturer", "product_name", "version", "serial_number"),
    ),
    _identity(
        "os_info",
        "Operating system and kernel; in the snapshot's specs only.",
        "/etc/os-release, /proc/sys/kernel/osrelease",
        ("pretty_name", "version_id", "kernel"),
    ),
)
