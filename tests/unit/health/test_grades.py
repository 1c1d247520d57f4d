"""Words for points, and what caps them."""

import pytest

from nodeproof.clock import Instant
from nodeproof.errors import Absence
from nodeproof.health.grades import grade_of, unjudged, verdict
from nodeproof.model.health import Finding, Grade, HealthScore, Reading, Severity, UnknownConcern


@pytest.mark.parametrize(
    ("score", "grade"),
    [
        (100, "Excellent"),
        (90, "Excellent"),
        (89, "Good"),
        (75, "Good"),
        (74, "Warning"),
        (60, "Warning"),
        (59, "Critical"),
        (0, "Critical"),
    ],
)
def test_limits_of_grades(score: int, grade: str) -> None:
    assert grade_of(score, 1.0, []) == grade


@pytest.mark.parametrize(
    ("coverage", "grade"), [(0.9, "Excellent"), (0.8999, "Good"), (0.5, "Good"), (0.4999, "Unknown"), (0.0, "Unknown")]
)
def test_coverage_caps_the_grade(coverage: float, grade: str) -> None:
    assert grade_of(100, coverage, []) == grade


def test_little_coverage_does_not_better_a_bad_grade() -> None:
    assert grade_of(70, 0.6, []) == "Warning"
    assert grade_of(10, 0.6, []) == "Critical"


@pytest.mark.parametrize(
    ("score", "severity", "grade"),
    [
        (100, Severity.INFO, "Excellent"),
        (100, Severity.WARNING, "Good"),
        (80, Severity.WARNING, "Good"),
        (70, Severity.WARNING, "Warning"),
        (100, Severity.CRITICAL, "Critical"),
    ],
)
def test_findings_cap_the_grade(score: int, severity: Severity, grade: str) -> None:
    assert grade_of(score, 1.0, [severity]) == grade


def test_a_critical_finding_stands_however_little_is_known() -> None:
    assert grade_of(100, 0.1, [Severity.WARNING, Severity.CRITICAL]) == "Critical"


def one(severity: Severity, message: str, penalty: float = 0.0) -> Finding:
    reading = Reading("cpu", "usage", 1.0, "%")
    return Finding("rule", severity, "cpu", message, reading, "/proc", 0.0, "> 0", "<= 0", "2026-11-30T12:00:00Z", penalty)


def scored(grade: Grade, score: int = 95, *findings: Finding, coverage: float = 1.0) -> HealthScore:
    unknown = [UnknownConcern("disk", "smart", Absence.NO_PERMISSION, "smartctl needs root")]
    return HealthScore(score, grade, "cpu_only", {}, "t", "cpu_only", "0.3.5", coverage, unknown, list(findings))


@pytest.mark.parametrize(
    ("score", "code", "line"),
    [
        (scored(Grade.EXCELLENT), 0, "SOUND: score 95 Excellent, 100% of what applies was read"),
        (scored(Grade.GOOD, coverage=0.824), 0, "SOUND: score 95 Good, 82% of what applies was read"),
        (
            scored(Grade.GOOD, 95, one(Severity.INFO, "busy", 5.0), one(Severity.INFO, "by the way")),
            0,
            "SOUND: score 95 Good, 100% of what applies was read; busy",
        ),
        (
            scored(Grade.GOOD, 95, one(Severity.WARNING, "a fan is slow")),
            1,
            "WARNING: score 95 Good, 100% of what applies was read; a fan is slow",
        ),
        (scored(Grade.WARNING, 70), 1, "WARNING: score 70 Warning, 100% of what applies was read"),
        (
            scored(Grade.CRITICAL, 95, *(one(Severity.CRITICAL, f"disk {n} failed") for n in range(5))),
            2,
            "CRITICAL: score 95 Critical, 100% of what applies was read; disk 0 failed; disk 1 failed; disk 2 failed",
        ),
        (
            scored(Grade.UNKNOWN, 99, coverage=0.4),
            3,
            "UNKNOWN: score 99 Unknown, 40% of what applies was read; disk smart no_permission: smartctl needs root",
        ),
    ],
)
def test_verdict(score: HealthScore, code: int, line: str) -> None:
    told = verdict(score)
    assert (told.exit_code, told.line) == (code, line)
    assert told.word == line.partition(":")[0].lower()


def test_no_score_is_unknown() -> None:
    assert verdict(None).line == "UNKNOWN: there is no score"
    assert verdict(None, problem="the daemon does not run").line == "UNKNOWN: the daemon does not run"


def test_a_score_that_must_not_be_believed_is_unknown_whatever_it_says() -> None:
    told = verdict(scored(Grade.EXCELLENT), problem="the snapshot is 40 s old")
    assert (told.exit_code, told.word, told.line) == (3, "unknown", "UNKNOWN: the snapshot is 40 s old")


def test_a_node_that_could_not_be_judged_is_unknown_and_says_why() -> None:
    score = unjudged("0.3.5", "could not be judged: KeyError: 'x'", Instant(1_790_000_000.0, 5.0))
    assert (score.score, score.grade, score.coverage) == (0, Grade.UNKNOWN, 0.0)
    answer = verdict(score)
    assert answer.exit_code == 3
    assert "daemon health read_error: could not be judged: KeyError: 'x'" in answer.line
