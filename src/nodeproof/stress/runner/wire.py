"""Bodies of the runner's own routes, ``/v2``; those of ``/v1`` are the reference's (stress.md 7.1)."""

import msgspec

from nodeproof.model.job import CheckStatus, ExecutionProfile, Report
from nodeproof.model.live_job import LiveJob

__all__ = ["MAX_OUTPUT_BYTES", "AvailabilityBody", "Cancel", "Event", "Problem", "RunBody", "Start", "V1Run"]

MAX_OUTPUT_BYTES = 16 * 1024 * 1024


class V1Run(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``POST /v1/runs``."""

    benchmark: str


class Start(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """``POST /v2/jobs``."""

    benchmarks: list[str] = []
    timeout_seconds: float = 0.0
    plan: str = "standard"
    seconds: int = 0
    initiator: str = "cli"
    attached: bool = False
    """Answer with a stream of events until the end; when its reader goes away, the job is cancelled."""


class Cancel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``POST /v2/jobs/ID/cancel``."""

    reason: str = "cancelled by the user"
    kill: bool = False
    """Without a grace; its report is still written."""


class AvailabilityBody(msgspec.Struct, frozen=True, kw_only=True):
    """``GET /v2/availability/NAME``."""

    name: str
    enabled: bool
    available: bool
    message: str
    status: CheckStatus
    profile: ExecutionProfile | None = None
    profile_error: str = ""


class RunBody(msgspec.Struct, frozen=True, kw_only=True):
    """``GET /v2/runs/ID``: the record as it is kept, and what is wrong with its files."""

    record: msgspec.Raw
    problems: list[str]


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a stream; each line holds what is new."""

    report: Report | None = None
    live: LiveJob | None = None
    output: str = ""
    """What the program that runs printed since the last line."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Body of every refusal."""

    error: str
    code: str
    report: Report | None = None
    """Of the job that is in the way."""
