"""From points to words."""

from collections.abc import Iterable

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import Absence
from nodeproof.model.answer import EXIT_CODES, UNKNOWN, unknown
from nodeproof.model.health import Finding, Grade, HealthScore, Severity, UnknownConcern, Verdict

__all__ = ["grade_of", "unjudged", "verdict"]

_LIMITS = ((90, Grade.EXCELLENT), (75, Grade.GOOD), (60, Grade.WARNING))
_FULL_COVERAGE = 0.9
"""Below it nothing is better than Good."""
_HALF_COVERAGE = 0.5
"""Below it nothing is known."""


def _by_points(score: int) -> Grade:
    return next((grade for limit, grade in _LIMITS if score >= limit), Grade.CRITICAL)


def grade_of(score: int, coverage: float, severities: Iterable[Severity]) -> Grade:
    """The word for a score (90, 75, 60), capped by what was found and by how little could be read.

    A critical finding is positive evidence and stands however little else is known; else less than half of the applicable
    weight read is Unknown, and less than nine tenths at most Good.
    """
    found = set(severities)
    if Severity.CRITICAL in found:
        return Grade.CRITICAL
    if coverage < _HALF_COVERAGE:
        return Grade.UNKNOWN
    grade = _by_points(score)
    if grade is Grade.EXCELLENT and (coverage < _FULL_COVERAGE or Severity.WARNING in found):
        return Grade.GOOD
    return grade


def unjudged(ruleset: str, problem: str, at: Instant) -> HealthScore:
    """The health of a node at ``at`` when judging it failed: nothing is known, and why."""
    unknown = UnknownConcern("daemon", "health", Absence.READ_ERROR, problem, "report this error of nodeproof", weight=100.0)
    return HealthScore(0, Grade.UNKNOWN, "cpu_only", {}, rfc3339(at.wall_s), "auto", ruleset, 0.0, [unknown], [])


def verdict(score: HealthScore | None, *, problem: str = "") -> Verdict:
    """The answer of ``check``: 0 sound, 1 warning, 2 critical, 3 unknown.

    ``score`` is the daemon's last, None when there is none. ``problem`` says why it must not be believed (stale, daemon dead,
    no snapshot directory); with one the answer is 3 whatever the score. A warning is the grade Warning or any finding of that
    severity, a critical one likewise.
    """
    if problem or score is None:
        return Verdict(*unknown(problem or "there is no score"))
    severities = {one.severity for one in score.findings}
    if score.grade is Grade.CRITICAL:
        return _told("critical", score)
    if score.grade is Grade.UNKNOWN:
        return _told(UNKNOWN, score)
    if score.grade is Grade.WARNING or Severity.WARNING in severities:
        return _told("warning", score)
    return _told("sound", score)


def _told(word: str, score: HealthScore) -> Verdict:
    parts = [f"{word.upper()}: score {score.score} {score.grade}, {score.coverage:.0%} of what applies was read"]
    gravest = _gravest(score.findings)
    parts += [one.message for one in gravest[:3]]
    parts += [one.message for one in gravest[3:] if one.drill is True]
    if word == UNKNOWN:
        parts += [f"{one.component} {one.concern} {one.state}: {one.reason}" for one in score.unknown[:3]]
    return Verdict(EXIT_CODES[word], word, "; ".join(parts))


def _gravest(findings: list[Finding]) -> list[Finding]:
    return [one for one in findings if one.severity is not Severity.INFO or one.penalty]
