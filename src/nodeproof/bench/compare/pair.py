"""Two runs against each other: refused where the instrument was not the same; else each number with what its change means."""

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from nodeproof.bench.compare.box import BoxDifference, compare_boxes
from nodeproof.bench.compare.conditions import Difference, differing_conditions
from nodeproof.bench.compare.direction import better_sign
from nodeproof.bench.compare.scatter import Noise, noise_of
from nodeproof.model.hardware import Sensitivity, Validity
from nodeproof.model.run import ExitCode, RunRecord, RunStatus

__all__ = [
    "Interval",
    "MetricPair",
    "RunComparison",
    "Word",
    "change_interval",
    "compare_records",
    "comparison_exit_code",
    "equal_runs",
]

Interval = tuple[float, float]
_EQUAL = 0.05
"""An interval around 0 that is no wider to either side says that nothing changed; a wider one says nothing."""


class Word(StrEnum):
    """What a difference of a number means."""

    SAME = "same"
    """No further apart than equal runs are."""
    BETTER = "better"
    WORSE = "worse"
    DIFFERENT = "different"
    """Further apart, and the key does not say which way is the good one."""
    UNKNOWN = "unknown"
    """It cannot be told, see the reason."""


class MetricPair(msgspec.Struct, frozen=True, kw_only=True):
    """A number that both have."""

    key: str
    first: float
    second: float
    change: float | None
    """(second - first) / first; none when the first alone is 0."""
    low: float | None = None
    """95 % interval of the change, from the bootstrap intervals of both; none where there are no raw samples."""
    high: float | None = None
    noise: float | None = None
    """Share by which equal runs differ; none = not known."""
    noise_runs: int = 0
    """Other equal runs that it was told from."""
    word: Word
    reason: str = ""
    """Why it cannot be told."""


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, and whether their numbers may be held against each other."""

    first: str
    second: str
    comparable: bool
    """Same instrument, both completed, one box, and both seen to be fit."""
    refused: bool
    """They must not be compared at all: there are no numbers."""
    reasons: list[str]
    """Why not; empty when they are."""
    conditions: list[Difference]
    box: list[BoxDifference]
    """What makes their boxes two boxes."""
    metrics: list[MetricPair]


def compare_records(
    first: RunRecord,
    second: RunRecord,
    equals: Sequence[RunRecord] = (),
    intervals: Sequence[Mapping[str, Interval]] = ({}, {}),
    problems: Sequence[str] = (),
) -> RunComparison:
    """What differs in conditions, and how the numbers differ.

    ``equals`` are other runs of the same instrument and box, ``intervals`` those of the metrics of both, ``problems`` reasons why
    the bytes of one of them are not to be believed.
    """
    hard = [*problems, *_instrument(first, second)]
    boxes = compare_boxes(first, second)
    speed = first.sensitivity is not Sensitivity.CORRECTNESS
    soft = list(_boxes_seen(first, second)) if speed else []
    if speed and boxes.differences:
        soft.append(f"the boxes are not one box for numbers of speed: {', '.join(one.what for one in boxes.differences)} differ")
    if speed and not boxes.same_machine and boxes.unknown:
        soft.append(f"two machines, of neither of which is known: {', '.join(boxes.unknown)}")
    return RunComparison(
        first=first.run_id,
        second=second.run_id,
        comparable=not hard and not soft,
        refused=bool(hard),
        reasons=[*hard, *soft],
        conditions=differing_conditions(first, second),
        box=boxes.differences if speed else [],
        metrics=[] if hard else list(_pairs(first, second, equals, intervals, soft)),
    )


def comparison_exit_code(comparison: RunComparison) -> ExitCode:
    """2 when something got worse, 3 when it cannot be told, 0 when nothing got worse."""
    if not comparison.comparable or not comparison.metrics:
        return ExitCode.INCONCLUSIVE
    words = {one.word for one in comparison.metrics}
    if Word.WORSE in words:
        return ExitCode.VERDICT_FAIL
    return ExitCode.INCONCLUSIVE if words == {Word.UNKNOWN} else ExitCode.OK


def equal_runs(record: RunRecord, others: Sequence[RunRecord], without: Sequence[str]) -> list[RunRecord]:
    """Runs of ``others`` whose numbers should be equal to those of ``record``: one instrument, one model, one fit box."""
    return [
        other
        for other in others
        if other.run_id not in without
        and other.fingerprint == record.fingerprint
        and other.target_model == record.target_model
        and other.status is RunStatus.COMPLETED
        and _validity(other) == _validity(record) != Validity.INVALID
        and compare_boxes(record, other).one_box
    ]


def _instrument(first: RunRecord, second: RunRecord) -> Iterator[str]:
    if not first.fingerprint or not second.fingerprint:
        yield "what ran is not known of both"
    elif first.fingerprint != second.fingerprint:
        yield "not the same was run: the fingerprints of the instruments differ"
    for record in (first, second):
        if record.status is not RunStatus.COMPLETED:
            yield f"{record.run_id} did not come to its end: {record.status}"


def _boxes_seen(first: RunRecord, second: RunRecord) -> Iterator[str]:
    for record in (first, second):
        validity = _validity(record)
        if validity != Validity.VALID:
            yield f"the box was not seen to be fit during {record.run_id}: {validity}"


def _validity(record: RunRecord) -> str:
    box = record.frame.hardware_state
    after = box.get("postcheck") if isinstance(box, dict) else None
    return str(after.get("validity", Validity.UNKNOWN) if isinstance(after, dict) else Validity.UNKNOWN)


def _pairs(
    first: RunRecord,
    second: RunRecord,
    equals: Sequence[RunRecord],
    intervals: Sequence[Mapping[str, Interval]],
    soft: Sequence[str],
) -> Iterator[MetricPair]:
    ours, theirs = first.frame.metrics, second.frame.metrics
    for key, value in sorted(ours.items()):
        if key not in theirs or key.startswith("aa_"):
            continue
        change = theirs[key] / value - 1 if value else 0.0 if theirs[key] == value else None
        limits = change_interval(value, intervals[0].get(key), theirs[key], intervals[1].get(key))
        noise = noise_of(key, equals, (first, second))
        word, reason = _word(key, change, limits, noise, soft)
        yield MetricPair(
            key=key,
            first=value,
            second=theirs[key],
            change=change,
            low=None if limits is None else limits[0],
            high=None if limits is None else limits[1],
            noise=noise.share,
            noise_runs=noise.runs,
            word=word,
            reason=reason,
        )


def change_interval(first: float, one: Interval | None, second: float, other: Interval | None) -> Interval | None:
    """95 % interval of ``second / first - 1`` from those of both (method of variance estimates recovery, Zou and Donner 2008).

    On the logarithms, so that it never goes below -1. None unless all values are above 0.
    """
    if one is None or other is None or min(first, second, one[0], other[0]) <= 0:
        return None
    ratio = math.log(second / first)
    down = math.hypot(math.log(second / other[0]), math.log(one[1] / first))
    up = math.hypot(math.log(other[1] / second), math.log(first / one[0]))
    return math.expm1(ratio - down), math.expm1(ratio + up)


def _word(key: str, change: float | None, limits: Interval | None, noise: Noise, soft: Sequence[str]) -> tuple[Word, str]:
    """A difference counts when it is outside of its own interval and beyond what equal runs differ by."""
    if change is None:
        return Word.UNKNOWN, "the first value is 0"
    if soft:
        return Word.UNKNOWN, "the boxes were not seen to be one, and fit"
    if _same(change, limits, noise):
        return Word.SAME, ""
    untold = _untold(limits, noise)
    if untold:
        return Word.UNKNOWN, untold
    sign = better_sign(key)
    if sign == 0:
        return Word.DIFFERENT, ""
    return (Word.BETTER if change * sign > 0 else Word.WORSE), ""


def _same(change: float, limits: Interval | None, noise: Noise) -> bool:
    if noise.share is not None and abs(change) <= noise.share:
        return True
    if limits is None:
        return change == 0
    return limits[0] <= 0 <= limits[1] and max(abs(limits[0]), abs(limits[1])) <= _EQUAL


def _untold(limits: Interval | None, noise: Noise) -> str:
    if limits is not None and limits[0] <= 0 <= limits[1]:
        return f"the interval of the change, {limits[0]:+.1%} to {limits[1]:+.1%}, holds none at all"
    return "how far equal runs differ is not known: repeat it at least thrice" if noise.share is None else ""
