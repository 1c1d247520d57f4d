"""Two reports against each other, and whether their numbers compare at all."""

from collections.abc import Mapping

import msgspec

from nodeproof.model.job import BenchmarkResult, Correctness, Report
from nodeproof.stress.profile import identity_hash

__all__ = ["Comparison", "ComparisonRow", "compare_reports"]


class ComparisonRow(msgspec.Struct, frozen=True, kw_only=True):
    """One value that both have."""

    benchmark: str
    metric: str
    first: float
    second: float
    change: float | None
    """(second - first) / first; None when the first is 0."""
    comparable: bool
    """The same thing was run, both validated, on a box that was fit."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """All values that both have, and what stands between them."""

    first: str
    """Job id."""
    second: str
    rows: list[ComparisonRow]
    notes: list[str]


def compare_reports(first: Report, second: Report) -> Comparison:
    """Value by value, by the names of the items."""
    others = {item.name: item for item in second.benchmarks}
    rows: list[ComparisonRow] = []
    notes: list[str] = []
    for item in first.benchmarks:
        other = others.pop(item.name, None)
        if other is None:
            notes.append(f"{item.name}: only in {first.job_id}")
            continue
        doubts = _doubts(item, other, first.plan, second.plan)
        notes += [f"{item.name}: {doubt}" for doubt in doubts]
        rows += _rows(item, other, comparable=not doubts)
    notes += [f"{name}: only in {second.job_id}" for name in others]
    return Comparison(first=first.job_id, second=second.job_id, rows=rows, notes=notes)


def _rows(item: BenchmarkResult, other: BenchmarkResult, *, comparable: bool) -> list[ComparisonRow]:
    return [
        ComparisonRow(
            benchmark=item.name,
            metric=key,
            first=float(value),
            second=float(other.values[key]),
            change=float(other.values[key]) / float(value) - 1 if value else None,
            comparable=comparable,
        )
        for key, value in sorted(item.values.items())
        if key in other.values
    ]


def _doubts(item: BenchmarkResult, other: BenchmarkResult, plan: str, other_plan: str) -> list[str]:
    """Why the numbers of two items do not compare."""
    doubts = []
    if item.profile is None or other.profile is None:
        doubts.append("what ran is not known of both")
    elif identity_hash(item.profile, plan) != identity_hash(other.profile, other_plan):
        doubts.append(f"not the same was run: {_difference(item, other, plan, other_plan)}")
    for which, one in (("the first", item), ("the second", other)):
        if one.outcome is None or one.outcome.correctness is not Correctness.VALIDATED:
            doubts.append(f"{which} is not validated")
        box = one.details.get("hardware")
        if isinstance(box, Mapping) and box.get("validity") == "invalid":
            doubts.append(f"the box was not fit during {which}: {'; '.join(map(str, box.get('concerns', [])))}")
    return doubts


def _difference(item: BenchmarkResult, other: BenchmarkResult, plan: str, other_plan: str) -> str:
    if plan != other_plan:
        return f"plan {plan or 'none'} and {other_plan or 'none'}"
    if item.profile is None or other.profile is None:
        return "unknown"
    ours = {one.key: one.value for one in item.profile.parameters}
    theirs = {one.key: one.value for one in other.profile.parameters}
    changed = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    files = {one.name: one.sha256 for one in item.profile.assets if one.sha256}
    other_files = {one.name: one.sha256 for one in other.profile.assets if one.sha256}
    changed += sorted(key for key in files.keys() | other_files.keys() if files.get(key) != other_files.get(key))
    return ", ".join(changed) or "programs or resources differ"
