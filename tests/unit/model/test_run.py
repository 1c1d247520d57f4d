"""Frames, messages and exit codes, as they are written."""

import msgspec
import pytest

from nodeproof.model.run import (
    Cause,
    Elapsed,
    ExecutorMessage,
    ExitCode,
    Frame,
    GlowEvent,
    LogEvent,
    LogLevel,
    LogLine,
    ProgressEvent,
    RunStatus,
    Stage,
    StageEvent,
    Stat,
    StatusEvent,
    Verdict,
    VerdictKind,
    exit_code,
    is_final,
    terminal_status,
)


def test_elapsed_is_written_as_the_reference_does() -> None:
    assert msgspec.json.encode(Elapsed.of(1.25)) == b'{"secs":1,"nanos":250000000}'
    assert Elapsed.of(-3) == Elapsed(0, 0)
    assert Elapsed.of(0.9999999999) == Elapsed(1, 0)
    assert Elapsed(2, 500_000_000).seconds == 2.5


def test_only_running_is_not_final() -> None:
    assert [status for status in RunStatus if not is_final(Frame(status=status, phase="x"))] == [RunStatus.RUNNING]
    assert terminal_status(ok=True) is RunStatus.COMPLETED
    assert terminal_status(ok=False) is RunStatus.FAILED


def test_running_frame() -> None:
    frame = Frame.running("warmup", 0.5, progress=(1, 3), log=[LogLine(LogLevel.INFO, "hot")])
    assert msgspec.json.decode(msgspec.json.encode(frame)) == {
        "status": "running",
        "phase": "warmup",
        "elapsed": {"secs": 0, "nanos": 500000000},
        "progress": [1, 3],
        "log": [{"level": "info", "text": "hot"}],
    }


def test_completed_frame() -> None:
    verdict = Verdict(VerdictKind.PASS, "12.5 of 10 MB/s")
    frame = Frame.completed("done", 2.0, verdict=verdict, metrics={"rate": 12.5}, summary=[Stat("Rate", "12.5", "MB/s")])
    assert frame.metrics == {"rate": 12.5}
    assert frame.summary == (Stat("Rate", "12.5", "MB/s"),)
    assert b'"metrics"' not in msgspec.json.encode(Frame.completed("done", 2.0, verdict=verdict))
    assert msgspec.json.decode(msgspec.json.encode(frame), type=Frame) == frame


def test_failed_frame_says_the_reason_twice_and_judges_nothing() -> None:
    frame = Frame.failed("setup", "no compiler", 0.1)
    assert frame.status is RunStatus.FAILED
    assert frame.verdict == Verdict(VerdictKind.INCONCLUSIVE, "no compiler")
    assert frame.log == (LogLine(LogLevel.ERROR, "no compiler"),)
    cause = Cause(Stage.LOAD, "OSError", ("a", "b"))
    assert Frame.stopped(RunStatus.CRASHED, "run", "x", 0, cause=cause).cause == cause


def test_metrics_that_are_no_numbers_are_named() -> None:
    metrics = {"a": 1.0, "b": float("nan"), "c": float("-inf"), "d": 2}
    assert Frame(status=RunStatus.COMPLETED, phase="x", metrics=metrics).unmeasured() == ["b", "c"]


@pytest.mark.parametrize(
    "event", [LogEvent(LogLevel.WARN, "w"), StatusEvent("s"), ProgressEvent(1, 2), GlowEvent(on=True), StageEvent(Stage.RUN)]
)
def test_messages_survive_being_written(event: LogEvent | StatusEvent | ProgressEvent | GlowEvent | StageEvent) -> None:
    message = ExecutorMessage(3, "2026-11-30T22:20:41+00:00", 1.5, event=event)
    assert msgspec.json.decode(msgspec.json.encode(message), type=ExecutorMessage) == message
    assert "frame" not in msgspec.json.decode(msgspec.json.encode(message))


def test_warning_is_the_text_of_warnings_and_errors_alone() -> None:
    def text(level: LogLevel) -> str:
        return ExecutorMessage(1, "", 0.0, event=LogEvent(level, "t")).warning

    assert [text(level) for level in LogLevel] == ["", "", "t", "t"]
    assert ExecutorMessage(1, "", 0.0, event=StatusEvent("t")).warning == ""
    assert ExecutorMessage(1, "", 0.0, frame=Frame.running("x", 0)).warning == ""


@pytest.mark.parametrize(
    ("status", "codes"),
    [
        (RunStatus.COMPLETED, [0, 2, 3, 0]),
        (RunStatus.FAILED, [1, 1, 1, 1]),
        (RunStatus.CRASHED, [1, 1, 1, 1]),
        (RunStatus.TIMED_OUT, [1, 1, 1, 1]),
        (RunStatus.RUNNING, [1, 1, 1, 1]),
        (RunStatus.REFUSED, [4, 4, 4, 4]),
        (RunStatus.CANCELLED, [130, 130, 130, 130]),
    ],
)
def test_exit_codes(status: RunStatus, codes: list[int]) -> None:
    kinds = [VerdictKind.PASS, VerdictKind.FAIL, VerdictKind.INCONCLUSIVE, VerdictKind.INFO]
    assert [int(exit_code(status, kind)) for kind in kinds] == codes
    assert isinstance(exit_code(status, VerdictKind.PASS), ExitCode)
