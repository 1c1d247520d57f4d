"""Every condition that holds now, one a thing, and whether a thing reads well again: what faults are made of."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from nodeproof.health.evidence import clears_text, unit_of
from nodeproof.health.latch import Held
from nodeproof.health.readings import Readings
from nodeproof.health.rules import Limit
from nodeproof.health.sample import Sight
from nodeproof.health.scoring import ComponentState, ConcernState, concern_message
from nodeproof.health.watch import Watch, finding_message
from nodeproof.model.health import Severity, Standing
from nodeproof.model.metric import Labels

__all__ = ["reads_well", "standing"]


def standing(watch: Watch, states: Mapping[str, ComponentState], readings: Readings) -> Iterator[Standing]:
    """All conditions that count, as of the last judgement."""
    for rule in watch.stirring():
        for held in watch.held(rule):
            if held.latch.active:
                message = finding_message(rule, held)
                yield _told(rule.key, rule.severity, rule.limit, held, message, rule.remedy, readings)
    for state in states.values():
        for concern in state.concerns:
            if concern.takes:
                yield from _of_concern(concern, readings)


def _of_concern(state: ConcernState, readings: Readings) -> Iterator[Standing]:
    """Of each thing the gravest threshold that it is beyond."""
    told: set[tuple[str, ...]] = set()
    concern = state.concern
    for tier, helds in zip(concern.tiers, state.held, strict=True):
        for held in helds:
            entity = held.latch.sample.entity
            if held.latch.active and entity not in told:
                told.add(entity)
                message = concern_message(concern, held)
                told_of = _told(concern.key, tier.severity, tier.limit, held, message, concern.remedy, readings)
                yield msgspec.structs.replace(told_of, tier=tier.rule)


def _told(rule: str, severity: Severity, limit: Limit, held: Held, message: str, remedy: str, readings: Readings) -> Standing:
    sample = held.latch.sample
    ends = clears_text(limit, unit_of(limit.probe, readings), sample.factor)
    return Standing(
        rule=rule,
        severity=severity,
        component=rule.partition(".")[0],
        message=message,
        labels=sample.metric.labels or {},
        entity=limit.probe.entity,
        value=sample.value,
        since_wall_s=held.latch.since_wall_s,
        clears_when=f"{sample.metric.name} {ends}",
        remedy=remedy,
        current=held.current,
    )


def reads_well(limit: Limit, sight: Sight | None, same: Callable[[Labels], bool]) -> bool | None:
    """Whether the thing that ``same`` knows by its labels is on the good side of ``limit``; None when it was not read."""
    if sight is None:
        return None
    found = [sample for sample in sight.samples if same(sample.metric.labels or {})]
    if not found:
        return None
    return all(limit.clears(sample.value, sample.factor) and not limit.holds(sample.value, sample.factor) for sample in found)
