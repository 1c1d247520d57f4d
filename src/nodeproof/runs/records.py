"""The record of a run: what is known at its start, and what is kept at its end."""

import hashlib
from typing import NamedTuple

import msgspec

from nodeproof import __version__
from nodeproof.clock import Instant, rfc3339
from nodeproof.host.owner import this_process
from nodeproof.model.run import (
    Frame,
    Owner,
    Provenance,
    RunRecord,
    RunSource,
    RunStatus,
    Stage,
    Verdict,
    VerdictKind,
    exit_code,
)
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.frames import default_verdict
from nodeproof.runs.params import ParamValues

__all__ = ["Ending", "draft_record", "final_record", "fingerprint"]


class Ending(NamedTuple):
    """What is known only at the end."""

    run_id: str
    version: str
    """Of the benchmark, as its metadata say."""
    at: Instant
    frame: Frame
    provenance: tuple[Provenance, ...]
    warnings: tuple[str, ...]
    abandoned: tuple[Stage, ...]
    dropped_messages: int
    cancel_requested: bool


def draft_record(
    descriptor: Descriptor, values: ParamValues, target: TargetEndpoint | None, source: RunSource, started: Instant
) -> RunRecord:
    """The record of a run that has not begun yet: what was asked, by which process."""
    return RunRecord(
        schema=1,
        run_id="",
        benchmark_id=descriptor.id,
        benchmark_name=descriptor.name,
        benchmark_updated=descriptor.updated,
        started_at=rfc3339(started.wall_s),
        recorded_at=started.wall_s,
        source=source,
        nodeproof_version=__version__,
        owner=Owner(*this_process()),
        target_url="" if target is None else target.base_url,
        target_model="" if target is None else target.model,
        serve_overrides={} if target is None else target.serve_overrides,
        params=values.to_strings(),
        sensitivity=descriptor.sensitivity,
        status=RunStatus.RUNNING,
        verdict=Verdict(VerdictKind.INCONCLUSIVE, "the run has not ended"),
        exit_code=int(exit_code(RunStatus.RUNNING, VerdictKind.INCONCLUSIVE)),
        frame=Frame.running("start", 0.0),
    )


def final_record(draft: RunRecord, end: Ending) -> RunRecord:
    """The record of a run that has ended."""
    verdict = end.frame.verdict or default_verdict(end.frame)
    record = msgspec.structs.replace(
        draft,
        run_id=end.run_id,
        benchmark_version=end.version,
        recorded_at=end.at.wall_s,
        provenance=end.provenance,
        status=end.frame.status,
        verdict=verdict,
        exit_code=int(exit_code(end.frame.status, verdict.kind)),
        frame=end.frame,
        warnings=end.warnings,
        abandoned=end.abandoned,
        dropped_messages=end.dropped_messages,
        cancel_requested=end.cancel_requested,
    )
    return msgspec.structs.replace(record, fingerprint=fingerprint(record))


def fingerprint(record: RunRecord) -> str:
    """SHA-256 over the instrument: what was asked and what exactly ran. Numbers compare only where it is the same.

    Paths are left out: the same work in another directory is the same work.
    """
    parts = {
        "benchmark": record.benchmark_id,
        "version": record.benchmark_version,
        "updated": record.benchmark_updated,
        "params": record.params,
        "serve_overrides": record.serve_overrides,
        "dataset": record.frame.dataset_fingerprint or "",
        "ran": [(entry.name, entry.version, entry.sha256) for entry in record.provenance],
    }
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()
