"""What the catalogue says of a metric: the one place for its unit, kind, labels, priority, source and help."""

from enum import StrEnum
from typing import NamedTuple

from nodeproof.model.feature import FEATURES, Feature

__all__ = ["FEATURES", "UNITS", "BaseUnit", "Feature", "Kind", "MetricSpec", "Priority"]


class BaseUnit(NamedTuple):
    """How a JSON unit becomes a Prometheus one: ``value * scale`` in ``suffix``."""

    suffix: str
    """Part of the metric name; empty where the number has no unit."""
    scale: float


_USER_HZ = 100
"""Ticks a second of every counter the kernel shows to programs (USER_HZ, proc_stat(5)); 100 on all machines we run on."""

UNITS: dict[str, BaseUnit] = {
    "": BaseUnit("", 1.0),
    "%": BaseUnit("ratio", 0.01),
    "A": BaseUnit("amperes", 1.0),
    "GB": BaseUnit("bytes", 1e9),
    "GT/s": BaseUnit("transfers_per_second", 1e9),
    "J": BaseUnit("joules", 1.0),
    "KB": BaseUnit("bytes", 1024.0),
    "MB": BaseUnit("bytes", 1048576.0),
    "MB/s": BaseUnit("bytes_per_second", 1048576.0),
    "MHz": BaseUnit("hertz", 1e6),
    "Mb/s": BaseUnit("bytes_per_second", 125000.0),
    "RPM": BaseUnit("rpm", 1.0),
    "V": BaseUnit("volts", 1.0),
    "W": BaseUnit("watts", 1.0),
    "bytes": BaseUnit("bytes", 1.0),
    "bytes/s": BaseUnit("bytes_per_second", 1.0),
    "cores": BaseUnit("cores", 1.0),
    "count": BaseUnit("", 1.0),
    "count/s": BaseUnit("per_second", 1.0),
    "h": BaseUnit("seconds", 3600.0),
    "jiffies": BaseUnit("seconds", 1.0 / _USER_HZ),
    "ms": BaseUnit("seconds", 0.001),
    "order": BaseUnit("order", 1.0),
    "ppm": BaseUnit("ratio", 1e-6),
    "s": BaseUnit("seconds", 1.0),
    "°C": BaseUnit("celsius", 1.0),
}
"""Every unit a metric may have. The reference's two counts in a foreign script are ``count`` here; ``MB`` is its MiB."""


class Kind(StrEnum):
    """What the number means over time."""

    GAUGE = "gauge"
    """Goes up and down, or is a rate already."""
    COUNTER = "counter"
    """Only grows, until its owner restarts."""
    STATE = "state"
    """One of a few listed values."""
    INFO = "info"
    """The labels carry the content."""
    STATIC = "static"
    """A constant of the machine; kept from the first time it is read."""


class Priority(StrEnum):
    """How much a metric matters: High drives health, Medium helps to explain, Low is for diagnosis."""

    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"


class MetricSpec(NamedTuple):
    """One row of the catalogue."""

    component: str
    name: str
    unit: str
    """Unit of the JSON value; empty for counts without one."""
    kind: Kind
    help: str
    """One sentence: what it is and how it is reckoned."""
    source: str
    """Kernel file or command it comes from."""
    labels: tuple[str, ...] = ()
    priority: Priority = Priority.MEDIUM
    default: bool = True
    """Collected when no feature list narrows the choice."""
    features: tuple[Feature, ...] = (Feature.WEB, Feature.HEALTH)
    """Feature lists that name it."""
    period_s: float = 0.0
    """Shortest time between two readings; 0 = every cycle of its collector. Dear sources have their own, slower, cadence."""
    reference: bool = False
    """Named by the reference: its name, unit and meaning are a contract."""

    @property
    def key(self) -> tuple[str, str]:
        """Component and name."""
        return (self.component, self.name)
