"""``nodeproof bench certify``: run what ``bench.toml`` requires and no record proves yet, then judge by the records alone."""

import argparse
import math
from collections.abc import Sequence
from functools import partial

import msgspec

from nodeproof.bench.gate.judgement import GateReport, Judgement, Standing
from nodeproof.bench.gate.plan import Unit, plan_entry
from nodeproof.cli.bench_executor import as_json, bench_store, complain, signing_key, told
from nodeproof.cli.bench_gate import Desk, desk_of, print_gate, report_of
from nodeproof.cli.bench_units import UnitRunner, check_units
from nodeproof.cli.output import print_json
from nodeproof.cli.state_lease import working_state
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.errors import UsageError
from nodeproof.host.signing_key import PublicKey
from nodeproof.model.run import ExitCode, RunStatus
from nodeproof.runs.store import RunStore

__all__ = ["run"]

_TRIES = 2
"""A run that ended without a verdict is tried once more."""


class _PlannedUnit(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is owed, for programs."""

    place: str
    id: str
    model: str
    shard: str
    params: dict[str, str]
    expected_s: float
    why: str


class _Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it, for programs."""

    plan: list[_PlannedUnit]
    ran: list[str]
    """Ids of the runs that were made."""
    gate: GateReport


def _run(options: argparse.Namespace) -> int:
    if not (math.isfinite(options.timeout_factor) and options.timeout_factor >= 1):
        raise UsageError(f"--timeout-factor {options.timeout_factor:g}: expected 1 or more")
    own = signing_key(options).public  # made now if need be, so that what it signs is trusted
    desk = desk_of(options, "certify")
    judgements = [desk.judge.judge(entry) for entry in desk.entries]
    units = _plan(desk, judgements, bench_store(options), again=options.again)
    if options.plan:
        _show_plan(options, desk, judgements, units)
        return int(ExitCode.OK)
    if units:
        _heard(own, desk)
    check_units(options, units)
    runner = UnitRunner(options)
    with working_state(options):
        cancelled = _run_units(options, desk, units, runner)
    report = report_of(desk, [desk.judge.judge(entry) for entry in desk.entries])
    if as_json(options):
        print_json(_Certificate(plan=[_planned(unit) for unit in units], ran=runner.ran, gate=report), indent=2)
    else:
        print_gate(report, explain=False)
    return int(ExitCode.CANCELLED) if cancelled else report.exit_code


run = told("certify", _run)


def _heard(own: PublicKey, desk: Desk) -> None:
    """What this node measures must count afterwards. Raises UsageError."""
    if desk.thresholds.signers and own.key_id not in desk.trusted:
        raise UsageError(f"{desk.thresholds.source} does not list the key of this node, so its records would not count: {own}")


def _plan(desk: Desk, judgements: Sequence[Judgement], store: RunStore, *, again: bool) -> list[Unit]:
    units: list[Unit] = []
    for entry, judgement in zip(desk.entries, judgements, strict=True):
        if judgement.standing not in {Standing.MISSING, Standing.REFUSED, Standing.FAIL}:
            continue
        descriptor = desk.registry.get(entry.id)
        expected_s = _expected_s(store, descriptor.id) or float(descriptor.expected_secs)
        units += plan_entry(entry, descriptor, judgement, partial(desk.judge.owed_shards, entry), expected_s, again=again)
    return units


def _expected_s(store: RunStore, benchmark_id: str) -> float:
    """What the newest whole run of it took; 0 when there is none."""
    for summary in store.history(benchmark_id, 20):
        if summary.status is RunStatus.COMPLETED:
            return store.inspect(summary.run_id).record.frame.elapsed.seconds
    return 0.0


def _run_units(options: argparse.Namespace, desk: Desk, units: Sequence[Unit], runner: UnitRunner) -> bool:
    """Whether somebody stopped it. A unit is judged by the record that it left, and by nothing that it returned."""
    for number, unit in enumerate(units, 1):
        for attempt in range(_TRIES):
            if not options.quiet:
                again = "" if attempt == 0 else ", again, for it ended without a verdict"
                complain("certify", f"{number} of {len(units)}: {unit.title}{again}")
            status = runner.run(unit, options.timeout_factor)
            if status is RunStatus.CANCELLED:
                return True
            if status not in {RunStatus.FAILED, RunStatus.CRASHED}:
                break
        if desk.judge.judge(unit.entry).standing is Standing.FAIL and not options.keep_going:
            complain("certify", f"{unit.title} failed; what comes after it was not run (--keep-going runs it)")
            return False
    return False


def _planned(unit: Unit) -> _PlannedUnit:
    return _PlannedUnit(
        place=unit.entry.place,
        id=unit.descriptor.id,
        model=unit.entry.model,
        shard=unit.shard,
        params=unit.params,
        expected_s=unit.expected_s,
        why=unit.why,
    )


def _show_plan(options: argparse.Namespace, desk: Desk, judgements: Sequence[Judgement], units: Sequence[Unit]) -> None:
    if as_json(options):
        print_json(_Certificate(plan=[_planned(unit) for unit in units], ran=[], gate=report_of(desk, judgements)), indent=2)
        return
    print_table(
        ("Run", "Parameters", "About", "Why"),
        [
            (
                unit.title,
                " ".join(f"{key}={value}" for key, value in sorted(unit.params.items())),
                f"{unit.expected_s:.0f} s",
                unit.why,
            )
            for unit in units
        ],
        right=(2,),
    )
    for one in judgements:
        if (
            one.required
            and one.standing in {Standing.FAIL, Standing.UNMEASURED}
            and all(u.entry.place != one.place for u in units)
        ):
            print(printable_lines(f"not run: {one.title}: {one.standing}: {'; '.join(one.reasons)}"))
    print(f"{len(units)} {'run' if len(units) == 1 else 'runs'}, about {sum(unit.expected_s for unit in units):.0f} s")
