"""One rule, here and now: what it means, what it sees, what would clear it."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import UsageError
from nodeproof.health.evidence import clears_text, reading_of, threshold_text, unit_of, unknown_of
from nodeproof.health.latch import Held
from nodeproof.health.readings import Readings
from nodeproof.health.rules import Compare, Concern, FindingRule, Limit, Tier
from nodeproof.health.sample import Sample, Sight
from nodeproof.health.scoring import ConcernState
from nodeproof.health.watch import Watch
from nodeproof.model.health import Condition, Explanation, TierState

__all__ = ["Context", "explain"]

_MOST_READINGS = 5

_ABSENT = (Sight([], [], applies=False, known=1.0),)
"""What is seen of a thing that this node does not have, or that its weights leave out."""


class Context(NamedTuple):
    """What an evaluator knows after its last evaluation."""

    concerns: Sequence[Concern]
    rules: Sequence[FindingRule]
    states: Mapping[str, ConcernState]
    """By key of the concern; a component that is not scored here has none."""
    watch: Watch


def explain(rule: str, context: Context, readings: Readings, at: Instant) -> list[Explanation]:
    """Explain every rule that ``rule`` names. Raises UsageError when there is none."""
    found = [
        _scored(concern, context.states.get(concern.key), readings, at)
        for concern in context.concerns
        if rule in {concern.key, *_texts(concern)}
    ]
    found += [_finding(one, context.watch, readings, at) for one in context.rules if rule == one.key]
    if not found:
        raise UsageError(f"no rule {rule!r}{_suggestion(rule, context)}; `nodeproof explain` lists them")
    return found


def _texts(concern: Concern) -> list[str]:
    return [text for tier in concern.tiers for text in (tier.rule, f"{concern.component}.{tier.rule}")]


def _suggestion(rule: str, context: Context) -> str:
    names = [text for concern in context.concerns for text in (concern.key, *_texts(concern))]
    names += [one.key for one in context.rules]
    from difflib import get_close_matches  # noqa: PLC0415 - the daemon never suggests anything, and saves the memory

    close = get_close_matches(rule, names, 3) or [name for name in names if rule in name][:3]
    return f", did you mean {' or '.join(dict.fromkeys(close))}" if close else ""


def _scored(concern: Concern, state: ConcernState | None, readings: Readings, at: Instant) -> Explanation:
    if state is None:
        state = ConcernState(concern, 0, _ABSENT * len(concern.tiers), [[] for _ in concern.tiers])
    tiers = [
        _tier(tier.rule, tier, _penalty(tier, state.maximum), (sight, helds), readings)
        for tier, sight, helds in zip(concern.tiers, state.sights, state.held, strict=True)
    ]
    seen = [(tier.limit, sight) for tier, sight in zip(concern.tiers, state.sights, strict=True)]
    return _explanation(concern, seen, tiers, state.weight, (readings, at))


def _penalty(tier: Tier, maximum: int) -> float:
    return tier.points_each or round(maximum * tier.share / 100.0, 6)


def _finding(rule: FindingRule, watch: Watch, readings: Readings, at: Instant) -> Explanation:
    sight = watch.sights.get(rule.key)
    held = [] if sight is None else watch.held(rule)
    if sight is None or not (sight.samples or _told(sight)):
        sight = _ABSENT[0]
    tier = _tier(rule.key, rule, 0.0, (sight, held), readings)
    return _explanation(rule, [(rule.limit, sight)], [tier], 0.0, (readings, at))


def _told(sight: Sight) -> bool:
    """Whether somebody reported that it could not be read, as against nobody having looked."""
    return any(entry.source or entry.timestamp for entry in sight.unread)


def _tier(
    rule: str, subject: Tier | FindingRule, penalty: float, seen: tuple[Sight, list[Held]], readings: Readings
) -> TierState:
    limit = subject.limit
    sight, held = seen
    unit = unit_of(limit.probe, readings)
    worst = _worst(limit, sight.samples)
    factor = worst[0].factor if worst else None
    latches = [one.latch for one in held]
    active = [latch for latch in latches if latch.active]
    return TierState(
        rule,
        threshold_text(limit, unit, factor),
        _condition(sight, waiting=bool(latches), counts=bool(active)),
        subject.severity,
        penalty,
        clears_text(limit, unit, factor),
        rfc3339(min(latch.since_wall_s for latch in latches)) if latches else "",
    )


def _condition(sight: Sight, *, waiting: bool, counts: bool) -> Condition:
    if counts:
        return Condition.TRIGGERED
    if not sight.applies:
        return Condition.NOT_APPLICABLE
    if waiting:
        return Condition.PENDING
    return Condition.CLEAR if sight.known == 1.0 else Condition.UNKNOWN


_GRAVITY = (Condition.TRIGGERED, Condition.PENDING, Condition.UNKNOWN, Condition.CLEAR, Condition.NOT_APPLICABLE)


def _explanation(
    subject: Concern | FindingRule,
    seen: list[tuple[Limit, Sight]],
    tiers: list[TierState],
    weight: float,
    now: tuple[Readings, Instant],
) -> Explanation:
    readings, at = now
    samples: dict[int, tuple[Limit, Sample]] = {}
    for limit, sight in seen:
        for sample in _worst(limit, sight.samples)[:_MOST_READINGS]:
            samples.setdefault(id(sample.metric), (limit, sample))
    shown = list(samples.values())[:_MOST_READINGS]
    unread = [entry for _, sight in seen for entry in sight.unread]
    probe = seen[0][0].probe
    spec = readings.catalogue.get((probe.component, probe.names[0]))
    return Explanation(
        subject.key,
        subject.component,
        subject.help,
        subject.remedy,
        min((tier.condition for tier in tiers), key=_GRAVITY.index),
        [reading_of(limit.probe, sample) for limit, sample in shown],
        round(max(readings.age_of(sample.metric, at) for _, sample in shown), 3) if shown else None,
        "" if spec is None else spec.source,
        tiers,
        weight,
        [unknown_of(subject.component, subject.name, unread, weight)] if unread else [],
    )


def _worst(limit: Limit, samples: list[Sample]) -> list[Sample]:
    """Worst first."""
    return sorted(samples, key=lambda sample: sample.value, reverse=limit.compare is not Compare.BELOW)
