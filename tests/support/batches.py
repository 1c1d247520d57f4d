"""Batches for tests of sinks."""

from collections.abc import Sequence

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import Absence
from nodeproof.model.health import Grade, HealthScore
from nodeproof.model.metric import Batch, Labels, Metric, Missing

__all__ = ["batch", "health", "metric", "missing"]

STAMP = "2026-11-30T12:00:00.000000+00:00"


def metric(name: str, value: float, labels: Labels | None = None, *, component: str = "cpu", unit: str = "%") -> Metric:
    return Metric(component, name, value, unit, labels, STAMP)


def missing(
    name: str, reason: str = "why", labels: Labels | None = None, *, component: str = "cpu", state: Absence = Absence.UNKNOWN
) -> Missing:
    return Missing(component, name, state, reason, labels, timestamp=STAMP)


def batch(
    metrics: Sequence[Metric] = (),
    absent: Sequence[Missing] = (),
    *,
    component: str = "cpu",
    at: Instant | None = None,
    sequence: int = 1,
) -> Batch:
    moment = at if at is not None else Instant(1_790_000_000.0, 1000.0)
    return Batch(component, rfc3339(moment.wall_s), moment.mono_s, list(metrics), list(absent), sequence)


def health(score: int = 97) -> HealthScore:
    return HealthScore(
        score=score,
        grade=Grade.EXCELLENT,
        server_type="cpu_only",
        components={},
        timestamp=STAMP,
        scheme="cpu_only",
        ruleset="0.3.5",
        coverage=1.0,
        unknown=[],
        findings=[],
    )
