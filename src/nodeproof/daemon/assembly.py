"""Collectors, as a configuration asks for them."""

import logging
import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, cast

from nodeproof.collectors.base import Collector, Selection
from nodeproof.config.schema import CollectorConfig, Config
from nodeproof.errors import ConfigError, NodeproofError
from nodeproof.health.evaluator import needed_metrics
from nodeproof.host.entry_points import EntryPoint, entry_points
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Batch
from nodeproof.scheduler import self_cost
from nodeproof.scheduler.selection import MetricSelection, interval_s
from nodeproof.sinks.kpi import NEEDED as KPI_NEEDED

__all__ = ["ENTRY_POINT_GROUP", "Absent", "CollectorEntry", "Factory", "assemble", "available"]

ENTRY_POINT_GROUP = "nodeproof.collectors"

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_SHORTEST_S = 0.1
_LONGEST_S = 86400.0
_RETRY_S = 60.0
"""How often it is said again that a plug-in is not there."""

Factory = Callable[[Machine, Selection], Collector]


class CollectorEntry(NamedTuple):
    """One collector that exists here, and how it is to run."""

    name: str
    collector: Collector
    interval_s: float
    deadline_s: float | None
    enabled: bool
    problem: str = ""
    """Why it cannot be had; its every cycle fails with this."""


class Absent:
    """Stands for a collector that cannot be had, or is switched off: it has a name, and nothing else."""

    default_interval_s = _RETRY_S

    def __init__(self, name: str, problem: str) -> None:
        self.name = self.component = name
        self._problem = problem

    def collect(self) -> Batch:
        """Raises NodeproofError: the plug-in's absence is seen wherever a collector's failure is."""
        raise NodeproofError(self._problem)

    def forget(self) -> None:
        """Nothing is kept."""


def available() -> list[EntryPoint]:
    """Every collector that an installed distribution offers, ours among them."""
    return entry_points(ENTRY_POINT_GROUP)


def assemble(config: Config, machine: Machine) -> list[CollectorEntry]:
    """All collectors, sorted by name.

    One that is switched off is not even imported. One that cannot be imported or made, or that is no collector, is logged, and
    its entry fails at every cycle. Raises ConfigError when the configuration names a collector that does not exist.
    """
    offers = available()
    _refuse_unknown(config, [offer.name for offer in offers])
    needed = needed_metrics(config.health.ruleset) | (KPI_NEEDED if config.straggler_output.enabled else frozenset())
    selection = MetricSelection(config.features, config.collection.min_priority, needed)
    entries: list[CollectorEntry] = []
    taken: set[str] = {self_cost.COMPONENT}
    for offer in offers:
        settings = config.collectors.get(offer.name) or CollectorConfig()
        collector: Collector
        problem = ""
        if not settings.enabled:
            collector = Absent(offer.name, "it is switched off")
        else:
            try:
                collector = _made(offer, machine, selection, taken)
                taken |= {collector.name, collector.component}
            except NodeproofError as error:
                problem = str(error)
                _log.error("%s", problem)
                if offer.name in taken or _NAME.fullmatch(offer.name) is None:
                    continue  # it cannot even be spoken of by its name
                collector = Absent(offer.name, problem)
        interval = collector.default_interval_s
        if not problem:
            own = {collector.component: settings}
            interval = interval_s(collector.component, interval, config.features, config.collection, own)
        entries.append(CollectorEntry(offer.name, collector, interval, settings.deadline_s, settings.enabled, problem))
    return entries


def _made(offer: EntryPoint, machine: Machine, selection: Selection, taken: set[str]) -> Collector:
    """The collector behind ``offer``. Raises NodeproofError naming the plug-in and what is wrong with it."""

    def refuse(problem: str) -> NoReturn:
        raise NodeproofError(f"plug-in {offer.name} ({offer.target} of {offer.distribution}) {problem}")

    factory = offer.load()
    try:
        collector = cast("Factory", factory)(machine, selection)
        name, component, default_s = collector.name, collector.component, collector.default_interval_s
        complete = callable(collector.collect) and callable(collector.forget)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - anybody's code
        refuse(f"cannot be made: {type(error).__name__}: {error}")
    for what, text in (("name", name), ("component", component)):
        if not isinstance(text, str) or _NAME.fullmatch(text) is None:
            refuse(f"has the {what} {text!r:.80}, which does not match {_NAME.pattern}")
        if text in taken:
            refuse(f"has the {what} {text}, which is taken; two collectors cannot share one")
    if isinstance(default_s, bool) or not isinstance(default_s, int | float) or not _SHORTEST_S <= default_s <= _LONGEST_S:
        refuse(f"has the default_interval_s {default_s!r:.80}, which is not within {_SHORTEST_S:g} and {_LONGEST_S:g}")
    if not complete:
        refuse("has no collect() and forget()")
    return collector


def _refuse_unknown(config: Config, known: list[str]) -> None:
    for name in config.collectors:
        if name not in known:
            import difflib  # noqa: PLC0415 - only for the message

            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(f"collectors.{name}", "no such collector is installed", source=config.source, remedy=remedy)
