"""``nodeproof bench compare``: two runs, or a run and its pinned reference."""

import argparse

from nodeproof.bench.compare.course import CourseReport, course_exit_code, course_of
from nodeproof.bench.compare.pair import MetricPair, RunComparison, Word, compare_records, comparison_exit_code
from nodeproof.bench.compare.references import ReferenceStore
from nodeproof.bench.gate.instrument import day
from nodeproof.cli.bench_executor import as_json, signing_key, state_root, told
from nodeproof.cli.bench_trusted import doubts, equals_of, opened
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.errors import RecordError
from nodeproof.runs.store import RunStore, StoredRun

__all__ = ["run"]


def _run(options: argparse.Namespace) -> int:
    store = opened(options)
    first = store.inspect(options.first)
    if options.second is None:
        return _against_reference(options, store, first)
    from nodeproof.bench.compare.intervals import intervals_of  # noqa: PLC0415 - numpy only where there are samples to look at

    second = store.inspect(options.second)
    found = compare_records(
        first.record,
        second.record,
        equals_of(store, first, [first.record.run_id, second.record.run_id]),
        (intervals_of(first), intervals_of(second)),
        [*doubts(options, first), *doubts(options, second)],
    )
    if as_json(options):
        print_json(found, indent=2)
    else:
        _print_pair(found)
    return int(comparison_exit_code(found))


run = told("compare", _run)


def _against_reference(options: argparse.Namespace, store: RunStore, run: StoredRun) -> int:
    problems = doubts(options, run)
    if problems:
        raise RecordError("; ".join(problems))
    reference = ReferenceStore(state_root(options), signing_key(options)).read(run.record)
    if reference is None:
        raise RecordError(
            f"no reference is pinned for the instrument of {run.record.run_id} on its class of box; "
            "pin one (nodeproof bench pin RUN), or name two runs"
        )
    report = course_of(run.record, reference, equals_of(store, run, [run.record.run_id]))
    if as_json(options):
        print_json(report, indent=2)
    else:
        _print_course(report)
    return int(course_exit_code(report))


def _print_pair(found: RunComparison) -> None:
    word = "comparable" if found.comparable else "refused" if found.refused else "not proven to be comparable"
    print(printable_lines(f"{found.first} and {found.second}: {word}"))
    for reason in found.reasons:
        print(printable_lines(f"  {reason}"))
    if found.conditions:
        print()
        print_table(
            ("What differs", "First", "Second"), [(one.what, one.first or "-", one.second or "-") for one in found.conditions]
        )
    if found.box:
        print()
        print_table(("Boxes differ in", "First", "Second"), [(one.what, one.first, one.second) for one in found.box])
    if found.metrics:
        print()
        print_table(
            ("Metric", "First", "Second", "Change", "95 % interval", "Equal runs", "Meaning"),
            [_pair_row(one, told=found.comparable) for one in found.metrics],
            right=(1, 2, 3, 4, 5),
        )


def _pair_row(one: MetricPair, *, told: bool) -> tuple[str, ...]:
    between = "-" if one.low is None or one.high is None else f"{_share(one.low)} to {_share(one.high)}"
    noise = "-" if one.noise is None else f"±{one.noise:.1%}"
    meaning = f"{one.word}: {one.reason}" if one.reason and told else str(one.word)
    return one.key, f"{one.first:.6g}", f"{one.second:.6g}", _share(one.change), between, noise, meaning


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1%}"


def _print_course(report: CourseReport) -> None:
    reference = report.reference
    print(printable_lines(f"{report.run_id} against {reference.run_id}, pinned {day(reference.pinned_at)}"))
    if reference.note:
        print(printable_lines(f"  {reference.note}"))
    print(f"  {len(report.runs)} runs of this instrument on this box\n")
    rows = []
    for one in report.metrics:
        noise = "-" if one.noise is None else f"±{one.noise:.1%}"
        meaning = f"{one.word}: {one.reason}" if one.reason else str(one.word)
        rows.append((one.key, f"{one.reference:.6g}", f"{one.value:.6g}", _share(one.change), noise, meaning))
    print_table(("Metric", "Reference", "Now", "Change", "Equal runs", "Meaning"), rows, right=(1, 2, 3, 4))
    for one in report.metrics:
        if one.changed_at and one.word is not Word.SAME and one.level_before is not None and one.level_after is not None:
            text = f"{one.key}: from {one.level_before:.6g} to {one.level_after:.6g} since {one.changed_at} (p = {one.p:.2g})"
            print(printable_lines(f"  {text}"))
