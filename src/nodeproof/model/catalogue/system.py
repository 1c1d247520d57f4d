"""The node as a whole: identity, processes, clock, boot, container limits."""

from nodeproof.model.catalogue.spec import Kind, MetricSpec

__all__ = ["METRICS"]

METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(
        "system",
        "uptime",
        "s",
        Kind.GAUGE,
        "Time since boot.",
        "/proc/uptime",
    ),
)
