"""Points: one component by its table, and all of them together."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodeproof.health.evidence import finding, plain, unknown_of
from nodeproof.health.latch import Held, Latches
from nodeproof.health.rules import Compare, Concern, Tier
from nodeproof.health.sample import Moment, Sight, look
from nodeproof.health.scheme import ACCELERATORS
from nodeproof.model.health import ComponentScore, Deduction, Finding, UnknownConcern

__all__ = ["ComponentState", "ConcernState", "Take", "Total", "concern_message", "judge_component", "total_of"]

_ROUNDING = 1e-9
"""Sums of shares of points are exact but for binary fractions."""


class Take(NamedTuple):
    """Points that one tier takes."""

    tier: Tier
    held: Held
    """Evidence: the worst thing."""
    points: float
    things: int
    """How many things show it."""


class ConcernState:
    """One concern, judged."""

    __slots__ = ("applies", "concern", "held", "known", "maximum", "sights", "takes", "weight")

    def __init__(self, concern: Concern, maximum: int, sights: Sequence[Sight], held: Sequence[list[Held]]) -> None:
        """``sights`` and ``held`` stand for the tiers; ``maximum`` is what the whole component is worth."""
        self.concern = concern
        self.maximum = maximum
        self.sights = sights
        self.held = held
        self.applies = any(sight.applies for sight in sights)
        """Whether this node has what the concern is about."""
        self.known = min((sight.known for sight in sights if sight.applies), default=1.0)
        """Share of it that could be read: all of its tiers must be."""
        self.weight = maximum * concern.share / 100.0
        """Points that hang on it."""
        self.takes = self._takes()
        """What takes points now: the gravest tier that counts."""

    def _takes(self) -> list[Take]:
        for tier, helds in zip(self.concern.tiers, self.held, strict=True):
            active = [one for one in helds if one.latch.active]
            if not active:
                continue
            if tier.points_each:
                return [Take(tier, one, round(tier.points_each * one.latch.sample.value, 6), 1) for one in active]
            sign = -1.0 if tier.limit.compare is Compare.BELOW else 1.0
            worst = max(active, key=lambda one: sign * one.latch.sample.value)
            return [Take(tier, worst, round(self.maximum * tier.share / 100.0, 6), len(active))]
        return []


class ComponentState:
    """One component, judged."""

    __slots__ = ("applicable", "concerns", "counts", "coverage", "maximum", "name", "read", "score", "unknown")

    def __init__(self, name: str, maximum: int, concerns: Sequence[ConcernState]) -> None:
        self.name = name
        self.maximum = maximum
        self.concerns = concerns
        self.applicable = sum(state.weight for state in concerns if state.applies)
        """Points that hang on concerns which apply to this node."""
        self.read = sum(state.weight * state.known for state in concerns if state.applies)
        """Points that hang on concerns which could be read."""
        self.counts = any(state.applies and (state.known > 0 or state.takes) for state in concerns)
        """Whether it has a reading, or a deduction that still stands."""
        self.coverage = self.read / self.applicable if self.applicable else 1.0
        """Share of the applicable weight that could be read."""
        self.score = self._score()
        self.unknown = self._unknown()

    def _score(self) -> ComponentScore:
        """Points left; not all of them while something that applies could not be read."""
        deductions = [Deduction(take.tier.rule, take.points) for state in self.concerns for take in state.takes]
        left = int(max(0.0, self.maximum - sum(one.penalty for one in deductions)) + _ROUNDING)
        if self.read < self.applicable - _ROUNDING:
            left = min(left, self.maximum - 1)
        return ComponentScore(left, self.maximum, deductions or None, round(self.coverage, 4))

    def _unknown(self) -> list[UnknownConcern]:
        """What could not be read."""
        return [
            unknown_of(
                self.name,
                state.concern.name,
                [entry for sight in state.sights for entry in sight.unread],
                state.weight * (1.0 - state.known),
            )
            for state in self.concerns
            if state.applies and state.known < 1.0
        ]

    def findings(self, moment: Moment) -> list[Finding]:
        """What took points, with its evidence."""
        return [
            finding(
                take.tier.rule,
                take.tier.severity,
                component=self.name,
                message=concern_message(state.concern, take.held, take.things),
                evidence=(take.tier.limit, take.held),
                moment=moment,
                penalty=take.points,
            )
            for state in self.concerns
            for take in state.takes
        ]


def concern_message(concern: Concern, held: Held, things: int = 1) -> str:
    """What ``concern`` says of the worst of so many things."""
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
    return ConcernState(concern, maximum, sights, held)


class Total(NamedTuple):
    """The score of a node before it is put into words."""

    score: int
    coverage: float


def total_of(states: Mapping[str, ComponentState], expected: int) -> Total:
    """All components together, scaled to 100. Of GPUs and NPUs the worse stands, and counts once.

    ``expected``: points of a component that ought to be there and is not, by the scheme that was asked for: unread.
    """
    standing = [states[name].score for name in _standing(states)]
    applicable = float(expected) + sum(states[name].applicable for name in _for_coverage(states))
    read = sum(states[name].read for name in _for_coverage(states))
    points = sum(one.score for one in standing)
    best = sum(one.max for one in standing)
    score = 100 * points // best if best else 0
    if read < applicable - _ROUNDING:
        score = min(score, 99)
    return Total(score, round(read / applicable, 4) if applicable else 0.0)


def _standing(states: Mapping[str, ComponentState]) -> list[str]:
    """Components whose points are added up."""
    counting = [name for name, state in states.items() if state.counts]
    cards = [name for name in counting if name in ACCELERATORS]
    if len(cards) < len(ACCELERATORS):
        return counting
    better = max(cards, key=lambda name: states[name].score.score)
    return [name for name in counting if name != better]


def _for_coverage(states: Mapping[str, ComponentState]) -> list[str]:
    """Components whose coverage counts: of two kinds of cards the one less known."""
    cards = [name for name in ACCELERATORS if name in states]
    if len(cards) < len(ACCELERATORS):
        return list(states)
    better = max(cards, key=lambda name: states[name].coverage)
    return [name for name in states if name != better]
