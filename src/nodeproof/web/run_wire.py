"""Answers about run records that the web server puts together; loaded when somebody asks for them. Pure."""

import msgspec

from nodeproof.model.live_run import LiveRun
from nodeproof.model.run import ExecutorMessage, RunRecord, RunSource
from nodeproof.runs.index import RunSummary

__all__ = [
    "OpenRunHead",
    "RunFile",
    "RunList",
    "RunMessages",
    "RunView",
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
    live: LiveRun | None = None
    """How it gets on, while it is going on and its owner tells."""


class RunMessages(msgspec.Struct, frozen=True, kw_only=True):
    """A part of what a run said."""

    run_id: str
    going_on: bool
    messages: list[ExecutorMessage]
    next: int
    """``after`` of the request for what follows."""
