"""A run against its pinned reference, and the course of its metrics since: where the level changed, if it did."""

from collections.abc import Iterator, Sequence

import msgspec

from nodeproof.bench.compare.change_point import FEWEST_FOR_CHANGE, change_point, outlier_score
from nodeproof.bench.compare.direction import better_sign
from nodeproof.bench.compare.pair import Word
from nodeproof.bench.compare.references import Reference
from nodeproof.bench.compare.scatter import noise_of
from nodeproof.model.run import ExitCode, RunRecord

__all__ = ["CourseReport", "MetricCourse", "course_exit_code", "course_of"]


class MetricCourse(msgspec.Struct, frozen=True, kw_only=True):
    """One metric."""

    key: str
    reference: float
    value: float
    change: float | None
    """Against the reference, as a share; none when that is 0."""
    noise: float | None
    """Share by which equal runs differ; none = not known."""
    runs: int
    """Runs of the course, this one included."""
    score: float | None
    """Robust standard deviations from the middle of the runs before."""
    changed_at: str = ""
    """First run of a new level; empty = the level did not change, as far as can be told."""
    level_before: float | None = None
    level_after: float | None = None
    p: float | None = None
    """Chance of such a change where there is none."""
    word: Word
    reason: str = ""
    """Why it cannot be told."""


class CourseReport(msgspec.Struct, frozen=True, kw_only=True):
    """The whole."""

    run_id: str
    reference: Reference
    runs: list[str]
    """Of the course, oldest first."""
    metrics: list[MetricCourse]


def course_of(record: RunRecord, reference: Reference, equals: Sequence[RunRecord]) -> CourseReport:
    """``record`` against ``reference``, and against ``equals``, other runs of the same instrument on the same box."""
    row = sorted([*equals, record], key=lambda one: (one.recorded_at, one.run_id))
    row = [one for one in row if one.recorded_at <= record.recorded_at]
    return CourseReport(
        run_id=record.run_id,
        reference=reference,
        runs=[one.run_id for one in row],
        metrics=list(_metrics(record, reference, row)),
    )


def course_exit_code(report: CourseReport) -> ExitCode:
    """2 when something got worse, 3 when nothing can be told, 0 else."""
    words = {one.word for one in report.metrics}
    if Word.WORSE in words:
        return ExitCode.VERDICT_FAIL
    return ExitCode.OK if words - {Word.UNKNOWN} else ExitCode.INCONCLUSIVE


def _metrics(record: RunRecord, reference: Reference, row: Sequence[RunRecord]) -> Iterator[MetricCourse]:
    for key, pinned in sorted(reference.metrics.items()):
        value = record.frame.metrics.get(key)
        if value is None or key.startswith("aa_"):
            continue
        having = [one for one in row if key in one.frame.metrics]
        values = [one.frame.metrics[key] for one in having]
        change = value / pinned - 1 if pinned else 0.0 if value == pinned else None
        noise = noise_of(key, having[:-1], (record,))
        cut = change_point(values)
        word, reason = _word(key, change, noise.share, None if cut is None else cut.change)
        yield MetricCourse(
            key=key,
            reference=pinned,
            value=value,
            change=change,
            noise=noise.share,
            runs=len(values),
            score=_finite(outlier_score(value, values[:-1])),
            changed_at="" if cut is None else having[cut.place].run_id,
            level_before=None if cut is None else cut.before,
            level_after=None if cut is None else cut.after,
            p=None if cut is None else cut.p,
            word=word,
            reason=reason,
        )


def _word(key: str, change: float | None, noise: float | None, moved: float | None) -> tuple[Word, str]:
    """Against the reference beyond the scatter, or a level that moved since: both count."""
    if change is None:
        return Word.UNKNOWN, "the reference is 0"
    if noise is None and moved is None and change != 0:
        return Word.UNKNOWN, f"how far equal runs differ is not known: 3 runs tell the scatter, {FEWEST_FOR_CHANGE} a change"
    shifts = [shift for shift in (change if abs(change) > (noise or 0.0) else None, moved) if shift]
    if not shifts:
        return Word.SAME, ""
    sign = better_sign(key)
    if sign == 0:
        return Word.DIFFERENT, ""
    return (Word.WORSE if any(shift * sign < 0 for shift in shifts) else Word.BETTER), ""


def _finite(value: float | None) -> float | None:
    """JSON has no infinity: a value off a row without any scatter has no score."""
    return value if value is not None and abs(value) < float("inf") else None
