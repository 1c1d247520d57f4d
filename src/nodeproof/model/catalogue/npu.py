"""Metrics of component npu (observe.md 1.6): Ascend chips through DCMI and ``npu-smi``. Their network: ``npu_network``."""

from nodeproof.model.catalogue.npu_network import METRICS as NETWORK
from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["DETAIL_PERIOD_S", "METRICS", "STATIC_PERIOD_S"]

DETAIL_PERIOD_S = 30.0
"""What changes slowly, or is dear to ask for."""
STATIC_PERIOD_S = 600.0
"""What cannot change while the driver runs."""

_CHIP = ("npu_id", "chip_id")
_ALL = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_SMI = "libdcmi.so, else npu-smi info"
_DETAIL = "libdcmi.so, else npu-smi info -t"
_DCMI = "libdcmi.so"


def _chip(
    name: str,
    unit: str,
    text: str,
    *labels: str,
    source: str = _DCMI,
    kind: Kind = Kind.GAUGE,
    dfee: bool = True,
) -> MetricSpec:
    features = _ALL if dfee else (Feature.WEB, Feature.HEALTH)
    return MetricSpec("npu", name, unit, kind, text, source, (*_CHIP, *labels), features=features, reference=True)


def _high(spec: MetricSpec) -> MetricSpec:
    return spec._replace(priority=Priority.HIGH)


def _low(spec: MetricSpec) -> MetricSpec:
    return spec._replace(priority=Priority.LOW, default=False, period_s=DETAIL_PERIOD_S)


def _rare(spec: MetricSpec) -> MetricSpec:
    return spec._replace(period_s=DETAIL_PERIOD_S)


def _static(spec: MetricSpec) -> MetricSpec:
    return spec._replace(priority=Priority.LOW, period_s=STATIC_PERIOD_S)


def _ecc(memory: str, kind: str, text: str) -> MetricSpec:
    name = f"{memory.upper()} of the chip"
    spec = _chip(f"{memory}_{kind}_ecc", "count", f"{text} errors of the {name} since the reading before.", "device_type", "kind")
    return _high(spec)._replace(source=_DETAIL, features=(Feature.WEB, Feature.HEALTH))


def _ecc_total(memory: str, kind: str, text: str) -> MetricSpec:
    name = f"{memory}_{kind}_ecc_errors_total"
    help_text = f"{text} errors of the {memory.upper()} of the chip that the driver has counted."
    return MetricSpec("npu", name, "count", Kind.COUNTER, help_text, _DETAIL, (*_CHIP, "device_type", "kind"))


def _isolated(memory: str, kind: str, text: str) -> MetricSpec:
    name = f"{memory}_{kind}_ecc_isolated"
    help_text = f"Pages of the {memory.upper()} that are out of use for {text} errors."
    return _rare(_chip(name, "count", help_text, "device_type", source=_DETAIL, dfee=False))


def _temperature(name: str, text: str, *labels: str) -> MetricSpec:
    return _chip(name, "°C", f"Temperature of {text}.", *labels)


def _share(name: str, text: str, source: str = _DETAIL) -> MetricSpec:
    return _chip(name, "%", f"Share of the time in which {text} busy.", source=source)


def _clock(name: str, text: str, source: str = _DCMI) -> MetricSpec:
    return _chip(name, "MHz", f"Clock of {text}.", source=source)


def _ntc(number: int) -> MetricSpec:
    return _low(_temperature(f"ntc{number}_temp", f"thermistor {number} of the board", "ntc"))


def _per_second(name: str, text: str) -> MetricSpec:
    source = "npu-smi info -t hccs-bw"
    return _rare(_chip(name, "MB/s", f"HCCS links of the chip together: {text}.", "direction", source=source, dfee=False))


_PRESENCE = (
    MetricSpec(
        "npu",
        "device_count",
        "count",
        Kind.GAUGE,
        "NPUs on the PCI bus, whether or not they can be read.",
        "/sys/bus/pci/devices",
        ("vendor",),
        period_s=60.0,
    ),
    MetricSpec(
        "npu",
        "device_nodes",
        "count",
        Kind.GAUGE,
        "Device nodes of NPUs that programs here can open. Their numbers are no ids of chips.",
        "/dev/davinci*",
        period_s=60.0,
    ),
    _high(
        MetricSpec(
            "npu",
            "card_drop",
            "",
            Kind.STATE,
            "1 = the chip was there or is on the PCI bus, and no longer answers; 0 = it does.",
            "libdcmi.so, npu-smi info, /sys/bus/pci/devices",
            _CHIP,
            reference=True,
        )
    ),
    _chip(
        "health_status", "", "1 = OK, 2 = warning, 3 = alarm, 4 = critical.", "status", source=_SMI, kind=Kind.STATE, dfee=False
    ),
    _chip("driver_health", "", "The driver's own health; 0 = well.", kind=Kind.STATE, dfee=False),
    _high(_chip("error_code", "", "Number of error codes that the chip reports.", "error_codes", source=_DETAIL, dfee=False)),
    _static(MetricSpec("npu", "npu_num", "count", Kind.STATIC, "Chips that the driver or npu-smi lists.", _SMI, reference=True)),
    _static(_chip("chip_type", "", "1; the kind of chip is a label.", "chip_type", source=_SMI, kind=Kind.INFO, dfee=False)),
    _static(
        MetricSpec(
            "npu", "driver_version", "", Kind.INFO, "1; the version is a label.", _SMI, ("driver_version",), reference=True
        )
    ),
    _static(
        MetricSpec(
            "npu",
            "comm_topo",
            "",
            Kind.INFO,
            "1; how the chips are connected is a label, as the tool prints it.",
            "npu-smi info -t topo",
            ("topo",),
            reference=True,
        )
    ),
    MetricSpec(
        "npu",
        "npu_info",
        "",
        Kind.INFO,
        "The card's number; the label says which card it is, and under which ids its chip is known elsewhere.",
        _SMI,
        (*_CHIP, "name", "bus_id", "logic_id", "phy_id"),
        Priority.LOW,
        period_s=STATIC_PERIOD_S,
        reference=True,
    ),
    _low(
        _chip("process_info", "count", "Processes on the chip; their pids are a label.", "process_pids", source=_SMI, dfee=False)
    ),
    _low(_chip("process_total", "count", "Processes on the chip.", source=_SMI, dfee=False))._replace(kind=Kind.GAUGE),
)

_LOAD = (
    _high(_chip("utilization", "%", "Share of the time in which the AI cores were busy.", source=_SMI)),
    _high(_chip("npu_util", "%", "Share of the time in which any part of the chip was busy.", source=_DETAIL)),
    _share("aicpu_util", "the AI processors were"),
    _share("ctrlcpu_util", "the control processors were"),
    _share("vector_core_util", "the vector cores were"),
    _chip("hbm_bandwidth_util", "%", "Bandwidth of the high-bandwidth memory in use.", source=_DETAIL),
    _chip("ddr_util", "%", "Share of the DDR memory in use.", source=_DETAIL),
    _chip("ddr_bandwidth_util", "%", "Bandwidth of the DDR memory in use.", source=_DETAIL),
    *(
        _low(_share(f"{part}_util", f"the {text} was", _DCMI))
        for part, text in (
            ("vdec", "video decoder"),
            ("vpc", "image processor"),
            ("venc", "video encoder"),
            ("jpege", "JPEG encoder"),
            ("jpegd", "JPEG decoder"),
        )
    ),
    _low(_chip("llc_write_hit_rate", "%", "Writes that the last-level cache took.")),
    _low(_chip("llc_read_hit_rate", "%", "Reads that the last-level cache answered.")),
    _low(_chip("llc_throughput", "MB/s", "Traffic of the last-level cache, in the driver's own unit.")),
    _per_second("hccs_tx_bandwidth", "sent"),
    _per_second("hccs_rx_bandwidth", "received"),
)

_MEMORY = (
    _high(
        _chip("memory_usage", "%", "Share of the high-bandwidth memory in use; of the DDR on cards that have none.", source=_SMI)
    ),
    _chip("hbm_total_memory", "MB", "High-bandwidth memory of the chip.", source=_SMI, kind=Kind.STATIC, dfee=False)._replace(
        priority=Priority.LOW
    ),
    _high(_chip("hbm_used_memory", "MB", "High-bandwidth memory in use.", source=_SMI, dfee=False)),
    *(
        _ecc(memory, kind, text)
        for memory in ("hbm", "ddr")
        for kind, text in (("single", "Corrected"), ("double", "Uncorrected"))
    ),
    *(
        _ecc_total(memory, kind, text)
        for memory in ("hbm", "ddr")
        for kind, text in (("single", "Corrected"), ("double", "Uncorrected"))
    ),
    *(
        _isolated(memory, kind, text)
        for memory in ("hbm", "ddr")
        for kind, text in (("single", "corrected"), ("double", "uncorrected"))
    ),
)

_WARMTH = (
    _high(_chip("temperature", "°C", "Temperature of the chip.", source=_SMI)),
    _chip("hbm_temp", "°C", "Temperature of the high-bandwidth memory.", source=_DETAIL),
    _temperature("cluster_temp", "the processor cluster"),
    _temperature("peri_temp", "the periphery"),
    _temperature("aicore0_temp", "AI core 0", "aicore"),
    _temperature("aicore1_temp", "AI core 1", "aicore"),
    *(_ntc(number) for number in (1, 2, 3, 4)),
    _temperature("soc_max_temp", "the hottest place of the chip"),
    _temperature("fp_max_temp", "the hottest optical module"),
    _temperature("ndie_temp", "the network die"),
    _temperature("hbm_max_temp", "the hottest stack of high-bandwidth memory"),
)

_POWER = (
    _chip(
        "power_draw",
        "W",
        "Power of the chip; of the whole card where the tool tells only that, with its first chip.",
        source=_SMI,
    ),
    _chip("voltage", "V", "Voltage of the chip."),
    *(
        _chip(f"{rail}_voltage", "V", f"Voltage of the {text}.")
        for rail, text in (
            ("aicore", "AI cores"),
            ("hybrid", "hybrid rail"),
            ("cpu", "chip's processors"),
            ("ddr", "DDR memory"),
        )
    ),
    _low(_chip("acg_count", "count", "Steps of the automatic clock control.", kind=Kind.COUNTER)),
    _rare(_chip("fan_speed", "%", "Speed of a fan of the card.", "fan")),
    _clock("aicpu_freq", "the AI processors"),
    _clock("aicore_rated_freq", "the AI cores, as rated", _DETAIL)._replace(kind=Kind.STATIC, priority=Priority.LOW),
    _clock("aicore_freq", "the AI cores", _DETAIL),
    _clock("ctrlcpu_freq", "the control processors"),
    _clock("vector_core_freq", "the vector cores"),
    _clock("hbm_freq", "the high-bandwidth memory", _DETAIL),
    _clock("ddr_freq", "the DDR memory", _DETAIL),
)

METRICS: tuple[MetricSpec, ...] = (*_PRESENCE, *_LOAD, *_MEMORY, *_WARMTH, *_POWER, *NETWORK)
