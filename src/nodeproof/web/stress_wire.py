"""Answers about stress jobs that the web server puts together; loaded when somebody asks for them."""

from typing import NamedTuple

import msgspec

from nodeproof.model.job import Report
from nodeproof.model.live_job import LiveJob
from nodeproof.stress.metric_units import PRIMARY, metric_unit
from nodeproof.stress.profile import identity_hash

__all__ = ["Now", "Trend", "TrendPoint", "trends"]


class Now(msgspec.Struct, frozen=True, kw_only=True):
    """``/api/stress/live``: the newest job without its outputs, and how it gets on while it runs."""

    report: Report | None
    live: LiveJob | None
    """Null also while its owner has told nothing yet."""


class TrendPoint(msgspec.Struct, frozen=True):
    """One validated number."""

    job_id: str
    at: str
    """RFC 3339."""
    value: float
    run_id: str


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers that compare: same benchmark, same identity hash. Oldest first."""

    benchmark: str
    identity: str
    plan: str
    metric: str
    unit: str
    points: list[TrendPoint]


class _Line(NamedTuple):
    benchmark: str
    identity: str
    plan: str
    metric: str


def trends(history: list[Report]) -> list[Trend]:
    """The lines that past jobs, newest first, draw: one an identity and metric; numbers that were not validated are on none."""
    lines: dict[_Line, list[TrendPoint]] = {}
    for report in reversed(history):
        for item in report.benchmarks:
            metric = PRIMARY.get(item.name, "")
            if item.profile is None or metric not in item.values:
                continue
            line = _Line(item.name, identity_hash(item.profile, report.plan), report.plan, metric)
            point = TrendPoint(report.job_id, item.finished_at or report.timestamp, float(item.values[metric]), item.run_id)
            lines.setdefault(line, []).append(point)
    return [Trend(**line._asdict(), unit=metric_unit(line.metric), points=points) for line, points in sorted(lines.items())]
