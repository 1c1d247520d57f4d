"""Metrics of component cpu that tell of the hardware itself: frequencies, temperatures, power, errors, throttling."""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = [
    "FREQUENCY_PERIOD_S",
    "HARDWARE",
    "SENSOR_PERIOD_S",
    "STATIC_PERIOD_S",
    "THROTTLE_PERIOD_S",
    "static",
]

_ALL = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_SHOWN = (Feature.WEB,)
_CPU = "/sys/devices/system/cpu"
_FREQUENCY = f"{_CPU}/cpu*/cpufreq"
_THROTTLE = f"{_CPU}/cpu*/thermal_throttle"
_POWERCAP = "/sys/class/powercap/intel-rapl:*"
_SENSORS = "/sys/class/hwmon, ipmitool sensor"
_KERNEL_LOG = "/dev/kmsg"

STATIC_PERIOD_S = 60.0
"""Statics are read again at this cadence until they are there, and so that added or removed hardware shows."""
FREQUENCY_PERIOD_S = 10.0
SENSOR_PERIOD_S = 10.0
THROTTLE_PERIOD_S = 30.0


def static(name: str, unit: str, meaning: str, source: str, *labels: str) -> MetricSpec:
    """A constant of the machine that the reference names too."""
    return MetricSpec(
        "cpu",
        name,
        unit,
        Kind.STATIC,
        meaning,
        source,
        labels,
        Priority.LOW,
        period_s=STATIC_PERIOD_S,
        reference=True,
    )


def _sensor(name: str, unit: str, meaning: str, source: str, *, features: tuple[Feature, ...]) -> MetricSpec:
    return MetricSpec(
        "cpu",
        name,
        unit,
        Kind.GAUGE,
        meaning,
        source,
        ("cpu", "sensor"),
        features=features,
        period_s=SENSOR_PERIOD_S,
        reference=True,
    )


def _throttle(name: str, unit: str, meaning: str, priority: Priority = Priority.MEDIUM) -> MetricSpec:
    return MetricSpec("cpu", name, unit, Kind.COUNTER, meaning, _THROTTLE, ("package",), priority, period_s=THROTTLE_PERIOD_S)


def _errors(name: str, what: str) -> MetricSpec:
    return MetricSpec(
        "cpu",
        name,
        "count",
        Kind.GAUGE,
        f"Machine-check records of {what} errors that the kernel logged since the last cycle, by logical processor.",
        _KERNEL_LOG,
        ("cpu",),
        Priority.HIGH,
        reference=True,
    )


_FREQUENCY_ROWS = (
    MetricSpec(
        "cpu",
        "frequency",
        "MHz",
        Kind.GAUGE,
        "Frequency of a logical processor now.",
        f"{_FREQUENCY}/scaling_cur_freq",
        ("core",),
        period_s=FREQUENCY_PERIOD_S,
        reference=True,
    ),
    MetricSpec(
        "cpu",
        "avg_freq",
        "MHz",
        Kind.GAUGE,
        "Mean frequency of the logical processors that tell theirs.",
        f"{_FREQUENCY}/scaling_cur_freq",
        period_s=FREQUENCY_PERIOD_S,
        reference=True,
    ),
    static("min_freq", "MHz", "Lowest frequency of the hardware.", f"{_FREQUENCY}/cpuinfo_min_freq"),
    static("max_freq", "MHz", "Highest frequency of the hardware.", f"{_FREQUENCY}/cpuinfo_max_freq"),
    MetricSpec(
        "cpu",
        "allowed_max_freq",
        "MHz",
        Kind.GAUGE,
        "Lowest upper bound that software sets for any processor; below max_freq somebody has capped the machine.",
        f"{_FREQUENCY}/scaling_max_freq",
        period_s=STATIC_PERIOD_S,
    ),
    MetricSpec(
        "cpu",
        "governor_cores",
        "count",
        Kind.INFO,
        "Logical processors under this frequency governor and driver.",
        f"{_FREQUENCY}/scaling_governor",
        ("governor", "driver"),
        Priority.LOW,
        features=_SHOWN,
        period_s=STATIC_PERIOD_S,
    ),
    MetricSpec(
        "cpu",
        "boost_enabled",
        "",
        Kind.STATE,
        "Whether processors may go above their nominal frequency: 0 no, 1 yes.",
        f"{_CPU}/cpufreq/boost, {_CPU}/intel_pstate/no_turbo",
        priority=Priority.LOW,
        features=_SHOWN,
        period_s=STATIC_PERIOD_S,
    ),
)

_SENSOR_ROWS = (
    _sensor(
        "temperature",
        "°C",
        "Temperature of a processor package, or of the part that its sensor names.",
        _SENSORS,
        features=(Feature.WEB, Feature.HEALTH),
    ),
    _sensor(
        "mem_temperature",
        "°C",
        "Temperature of a memory module or group of modules.",
        _SENSORS,
        features=(Feature.WEB, Feature.HEALTH),
    ),
    _sensor(
        "power", "W", "Power of a processor package, averaged over the last interval.", f"{_POWERCAP}, {_SENSORS}", features=_ALL
    ),
    MetricSpec(
        "cpu",
        "core_temperature",
        "°C",
        Kind.GAUGE,
        "Temperature of one core.",
        "/sys/class/hwmon",
        ("cpu", "sensor"),
        Priority.LOW,
        default=False,
        features=(),
        period_s=SENSOR_PERIOD_S,
    ),
    MetricSpec(
        "cpu",
        "energy",
        "J",
        Kind.COUNTER,
        "Energy used since nodeproof started, as the processor itself reckons it (RAPL).",
        f"{_POWERCAP}/energy_uj",
        ("package", "domain"),
        period_s=SENSOR_PERIOD_S,
    ),
    MetricSpec(
        "cpu",
        "domain_power",
        "W",
        Kind.GAUGE,
        "Power of a part of a package (core, uncore, dram) or of the platform (psys), from its energy counter.",
        f"{_POWERCAP}/energy_uj",
        ("package", "domain"),
        Priority.LOW,
        features=_SHOWN,
        period_s=SENSOR_PERIOD_S,
    ),
)

_FAULT_ROWS = (
    _errors("cpu_ce_errors", "corrected"),
    _errors("cpu_uce_errors", "uncorrected"),
    MetricSpec(
        "cpu",
        "machine_checks",
        "count",
        Kind.COUNTER,
        "Machine-check records in the kernel log, by severity.",
        _KERNEL_LOG,
        ("severity",),
    ),
    MetricSpec(
        "cpu",
        "new_throttles",
        "count",
        Kind.GAUGE,
        "Slow-downs because of heat that began since the last reading: those of the worst core, or of the package.",
        _THROTTLE,
        ("package",),
        Priority.HIGH,
        period_s=THROTTLE_PERIOD_S,
    ),
    MetricSpec(
        "cpu",
        "thermal_throttle_util",
        "%",
        Kind.GAUGE,
        "Share of the last interval in which the worst core, or the package, was slowed down by heat; told when it has ended.",
        _THROTTLE,
        ("package",),
        period_s=THROTTLE_PERIOD_S,
    ),
    _throttle(
        "core_throttles", "count", "Times that cores were slowed down because of heat, summed over the cores of a package."
    ),
    _throttle(
        "core_throttle_time", "ms", "Time that cores were slowed down because of heat, summed over the cores of a package."
    ),
    _throttle(
        "max_core_throttles", "count", "Times that the worst core of a package was slowed down because of heat.", Priority.LOW
    ),
    _throttle("package_throttles", "count", "Times that a package was slowed down because of heat."),
    _throttle("package_throttle_time", "ms", "Time that a package was slowed down because of heat."),
)

HARDWARE: tuple[MetricSpec, ...] = (*_FREQUENCY_ROWS, *_SENSOR_ROWS, *_FAULT_ROWS)
