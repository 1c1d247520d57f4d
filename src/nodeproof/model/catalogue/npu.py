"""Metrics of component npu (observe.md 1.6): how many cards there are, and the readings that health needs of them."""

from nodeproof.model.catalogue.spec import Feature, Kind, MetricSpec, Priority

__all__ = ["METRICS"]

_CARD = ("npu_id",)
_ALL = (Feature.DFEE, Feature.WEB, Feature.HEALTH)
_TOOL = "npu-smi"


def _reading(name: str, unit: str, kind: Kind, text: str, *labels: str) -> MetricSpec:
    return MetricSpec("npu", name, unit, kind, text, _TOOL, (*_CARD, *labels), Priority.HIGH, reference=True)


METRICS: tuple[MetricSpec, ...] = (
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
    _reading("utilization", "%", Kind.GAUGE, "Share of the time in which the AI cores were busy.")._replace(features=_ALL),
    _reading("memory_usage", "%", Kind.GAUGE, "Share of the high-bandwidth memory in use.")._replace(features=_ALL),
    _reading("temperature", "°C", Kind.GAUGE, "Temperature of the chip.")._replace(features=_ALL),
    _reading("card_drop", "", Kind.STATE, "1 = the card no longer answers, 0 = it does."),
    _reading("health_status", "", Kind.STATE, "1 = OK, 2 = warning, 3 = alarm, 4 = critical.", "status")._replace(
        priority=Priority.MEDIUM
    ),
    _reading("error_code", "", Kind.GAUGE, "Number of error codes that the card reports.", "error_codes"),
    _reading(
        "hbm_double_ecc",
        "count",
        Kind.GAUGE,
        "Uncorrected errors of the high-bandwidth memory since the reading before.",
        "device_type",
        "kind",
    ),
    _reading(
        "ddr_double_ecc",
        "count",
        Kind.GAUGE,
        "Uncorrected errors of the DDR memory since the reading before.",
        "device_type",
        "kind",
    ),
)
