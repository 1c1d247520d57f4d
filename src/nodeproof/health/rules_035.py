"""The scored rules of version 0.3.5 (observe.md 5.4): exclusive tiers, shares of a component's points that add to 100.

Thresholds and shares are the reference's. Ours are the levels below which a condition ends, the number of samples that begin it,
and the windows within which errors count: a total since boot would be a penalty for ever, a gain per cycle one of a second.

A busy accelerator loses points for utilisation here too, because the table is a contract; it is no fault, and the rule says so.
"""

from nodeproof.health.rules import DAY_S, Compare, Concern, How, Limit, Probe, Tier
from nodeproof.model.health import Severity

__all__ = [
    "CARD_DROP",
    "CONCERNS",
    "CPU_CORRECTED",
    "CPU_TEMPERATURE",
    "CPU_UNCORRECTED",
    "ESTABLISHED",
    "FRAGMENTATION",
    "GPU",
    "GPU_ECC",
    "GPU_MEMORY",
    "GPU_TEMPERATURE",
    "GPU_UTILIZATION",
    "INLET",
    "IO_WAIT",
    "LOAD",
    "MEMORY_CORRECTED",
    "MEMORY_UNCORRECTED",
    "MEMORY_USAGE",
    "NETWORK_ERRORS",
    "NPU",
    "NPU_ERROR_CODE",
    "NPU_HEALTH",
    "NPU_MEMORY",
    "NPU_TEMPERATURE",
    "NPU_UTILIZATION",
    "OUTLET",
    "SATURATION",
    "SMART",
    "SPACE_POOL",
    "SWAP",
    "TIME_WAIT",
    "USAGE",
    "above",
    "corrected",
    "npu_ecc",
    "npu_health",
    "smart_failed",
    "uncorrected",
]

_ABOVE = Compare.ABOVE
_CORE_COUNTS = (("cpu", "core_num"), ("cpu", "online_core_num"))
_NETWORK_CYCLE_S = 3.0
"""Cycle of the reference's network collector, whose errors per cycle the thresholds are made for."""

USAGE = Probe("cpu", ("usage",), (("core", "total"),))
CPU_TEMPERATURE = Probe("cpu", ("temperature",), entity=("cpu", "sensor"))
LOAD = Probe("cpu", ("load_average",), (("interval", "1m"),), factor=_CORE_COUNTS)
CPU_CORRECTED = Probe("cpu", ("cpu_ce_errors",), entity=("cpu",), how=How.GROWTH, window_s=DAY_S)
CPU_UNCORRECTED = Probe("cpu", ("cpu_uce_errors",), entity=("cpu",), how=How.GROWTH, window_s=DAY_S)
MEMORY_USAGE = Probe("memory", ("usage",))
SWAP = Probe("memory", ("swap_usage",))
SATURATION = Probe("memory", ("saturation",), (("interval", "avg10"),))
FRAGMENTATION = Probe("memory", ("fragmentation",), entity=("node", "zone"))
MEMORY_CORRECTED = Probe("memory", ("ecc_ce_errors",), entity=("mc",), how=How.GROWTH, window_s=DAY_S)
MEMORY_UNCORRECTED = Probe("memory", ("ecc_uce_errors",), entity=("mc",), how=How.GROWTH, window_s=DAY_S)
SPACE_POOL = Probe("disk", ("space_detail",), (("device", "/dev/*"),), ("device",), How.POOL)
IO_WAIT = Probe("disk", ("io_wait",))
SMART = Probe("disk", ("smart_status",), entity=("device",))
GPU = ("gpu_id",)
GPU_TEMPERATURE = Probe("gpu", ("temperature",), entity=GPU)
GPU_MEMORY = Probe("gpu", ("memory_usage",), entity=GPU)
GPU_UTILIZATION = Probe("gpu", ("utilization",), entity=GPU)
GPU_ECC = Probe("gpu", ("ecc_errors",), entity=GPU, how=How.GROWTH, window_s=DAY_S)
NPU = ("npu_id", "chip_id")
NPU_TEMPERATURE = Probe(
    "npu",
    (
        "temperature",
        "hbm_temp",
        "cluster_temp",
        "peri_temp",
        "aicore0_temp",
        "aicore1_temp",
        "soc_max_temp",
        "fp_max_temp",
        "ndie_temp",
        "hbm_max_temp",
    ),
    entity=NPU,
)
NPU_HEALTH = Probe("npu", ("health_status",), entity=NPU)
NPU_MEMORY = Probe("npu", ("memory_usage",), entity=NPU)
NPU_UTILIZATION = Probe("npu", ("utilization", "npu_util"), entity=NPU)
NPU_ERROR_CODE = Probe("npu", ("error_code",), entity=NPU)
CARD_DROP = Probe("npu", ("card_drop",), entity=NPU)
NETWORK_ERRORS = Probe("network", ("error_count",), entity=("interface",), how=How.GROWTH, window_s=_NETWORK_CYCLE_S)
TIME_WAIT = Probe("network", ("connection_count",), (("state", "TIME_WAIT"),))
ESTABLISHED = Probe("network", ("connection_count",), (("state", "ESTABLISHED"),))
INLET = Probe("chassis", ("inlet_temp",))
OUTLET = Probe("chassis", ("outlet_temp",))


def npu_ecc(memory: str, kind: str) -> Probe:
    """Growth of the ECC errors of one kind of memory of an NPU."""
    return Probe("npu", (f"{memory}_{kind}_ecc",), entity=NPU, how=How.GROWTH, window_s=DAY_S)


def above(rule: str, probe: Probe, threshold: float, share: float, *, clear: float | None = None) -> Tier:
    """A level that must not be passed."""
    return Tier(rule, Limit(probe, _ABOVE, threshold, clear), share)


def corrected(rule: str, probe: Probe, share: float, *, at_least: float | None = None) -> Tier:
    """Corrected errors: any, or so many. A second sample must confirm them."""
    if at_least is None:
        return Tier(rule, Limit(probe, _ABOVE, 0, enter=2, leave_s=0), share)
    return Tier(rule, Limit(probe, Compare.AT_LEAST, at_least, enter=2, leave_s=0), share)


def uncorrected(rule: str, probe: Probe, share: float) -> Tier:
    """Uncorrected errors, a card lost, a device that says itself that it fails: one sample is enough."""
    return Tier(rule, Limit(probe, _ABOVE, 0, enter=1, leave_s=0), share, Severity.CRITICAL)


def smart_failed(share: float) -> Tier:
    """A disk that says itself that it is failing: smart_status is 1 or 0."""
    return Tier("smart_failed", Limit(SMART, Compare.BELOW, 1, enter=1, leave_s=0), share, Severity.CRITICAL)


def npu_health(rule: str, status: float, share: float) -> Tier:
    """The state an NPU gives itself: 1 good, 2 minor, 3 major, 4 urgent."""
    severity = Severity.CRITICAL if status > 2 else Severity.WARNING
    return Tier(rule, Limit(NPU_HEALTH, Compare.AT_LEAST, status, enter=2), share, severity)


_CPU = (
    Concern(
        "cpu",
        "temperature",
        30,
        (above("temp>85C", CPU_TEMPERATURE, 85, 30, clear=82), above("temp>75C", CPU_TEMPERATURE, 75, 15, clear=72)),
        "The hottest processor sensor: near its limit a processor slows down, past it the machine stops.",
        "Look at fans, air flow, heat sinks and inlet temperature.",
    ),
    Concern(
        "cpu",
        "usage",
        20,
        (above("usage>90%", USAGE, 90, 20, clear=88), above("usage>80%", USAGE, 80, 10, clear=78)),
        "All processors together have next to no idle time left.",
        "Find what runs (top, systemd-cgtop); under a wanted load nothing is wrong.",
    ),
    Concern(
        "cpu",
        "load",
        20,
        (above("load>cores*2", LOAD, 2, 20, clear=1.8),),
        "More than two tasks a logical processor run or wait, tasks that wait for disks included.",
        "Find what runs (top) or hangs in state D (ps -eo state,pid,wchan:20,cmd).",
    ),
    Concern(
        "cpu",
        "corrected_errors",
        10,
        (corrected("cpu_ce_error>=3", CPU_CORRECTED, 10, at_least=3), corrected("cpu_ce_error", CPU_CORRECTED, 5)),
        "Machine checks that the hardware corrected within the last 24 hours.",
        "Read the machine checks (ras-mc-ctl --errors, journalctl -k); growing numbers announce a failure.",
    ),
    Concern(
        "cpu",
        "uncorrected_errors",
        20,
        (uncorrected("cpu_uce_error", CPU_UNCORRECTED, 20),),
        "Machine checks that the hardware could not correct within the last 24 hours: data may be lost.",
        "Take the node out of service and have the processor or its memory replaced.",
    ),
)

_MEMORY = (
    Concern(
        "memory",
        "usage",
        25,
        (above("usage>90%", MEMORY_USAGE, 90, 25, clear=88), above("usage>80%", MEMORY_USAGE, 80, 12, clear=78)),
        "Memory that is not available to programs.",
        "Find what holds it (ps --sort -rss, systemd-cgtop -m).",
    ),
    Concern(
        "memory",
        "swap",
        10,
        (above("swap>50%", SWAP, 50, 10, clear=45),),
        "Half of the swap space is in use: memory ran short at some time.",
        "See who is swapped out (VmSwap in /proc/*/status); swapoff -a and swapon -a bring pages back where memory is free.",
    ),
    Concern(
        "memory",
        "saturation",
        15,
        (above("saturation>80%", SATURATION, 80, 15, clear=70),),
        "Share of the last 10 seconds in which some task stood still for want of memory.",
        "Reduce the load or its memory limits; look at swap and OOM kills.",
    ),
    Concern(
        "memory",
        "fragmentation",
        10,
        (above("fragmentation>80%", FRAGMENTATION, 80, 10, clear=75),),
        "Free memory of the worst zone lies in single pages: huge pages cannot be had.",
        "Compact it (echo 1 > /proc/sys/vm/compact_memory) or reserve huge pages at boot.",
    ),
    Concern(
        "memory",
        "corrected_errors",
        10,
        (corrected("ce_error>=3", MEMORY_CORRECTED, 10, at_least=3), corrected("ce_error", MEMORY_CORRECTED, 5)),
        "Memory errors that ECC corrected within the last 24 hours.",
        "Find the DIMM (ras-mc-ctl --error-count); replace it when the number keeps growing.",
    ),
    Concern(
        "memory",
        "uncorrected_errors",
        30,
        (uncorrected("uce_error", MEMORY_UNCORRECTED, 30),),
        "Memory errors that ECC could not correct within the last 24 hours: data may be lost.",
        "Take the node out of service and replace the DIMM (ras-mc-ctl --error-count names it).",
    ),
)

_DISK = (
    Concern(
        "disk",
        "space",
        35,
        (above("space>90%", SPACE_POOL, 90, 35, clear=89), above("space>80%", SPACE_POOL, 80, 15, clear=79)),
        "Space in use on all local file systems taken together.",
        "Find what fills them (df -h, du -xh); a single full one is finding disk.file_system_full.",
    ),
    Concern(
        "disk",
        "io_wait",
        15,
        (above("io_wait>20%", IO_WAIT, 20, 15, clear=15),),
        "Time in which processors were idle because a disk had not answered.",
        "Find the disk and its user (iostat -x, iotop).",
    ),
    Concern(
        "disk",
        "smart",
        50,
        (smart_failed(50),),
        "A disk says of itself that it is failing.",
        "Save its data and replace it (smartctl -a names the attribute).",
    ),
)

_GPU = (
    Concern(
        "gpu",
        "temperature",
        35,
        (above("temp>90C", GPU_TEMPERATURE, 90, 35, clear=87), above("temp>80C", GPU_TEMPERATURE, 80, 15, clear=77)),
        "The hottest GPU: near its limit it slows down.",
        "Look at fans, air flow and inlet temperature.",
    ),
    Concern(
        "gpu",
        "memory",
        20,
        (above("mem>95%", GPU_MEMORY, 95, 20, clear=93),),
        "A GPU whose memory is nearly full: the next allocation may fail.",
        "See who holds it (nvidia-smi); under a wanted load nothing is wrong.",
    ),
    Concern(
        "gpu",
        "utilization",
        15,
        (above("util>95%", GPU_UTILIZATION, 95, 15, clear=90),),
        "A GPU that is busy all the time. That is its purpose and no fault: the points are the reference's table.",
        "Nothing, when the load is wanted.",
    ),
    Concern(
        "gpu",
        "ecc",
        30,
        (uncorrected("ecc_error", GPU_ECC, 30),),
        "Memory errors that a GPU could not correct within the last 24 hours.",
        "Reset the GPU; replace it when they come again.",
    ),
)


def _npu_ecc(memory: str) -> Concern:
    return Concern(
        "npu",
        f"{memory}_ecc",
        15,
        (
            uncorrected(f"{memory}_double_ecc", npu_ecc(memory, "double"), 15),
            corrected(f"{memory}_single_ecc", npu_ecc(memory, "single"), 5),
        ),
        f"Errors in the {memory.upper()} of an NPU: double-bit ones cannot be corrected; within the last 24 hours.",
        "Take the card out of service on double-bit errors; watch it on single-bit ones.",
    )


_NPU = (
    Concern(
        "npu",
        "card_drop",
        20,
        (uncorrected("card_drop", CARD_DROP, 20),),
        "A card that was there and no longer answers.",
        "Restart the node; reseat or replace the card when it stays away.",
    ),
    Concern(
        "npu",
        "temperature",
        15,
        (above("temp>90C", NPU_TEMPERATURE, 90, 15, clear=87), above("temp>80C", NPU_TEMPERATURE, 80, 8, clear=77)),
        "The hottest sensor of any NPU.",
        "Look at fans, air flow and inlet temperature.",
    ),
    Concern(
        "npu",
        "health",
        15,
        (npu_health("health_alarm", 3, 15), npu_health("health_warning", 2, 8)),
        "The state that an NPU gives itself: 1 good, 2 minor, 3 major, 4 urgent.",
        "Read its error codes (npu-smi info -t health -i ID).",
    ),
    _npu_ecc("hbm"),
    _npu_ecc("ddr"),
    Concern(
        "npu",
        "memory",
        8,
        (above("mem>95%", NPU_MEMORY, 95, 8, clear=93),),
        "An NPU whose memory is nearly full.",
        "See who holds it (npu-smi info); under a wanted load nothing is wrong.",
    ),
    Concern(
        "npu",
        "utilization",
        5,
        (above("util>95%", NPU_UTILIZATION, 95, 5, clear=90),),
        "An NPU that is busy all the time. That is its purpose and no fault: the points are the reference's table.",
        "Nothing, when the load is wanted.",
    ),
    Concern(
        "npu",
        "error_code",
        7,
        (Tier("error_code", Limit(NPU_ERROR_CODE, _ABOVE, 0, enter=2), 7, Severity.WARNING),),
        "An NPU reports error codes.",
        "Look the codes up in the vendor's list of health codes.",
    ),
)

_NETWORK = (
    Concern(
        "network",
        "errors",
        45,
        (above("errors>100", NETWORK_ERRORS, 100, 45, clear=80), above("errors>10", NETWORK_ERRORS, 10, 15, clear=8)),
        "Errors and drops of the worst interface within 3 seconds.",
        "Look at cable, optics, switch port and ring sizes (ethtool -S, ip -s link).",
    ),
    Concern(
        "network",
        "time_wait",
        30,
        (above("time_wait>2000", TIME_WAIT, 2000, 30, clear=1800),),
        "Closed connections that still hold a port: ports may run out.",
        "Have clients keep connections open (ss -s).",
    ),
    Concern(
        "network",
        "established",
        25,
        (
            above("established>5000", ESTABLISHED, 5000, 25, clear=4800),
            above("established>3000", ESTABLISHED, 3000, 10, clear=2800),
        ),
        "Open TCP connections.",
        "See who opens them (ss -tp); under a wanted load nothing is wrong.",
    ),
)

_CHASSIS = (
    Concern(
        "chassis",
        "inlet",
        50,
        (above("inlet>40C", INLET, 40, 50, clear=38), above("inlet>35C", INLET, 35, 25, clear=33)),
        "Air that enters the machine.",
        "Look at the cooling of the room, blind panels and air flow of the rack.",
    ),
    Concern(
        "chassis",
        "outlet",
        50,
        (above("outlet>60C", OUTLET, 60, 50, clear=57), above("outlet>50C", OUTLET, 50, 25, clear=47)),
        "Air that leaves the machine.",
        "Look at fans, dust and inlet temperature.",
    ),
)

CONCERNS: tuple[Concern, ...] = (*_CPU, *_MEMORY, *_DISK, *_GPU, *_NPU, *_NETWORK, *_CHASSIS)
"""Every concern, component by component."""
