"""The report of a job whose owner died, as it has to be told (DESIGN.md 4)."""

import msgspec

from nodeproof.model.job import (
    BenchmarkResult,
    Correctness,
    Execution,
    Outcome,
    Performance,
    Report,
    Status,
    job_status,
    status_of,
)

__all__ = ["interrupted_report"]


def interrupted_report(report: Report, now: str) -> Report:
    """``report``, which still says that it runs, with the end that its owner could not write. Items that had ended stay."""
    owner = report.owner
    who = f"process {owner.pid}, which ran it," if owner is not None else "the process that ran it"
    items = [item if item.status.is_final else _interrupted(item, who, now) for item in report.benchmarks]
    return msgspec.structs.replace(
        report,
        timestamp=now,
        finished_at=now,
        status=job_status([item.status for item in items]),
        benchmarks=items,
        cancellable=False,
    )


def _interrupted(item: BenchmarkResult, who: str, now: str) -> BenchmarkResult:
    if item.status is Status.PENDING:
        execution, reason = Execution.CANCELLED, f"{who} died before this item was begun"
    else:
        execution, reason = Execution.INTERRUPTED, f"{who} died while this item ran"
    outcome = Outcome(
        execution=execution,
        correctness=Correctness.NOT_PROVEN,
        performance=Performance.NOT_JUDGED,
        progress=False,
        cause="interrupted",
        reasons={"execution": reason},
    )
    finished = now if item.started_at else ""
    return msgspec.structs.replace(
        item, status=status_of(item.name, outcome), message=reason, finished_at=finished, outcome=outcome
    )
