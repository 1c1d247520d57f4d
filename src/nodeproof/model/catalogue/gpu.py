"""Metrics of component gpu (observe.md 1.5): how many cards there are, and the readings that health needs of them."""

from nodeproof.model.catalogue.spec import Kind, MetricSpec, Priority

__all__ = ["METRICS"]

_CARD = ("gpu_id",)
_TOOL = "nvidia-smi"


def _reading(name: str, unit: str, kind: Kind, text: str, priority: Priority) -> MetricSpec:
    return MetricSpec("gpu", name, unit, kind, text, _TOOL, _CARD, priority, reference=True)


METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(
        "gpu",
        "device_count",
        "count",
        Kind.GAUGE,
        "GPUs on the PCI bus, whether or not they can be read.",
        "/sys/bus/pci/devices",
        ("vendor",),
        period_s=60.0,
    ),
    _reading("utilization", "%", Kind.GAUGE, "Share of the time in which a kernel was running.", Priority.HIGH),
    _reading("memory_usage", "%", Kind.GAUGE, "Share of the card's memory in use.", Priority.HIGH),
    _reading("temperature", "°C", Kind.GAUGE, "Temperature of the chip.", Priority.HIGH),
    _reading("ecc_errors", "count", Kind.COUNTER, "Uncorrected memory errors since the driver was loaded.", Priority.MEDIUM),
)
