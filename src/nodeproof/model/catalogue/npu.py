"""Metrics of component npu."""

from nodeproof.model.catalogue.spec import MetricSpec

__all__ = ["METRICS"]

METRICS: tuple[MetricSpec, ...] = ()
