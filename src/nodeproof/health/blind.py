"""What could not be judged, and on which absences that hangs."""

from collections.abc import Iterable
from typing import NamedTuple

from nodeproof.health.scoring import ComponentState
from nodeproof.health.watch import Watch
from nodeproof.model.metric import Missing

__all__ = ["BlindRule", "blind_rules"]


class BlindRule(NamedTuple):
    """One rule that applies here and could not be read, wholly or in part."""

    rule: str
    """``cpu.temperature``."""
    points: float
    """Points of a score of 100 that hang on what could not be read; 0 for what stands outside the tables."""
    absences: tuple[Missing, ...]
    """Why; one without source and time says that no collector brought it."""


def blind_rules(states: Iterable[ComponentState], watch: Watch) -> list[BlindRule]:
    """Of the last evaluation: rules of the tables, then findings."""
    judged = list(states)
    applicable = sum(state.applicable for state in judged)
    blind = [
        BlindRule(
            one.concern.key,
            100.0 * one.weight * (1.0 - one.known) / applicable,
            tuple({id(entry): entry for sight in one.sights for entry in sight.unread}.values()),
        )
        for state in judged
        for one in state.concerns
        if one.applies and one.known < 1.0
    ]
    for rule, sight in watch.sights.items():
        told = tuple(entry for entry in sight.unread if entry.source or entry.timestamp)
        if told:
            blind.append(BlindRule(rule, 0.0, told))
    return blind
