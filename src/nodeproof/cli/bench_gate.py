"""What ``bench gate`` and ``bench certify`` share: the file, the judge, and how its report is shown."""

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

from nodeproof.bench.gate.archive import Archive, CopiedRuns, StoredRuns
from nodeproof.bench.gate.judge import Judge
from nodeproof.bench.gate.judgement import GateReport, Judgement, Standing, gate_exit_code
from nodeproof.bench.gate.schema import Entry, Thresholds
from nodeproof.bench.gate.thresholds import read_thresholds
from nodeproof.bench.gate.trust import trusted_keys
from nodeproof.cli.bench_executor import bench_store, complain, signing_key
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.clock import rfc3339
from nodeproof.errors import UsageError
from nodeproof.host.signing_key import PublicKey
from nodeproof.model.run import ExitCode
from nodeproof.runs.registry import Registry, discover

__all__ = ["Desk", "desk_of", "print_gate", "report_of"]

_MARKS = {
    Standing.PASS: "pass",
    Standing.FAIL: "FAIL",
    Standing.REFUSED: "refused",
    Standing.MISSING: "missing",
    Standing.UNMEASURED: "unmeasured",
}


class Desk(NamedTuple):
    """Everything that judging needs."""

    thresholds: Thresholds
    entries: Sequence[Entry]
    registry: Registry
    trusted: dict[str, PublicKey]
    judge: Judge


def desk_of(options: argparse.Namespace, action: str, records: str | None = None) -> Desk:
    """By the options. Raises ConfigError, UsageError, RecordError."""
    thresholds = read_thresholds(options.file)
    registry = discover()
    for problem in registry.problems:
        complain(action, problem)
    trusted = trusted_keys(thresholds, signing_key(options))
    archive: Archive
    if records is None:
        store = bench_store(options)
        store.recover()
        archive = StoredRuns(store)
    else:
        archive = CopiedRuns(records)
    entries = _chosen(thresholds, registry, options.only)
    return Desk(thresholds, entries, registry, trusted, Judge(archive, trusted, registry))


def _chosen(thresholds: Thresholds, registry: Registry, only: Sequence[str]) -> Sequence[Entry]:
    if not only:
        return thresholds.entries
    wanted = {registry.get(name).id for name in only}
    found = [entry for entry in thresholds.entries if entry.id in {*wanted, *only} or _id(registry, entry) in wanted]
    if not found:
        raise UsageError(f"--only {' '.join(only)}: {thresholds.source} says nothing of it")
    return found


def _id(registry: Registry, entry: Entry) -> str:
    return next((one.id for one in registry if entry.id in {one.id, *one.aliases}), "")


def report_of(desk: Desk, judgements: Sequence[Judgement]) -> GateReport:
    """The document."""
    code = gate_exit_code(judgements)
    return GateReport(
        source=desk.thresholds.source,
        sha256=desk.thresholds.sha256,
        judged_at=rfc3339(time.time()),
        passed=code is ExitCode.OK,
        exit_code=int(code),
        trusted=sorted(desk.trusted),
        judgements=list(judgements),
    )


def print_gate(report: GateReport, *, explain: bool) -> None:
    """For people: one line an entry, and with ``explain`` everything that was looked at."""
    print_table(
        ("Standing", "Required", "Benchmark", "Run", "Why"),
        [
            (_MARKS[one.standing], "yes" if one.required else "no", one.title, _runs(one), "; ".join(one.reasons))
            for one in report.judgements
        ],
    )
    if explain:
        for one in report.judgements:
            _explain(one)
        print(printable_lines(f"\nRecords count that were signed with {', '.join(report.trusted) or '(no key)'}"))
    words = {0: "proven", 2: "FAILED"}.get(report.exit_code, "not proven")
    print(printable_lines(f"\n{report.source}: {words}"))


def _runs(judgement: Judgement) -> str:
    first = judgement.runs[0] if judgement.runs else "-"
    return first if len(judgement.runs) < 2 else f"{first} and {len(judgement.runs) - 1} more"


def _explain(one: Judgement) -> None:
    print(printable_lines(f"\n{one.place} {one.title}: {one.standing}"))
    lines = [*one.reasons, *(check.text for check in one.checks if check.text not in one.reasons)]
    lines += [f"decided by {run}" for run in one.runs]
    lines += [f"signed with {key}" for key in one.signed_by]
    lines += [f"note: {note}" for note in one.notes]
    lines += [f"passed over {other.run_id}: {other.why}" for other in one.considered]
    for line in lines:
        print(printable_lines(f"  {line}"))
