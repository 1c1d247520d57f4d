"""What requests may hold, and answers that belong to the web server alone; msgspec judges both by these types."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from nodeproof.model.job import OWN_BENCHMARKS, REFERENCE_BENCHMARKS

__all__ = [
    "AuditQuery",
    "FaultsQuery",
    "FileName",
    "HistoryQuery",
    "JobId",
    "JobPath",
    "MessagesQuery",
    "Name",
    "Nothing",
    "Ok",
    "PairQuery",
    "Problem",
    "RunFilePath",
    "RunId",
    "RunPath",
    "RunsQuery",
    "Session",
    "SignIn",
    "StartRequest",
]

Name = Annotated[str, Meta(min_length=1, max_length=64, extra_json_schema={"enum": [*REFERENCE_BENCHMARKS, *OWN_BENCHMARKS]})]
"""Of a benchmark. The document lists them; one that is unknown or not configured is refused by the manager, with its reason."""
JobId = Annotated[str, Meta(pattern="^[0-9a-f]{1,64}$", description="Id of a stress job: hexadecimal digits.")]
RunId = Annotated[str, Meta(pattern="^run-[0-9]{1,32}$", description="Id of a run record.")]
FileName = Annotated[
    str, Meta(pattern="^[A-Za-z0-9_][A-Za-z0-9._+-]{0,127}$", description="Name of a file of the run, as its record lists it.")
]


class Nothing(msgspec.Struct, frozen=True):
    """No parameters."""


class HistoryQuery(msgspec.Struct, frozen=True):
    """How many past jobs."""

    limit: Annotated[int, Meta(ge=1, le=100, description="At most so many, newest first.")] = 20


class RunsQuery(msgspec.Struct, frozen=True):
    """Which runs."""

    benchmark: Annotated[
        str, Meta(pattern="^([A-Za-z0-9_][A-Za-z0-9._+-]{0,127})?$", description="Of this benchmark; empty for all.")
    ] = ""
    limit: Annotated[int, Meta(ge=1, le=1000, description="At most so many, newest first.")] = 100


class MessagesQuery(msgspec.Struct, frozen=True):
    """Which part of a log."""

    after: Annotated[int, Meta(ge=0, le=2**53, description="Messages with a higher sequence number than this.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000, description="At most so many.")] = 200


class FaultsQuery(msgspec.Struct, frozen=True):
    """How many past events."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="At most so many, newest first.")] = 200


class AuditQuery(msgspec.Struct, frozen=True):
    """How many entries."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="At most so many, newest first.")] = 100


class PairQuery(msgspec.Struct, frozen=True):
    """Two of a kind."""

    first: Annotated[str, Meta(min_length=1, max_length=64, description="Id of the one.")]
    second: Annotated[str, Meta(min_length=1, max_length=64, description="Id of the other.")]


class JobPath(msgspec.Struct, frozen=True):
    """A stress job."""

    id: JobId


class RunPath(msgspec.Struct, frozen=True):
    """A run record."""

    id: RunId


class RunFilePath(msgspec.Struct, frozen=True):
    """A file of a run."""

    id: RunId
    name: FileName


class StartRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``POST /api/stress/runs``. The reference knows the first two."""

    benchmarks: Annotated[list[Name], Meta(max_length=16, description="Items in their order; none = the default list.")] = []
    timeout_seconds: Annotated[
        float,  # JSON knows one kind of number: 60.0 is a whole one
        Meta(
            ge=0,
            le=86400,
            multiple_of=1,
            description="Limit of each item; may only shorten the configured ones. 0 = those.",
        ),
    ] = 0
    plan: Literal["quick", "standard", "soak"] = "standard"
    """How much is to be proven."""


class SignIn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``POST /api/session``."""

    token: Annotated[str, Meta(min_length=1, max_length=512)]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Who the caller is here, and what the caller may do."""

    role: Literal["none", "viewer", "operator"]
    name: str
    """Of the token; empty where none is needed."""
    token_required: bool
    loopback: bool
    """Only this machine reaches the page."""
    may_start: bool
    """Stress jobs may be started and cancelled by this caller, as far as the server is concerned."""
    reason: str
    """Why not; empty when they may."""


class Ok(msgspec.Struct, frozen=True):
    """Done, or asked for."""

    ok: bool


class Problem(msgspec.Struct, frozen=True):
    """An RFC 9457 problem with the reference's ``error``."""

    type: str
    title: str
    status: int
    detail: str
    error: str
