"""Answers about run records that the web server puts together; loaded when somebody asks for them. Pure."""

from collections.abc import Iterator

import msgspec

from nodeproof.model.hardware import Validity
from nodeproof.model.run import ExecutorMessage, RunRecord, RunSource, RunStatus
from nodeproof.runs.index import RunSummary

__all__ = [
    "Difference",
    "MetricPair",
    "OpenRunHead",
    "RunComparison",
    "RunFile",
    "RunList",
    "RunMessages",
    "RunView",
    "compare_records",
]


class OpenRunHead(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is going on."""

    run_id: str
    benchmark_id: str
    benchmark_name: str
    started_at: str
    source: RunSource


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """``/api/runs``."""

    going_on: list[OpenRunHead]
    runs: list[RunSummary]
    """Newest first."""


class RunFile(msgspec.Struct, frozen=True):
    """A file that a run left."""

    name: str
    bytes: int
    sha256: str


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """One run with everything that is known of it."""

    run_id: str
    going_on: bool
    record: RunRecord
    """A draft while it is going on."""
    files: list[RunFile]
    problems: list[str]
    """Every way in which it is not what was stored; empty when all bytes are as they were."""


class RunMessages(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what a run said."""

    run_id: str
    going_on: bool
    messages: list[ExecutorMessage]
    next: int
    """``after`` of the request for what follows."""


class Difference(msgspec.Struct, frozen=True):
    """A condition that was not the same."""

    what: str
    first: str
    second: str


class MetricPair(msgspec.Struct, frozen=True):
    """A number that both have."""

    key: str
    first: float
    second: float
    change: float | None
    """(second - first) / first; none when the first is 0."""


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs, and whether their numbers may be held against each other."""

    first: str
    second: str
    comparable: bool
    """Same fingerprint, both completed, both boxes fit."""
    reasons: list[str]
    """Why not; empty when they are."""
    conditions: list[Difference]
    metrics: list[MetricPair]


def compare_records(first: RunRecord, second: RunRecord) -> RunComparison:
    """What differs in conditions, and how the numbers differ."""
    reasons = list(_reasons(first, second))
    ours, theirs = first.frame.metrics, second.frame.metrics
    return RunComparison(
        first=first.run_id,
        second=second.run_id,
        comparable=not reasons,
        reasons=reasons,
        conditions=list(_conditions(first, second)),
        metrics=[
            MetricPair(key, value, theirs[key], theirs[key] / value - 1 if value else None)
            for key, value in sorted(ours.items())
            if key in theirs
        ],
    )


def _reasons(first: RunRecord, second: RunRecord) -> Iterator[str]:
    if not first.fingerprint or not second.fingerprint:
        yield "what ran is not known of both"
    elif first.fingerprint != second.fingerprint:
        yield "not the same was run"
    for record in (first, second):
        if record.status is not RunStatus.COMPLETED:
            yield f"{record.run_id} did not come to its end: {record.status}"
        validity = _validity(record)
        if validity != Validity.VALID:
            yield f"the box was not seen to be fit during {record.run_id}: {validity}"


def _validity(record: RunRecord) -> str:
    box = record.frame.hardware_state
    after = box.get("postcheck") if isinstance(box, dict) else None
    return str(after.get("validity", Validity.UNKNOWN) if isinstance(after, dict) else Validity.UNKNOWN)


def _conditions(first: RunRecord, second: RunRecord) -> Iterator[Difference]:
    ours, theirs = _facts(first), _facts(second)
    for what in dict.fromkeys((*ours, *theirs)):
        one, other = ours.get(what, ""), theirs.get(what, "")
        if one != other:
            yield Difference(what, one, other)


def _facts(record: RunRecord) -> dict[str, str]:
    """Everything that decides a number, as text."""
    facts = {
        "benchmark": record.benchmark_id,
        "benchmark version": record.benchmark_version,
        "benchmark updated": record.benchmark_updated,
        "nodeproof": record.nodeproof_version,
        "target": record.target_url,
        "model": record.target_model,
        "data set": record.frame.dataset_fingerprint or "",
    }
    facts |= {f"parameter {key}": value for key, value in sorted(record.params.items())}
    facts |= {f"server {key}": value for key, value in sorted(record.serve_overrides.items())}
    for one in record.provenance:
        facts[f"ran {one.name}"] = " ".join(part for part in (one.version, one.sha256) if part)
    return facts
