"""Every route of the API, as data: the router, the OpenAPI document and ``docs/api.md`` are made of this table.

Types stand as ``module:name`` so that a server loads only what it is asked for.
"""

from typing import NamedTuple

from nodeproof.web import wire

__all__ = ["MAX_BODY_BYTES", "OPERATIONS", "Answer", "Kind", "Operation"]

MAX_BODY_BYTES = 64 * 1024
"""Of a request."""


class Kind(NamedTuple):
    """A content."""

    type: str
    """``module:name`` of a struct; empty for text or bytes."""
    many: bool = False
    media_type: str = "application/json"


class Answer(NamedTuple):
    """A good answer."""

    status: int
    help: str
    content: Kind | None


class Operation(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    id: str
    group: str
    help: str
    answer: Answer
    problems: tuple[int, ...] = ()
    """Statuses that it may be refused with, besides those of every route."""
    path_parameters: type = wire.Nothing
    """A struct whose fields are the parameters."""
    query: type = wire.Nothing
    """Alike."""
    body: type | None = None
    """What the request holds; JSON."""
    action: str = ""
    """It changes something, and wants this word in the action header; origin and role are looked at."""


_HERE = "nodeproof.web"
_JOB = Kind("nodeproof.model.job:Report")
_TEXT = Kind("", media_type="text/event-stream")
_BYTES = Kind("", media_type="application/octet-stream")


def _read(
    path: str,
    name: str,
    group: str,
    text: str,
    content: Kind,
    *problems: int,
    path_parameters: type = wire.Nothing,
    query: type = wire.Nothing,
) -> Operation:
    return Operation("GET", path, name, group, text, Answer(200, "Here it is.", content), problems, path_parameters, query)


OPERATIONS: tuple[Operation, ...] = (
    _read(
        "/api/snapshot",
        "snapshot",
        "node",
        "Everything in one: readings, absences, history, specs, verdict, and how far each component may be believed.",
        Kind(f"{_HERE}.documents:Combined"),
        503,
    ),
    _read(
        "/api/collectors", "collectors", "node", "The collectors.", Kind("nodeproof.model.snapshot:CollectorInfo", many=True), 503
    ),
    _read("/api/config", "config", "node", "What a viewer needs to know to poll.", Kind(f"{_HERE}.documents:Settings"), 503),
    _read(
        "/api/health", "health", "node", "The verdict, and whether it is the present.", Kind(f"{_HERE}.documents:Wellbeing"), 503
    ),
    _read(
        "/api/catalogue",
        "catalogue",
        "node",
        "What each metric means and where it is read, by `component.name`.",
        Kind(f"{_HERE}.documents:Catalogue"),
    ),
    _read("/api/dfee", "energy", "node", "The 25 charts of the energy view, now.", Kind(f"{_HERE}.dfee:Energy"), 503),
    _read(
        "/api/events",
        "events",
        "node",
        "The node as server-sent events: everything first, then what changed; a slow reader gets the newest of each.",
        _TEXT,
        503,
    ),
    _read(
        "/api/doctor",
        "doctor",
        "node",
        "What cannot be read here, why, the remedy, and what it costs: `nodeproof doctor`, tried at most every half minute.",
        Kind(f"{_HERE}.doctor_wire:DoctorReport"),
        503,
    ),
    _read(
        "/api/stress/config",
        "stressConfig",
        "stress",
        "Every stress item: whether it can run here, why not, and what exactly a start would run.",
        Kind("nodeproof.model.job:ConfigView"),
        503,
    ),
    _read("/api/stress/latest", "stressLatest", "stress", "The newest job.", _JOB, 404, 503),
    _read(
        "/api/stress/live",
        "stressLive",
        "stress",
        "The newest job without its outputs, and how it gets on while it runs; both null where there is none.",
        Kind(f"{_HERE}.stress_wire:Now"),
        503,
    ),
    _read(
        "/api/stress/history",
        "stressHistory",
        "stress",
        "Jobs that have ended, newest first.",
        _JOB._replace(many=True),
        400,
        500,
        503,
        query=wire.HistoryQuery,
    ),
    _read(
        "/api/stress/trends",
        "stressTrends",
        "stress",
        "Validated numbers of past jobs, one line for each identity hash: only numbers on one line compare.",
        Kind(f"{_HERE}.stress_wire:Trend", many=True),
        503,
    ),
    _read(
        "/api/stress/compare",
        "stressCompare",
        "stress",
        "Two jobs, value by value, and whether they compare.",
        Kind("nodeproof.stress.compare:Comparison"),
        400,
        404,
        503,
        query=wire.PairQuery,
    ),
    Operation(
        "POST",
        "/api/stress/runs",
        "stressStart",
        "stress",
        "Start a job. 409 is answered with the report of the job that runs.",
        Answer(202, "It was started; this is its first report.", _JOB),
        (400, 409, 413, 415, 429, 501, 503),
        body=wire.StartRequest,
        action="stress",
    ),
    _read(
        "/api/stress/runs/{id}",
        "stressJob",
        "stress",
        "One job, also of the past.",
        _JOB,
        404,
        503,
        path_parameters=wire.JobPath,
    ),
    Operation(
        "POST",
        "/api/stress/runs/{id}/cancel",
        "stressCancel",
        "stress",
        "Have a job stopped, whoever started it. What the body holds does not matter.",
        Answer(200, "Its owner was asked to stop it.", Kind(f"{_HERE}.wire:Ok")),
        (404, 413, 415, 429, 501, 503),
        path_parameters=wire.JobPath,
        action="stress",
    ),
    _read(
        "/api/runs",
        "runs",
        "runs",
        "Records of stress items and benchmarks, and what is going on.",
        Kind(f"{_HERE}.run_wire:RunList"),
        400,
        503,
        query=wire.RunsQuery,
    ),
    _read(
        "/api/runs/compare",
        "runsCompare",
        "runs",
        "Two records: what differs in conditions, and the numbers that both have.",
        Kind("nodeproof.bench.compare.pair:RunComparison"),
        400,
        404,
        503,
        query=wire.PairQuery,
    ),
    _read(
        "/api/runs/{id}",
        "run",
        "runs",
        "One record, its files, and whether every byte is as it was stored.",
        Kind(f"{_HERE}.run_wire:RunView"),
        404,
        503,
        path_parameters=wire.RunPath,
    ),
    _read(
        "/api/runs/{id}/messages",
        "runMessages",
        "runs",
        "What a run said, also while it is going on.",
        Kind(f"{_HERE}.run_wire:RunMessages"),
        400,
        404,
        503,
        path_parameters=wire.RunPath,
        query=wire.MessagesQuery,
    ),
    _read(
        "/api/runs/{id}/files/{name}",
        "runFile",
        "runs",
        "A file of a run, as a download.",
        _BYTES,
        404,
        503,
        path_parameters=wire.RunFilePath,
    ),
    _read(
        "/api/faults/active", "faultsActive", "faults", "Faults that stand now.", Kind(f"{_HERE}.faults_wire:ActiveFaults"), 503
    ),
    _read(
        "/api/faults/history",
        "faultsHistory",
        "faults",
        "Faults that were set and cleared, newest first.",
        Kind(f"{_HERE}.faults_wire:FaultHistory"),
        400,
        503,
        query=wire.FaultsQuery,
    ),
    _read("/api/session", "session", "access", "Who the caller is here, and what they may do.", Kind(f"{_HERE}.wire:Session")),
    Operation(
        "POST",
        "/api/session",
        "signIn",
        "access",
        "Change a token for a session cookie: how a browser signs in.",
        Answer(200, "The cookie comes with it.", Kind(f"{_HERE}.wire:Session")),
        (400, 413, 415, 429),
        body=wire.SignIn,
        action="session",
    ),
    Operation(
        "DELETE",
        "/api/session",
        "signOut",
        "access",
        "End the session.",
        Answer(204, "It is over, if there was one.", None),
        action="session",
    ),
    _read(
        "/api/audit",
        "audit",
        "access",
        "Who started, cancelled and was refused what from the page, newest first. For operators.",
        Kind(f"{_HERE}.audit:AuditEntry", many=True),
        400,
        503,
        query=wire.AuditQuery,
    ),
    _read("/api/openapi.json", "openapi", "access", "This document.", Kind("")),
)
"""In the order of the document."""
