"""A run: what was asked, what it said while it ran, how it ended, and what is kept of it.

The keys of a frame are those of the reference (bench.md 1.4), values in lower case. Our additions: four more ways to end, a
verdict for "could not tell", the cause of a bad end, and one log in which events and frames keep their order and their time.

The log of a run holds one :class:`ExecutorMessage` a line::

    {"sequence":7,"time":"2026-11-30T22:20:41.123456+00:00","mono_s":812.5,"event":{"kind":"log","level":"warn","text":"..."}}
"""

import math
from collections.abc import Iterable, Mapping
from enum import IntEnum, StrEnum
from typing import Self

import msgspec

from nodeproof.model.hardware import Sensitivity

__all__ = [
    "RECORD_SCHEMA",
    "Align",
    "Cause",
    "Cell",
    "CellStyle",
    "Column",
    "Elapsed",
    "Event",
    "ExecutorMessage",
    "ExitCode",
    "Frame",
    "GlowEvent",
    "Json",
    "LogEvent",
    "LogLevel",
    "LogLine",
    "Owner",
    "ProgressEvent",
    "Provenance",
    "ResultTable",
    "RunRecord",
    "RunSource",
    "RunStatus",
    "Stage",
    "StageEvent",
    "Stat",
    "StatusEvent",
    "Verdict",
    "VerdictKind",
    "exit_code",
    "is_final",
    "terminal_status",
]

RECORD_SCHEMA = 1

Json = dict[str, object]
"""A JSON object whose keys another room knows."""


class RunStatus(StrEnum):
    """How far a run is, or how it ended."""

    RUNNING = "running"
    COMPLETED = "completed"
    """It ran to its end; what that proves is the verdict's business."""
    FAILED = "failed"
    """The benchmark or its setting-up reported an error: nothing is proven either way."""
    CANCELLED = "cancelled"
    """Somebody asked for it to stop, or its reader went away."""
    REFUSED = "refused"
    """The box was not fit for it; nothing was started."""
    TIMED_OUT = "timed_out"
    """The deadline of the run passed."""
    CRASHED = "crashed"
    """Its process, thread or code came to an end that it did not report itself."""


class VerdictKind(StrEnum):
    """What a run proves."""

    PASS = "pass"  # noqa: S105 - no password
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    """It could not be told. Never shown as a pass."""
    INFO = "info"
    """Numbers without a judgement."""


class LogLevel(StrEnum):
    """How much a line of the log matters."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class CellStyle(StrEnum):
    """What a cell or tile means; never a colour."""

    NEUTRAL = "neutral"
    DIM = "dim"
    ACCENT = "accent"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


class Align(StrEnum):
    """Side to which a column leans."""

    LEFT = "left"
    RIGHT = "right"


class RunSource(StrEnum):
    """Who asked."""

    CLI = "cli"
    WEB = "web"
    API = "api"
    UNKNOWN = "unknown"


class Stage(StrEnum):
    """Where in its order a run is (bench.md 2.2)."""

    START = "start"
    HARDWARE = "hardware"
    COHERENCE = "coherence"
    LOAD = "load"
    CONFIGURE = "configure"
    RUN = "run"
    AFTER = "after"
    """The box is looked at once more."""
    CLEANUP = "cleanup"
    SAVE = "save"
    DONE = "done"


class ExitCode(IntEnum):
    """What the command line ends with."""

    OK = 0
    HARNESS = 1
    VERDICT_FAIL = 2
    INCONCLUSIVE = 3
    REFUSED = 4
    CANCELLED = 130


class Elapsed(msgspec.Struct, frozen=True):
    """A duration as the reference writes it."""

    secs: int = 0
    nanos: int = 0

    @classmethod
    def of(cls, seconds: float) -> Self:
        """From seconds; nothing below zero."""
        whole, part = divmod(max(0, round(seconds * 1e9)), 1_000_000_000)
        return cls(whole, part)

    @property
    def seconds(self) -> float:
        """In seconds."""
        return self.secs + self.nanos / 1e9


class Stat(msgspec.Struct, frozen=True, omit_defaults=True):
    """One headline tile."""

    label: str
    value: str
    unit: str = ""
    style: CellStyle = CellStyle.NEUTRAL


class Column(msgspec.Struct, frozen=True, omit_defaults=True):
    """Head of a table's column."""

    title: str
    align: Align = Align.LEFT
    width: int = 0
    """Characters; 0 = as wide as it needs."""


class Cell(msgspec.Struct, frozen=True, omit_defaults=True):
    """One cell of a table."""

    text: str
    style: CellStyle = CellStyle.NEUTRAL


class ResultTable(msgspec.Struct, frozen=True):
    """One table of results; each row has as many cells as there are columns."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Verdict(msgspec.Struct, frozen=True):
    """A judgement; the reason holds the measured value and the limit."""

    kind: VerdictKind
    reason: str


class LogLine(msgspec.Struct, frozen=True):
    """One line for people."""

    level: LogLevel
    text: str


class Cause(msgspec.Struct, frozen=True):
    """Why a run ended before its end."""

    stage: Stage
    type: str
    """Name of the error's class, or of what stopped the run (``cancel``, ``deadline``, ``precheck``)."""
    chain: tuple[str, ...]
    """The error and what caused it, outermost first."""


class Frame(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One result message of a running benchmark; the last one is terminal and stands in the record."""

    status: RunStatus
    phase: str
    """Free text: ``warmup``, ``done``, ``setup``, ``cancelled`` ..."""
    elapsed: Elapsed = Elapsed()
    progress: tuple[int, int] | None = None
    """Done and total; absent when the total is not known."""
    summary: tuple[Stat, ...] = ()
    table: ResultTable | None = None
    verdict: Verdict | None = None
    metrics: dict[str, float] = {}
    """Finite numbers by stable keys; a key that is absent was not measured. Gates score these, never the tiles."""
    log: tuple[LogLine, ...] = ()
    """Lines since the frame before."""
    hardware_state: Json | None = None
    """State of the box before, during and after, put on the terminal frame by the executor. Absent = not measured."""
    dataset_fingerprint: str | None = None
    cause: Cause | None = None
    """On a terminal frame of the executor's own making: why."""

    @classmethod
    def running(
        cls, phase: str, elapsed_s: float, *, progress: tuple[int, int] | None = None, log: Iterable[LogLine] = ()
    ) -> Self:
        """A frame after which more will come."""
        return cls(status=RunStatus.RUNNING, phase=phase, elapsed=Elapsed.of(elapsed_s), progress=progress, log=tuple(log))

    @classmethod
    def completed(
        cls,
        phase: str,
        elapsed_s: float,
        *,
        verdict: Verdict,
        metrics: Mapping[str, float] | None = None,
        summary: Iterable[Stat] = (),
    ) -> Self:
        """The last frame of a run that came to its end. More can be put on it with ``msgspec.structs.replace``."""
        return cls(
            status=RunStatus.COMPLETED,
            phase=phase,
            elapsed=Elapsed.of(elapsed_s),
            verdict=verdict,
            metrics=dict(metrics or {}),
            summary=tuple(summary),
        )

    @classmethod
    def failed(cls, phase: str, reason: str, elapsed_s: float) -> Self:
        """The last frame of a run that could not do its work: ``reason`` is its verdict, inconclusive, and one error line."""
        return cls.stopped(RunStatus.FAILED, phase, reason, elapsed_s)

    @classmethod
    def stopped(cls, status: RunStatus, phase: str, reason: str, elapsed_s: float, *, cause: Cause | None = None) -> Self:
        """As :meth:`failed`, for any terminal ``status``."""
        return cls(
            status=status,
            phase=phase,
            elapsed=Elapsed.of(elapsed_s),
            verdict=Verdict(VerdictKind.INCONCLUSIVE, reason),
            log=(LogLine(LogLevel.ERROR, reason),),
            cause=cause,
        )

    def unmeasured(self) -> list[str]:
        """Keys of :attr:`metrics` whose value is no finite number."""
        return [key for key, value in self.metrics.items() if not math.isfinite(value)]


class LogEvent(msgspec.Struct, frozen=True, tag="log", tag_field="kind"):
    """A line for people."""

    level: LogLevel
    text: str


class StatusEvent(msgspec.Struct, frozen=True, tag="status", tag_field="kind"):
    """Takes the place of the one-line status."""

    text: str


class ProgressEvent(msgspec.Struct, frozen=True, tag="progress", tag_field="kind"):
    """So much is done."""

    done: int
    total: int


class GlowEvent(msgspec.Struct, frozen=True, tag="glow", tag_field="kind"):
    """Work is in flight: on at the start, off at the end, once each."""

    on: bool


class StageEvent(msgspec.Struct, frozen=True, tag="stage", tag_field="kind"):
    """The run has come to this stage."""

    stage: Stage


Event = LogEvent | StatusEvent | ProgressEvent | GlowEvent | StageEvent


class ExecutorMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the log of a run: an event or a frame. Sequence numbers count up by one, times never go back (``mono_s``)."""

    sequence: int
    time: str
    """RFC 3339 with the local offset."""
    mono_s: float
    """Seconds since boot (CLOCK_BOOTTIME)."""
    event: Event | None = None
    frame: Frame | None = None

    @property
    def warning(self) -> str:
        """Text of a warning or error event; empty for everything else."""
        if isinstance(self.event, LogEvent) and self.event.level in {LogLevel.WARN, LogLevel.ERROR}:
            return self.event.text
        return ""


class Owner(msgspec.Struct, frozen=True):
    """The process that ran it. Number alone is not enough: the kernel gives it to others later."""

    pid: int
    start_ticks: int
    """Clock ticks after boot at which it started (field 22 of proc_pid_stat(5))."""
    boot_id: str
    pid_namespace: str = ""
    """Which processes the number counts among (``pid:[4026531836]``)."""


class Provenance(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that was executed or fed in: a program, a script, a data set, a library."""

    name: str
    version: str = ""
    sha256: str = ""
    path: str = ""


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What is kept of a run. Messages and artifacts lie beside it, listed with their hashes in ``manifest.json``."""

    schema: int = 0
    run_id: str
    benchmark_id: str
    benchmark_name: str = ""
    benchmark_version: str = ""
    benchmark_updated: str = ""
    """Date since when numbers of this instrument compare."""
    started_at: str = ""
    recorded_at: float
    """Seconds since the epoch, after the run."""
    source: RunSource = RunSource.UNKNOWN
    nodeproof_version: str = ""
    owner: Owner | None = None
    target_url: str = ""
    target_model: str = ""
    serve_overrides: dict[str, str] = {}
    params: dict[str, str] = {}
    """The whole configuration, as text."""
    sensitivity: Sensitivity
    provenance: tuple[Provenance, ...] = ()
    """What exactly ran."""
    fingerprint: str = ""
    """SHA-256 over benchmark, its date and version, parameters, data set and provenance: numbers compare only within one."""
    status: RunStatus
    verdict: Verdict
    exit_code: int
    frame: Frame
    """The terminal frame, state of the box included."""
    warnings: tuple[str, ...] = ()
    """Every warning and error of the log, in order."""
    abandoned: tuple[Stage, ...] = ()
    """Stages whose call never came back."""
    dropped_messages: int = 0
    """Progress and chatter that went over the limits of the log."""
    interrupted: Stage | None = None
    """Where the run was when its owner died; the record was then written by who found it."""
    cancel_requested: bool = False


def is_final(frame: Frame) -> bool:
    """Whether ``frame`` is the last one of its run."""
    return frame.status is not RunStatus.RUNNING


def terminal_status(*, ok: bool) -> RunStatus:
    """The status of a run that came to its end by itself."""
    return RunStatus.COMPLETED if ok else RunStatus.FAILED


_BY_STATUS = {RunStatus.CANCELLED: ExitCode.CANCELLED, RunStatus.REFUSED: ExitCode.REFUSED}
_BY_VERDICT = {VerdictKind.FAIL: ExitCode.VERDICT_FAIL, VerdictKind.INCONCLUSIVE: ExitCode.INCONCLUSIVE}


def exit_code(status: RunStatus, verdict: VerdictKind) -> ExitCode:
    """What a command ends with after such a run."""
    if status is RunStatus.COMPLETED:
        return _BY_VERDICT.get(verdict, ExitCode.OK)
    return _BY_STATUS.get(status, ExitCode.HARNESS)
