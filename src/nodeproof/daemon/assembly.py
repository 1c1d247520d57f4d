"""Collectors, as a configuration asks for them."""

import logging
from collections.abc import Callable
from typing import NamedTuple, cast

from nodeproof.collectors.base import Collector, Selection
from nodeproof.config.schema import Config
from nodeproof.errors import ConfigError, NodeproofError
from nodeproof.health.evaluator import needed_metrics
from nodeproof.host.entry_points import EntryPoint, entry_points
from nodeproof.host.machine import Machine
from nodeproof.scheduler.selection import MetricSelection, interval_s

__all__ = ["ENTRY_POINT_GROUP", "CollectorEntry", "assemble", "available"]

ENTRY_POINT_GROUP = "nodeproof.collectors"

_log = logging.getLogger(__name__)

Factory = Callable[[Machine, Selection], Collector]


class CollectorEntry(NamedTuple):
    """One collector that exists here, and how it is to run."""

    name: str
    collector: Collector
    interval_s: float
    deadline_s: float | None
    enabled: bool


def available() -> list[EntryPoint]:
    """Every collector that an installed distribution offers, ours among them."""
    return entry_points(ENTRY_POINT_GROUP)


def assemble(config: Config, machine: Machine) -> list[CollectorEntry]:
    """All collectors, sorted by name. A plug-in that cannot be loaded is logged and left out.

    Raises ConfigError when the configuration names a collector that does not exist.
    """
    offers = available()
    _refuse_unknown(config, [offer.name for offer in offers])
    selection = MetricSelection(config.features, config.collection.min_priority, needed_metrics(config.health.ruleset))
    entries = []
    for offer in offers:
        try:
            collector = cast("Factory", offer.load())(machine, selection)
        except NodeproofError as error:
            _log.error("%s", error)
            continue
        settings = config.collectors.get(offer.name)
        interval = interval_s(
            collector.component, collector.default_interval_s, config.features, config.collection, config.collectors
        )
        entries.append(
            CollectorEntry(
                offer.name,
                collector,
                interval,
                settings.deadline_s if settings else None,
                enabled=settings.enabled if settings else True,
            )
        )
    return entries


def _refuse_unknown(config: Config, known: list[str]) -> None:
    for name in config.collectors:
        if name not in known:
            import difflib  # noqa: PLC0415 - only for the message

            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(f"collectors.{name}", "no such collector is installed", source=config.source, remedy=remedy)
