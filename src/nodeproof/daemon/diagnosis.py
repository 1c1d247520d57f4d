"""What cannot be read on this machine by this user, why, what would help, and what it costs.

Everything here comes from attempts made now: two looks through all collectors that are switched on, and the rules on them.
Absences with one cause are one entry, with the metrics, rules and points of the score that hang on it.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from nodeproof.clock import Instant
from nodeproof.config.schema import Config
from nodeproof.daemon.assembly import CollectorEntry
from nodeproof.daemon.once import Observation
from nodeproof.errors import Absence
from nodeproof.health.blind import BlindRule
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.readings import Readings
from nodeproof.model.metric import Missing

__all__ = ["Cause", "Diagnosis", "NotApplicable", "diagnose"]

_GRAVITY = (Absence.NO_PERMISSION, Absence.READ_ERROR, Absence.STALE, Absence.UNSUPPORTED, Absence.UNKNOWN)


class Cause(msgspec.Struct, frozen=True):
    """One reason why something cannot be read."""

    state: Absence
    reason: str
    remedy: str
    """Empty where nothing helps on this kernel and hardware."""
    sources: list[str]
    """Files or commands that were tried."""
    metrics: list[str]
    """What is not known: ``cpu.temperature``."""
    rules: list[str]
    """What cannot be judged, or not wholly."""
    points: float
    """Points of a score of 100 that hang on it. A rule in the dark for several reasons is divided among them."""

    @property
    def decides(self) -> bool:
        """Whether it is something that does not work, as against something that has not happened yet."""
        return self.state is not Absence.UNKNOWN or self.points > 0 or bool(self.remedy)


class NotApplicable(msgspec.Struct, frozen=True):
    """Something that this machine does not have."""

    reason: str
    metrics: list[str]


class Diagnosis(msgspec.Struct, frozen=True):
    """What this user can read here."""

    readings: int
    """Readings that were got."""
    coverage: float
    """Share of the weight of the applicable rules that could be read, 0 to 1."""
    causes: list[Cause]
    """Dearest first."""
    pending: list[Cause]
    """Not known at this moment, and no fault: the next reading may tell."""
    not_applicable: list[NotApplicable]

    @property
    def points_blind(self) -> float:
        """Points of a score of 100 that could not be judged."""
        return round(sum(cause.points for cause in (*self.causes, *self.pending)), 2)


_Key = tuple[Absence, str, str]
"""State, reason and remedy."""


def diagnose(config: Config, entries: Sequence[CollectorEntry], seen: Observation, at: Instant) -> Diagnosis:
    """The diagnosis of two looks through the collectors of ``entries`` that are switched on."""
    evaluator = Evaluator(config.health.ruleset, config.health.weight_scheme, confirm=False)
    evaluator.evaluate(Readings(seen.first), at)
    health = evaluator.evaluate(Readings(seen.batches), at)
    blind = [_explained(rule, entries) for rule in evaluator.blind()]
    absences = [entry for batch in seen.batches.values() for entry in batch.missing]
    causes = _causes([entry for entry in absences if entry.state is not Absence.NOT_APPLICABLE], blind)
    return Diagnosis(
        sum(len(batch.metrics) for batch in seen.batches.values()),
        health.coverage,
        [cause for cause in causes if cause.decides],
        [cause for cause in causes if not cause.decides],
        _not_applicable(entry for entry in absences if entry.state is Absence.NOT_APPLICABLE),
    )


def _explained(blind: BlindRule, entries: Sequence[CollectorEntry]) -> BlindRule:
    """With the reason of an absence that nobody told of: a collector that is switched off or was left out."""
    return blind._replace(absences=tuple(_told(entry, entries) for entry in blind.absences))


def _told(absence: Missing, entries: Sequence[CollectorEntry]) -> Missing:
    if absence.source or absence.timestamp:
        return absence
    off = next((one.name for one in entries if one.collector.component == absence.component and not one.enabled), "")
    if not off:
        return absence
    reason = f"collector {off} is switched off in the configuration"
    return msgspec.structs.replace(
        absence, reason=reason, source="configuration", remedy=f"set collectors.{off}.enabled: true, unless it is meant"
    )


def _causes(absences: Sequence[Missing], blind: Sequence[BlindRule]) -> list[Cause]:
    told = [*absences, *(entry for rule in blind for entry in rule.absences)]
    heads = _heads({_key(entry) for entry in told})
    sources: dict[_Key, dict[str, None]] = {}
    metrics: dict[_Key, dict[str, None]] = {}
    rules: dict[_Key, dict[str, None]] = {}
    points: dict[_Key, float] = {}
    for entry in told:
        head = heads[_key(entry)]
        metrics.setdefault(head, {})[f"{entry.component}.{entry.name}"] = None
        if entry.source:
            sources.setdefault(head, {})[entry.source] = None
    for rule in blind:
        behind = list(dict.fromkeys(heads[_key(entry)] for entry in rule.absences))
        for head in behind:
            rules.setdefault(head, {})[rule.rule] = None
            points[head] = points.get(head, 0.0) + rule.points / len(behind)
    causes = [
        Cause(
            state,
            reason,
            remedy,
            sorted(sources.get(head, {})),
            sorted(found),
            sorted(rules.get(head, {})),
            round(points.get(head, 0.0), 2),
        )
        for head, found in metrics.items()
        for state, reason, remedy in [head]
    ]
    causes.sort(key=lambda one: (-one.points, -len(one.rules), _GRAVITY.index(one.state), -len(one.metrics), one.reason))
    return causes


def _key(entry: Missing) -> _Key:
    return (entry.state, entry.reason, entry.remedy)


def _heads(keys: Iterable[_Key]) -> Mapping[_Key, _Key]:
    """Each key's cause: one whose reason goes on where another's ends ("...; not yet watched that long: eth0") has the same."""
    heads: dict[_Key, _Key] = {}
    for key in sorted(keys, key=lambda key: len(key[1])):
        state, reason, remedy = key
        longer = (head for head in heads.values() if head[0] == state and head[2] == remedy and _goes_on(reason, head[1]))
        heads[key] = next(longer, key)
    return heads


def _goes_on(reason: str, beginning: str) -> bool:
    return reason.startswith(beginning) and reason[len(beginning) : len(beginning) + 2] in {"; ", " ("}


def _not_applicable(absences: Iterable[Missing]) -> list[NotApplicable]:
    reasons: dict[str, dict[str, None]] = {}
    for entry in absences:
        reasons.setdefault(entry.reason, {})[f"{entry.component}.{entry.name}"] = None
    found = [NotApplicable(reason, sorted(metrics)) for reason, metrics in reasons.items()]
    return sorted(found, key=lambda one: (-len(one.metrics), one.reason))
