"""Metrics of component gpu (observe.md 1.5): NVIDIA and AMD cards, their memory, links, limits, errors and users."""

from nodeproof.model.catalogue.spec import Kind, MetricSpec, Priority

__all__ = ["METRICS"]

_TOOL = "NVML, nvidia-smi, amd-smi, amdgpu sysfs"
_NVIDIA = "NVML, nvidia-smi"
_BUS = "/sys/bus/pci/devices"
_DEEP_PERIOD_S = 30.0
_DEEP = frozenset(
    {
        "clock_max_frequency",
        "ecc_aggregate_errors",
        "ecc_volatile_errors",
        "fabric_state",
        "mig_instances",
        "mig_memory",
        "nvlink_active_share",
        "nvlink_errors",
        "nvlink_links",
        "nvlink_state",
        "nvlink_traffic",
        "partition_info",
        "pcie_throughput",
        "persistence_mode",
        "power_limit_default",
        "remapped_rows",
        "retired_pages",
        "retired_pages_pending",
        "row_remap_banks",
        "row_remap_failure",
        "row_remap_pending",
        "sram_threshold_exceeded",
        "temperature_limit",
    }
)
"""What changes seldom, or costs more than the rest together: NVLink counters, error counts by place, PCIe samples of 20 ms."""
_HIGH, _MEDIUM, _LOW = Priority.HIGH, Priority.MEDIUM, Priority.LOW
_GAUGE, _COUNTER, _STATE = Kind.GAUGE, Kind.COUNTER, Kind.STATE


def _reading(name: str, unit: str, kind: Kind, text: str, priority: Priority, *labels: str) -> MetricSpec:
    return MetricSpec("gpu", name, unit, kind, text, _TOOL, ("gpu_id", *labels), priority, reference=True)


def _own(
    name: str,
    unit: str,
    kind: Kind,
    text: str,
    *labels: str,
    priority: Priority = _MEDIUM,
    source: str = _TOOL,
    default: bool = True,
) -> MetricSpec:
    period_s = _DEEP_PERIOD_S if name in _DEEP else 0.0
    return MetricSpec("gpu", name, unit, kind, text, source, ("gpu_id", *labels), priority, default, period_s=period_s)


_FLEET = (
    MetricSpec(
        "gpu",
        "device_count",
        "count",
        _GAUGE,
        "GPUs on the PCI bus, whether or not they can be read.",
        _BUS,
        ("vendor",),
        period_s=60.0,
    ),
    MetricSpec(
        "gpu",
        "cards",
        "count",
        _GAUGE,
        "GPUs that should be there (state=expected: on the PCI bus, or seen before) and that answer (state=answering).",
        _TOOL,
        ("vendor", "state"),
        _HIGH,
    ),
    MetricSpec(
        "gpu",
        "driver_up",
        "",
        _STATE,
        "1 when the driver of this vendor's cards answers; 0 when cards are on the bus and nothing can ask them.",
        _TOOL,
        ("vendor",),
        _HIGH,
    ),
    MetricSpec(
        "gpu",
        "device_info",
        "",
        Kind.INFO,
        "Who a card is: gpu_id is its tool's number at first sight and stays with the PCI address.",
        _TOOL,
        ("gpu_id", "vendor", "pci_bus_id", "name", "uuid", "driver", "vbios"),
    ),
    _own(
        "card_state",
        "",
        _STATE,
        "Whether the card answers: 0 yes, 1 its driver does not answer in time, 2 it must be reset, 3 it is lost.",
        priority=_HIGH,
    ),
)

_LOAD = (
    _reading("utilization", "%", _GAUGE, "Share of the time in which a kernel was running.", _HIGH),
    _own("memory_utilization", "%", _GAUGE, "Share of the time in which the card's memory was read or written."),
    _own("encoder_utilization", "%", _GAUGE, "Load of the video encoders.", priority=_LOW),
    _own("decoder_utilization", "%", _GAUGE, "Load of the video decoders.", priority=_LOW),
    _own("performance_state", "", _STATE, "P-state: 0 is the fastest, 15 the slowest.", source=_NVIDIA),
    _own("processes", "count", _GAUGE, "Processes that compute on the card."),
    _own(
        "process_memory",
        "MB",
        _GAUGE,
        "Memory of the card that a process holds.",
        "pid",
        "process",
        priority=_LOW,
        default=False,
    ),
)

_MEMORY = (
    _reading("memory_usage", "%", _GAUGE, "Share of the card's memory in use.", _HIGH),
    _reading(
        "memory_detail",
        "MB",
        _GAUGE,
        "The card's memory: field=total, used, free, reserved (by driver and firmware), bar1_total and bar1_used (the window "
        "for other devices), shared_total and shared_used (host memory that it may use), process_used (sum over processes, "
        "told where the card has no memory of its own).",
        _MEDIUM,
        "field",
    ),
)

_HEAT_AND_POWER = (
    _reading("temperature", "°C", _GAUGE, "Temperature of the chip (AMD: its hottest spot, else the edge).", _HIGH),
    _own("memory_temperature", "°C", _GAUGE, "Temperature of the card's memory.", priority=_HIGH),
    _own(
        "temperature_limit",
        "°C",
        _GAUGE,
        "Temperature at which the card slows down (limit=slowdown), goes off (shutdown), and the highest ones that chip "
        "(operating) and memory (memory) are made for.",
        "limit",
        priority=_LOW,
    ),
    _own("temperature_headroom", "°C", _GAUGE, "Degrees left before the card slows down, where it tells them.", priority=_LOW),
    _reading("power_draw", "W", _GAUGE, "Power of the whole card, as it measures itself.", _MEDIUM),
    _own("power_limit", "W", _GAUGE, "Power that the card keeps within now."),
    _own("power_limit_default", "W", _GAUGE, "Power limit that it comes with.", priority=_LOW),
    _own("energy", "J", _COUNTER, "Energy since the driver was loaded."),
    _reading("fan_speed", "%", _GAUGE, "Speed of its fan; cards that the chassis cools have none.", _MEDIUM),
)

_CLOCKS = (
    _reading("clock_frequency", "MHz", _GAUGE, "Clock of the graphics engine.", _LOW),
    _own("clock_domain_frequency", "MHz", _GAUGE, "Clock of a domain: sm, memory, video.", "domain"),
    _own("clock_max_frequency", "MHz", _GAUGE, "Highest clock of a domain: graphics, sm, memory.", "domain", priority=_LOW),
    _own(
        "throttle_reason",
        "",
        _STATE,
        "1 while the clock is held down for this reason: idle, app_clocks, sw_power_cap (its power limit: normal), hw_slowdown, "
        "sync_boost, sw_thermal, hw_thermal, hw_power_brake (the chassis asked for it), display_clocks.",
        "reason",
        priority=_HIGH,
    ),
    _own(
        "throttle_time",
        "s",
        _COUNTER,
        "Time for which the clock was held down for this reason since the driver was loaded.",
        "reason",
        priority=_HIGH,
    ),
)

_ERRORS = (
    _reading(
        "ecc_errors",
        "count",
        _COUNTER,
        "Uncorrected memory errors since the driver was loaded.",
        _MEDIUM,
    ),
    _own("ecc_mode", "", _STATE, "1 when memory errors are checked for."),
    _own(
        "ecc_volatile_errors",
        "count",
        _COUNTER,
        "Memory errors since the driver was loaded, by kind (corrected, uncorrected, deferred) and place (total, dram, sram, "
        "or a block of the chip).",
        "kind",
        "place",
    ),
    _own("ecc_aggregate_errors", "count", _COUNTER, "Memory errors of the card's whole life.", "kind", "place"),
    _own("retired_pages", "count", _GAUGE, "Pages of memory taken out of use, by cause: single_bit, double_bit.", "cause"),
    _own("retired_pages_pending", "", _STATE, "1 when pages wait to be taken out of use at the next reset."),
    _own("remapped_rows", "count", _GAUGE, "Rows of memory replaced by spare ones, by cause: corrected, uncorrected.", "cause"),
    _own("row_remap_pending", "", _STATE, "1 when rows wait to be replaced at the next reset."),
    _own("row_remap_failure", "", _STATE, "1 when a row could not be replaced: the card is to be exchanged.", priority=_HIGH),
    _own(
        "row_remap_banks",
        "count",
        _GAUGE,
        "Banks of memory by spare rows left: max, high, partial, low, none.",
        "spare",
        priority=_LOW,
    ),
    _own("sram_threshold_exceeded", "", _STATE, "1 when on-chip memory had too many errors for its maker.", priority=_HIGH),
)

_LINKS = (
    _own("pcie_generation", "", _GAUGE, "Generation its PCIe link runs at now; it is lowered while the card idles."),
    _own("pcie_generation_max", "", _GAUGE, "Highest generation that card and slot allow."),
    _own("pcie_width", "count", _GAUGE, "PCIe lanes in use."),
    _own("pcie_width_max", "count", _GAUGE, "PCIe lanes that card and slot allow."),
    _own(
        "pcie_degraded",
        "",
        _STATE,
        "1 when the link is worse than it could be: fewer lanes (aspect=width), or a lower generation under load "
        "(aspect=generation; not told while the card idles, because it then lowers the generation itself).",
        "aspect",
        priority=_HIGH,
    ),
    _own("pcie_throughput", "MB/s", _GAUGE, "Data over PCIe: direction=rx into the card, tx out of it.", "direction"),
    _own("pcie_replays", "count", _COUNTER, "PCIe packets that were sent again because they came damaged."),
    _own(
        "nvlink_links",
        "count",
        _GAUGE,
        "NVLinks (AMD: XGMI links): state=expected, the most that card ever had up or its kind has; state=active.",
        "state",
        priority=_HIGH,
    ),
    _own("nvlink_active_share", "%", _GAUGE, "Share of the expected NVLinks that are up."),
    _own("nvlink_state", "", _STATE, "1 when the link is up.", "link"),
    _own(
        "nvlink_errors",
        "count",
        _COUNTER,
        "Errors of the link by kind: crc_flit, crc_data, replay, recovery, ecc_data, symbol, effective.",
        "link",
        "kind",
    ),
    _own("nvlink_traffic", "MB", _COUNTER, "Data over all its NVLinks since the driver was loaded.", "direction"),
    _own(
        "fabric_state",
        "",
        _STATE,
        "Registration with the NVLink fabric: 0 not begun, 1 going on, 2 done, 3 failed.",
        source=_NVIDIA,
    ),
)

_MODES = (
    _own("persistence_mode", "", _STATE, "1 when the driver stays loaded without a user.", source=_NVIDIA, priority=_LOW),
    _own("mig_mode", "", _STATE, "1 when the card is cut into MIG instances.", source=_NVIDIA),
    _own("mig_instances", "count", _GAUGE, "MIG instances.", source=_NVIDIA),
    _own(
        "mig_memory",
        "MB",
        _GAUGE,
        "Memory of a MIG instance: field=total, used.",
        "instance",
        "field",
        source=_NVIDIA,
        priority=_LOW,
    ),
    _own(
        "partition_info",
        "",
        Kind.INFO,
        "How the card is divided (AMD: compute SPX, DPX, CPX; memory NPS1, NPS4).",
        "compute",
        "memory",
        priority=_LOW,
    ),
)

METRICS: tuple[MetricSpec, ...] = (*_FLEET, *_LOAD, *_MEMORY, *_HEAT_AND_POWER, *_CLOCKS, *_ERRORS, *_LINKS, *_MODES)
