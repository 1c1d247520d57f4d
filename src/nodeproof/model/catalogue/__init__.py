"""The catalogue of every metric, as data: one module a component, gathered here.

``docs/metrics.md`` is generated from it, the exporter takes types and units from it, and a test holds it against what the
collectors really emit.
"""

from collections.abc import Mapping

from nodeproof.model.catalogue import chassis, cpu, daemon, disk, gpu, memory, network, npu, system
from nodeproof.model.catalogue.features import FEATURE_INTERVALS_S
from nodeproof.model.catalogue.spec import FEATURES, UNITS, BaseUnit, Feature, Kind, MetricSpec, Priority

__all__ = [
    "CATALOGUE",
    "FEATURES",
    "FEATURE_INTERVALS_S",
    "UNITS",
    "BaseUnit",
    "Feature",
    "Kind",
    "MetricSpec",
    "Priority",
    "component_specs",
]

_TABLES = (
    chassis.METRICS,
    cpu.METRICS,
    daemon.METRICS,
    disk.METRICS,
    gpu.METRICS,
    memory.METRICS,
    network.METRICS,
    npu.METRICS,
    system.METRICS,
)


def _gather() -> Mapping[tuple[str, str], MetricSpec]:
    catalogue: dict[tuple[str, str], MetricSpec] = {}
    for spec in (spec for table in _TABLES for spec in table):
        if spec.key in catalogue:
            raise ValueError(f"metric {spec.component}.{spec.name} stands twice in the catalogue")
        if spec.unit not in UNITS:
            raise ValueError(f"metric {spec.component}.{spec.name} has the unknown unit {spec.unit!r}")
        catalogue[spec.key] = spec
    return catalogue


CATALOGUE: Mapping[tuple[str, str], MetricSpec] = _gather()
"""Specification by (component, name)."""


def component_specs(component: str) -> dict[str, MetricSpec]:
    """The rows of one component, by name."""
    return {spec.name: spec for spec in CATALOGUE.values() if spec.component == component}
