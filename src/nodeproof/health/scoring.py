"""Points: one component by its table, and all of them together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodeproof.health.evidence import finding, plain, unknown_of
from nodeproof.health.latch import Held, Latches
from nodeproof.health.rules import Compare, Concern, Tier
from nodeproof.health.sample import Moment, Sight, look
from nodeproof.health.scheme import ACCELERATORS
from nodeproof.model.health import ComponentScore, Deduction, Finding, UnknownConcern

__all__ = ["ComponentState", "ConcernState", "Total", "judge_component", "total_of"]

_ROUNDING = 1e-9
"""Sums of shares of points are exact but for binary fractions."""


class ConcernState(NamedTuple):
    """One concern, judged."""

    concern: Concern
    sights: tuple[Sight, ...]
    """What each tier saw."""
    held: tuple[list[Held], ...]
    """Latches of each tier that are not idle."""
    maximum: int
    """Points of its component."""

    @property
    def applies(self) -> bool:
        """Whether this node has what the concern is about."""
        return any(sight.applies for sight in self.sights)

    @property
    def known(self) -> float:
        """Share of it that could be read: all of its tiers must be."""
        return min((sight.known for sight in self.sights if sight.applies), default=1.0)

    @property
    def weight(self) -> float:
        """Points that hang on it."""
        return self.maximum * self.concern.share / 100.0

    def taken(self) -> list[tuple[Tier, Held, float, int]]:
        """(tier, evidence, points, number of things) of what takes points now."""
        for tier, helds in zip(self.concern.tiers, self.held, strict=True):
            active = [one for one in helds if one.latch.active]
            if not active:
                continue
            if tier.points_each:
                return [(tier, one, round(tier.points_each * one.latch.sample.value, 6), 1) for one in active]
            sign = -1.0 if tier.limit.compare is Compare.BELOW else 1.0
            worst = max(active, key=lambda one: sign * one.latch.sample.value)
            return [(tier, worst, round(self.maximum * tier.share / 100.0, 6), len(active))]
        return []


class ComponentState(NamedTuple):
    """One component, judged."""

    component: str
    maximum: int
    concerns: list[ConcernState]

    @property
    def applicable(self) -> float:
        """Points that hang on concerns which apply to this node."""
        return sum(state.weight for state in self.concerns if state.applies)

    @property
    def read(self) -> float:
        """Points that hang on concerns which could be read."""
        return sum(state.weight * state.known for state in self.concerns if state.applies)

    @property
    def counts(self) -> bool:
        """Whether it has a reading, or a deduction that still stands."""
        return any(state.applies and (state.known > 0 or state.taken()) for state in self.concerns)

    @property
    def coverage(self) -> float:
        """Share of the applicable weight that could be read."""
        return self.read / self.applicable if self.applicable else 1.0

    def score(self) -> ComponentScore:
        """Points left; not all of them while something that applies could not be read."""
        deductions = [Deduction(tier.rule, points) for state in self.concerns for tier, _, points, _ in state.taken()]
        left = int(max(0.0, self.maximum - sum(one.penalty for one in deductions)) + _ROUNDING)
        coverage = round(self.coverage, 4)
        if self.read < self.applicable - _ROUNDING:
            left = min(left, self.maximum - 1)
        return ComponentScore(left, self.maximum, deductions or None, coverage)

    def findings(self, moment: Moment) -> list[Finding]:
        """What took points, with its evidence."""
        return [
            finding(
                tier.rule,
                tier.severity,
                component=self.component,
                message=_message(state.concern, held, things),
                evidence=(tier.limit, held),
                moment=moment,
                penalty=points,
            )
            for state in self.concerns
            for tier, held, points, things in state.taken()
        ]

    def unknown(self) -> list[UnknownConcern]:
        """What could not be read."""
        return [
            unknown_of(
                self.component,
                state.concern.name,
                [entry for sight in state.sights for entry in sight.unread],
                state.weight * (1.0 - state.known),
            )
            for state in self.concerns
            if state.applies and state.known < 1.0
        ]


def _message(concern: Concern, held: Held, things: int) -> str:
    labels = held.latch.sample.metric.labels
    where = " of " + ", ".join(f"{key} {plain(value)}" for key, value in sorted(labels.items())) if labels else ""
    more = f" and {things - 1} more" if things > 1 else ""
    return f"{concern.component} {concern.name.replace('_', ' ')}{where}{more}: {concern.help}"


def judge_component(
    component: str, maximum: int, concerns: Sequence[Concern], latches: Latches, moment: Moment
) -> ComponentState:
    """Judge every concern of one component."""
    return ComponentState(component, maximum, [_judge(concern, maximum, latches, moment) for concern in concerns])


def _judge(concern: Concern, maximum: int, latches: Latches, moment: Moment) -> ConcernState:
    sights: list[Sight] = []
    held: list[list[Held]] = []
    before: Tier | None = None
    for tier in concern.tiers:
        shared = before is not None and before.limit.probe is tier.limit.probe
        sight = sights[-1] if shared else look(tier.limit.probe, moment)
        key = f"{concern.component}.{tier.rule}"
        latches.feed(key, tier.limit, sight, moment)
        sights.append(sight)
        held.append(latches.held(key, sight))
        before = tier
    return ConcernState(concern, tuple(sights), tuple(held), maximum)


class Total(NamedTuple):
    """The score of a node before it is put into words."""

    score: int
    coverage: float


def total_of(states: Mapping[str, ComponentState], scores: Mapping[str, ComponentScore], expected: int) -> Total:
    """All components together, scaled to 100. Of GPUs and NPUs the worse stands, and counts once.

    ``expected``: points of a component that ought to be there and is not, by the scheme that was asked for: unread.
    """
    standing = _standing(states, scores)
    applicable = float(expected) + sum(states[name].applicable for name in _for_coverage(states))
    read = sum(states[name].read for name in _for_coverage(states))
    points = sum(scores[name].score for name in standing)
    best = sum(scores[name].max for name in standing)
    score = 100 * points // best if best else 0
    if read < applicable - _ROUNDING:
        score = min(score, 99)
    return Total(score, round(read / applicable, 4) if applicable else 0.0)


def _standing(states: Mapping[str, ComponentState], scores: Mapping[str, ComponentScore]) -> list[str]:
    """Components whose points are added up."""
    counting = [name for name in scores if states[name].counts]
    cards = [name for name in counting if name in ACCELERATORS]
    if len(cards) < len(ACCELERATORS):
        return counting
    better = max(cards, key=lambda name: scores[name].score)
    return [name for name in counting if name != better]


def _for_coverage(states: Mapping[str, ComponentState]) -> list[str]:
    """Components whose coverage counts: of two kinds of cards the one less known."""
    cards = [name for name in ACCELERATORS if name in states]
    if len(cards) < len(ACCELERATORS):
        return list(states)
    better = max(cards, key=lambda name: states[name].coverage)
    return [name for name in states if name != better]
