"""``nodeproof bench pin``: make a run the reference, or list what is pinned."""

import argparse
import time

from nodeproof.bench.compare.references import Reference, ReferenceStore
from nodeproof.bench.gate.instrument import day
from nodeproof.bench.gate.judge import box_validity
from nodeproof.cli.bench_executor import as_json, complain, signing_key, state_root, told
from nodeproof.cli.bench_trusted import doubts, opened
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.errors import RecordError
from nodeproof.model.hardware import Sensitivity, Validity
from nodeproof.model.run import RunRecord, RunStatus, VerdictKind
from nodeproof.runs.manifest import read_manifest

__all__ = ["run"]

_GOOD = frozenset({VerdictKind.PASS, VerdictKind.INFO})


def _run(options: argparse.Namespace) -> int:
    references = ReferenceStore(state_root(options), signing_key(options))
    if options.id is None:
        return _list(options, references)
    stored = opened(options).inspect(options.id)
    problems = doubts(options, stored) or _unfit(stored.record, unproven_box=options.unproven_box)
    if problems:
        raise RecordError("; ".join(problems))
    _, sha256 = read_manifest(stored.path)
    made = references.pin(stored.record, sha256, options.note, time.time())
    if as_json(options):
        print_json(made, indent=2)
    else:
        print(
            printable_lines(f"{made.run_id} is the reference of {made.benchmark_id} for {made.model or 'this box'} on {made.box}")
        )
        if made.before:
            print(printable_lines(f"  in the place of {made.before[0].run_id}, pinned {day(made.before[0].pinned_at)}"))
    return 0


run = told("pin", _run)


def _unfit(record: RunRecord, *, unproven_box: bool) -> list[str]:
    """Why a run is no reference."""
    problems = []
    if record.status is not RunStatus.COMPLETED:
        problems.append(f"{record.run_id} did not come to its end: {record.status}")
    if record.verdict.kind not in _GOOD:
        problems.append(f"the verdict of {record.run_id} is {record.verdict.kind}: {record.verdict.reason}")
    if not record.frame.metrics:
        problems.append(f"{record.run_id} has no numbers")
    validity = box_validity(record)
    if validity is Validity.INVALID:
        problems.append(f"the box was not fit during {record.run_id}")
    elif validity is Validity.UNKNOWN and record.sensitivity is not Sensitivity.CORRECTNESS and not unproven_box:
        problems.append(f"the box was not seen to be fit during {record.run_id} (--unproven-box accepts that)")
    return problems


def _list(options: argparse.Namespace, references: ReferenceStore) -> int:
    found, problems = references.all()
    for problem in problems:
        complain("pin", problem)
    if as_json(options):
        print_json(found, indent=2)
    else:
        print_table(("Benchmark", "Model", "Box", "Run", "Pinned", "Note"), [_row(one) for one in found])
    return 1 if problems else 0


def _row(one: Reference) -> tuple[str, ...]:
    return one.benchmark_id, one.model or "-", one.box, one.run_id, day(one.pinned_at), one.note
