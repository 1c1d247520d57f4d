"""From the record of a run to the item of a report: its outcome, what the box says of it, and how fast that is here."""

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from nodeproof.errors import RecordError
from nodeproof.model.job import (
    BenchmarkResult,
    Correctness,
    Execution,
    ExecutionProfile,
    Outcome,
    Performance,
    Status,
    status_of,
)
from nodeproof.model.run import Json, RunRecord, RunStatus
from nodeproof.stress import baseline
from nodeproof.stress.baselines import BaselineStore, Sample
from nodeproof.stress.bounds import Range
from nodeproof.stress.expected import judge_range
from nodeproof.stress.item import ItemBenchmark
from nodeproof.stress.metric_units import PRIMARY, metric_unit
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.profile import identity_hash
from nodeproof.stress.sizing import Plan

__all__ = ["Judged", "cancelled_result", "item_result", "performance_of"]


class Judged(NamedTuple):
    """An item that finished, to be held against its past."""

    result: BenchmarkResult
    judgement: Judgement | None
    profile: ExecutionProfile
    plan: str
    at_s: float


def cancelled_result(name: str, profile: ExecutionProfile, reason: str) -> BenchmarkResult:
    """An item that was never begun because its job was cancelled."""
    outcome = _outcome(Execution.CANCELLED, f"not started: {reason}", "")
    return BenchmarkResult(
        name=name, status=Status.CANCELLED, message=f"not started: {reason}", duration_ms=0, profile=profile, outcome=outcome
    )


def item_result(running: BenchmarkResult, bench: ItemBenchmark | None, record: RunRecord, run_id: str) -> BenchmarkResult:
    """``running`` as it ended. What the executor says of the run goes before what the workload says of itself."""
    end = bench.end if bench is not None else None
    judgement = end.judgement if end is not None else None
    outcome = _of_record(record, end.outcome if end is not None else None)
    details: dict[str, object] = dict(end.details) if end is not None else {}
    box = _box(record.frame.hardware_state)
    if box:
        details["hardware"] = box
    ended = bench.ended if bench is not None else None
    if ended is not None:
        details["process_tree"] = {"empty": ended.empty, "evidence": list(ended.evidence), "forced": ended.forced}
    tail = end.output_tail if end is not None else bench.tail() if bench is not None else ""
    keeps_values = outcome.execution in {Execution.FINISHED, Execution.PLANNED_STOP, Execution.CRASHED}
    return msgspec.structs.replace(
        running,
        status=status_of(running.name, outcome),
        message=_message(outcome),
        values=judgement.values if judgement is not None and keeps_values else {},
        source=judgement.source if judgement is not None and judgement.values else "",
        output=tail,
        outcome=outcome,
        details=details,
        run_id=run_id,
    )


def performance_of(
    judged: Judged, store: BaselineStore, environment: Callable[[], str], expected: Range | None = None
) -> BenchmarkResult:
    """The third axis. A comparable number of a fit box joins the baseline after it was judged. Raises WriteError, OSError.

    The history of the box decides; what it should reach by its parts (``expected``) is said beside it.
    """
    result, outcome, judgement = judged.result, judged.result.outcome, judged.judgement
    metric = PRIMARY.get(result.name)
    soak = result.details.get("soak")
    if isinstance(soak, dict) and soak.get("rate_sank"):
        return _with(result, Performance.DEGRADED, f"its rate sank while it ran: {soak.get('rate')}")
    if outcome is None or judgement is None or metric is None or not judgement.is_comparable or metric not in judgement.values:
        return result
    box = result.details.get("hardware")
    if isinstance(box, dict) and box.get("validity") == "invalid":
        return _with(result, Performance.NOT_JUDGED, "the box was not fit while the number was taken")
    if isinstance(box, dict) and box.get("concerns") and judged.plan == Plan.SOAK:
        # Of a soak stability is asked: what would spoil a speed only warns there.
        return _with(result, Performance.NOT_JUDGED, f"the box was not fit for a speed: {'; '.join(box['concerns'])}")
    identity = identity_hash(judged.profile, judged.plan)
    value = float(judgement.values[metric])
    damage = ""
    try:
        found = store.read(result.name, identity)
    except RecordError as error:
        found, damage = None, f"; {error}"
    before = [sample.value for sample in found.samples] if found is not None else []
    verdict = baseline.judge(value, before, metric_unit(metric))
    sample = Sample(value=value, at=judged.at_s, run_id=result.run_id, environment=environment())
    store.add(result.name, identity, metric, sample)
    moved = baseline.drift([*before, value])
    drift = f"; drift: {moved.reason}" if moved.found else ""
    details = {**result.details, "baseline": _baseline_details(identity, before, verdict, moved)}
    bound = ""
    if expected is not None:
        details["expected"] = {"low": expected.low, "high": expected.high, "reason": expected.reason}
        bound = f"; {judge_range(value, expected)}" if expected.low is not None else ""
    return _with(msgspec.structs.replace(result, details=details), verdict.performance, f"{verdict.reason}{drift}{bound}{damage}")


def _baseline_details(identity: str, before: list[float], verdict: baseline.Verdict, moved: baseline.Drift) -> dict[str, object]:
    band = baseline.baseline(before)
    return {
        "identity_sha256": identity,
        "samples": len(before),
        **({"median": band.median, "mad": band.mad, "low": band.low, "high": band.high} if band is not None else {}),
        **({"deviation": verdict.deviation} if verdict.deviation is not None else {}),
        **({"outlier": verdict.outlier} if verdict.outlier else {}),
        **({"drift": moved.change} if moved.found else {}),
    }


def _with(result: BenchmarkResult, performance: Performance, reason: str) -> BenchmarkResult:
    outcome = result.outcome
    if outcome is None:
        return result
    changed = msgspec.structs.replace(outcome, performance=performance, reasons={**outcome.reasons, "performance": reason})
    return msgspec.structs.replace(result, outcome=changed)


def _of_record(record: RunRecord, own: Outcome | None) -> Outcome:
    """The first axis as the executor saw it, where it saw more than the item."""
    reason = record.verdict.reason
    cause = record.frame.cause
    if record.status is RunStatus.CANCELLED:
        return _outcome(Execution.CANCELLED, cause.chain[0] if cause is not None and cause.chain else reason, "")
    if record.status is RunStatus.REFUSED and own is None:
        return _outcome(Execution.REFUSED, reason, cause.type if cause is not None else "")
    if own is not None:
        return own
    return _outcome(Execution.CRASHED, reason, cause.type if cause is not None else "")


def _outcome(execution: Execution, reason: str, cause: str) -> Outcome:
    return Outcome(
        execution=execution,
        correctness=Correctness.NOT_PROVEN,
        performance=Performance.NOT_JUDGED,
        progress=False,
        cause=cause,
        reasons={"execution": reason},
    )


def _message(outcome: Outcome) -> str:
    """One sentence: of the first axis unless it finished, then that of the second."""
    said = outcome.reasons
    if outcome.execution is Execution.FINISHED:
        return said.get("correctness", "")
    if outcome.execution in {Execution.CANCELLED, Execution.REFUSED} or not said.get("correctness"):
        return said.get("execution", "")
    return f"{said.get('execution', '')}; {said['correctness']}"


def _box(state: Json | None) -> dict[str, object]:
    """What the report of the box says in short; the whole is in the record."""
    if state is None:
        return {}
    post, pre = state.get("postcheck"), state.get("precheck")
    found: dict[str, object] = {}
    if isinstance(post, dict):
        found = {"validity": post.get("validity"), "concerns": post.get("concerns") or []}
    if isinstance(pre, dict) and pre.get("concerns"):
        found["before"] = pre["concerns"]
    return found
