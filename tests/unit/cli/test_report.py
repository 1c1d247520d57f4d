"""A verdict as people read it, in the words of ``nodeproof check``."""

import pytest

from nodeproof.cli.report import print_health
from nodeproof.health.grades import grade_of, verdict
from nodeproof.model.health import Finding, HealthScore, Reading, Severity


def _score(score: int, coverage: float, *severities: Severity) -> HealthScore:
    reading = Reading("cpu", "usage", 1.0, "%")
    findings = [
        Finding("rule", severity, "cpu", "hot", reading, "/proc", 0.0, "> 0", "<= 0", "2026-11-30T12:00:00Z")
        for severity in severities
    ]
    grade = grade_of(score, coverage, severities)
    return HealthScore(score, grade, "cpu_only", {}, "2026-11-30T12:00:00+00:00", "auto", "0.3.5", coverage, [], findings)


@pytest.mark.parametrize(
    ("health", "closing"),
    [
        (_score(97, 1.0), "[OK]    SOUND: everything that could be read is in order."),
        (_score(80, 1.0), "[NOTE]  SOUND: nothing needs attention now, but points were lost or not all could be read."),
        (_score(97, 0.7), "[NOTE]  SOUND: nothing needs attention now, but points were lost or not all could be read."),
        (_score(97, 1.0, Severity.WARNING), "[WARN]  WARNING: something needs attention."),
        (_score(65, 1.0), "[WARN]  WARNING: something needs attention."),
        (_score(97, 1.0, Severity.CRITICAL), "[CRIT]  CRITICAL: do not trust this node until it has been looked at."),
        (_score(97, 0.3), "[????]  UNKNOWN: too little could be read for a verdict; see: nodeproof doctor"),
    ],
)
def test_health_ends_with_the_word_of_check(health: HealthScore, closing: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A warning that stands was called good order, while ``check`` said WARNING and exited with 1."""
    print_health(health)
    assert capsys.readouterr().out.splitlines()[-1].strip() == closing
    assert f" {verdict(health).word.upper()}: " in closing
