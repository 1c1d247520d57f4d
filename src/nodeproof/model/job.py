"""A stress job and its results, as files, HTTP answers and command line speak of them.

The JSON keys of the reference stay (stress.md 3.2 and 4.2) in its order; keys it does not know are additions. Two things differ
on purpose: a time that is not set is left out (the reference writes the year 1, which is read here as not set), and ``status``
is derived from ``outcome``, three axes that are judged apart.
"""

from enum import StrEnum
from typing import Any

import msgspec

__all__ = [
    "HISTORY_DEFAULT",
    "HISTORY_LIMIT",
    "OWN_BENCHMARKS",
    "REFERENCE_BENCHMARKS",
    "AssetCheck",
    "BenchmarkResult",
    "BenchmarkView",
    "CheckStatus",
    "ConfigView",
    "Correctness",
    "DoctorItem",
    "DoctorView",
    "Evidence",
    "Execution",
    "ExecutionProfile",
    "Initiator",
    "JobOwner",
    "MPICheck",
    "Outcome",
    "Performance",
    "PreflightResult",
    "ProfileParameter",
    "Report",
    "ResourceProfile",
    "Status",
    "doctor_status",
    "job_status",
    "status_of",
]

REFERENCE_BENCHMARKS = ("stream", "hpl", "hpcg", "npu_burn")
"""The names that existing configurations and clients use."""
OWN_BENCHMARKS = ("cpu_sdc", "memory_pattern", "gpu_burn")
"""Names the reference does not know."""
HISTORY_LIMIT = 100
"""Reports that the history file holds, and the most that one request may ask for."""
HISTORY_DEFAULT = 20
_GO_ZERO_TIME = "0001-01-01T00:00:00"


class Status(StrEnum):
    """State of a job or of one item of it; the reference's eight words and no others."""

    PENDING = "pending"
    RUNNING = "running"
    HEALTHY = "healthy"
    TIME_LIMIT_REACHED = "time_limit_reached"
    UNHEALTHY = "unhealthy"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED = "unsupported"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """True when nothing more will happen."""
        return self not in {Status.PENDING, Status.RUNNING}

    @property
    def is_pass(self) -> bool:
        """True for what counts as passed when a job is summed up."""
        return self in {Status.HEALTHY, Status.TIME_LIMIT_REACHED}


class CheckStatus(StrEnum):
    """Result of one read-only check before a run."""

    PASS = "pass"  # noqa: S105 - a verdict, not a password
    WARN = "warn"
    FAIL = "fail"
    UNSUPPORTED = "unsupported"
    """The item is switched off, or this machine has not the hardware that it loads; a dispatcher that says so is refused."""


class Initiator(StrEnum):
    """Who asked for a job."""

    CLI = "cli"
    WEB = "web"
    RUNNER = "runner"
    """A control program, through the routes that the reference's runner has."""


class Execution(StrEnum):
    """First axis: how the program ended."""

    FINISHED = "finished"
    """By itself, with exit status 0."""
    PLANNED_STOP = "planned_stop"
    """Its time was up, and it was stopped as planned."""
    CRASHED = "crashed"
    """By a signal, a non-zero exit status, or with the words that it could not do its work."""
    HUNG = "hung"
    """It stood still and was ended for that."""
    INTERRUPTED = "interrupted"
    """Its owner died; nobody saw the end."""
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """Never started: the precheck said no, or something it needs is missing."""
    UNSUPPORTED = "unsupported"
    """Never started: not on this operating system."""


class Correctness(StrEnum):
    """Second axis: what the results prove."""

    VALIDATED = "validated"
    """The program's own check of its results passed, completely."""
    FAILED = "failed"
    """A check failed: a wrong result was computed."""
    NOT_PROVEN = "not_proven"
    """Nothing says that the results are right."""


class Performance(StrEnum):
    """Third axis: the numbers against what this machine did before."""

    IN_BAND = "in_band"
    DEGRADED = "degraded"
    NO_BASELINE = "no_baseline"
    """A sound number, and too few comparable ones to hold it against."""
    NOT_JUDGED = "not_judged"
    """There is no number that may be judged: none came, or its correctness is not validated."""


class Evidence(msgspec.Struct, frozen=True):
    """One line that a verdict rests on."""

    source: str
    """``stdout``, ``result_file``, ``result_csv``, ``error_csv``."""
    line_no: int
    """Counts from 1; lines end at a line feed."""
    text: str
    """The line, shortened to a few hundred characters."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The three axes of one item that has ended, with their reasons."""

    execution: Execution
    correctness: Correctness
    performance: Performance
    progress: bool
    """True when output, I/O or the workload's own heartbeat was seen while it ran; CPU time alone is none."""
    cause: str = ""
    """One word for what went wrong: ``out_of_memory``, ``signal``, ``config_error``, ``failed_validation`` ..."""
    reasons: dict[str, str] = {}
    """Axis -> sentence: ``{"correctness": "7 of 7 tests passed their residual check"}``."""
    evidence: list[Evidence] = []
    concerns: list[str] = []
    """Rules that the run broke without being wrong for it; a number with a concern is not comparable."""


class ProfileParameter(msgspec.Struct, frozen=True, omit_defaults=True):
    """One setting of a workload, for people."""

    key: str
    label: str
    value: str
    unit: str = ""


class ResourceProfile(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a workload will occupy."""

    mpi_processes: int
    threads_per_process: int
    total_workers: int
    runtime_seconds: int
    """0 = as long as it takes."""
    problem_size: str = ""


class AssetCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file or device that a workload needs."""

    name: str
    path: str
    kind: str
    required: bool
    status: CheckStatus
    message: str
    sha256: str = ""


class MPICheck(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether launcher and program speak the same MPI."""

    required: bool
    launcher: str = ""
    implementation: str
    version: str = ""
    executable_abi: str
    status: CheckStatus
    message: str


class PreflightResult(msgspec.Struct, frozen=True):
    """All checks of a workload in one."""

    status: CheckStatus
    message: str


class ExecutionProfile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What exactly a start would run: describe protocol version 1 (stress.md 3.2)."""

    protocol_version: int
    benchmark: str
    executor: str = ""
    container: str = ""
    plugin: str = ""
    parameters: list[ProfileParameter]
    resources: ResourceProfile
    assets: list[AssetCheck]
    mpi: MPICheck
    preflight: PreflightResult
    timeout_seconds: int = msgspec.field(default_factory=int)  # a factory's value is written even when it is the default
    result_directory: str = ""
    script_sha256: str = ""
    configuration_sha256: str = msgspec.field(default_factory=str)


class BenchmarkResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One item of a job."""

    name: str
    status: Status
    message: str
    started_at: str = ""
    """RFC 3339; empty, and left out, while not set."""
    finished_at: str = ""
    duration_ms: int
    values: dict[str, int | float] = {}
    """Numbers whose correctness is validated, by the reference's keys; ``npu_burn`` keeps its counts on failure."""
    source: str = ""
    output: str = ""
    """The end of what the program printed."""
    profile: ExecutionProfile | None = None
    outcome: Outcome | None = None
    """Set when the item has ended."""
    details: dict[str, Any] = {}
    """Everything that was read from the output, unverified numbers among it, as its parser names it."""
    run_id: str = ""
    """The full record in the run store."""

    def __post_init__(self) -> None:
        _drop_zero_times(self)


class JobOwner(msgspec.Struct, frozen=True):
    """The process that runs a job; a report that says ``running`` is only believed while this one lives."""

    pid: int
    start_ticks: int
    """Field 22 of ``/proc/PID/stat``."""
    boot_id: str


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job; what ``stress-latest.json`` holds, and each entry of ``stress-history.json``."""

    job_id: str
    """16 hexadecimal digits."""
    initiator: str = ""
    timestamp: str = ""
    """Last change of phase."""
    started_at: str = ""
    finished_at: str = ""
    platform: str
    timeout_seconds: int = 0
    """This job's own limit for each item; 0 = the configured ones."""
    status: Status
    configuration_sha256: str = ""
    report_error: str = ""
    benchmarks: list[BenchmarkResult]
    cancellable: bool = False
    """True when the caller who asked may cancel it; only in answers, never in files."""
    plan: str = ""
    owner: JobOwner | None = None

    def __post_init__(self) -> None:
        _drop_zero_times(self)


class BenchmarkView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One benchmark in the answer to ``GET /api/stress/config``."""

    name: str
    enabled: bool
    available: bool
    message: str
    timeout_seconds: int
    profile: ExecutionProfile | None = None


class ConfigView(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to ``GET /api/stress/config``."""

    benchmarks: list[BenchmarkView]
    """Sorted by name."""
    default_benchmarks: list[str]
    enabled: bool
    """Starts from this page are possible."""
    feature_enabled: bool
    loopback: bool
    platform: str
    shared_report: bool
    web_enabled: bool


class DoctorItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One benchmark in ``stress doctor``."""

    name: str
    enabled: bool
    available: bool
    status: CheckStatus
    message: str
    profile: ExecutionProfile | None = None
    profile_error: str = ""


class DoctorView(msgspec.Struct, frozen=True, kw_only=True):
    """``stress doctor -o json``."""

    status: CheckStatus
    feature_enabled: bool
    web_enabled: bool
    script_path: str
    report_path: str
    benchmarks: list[DoctorItem]
    """Sorted by name."""


def status_of(benchmark: str, outcome: Outcome) -> Status:
    """The reference's word for ``outcome`` (DESIGN.md 4). Neither speed nor the state of the hardware changes it."""
    match outcome.execution:
        case Execution.CANCELLED:
            return Status.CANCELLED
        case Execution.REFUSED:
            return Status.UNAVAILABLE
        case Execution.UNSUPPORTED:
            return Status.UNSUPPORTED
        case Execution.FINISHED:
            return Status.HEALTHY if outcome.correctness is Correctness.VALIDATED else Status.UNHEALTHY
        case Execution.PLANNED_STOP:
            sound = outcome.progress and outcome.correctness is not Correctness.FAILED and benchmark != "npu_burn"
            return Status.TIME_LIMIT_REACHED if sound else Status.UNHEALTHY
        case _:
            return Status.UNHEALTHY


def job_status(items: list[Status]) -> Status:
    """The status of a job whose items have ended as ``items`` (stress.md 4.1). A job without items proved nothing."""
    if items and all(item.is_pass for item in items):
        return Status.HEALTHY
    ranked = [item for item in items if not item.is_pass]
    if not ranked or any(item is Status.UNHEALTHY or not item.is_final for item in ranked):
        return Status.UNHEALTHY
    return next(word for word in (Status.CANCELLED, Status.UNAVAILABLE, Status.UNSUPPORTED) if word in ranked)


def doctor_status(items: list[DoctorItem], *, feature_enabled: bool) -> CheckStatus:
    """Fails when the feature is off, nothing is enabled, or anything enabled is not available (stress.md 5.4).

    An item that nobody asked for, on a machine without the hardware for it, counts as switched off.
    """
    enabled = [item for item in items if item.enabled and item.status is not CheckStatus.UNSUPPORTED]
    sound = feature_enabled and enabled and all(item.available for item in enabled)
    return CheckStatus.PASS if sound else CheckStatus.FAIL


def _drop_zero_times(item: BenchmarkResult | Report) -> None:
    """Read the year 1 of a report of the reference as: not set."""
    for name in ("started_at", "finished_at"):
        if getattr(item, name).startswith(_GO_ZERO_TIME):
            msgspec.structs.force_setattr(item, name, "")
