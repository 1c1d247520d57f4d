"""Cadence that each feature asks of each component (observe.md 3.4); the quickest of the enabled features wins."""

from nodeproof.model.catalogue.spec import Feature

__all__ = ["FEATURE_INTERVALS_S"]

_EVERY_3S = {"chassis": 3.0, "cpu": 3.0, "disk": 5.0, "gpu": 3.0, "memory": 3.0, "network": 3.0, "npu": 3.0}

FEATURE_INTERVALS_S: dict[Feature, dict[str, float]] = {
    Feature.WEB: _EVERY_3S,
    Feature.HEALTH: _EVERY_3S,
    Feature.DFEE: {"cpu": 1.0, "memory": 2.0, "disk": 2.0, "network": 1.0, "npu": 1.0, "chassis": 3.0},
}
"""Seconds by feature and component."""
