"""Runs in a store, without running anything."""

from pathlib import Path

import msgspec

from nodeproof.host.owner import this_process
from nodeproof.model.hardware import Sensitivity
from nodeproof.model.run import Frame, Owner, RunRecord, RunStatus, Verdict, VerdictKind
from nodeproof.runs.store import RunStore, StoreLimits

__all__ = ["run_record", "stored_run"]

_VERDICT = Verdict(VerdictKind.PASS, "2 of 2")


def run_record(benchmark: str = "toy", at: float = 1000.0) -> RunRecord:
    """The record of a run that passed."""
    return RunRecord(
        schema=1,
        run_id="",
        benchmark_id=benchmark,
        recorded_at=at,
        owner=Owner(*this_process()),
        sensitivity=Sensitivity.SPEED,
        status=RunStatus.COMPLETED,
        verdict=_VERDICT,
        exit_code=0,
        frame=Frame.completed("done", 1.0, verdict=_VERDICT, metrics={"rate": 2.5}),
    )


def stored_run(home: str, at: float = 1000.0, limits: StoreLimits | None = None) -> Path:
    """One run with a file in the store of ``home``; its directory."""
    run = RunStore(home, limits).claim(run_record(at=at))
    Path(run.file_path("raw.txt")).write_text("raw", "utf-8")
    return Path(run.publish(msgspec.structs.replace(run_record(at=at), run_id=run.run_id)))
