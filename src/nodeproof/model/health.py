"""The verdict on a node: score, grade, and the evidence for both.

The JSON keys of the reference stay (observe.md 5.6): ``score grade server_type components timestamp``, inside a component
``score max deductions``, inside a deduction ``rule penalty``; ``deductions`` is null when there are none. All other keys are
additions.
"""

from enum import StrEnum

import msgspec

from nodeproof.errors import Absence
from nodeproof.model.metric import Labels

__all__ = [
    "ComponentScore",
    "Condition",
    "Deduction",
    "Explanation",
    "Finding",
    "Grade",
    "HealthScore",
    "Reading",
    "Severity",
    "Standing",
    "TierState",
    "UnknownConcern",
    "Verdict",
]


class Grade(StrEnum):
    """The word for a score; ``Unknown`` when less than half of the rules that apply could be read."""

    EXCELLENT = "Excellent"
    GOOD = "Good"
    WARNING = "Warning"
    CRITICAL = "Critical"
    UNKNOWN = "Unknown"


class Severity(StrEnum):
    """What a finding does to the grade."""

    INFO = "info"
    """Nothing: it is told, or its points say enough."""
    WARNING = "warning"
    """At most Good."""
    CRITICAL = "critical"
    """Critical."""


class Condition(StrEnum):
    """Where a rule stands."""

    TRIGGERED = "triggered"
    PENDING = "pending"
    """Its condition holds, and has not held for long enough to count."""
    CLEAR = "clear"
    UNKNOWN = "unknown"
    """It applies here, and could not be read."""
    NOT_APPLICABLE = "not_applicable"


class Reading(msgspec.Struct, frozen=True, omit_defaults=True):
    """The number that a rule judged."""

    component: str
    name: str
    value: float
    unit: str
    labels: Labels | None = None
    judged: float | None = None
    """The number that was held against the threshold, where that is not the reading itself."""
    judged_as: str = ""
    """What that number is: ``growth within 24 h``."""


class Deduction(msgspec.Struct, frozen=True):
    """Points that one rule takes from its component."""

    rule: str
    penalty: float


class ComponentScore(msgspec.Struct, frozen=True):
    """Points of one component; never all of them while a concern of it could not be read."""

    score: int
    max: int
    deductions: list[Deduction] | None
    coverage: float = 1.0
    """Share of the weight of its applicable rules that could be read."""


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong, or worth knowing, with its evidence."""

    rule: str
    severity: Severity
    component: str
    message: str
    reading: Reading
    source: str
    """File or command that the reading comes from."""
    age_s: float
    """Age of the reading when it was judged."""
    threshold: str
    """The condition in words: ``> 90 %``."""
    clears_when: str
    since: str
    """RFC 3339: the first sample that led to it."""
    penalty: float = 0.0
    """Points it took from its component; 0 for what stands outside the tables."""
    last_seen: bool = False
    """True when the reading is gone by now, and the finding stands until it can be read again."""
    drill: bool | msgspec.UnsetType = msgspec.UNSET
    """True = injected to try the alarm; nothing is broken. Not there in findings that are none."""


class UnknownConcern(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that applies to this node and could not be told."""

    component: str
    concern: str
    state: Absence
    reason: str
    remedy: str = ""
    source: str = ""
    weight: float = 0.0
    """Points of the score that hang on it; 0 for what stands outside the tables."""


class HealthScore(msgspec.Struct, frozen=True):
    """The health of a node at one moment."""

    score: int
    """0 to 100."""
    grade: Grade
    server_type: str
    """``cpu_only`` or ``accelerated``."""
    components: dict[str, ComponentScore]
    timestamp: str
    scheme: str
    """Weights in use: ``cpu_only``, ``accelerated_2card`` ..."""
    ruleset: str
    """``0.3.5`` or ``0.3.3``."""
    coverage: float
    """Share of the weight of all applicable rules that could be read, 0 to 1."""
    unknown: list[UnknownConcern]
    findings: list[Finding]
    """What is wrong now, gravest first."""


class TierState(msgspec.Struct, frozen=True, omit_defaults=True):
    """One threshold of a rule, for ``explain``."""

    rule: str
    """Text of the deduction, or the id of a finding."""
    threshold: str
    condition: Condition
    severity: Severity
    penalty: float
    """Points it takes here when it is triggered."""
    clears_when: str
    since: str = ""


class Explanation(msgspec.Struct, frozen=True):
    """Everything there is to say about one rule here and now."""

    rule: str
    component: str
    meaning: str
    remedy: str
    condition: Condition
    readings: list[Reading]
    """Live readings, worst first; at most a few."""
    age_s: float | None
    """Age of the readings; None when there are none."""
    source: str
    tiers: list[TierState]
    weight: float
    """Points of the score that the rule stands for here; 0 for what stands outside the tables or does not apply."""
    absences: list[UnknownConcern]
    """Why it could not be read, where it could not."""


class Verdict(msgspec.Struct, frozen=True):
    """The answer of ``check``."""

    exit_code: int
    """0 sound, 1 warning, 2 critical, 3 unknown."""
    word: str
    line: str
    """One line for a log."""


class Standing(msgspec.Struct, frozen=True):
    """One condition of one thing that holds now: what a fault is made of. Findings list a few of a rule, these are all."""

    rule: str
    """Id of the rule: ``disk.read_only``, ``npu.card_drop``."""
    severity: Severity
    component: str
    message: str
    labels: Labels
    """Labels of the reading; empty when it has none."""
    entity: tuple[str, ...]
    """Those of them by which the rule tells one thing from another."""
    value: float
    since_wall_s: float
    """When the first of the readings that led to it was judged, in seconds since the epoch."""
    clears_when: str
    remedy: str
    current: bool
    """False = it can no longer be read, and stands."""
    tier: str = ""
    """Which threshold of a rule that takes points: the text of its deduction."""
