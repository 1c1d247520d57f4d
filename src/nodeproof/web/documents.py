"""The JSON documents of the read routes, each made of one view of the directory (observe.md 7.1); pure."""

import msgspec

from nodeproof.model.catalogue import CATALOGUE
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Metric, Missing
from nodeproof.model.snapshot import SCHEMA_VERSION, CollectorInfo, DaemonState, SeriesHistory
from nodeproof.sinks.history import DEFAULT_POINTS
from nodeproof.web.feed import View, all_specs

__all__ = [
    "Catalogue",
    "Combined",
    "ComponentHead",
    "MetricMeaning",
    "Settings",
    "Wellbeing",
    "catalogue",
    "collectors",
    "combined",
    "settings",
    "wellbeing",
]


class ComponentHead(msgspec.Struct, frozen=True):
    """What tells how far a component's readings may be believed."""

    timestamp: str
    sequence: int
    stale_after_ms: int
    monotonic_s: float
    fresh: bool


class Combined(msgspec.Struct, frozen=True, kw_only=True):
    """``/api/snapshot``: the reference's combined view, and our additions below it."""

    session_id: str
    timestamp: str
    """The daemon's, as everything here; a viewer's clock has no part in it."""
    refresh_interval_ms: int
    history_points: int
    health: HealthScore
    metrics: list[Metric]
    history: dict[str, list[float]]
    specs: list[Metric]
    schema: int
    sequence: int
    daemon: str
    """What has become of the daemon: ``running``, ``dead`` ..."""
    fresh: bool
    """Whether this is the present."""
    intervals_ms: dict[str, int]
    collectors: list[CollectorInfo]
    missing: list[Missing]
    history_series: dict[str, SeriesHistory]
    components: dict[str, ComponentHead]
    problems: dict[str, str]
    """Files that could not be used, and why."""


class Settings(msgspec.Struct, frozen=True):
    """``/api/config``."""

    refresh_interval_ms: int
    history_points: int


class Wellbeing(msgspec.Struct, frozen=True):
    """``/api/health``: the verdict, and whether it is the present."""

    fresh: bool
    daemon: DaemonState
    health: HealthScore
    problems: dict[str, str]


class MetricMeaning(msgspec.Struct, frozen=True):
    """What a metric means."""

    unit: str
    kind: str
    help: str
    source: str


Catalogue = dict[str, MetricMeaning]
"""By ``component.name``."""


def combined(view: View) -> Combined | None:
    """Everything in one; None before there is a verdict."""
    whole = view.whole
    if whole is None:
        return None
    metrics: list[Metric] = []
    missing: list[Missing] = []
    history: dict[str, list[float]] = {}
    series: dict[str, SeriesHistory] = {}
    heads: dict[str, ComponentHead] = {}
    for name in sorted(view.components):
        part = view.components[name]
        metrics += part.metrics
        missing += part.missing
        history |= part.history
        series |= part.history_series
        age = view.state.components.get(name)
        heads[name] = ComponentHead(
            timestamp=part.timestamp,
            sequence=part.sequence,
            stale_after_ms=part.stale_after_ms,
            monotonic_s=part.monotonic_s,
            fresh=view.state.fresh and age is not None and age.fresh,
        )
    return Combined(
        session_id=whole.session_id,
        timestamp=whole.timestamp,
        refresh_interval_ms=whole.refresh_interval_ms,
        history_points=DEFAULT_POINTS,
        health=whole.health,
        metrics=metrics,
        history=history,
        specs=all_specs(view),
        schema=SCHEMA_VERSION,
        sequence=whole.sequence,
        daemon=str(view.state.verdict),
        fresh=view.state.fresh,
        intervals_ms=whole.intervals_ms,
        collectors=whole.collectors,
        missing=missing,
        history_series=series,
        components=heads,
        problems=view.problems,
    )


def collectors(view: View) -> list[CollectorInfo] | None:
    """The list of collectors; None before there is one."""
    return None if view.whole is None else view.whole.collectors


def settings(view: View) -> Settings | None:
    """What a viewer needs to know to poll; None before it is known."""
    return None if view.whole is None else Settings(view.whole.refresh_interval_ms, DEFAULT_POINTS)


def wellbeing(view: View) -> Wellbeing | None:
    """The verdict with its ages; None before there is one."""
    return None if view.whole is None else Wellbeing(view.state.fresh, view.state, view.whole.health, view.problems)


def catalogue(_view: View) -> Catalogue:
    """What each metric means and where it is read: the evidence behind a number."""
    return {
        f"{spec.component}.{spec.name}": MetricMeaning(spec.unit, str(spec.kind), spec.help, spec.source)
        for spec in CATALOGUE.values()
    }
