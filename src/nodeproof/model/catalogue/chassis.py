"""Metrics of component chassis (observe.md 1.8), and what else a BMC tells of a machine's power, cooling and history."""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["METRICS"]

_ENERGY = (Feature.DFEE, Feature.WEB)
_ENERGY_HEALTH = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_SENSOR = "ipmitool sensor"
_SUPPLY = "ipmitool sdr type Power Supply"
_STATUS = "ipmitool chassis status"
_SEL = "ipmitool sel"
_SENSOR_PERIOD_S = 10.0
_STATUS_PERIOD_S = 60.0
_SEL_PERIOD_S = 300.0


def _reference(
    name: str,
    unit: str,
    text: str,
    labels: tuple[str, ...] = (),
    *,
    source: str = _SENSOR,
    priority: Priority = Priority.MEDIUM,
    features: tuple[Feature, ...] = _ENERGY,
) -> MetricSpec:
    return MetricSpec(
        "chassis",
        name,
        unit,
        Kind.GAUGE,
        text,
        source,
        labels,
        priority,
        features=features,
        period_s=_SENSOR_PERIOD_S,
        reference=True,
    )


def _own(
    name: str,
    unit: str,
    kind: Kind,
    text: str,
    source: str,
    *,
    period_s: float,
    labels: tuple[str, ...] = (),
    priority: Priority = Priority.MEDIUM,
    default: bool = True,
) -> MetricSpec:
    return MetricSpec("chassis", name, unit, kind, text, source, labels, priority, default, period_s=period_s)


_REFERENCE = (
    _reference(
        "power",
        "W",
        "Power that the whole machine draws: the BMC's own sensor, else its DCMI reading, else the ACPI power meter.",
        source="ipmitool sensor, ipmitool dcmi power reading, /sys/class/hwmon",
        priority=Priority.HIGH,
    ),
    _reference(
        "inlet_temp",
        "°C",
        "Temperature of the air that enters; the hottest where several sensors of one kind watch it.",
        source="ipmitool sensor, /sys/class/hwmon",
        priority=Priority.HIGH,
        features=_ENERGY_HEALTH,
    ),
    _reference(
        "outlet_temp",
        "°C",
        "Temperature of the air that leaves; the hottest where several sensors of one kind watch it.",
        source="ipmitool sensor, /sys/class/hwmon",
        features=_ENERGY_HEALTH,
    ),
    _reference(
        "fan_speed",
        "RPM",
        "Speed of one rotor; direction is F (front) unless the sensor's name says R (rear).",
        ("fan", "direction"),
        source="ipmitool sensor, /sys/class/hwmon",
    ),
    _reference("fan_power", "W", "Power that one fan, or all of them (fan 0), draws.", ("fan",)),
)

_SENSORS = (
    _own(
        "fan_duty",
        "%",
        Kind.GAUGE,
        "Speed of one fan as a share of its full speed, on machines that report it so.",
        _SENSOR,
        labels=("fan", "direction"),
        period_s=_SENSOR_PERIOD_S,
    ),
    _own(
        "fan_state",
        "",
        Kind.STATE,
        "0 turning as it should, 1 beyond a non-critical limit, 2 beyond a critical one or silent after it had readings.",
        _SENSOR,
        labels=("fan", "direction"),
        period_s=_SENSOR_PERIOD_S,
        priority=Priority.HIGH,
    ),
    _own(
        "psu_power",
        "W",
        Kind.GAUGE,
        "Power of one power supply; direction is in or out where the sensor's name says so.",
        _SENSOR,
        labels=("psu", "direction"),
        period_s=_SENSOR_PERIOD_S,
    ),
    _own(
        "board_temp",
        "°C",
        Kind.GAUGE,
        "Temperature of a sensor that belongs to no processor, memory module, inlet or outlet.",
        _SENSOR,
        labels=("sensor",),
        period_s=_SENSOR_PERIOD_S,
        priority=Priority.LOW,
    ),
    _own(
        "voltage",
        "V",
        Kind.GAUGE,
        "Voltage of one rail.",
        _SENSOR,
        labels=("sensor",),
        period_s=_SENSOR_PERIOD_S,
        priority=Priority.LOW,
        default=False,
    ),
    _own(
        "sensor_status",
        "",
        Kind.STATE,
        "1 beyond a non-critical limit, 2 critical, 3 non-recoverable; 0 for a sensor that was and is well again.",
        _SENSOR,
        labels=("sensor", "type"),
        period_s=_SENSOR_PERIOD_S,
        priority=Priority.HIGH,
    ),
    _own(
        "sensors",
        "count",
        Kind.GAUGE,
        "Sensors of the BMC by state: reading, discrete, no_reading, lost (had readings before), abnormal.",
        _SENSOR,
        labels=("state",),
        period_s=_SENSOR_PERIOD_S,
    ),
)

_SUPPLIES = (
    _own(
        "psu_state",
        "",
        Kind.STATE,
        "0 present and well, 1 predictive failure or configuration error, 2 failed or without input, 3 gone after it was there.",
        _SUPPLY,
        labels=("psu",),
        period_s=_STATUS_PERIOD_S,
        priority=Priority.HIGH,
    ),
    _own(
        "psu_redundancy",
        "",
        Kind.STATE,
        "0 fully redundant, 1 degraded, 2 lost.",
        _SUPPLY,
        labels=("sensor",),
        period_s=_STATUS_PERIOD_S,
        priority=Priority.HIGH,
    ),
    _own(
        "chassis_fault",
        "",
        Kind.STATE,
        "1 while the BMC reports this fault: power_overload, main_power, power_control, drive or cooling; else 0.",
        _STATUS,
        labels=("fault",),
        period_s=_STATUS_PERIOD_S,
        priority=Priority.HIGH,
    ),
    _own(
        "intrusion",
        "",
        Kind.STATE,
        "1 while the BMC reports the cover open (or opened and not yet acknowledged); else 0.",
        _STATUS,
        period_s=_STATUS_PERIOD_S,
    ),
)

_LOG = (
    _own("sel_entries", "count", Kind.GAUGE, "Entries of the BMC's event log.", _SEL, period_s=_SEL_PERIOD_S),
    _own("sel_used", "%", Kind.GAUGE, "Share of the BMC's event log that is full.", _SEL, period_s=_SEL_PERIOD_S),
    _own(
        "sel_overflow",
        "",
        Kind.STATE,
        "1 when the BMC dropped events because its log was full; else 0.",
        _SEL,
        period_s=_SEL_PERIOD_S,
    ),
    _own(
        "sel_critical_events",
        "count",
        Kind.COUNTER,
        "Critical events that came into the BMC's log since this program began to watch it.",
        _SEL,
        period_s=_SEL_PERIOD_S,
        priority=Priority.HIGH,
    ),
    _own(
        "sel_critical_logged",
        "count",
        Kind.GAUGE,
        "Critical events among the newest 512 of the BMC's log, old ones included.",
        _SEL,
        period_s=_SEL_PERIOD_S,
    ),
    _own(
        "sel_last_critical",
        "",
        Kind.INFO,
        "The newest critical event of the BMC's log, in its own words and by its own clock.",
        _SEL,
        labels=("when", "sensor", "event"),
        period_s=_SEL_PERIOD_S,
    ),
)

_BMC = (
    _own(
        "bmc_up",
        "",
        Kind.STATE,
        "1 while the BMC answers, 0 when it has not for longer than its answers may take.",
        "ipmitool",
        period_s=0.0,
        priority=Priority.HIGH,
    ),
    _own("bmc_answer_age", "s", Kind.GAUGE, "Time since the BMC last answered.", "ipmitool", period_s=0.0),
)

METRICS: tuple[MetricSpec, ...] = (*_REFERENCE, *_SENSORS, *_SUPPLIES, *_LOG, *_BMC)
