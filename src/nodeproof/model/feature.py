"""Consumers of metrics; apart from the catalogue, so that who only judges a configuration need not load all its rows."""

from enum import StrEnum

__all__ = ["FEATURES", "Feature"]


class Feature(StrEnum):
    """A consumer with a list of the metrics it needs (observe.md 3.3)."""

    WEB = "web"
    DFEE = "dfee"
    HEALTH = "health"


FEATURES = tuple(Feature)
