"""Picks readings and absences out of a batch."""

from nodeproof.model.metric import Batch, Missing

__all__ = ["absence", "absent_names", "value", "values_by"]


def value(batch: Batch, name: str, **labels: str) -> float:
    """The one value of ``name`` with exactly these labels."""
    found = [metric.value for metric in batch.metrics if metric.name == name and (metric.labels or {}) == labels]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return found[0]


def values_by(batch: Batch, name: str, label: str) -> dict[str, float]:
    """Values of ``name`` by one label."""
    return {(metric.labels or {})[label]: metric.value for metric in batch.metrics if metric.name == name}


def absence(batch: Batch, name: str, **labels: str) -> Missing:
    """The one absence of ``name`` with exactly these labels."""
    found = [entry for entry in batch.missing if entry.name == name and (entry.labels or {}) == labels]
    assert len(found) == 1, f"{name} {labels}: {found}"
    return found[0]


def absent_names(batch: Batch) -> set[str]:
    """Names that stand among the absences."""
    return {entry.name for entry in batch.missing}
