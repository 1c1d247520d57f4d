"""Metrics of component network."""

from nodeproof.model.catalogue.spec import MetricSpec

__all__ = ["METRICS"]

METRICS: tuple[MetricSpec, ...] = ()
