"""Metrics of component disk."""

from nodeproof.model.catalogue.spec import MetricSpec

__all__ = ["METRICS"]

METRICS: tuple[MetricSpec, ...] = ()
