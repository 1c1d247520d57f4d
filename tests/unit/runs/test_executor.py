"""The case table of bench.md 2.3 with the changes of the design, and the tests that bench.md 8.1 names as missing."""

import copy
import gc
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import RunCancelled, RunError, WriteError
from nodeproof.model.hardware import Decision, Postcheck, Sensitivity, Validity
from nodeproof.model.run import (
    Frame,
    GlowEvent,
    LogEvent,
    LogLevel,
    ProgressEvent,
    RunRecord,
    RunSource,
    RunStatus,
    Stage,
    StageEvent,
    StatusEvent,
    Verdict,
    VerdictKind,
    is_final,
)
from nodeproof.runs.endpoint import ModelExpectation, TargetEndpoint
from nodeproof.runs.open_run import OpenRun
from nodeproof.runs.params import ParamValues
from nodeproof.runs.ports import CancelSignal, CoherenceReport, Switches
from nodeproof.runs.store import RunStore
from support.runs import NO_VALUES, PASS, QUICK, Bench, Evidence, Ran, Scripted, hang, script

ORDER = [Stage.START, Stage.HARDWARE, Stage.LOAD, Stage.CONFIGURE, Stage.RUN, Stage.AFTER, Stage.CLEANUP, Stage.SAVE]
TARGET = TargetEndpoint.local(9, "model-1b")


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends planted hangs when the test is over."""
    event = threading.Event()
    yield event
    event.set()


def test_start_to_end_in_order(tmp_path: Path) -> None:
    """E3: load, configure, next, next, next, cleanup; frames running, running, completed."""
    calls: list[str] = []
    seen: list[str] = []
    evidence = Evidence(seen)
    ran = Bench(tmp_path, evidence=lambda: evidence).run(script(calls), source=RunSource.CLI)
    assert calls == ["build", "load", "configure", "next", "next", "next", "cleanup"]
    assert [frame.status for frame in ran.frames] == [RunStatus.RUNNING, RunStatus.RUNNING, RunStatus.COMPLETED]
    assert [event.stage for event in ran.events if isinstance(event, StageEvent)] == ORDER
    assert seen == ["open", "sample", "close"]
    assert ran.record.status is RunStatus.COMPLETED
    assert ran.record.verdict == PASS
    assert ran.record.exit_code == 0
    assert ran.record.source is RunSource.CLI
    assert ran.record.params == {"steps": "2"}
    assert ran.record.warnings == ()
    assert ran.record.frame.metrics == {"rate": 2.5}
    assert ran.record.frame.elapsed.seconds == 1.5
    assert ran.hardware["postcheck"] == {"validity": "valid"}
    assert ran.handle.stage is Stage.DONE
    assert ran.handle.status is RunStatus.COMPLETED


def test_one_log_with_numbers_and_times(tmp_path: Path) -> None:
    def load(bench: Scripted) -> None:
        bench.given.info("one")
        bench.given.status("two")
        bench.given.progress(1, 3)

    ran = Bench(tmp_path).run(script([], load=load))
    assert [message.sequence for message in ran.messages] == list(range(1, len(ran.messages) + 1))
    assert [message.mono_s for message in ran.messages] == sorted(message.mono_s for message in ran.messages)
    assert ran.events[0] == GlowEvent(on=True)
    assert ran.events[-1] == GlowEvent(on=False)
    assert sum(isinstance(event, GlowEvent) for event in ran.events) == 2
    at = ran.events.index(LogEvent(LogLevel.INFO, "one"))
    assert ran.events[at + 1 : at + 3] == [StatusEvent("two"), ProgressEvent(1, 3)]
    stored = Bench(tmp_path).store.load(ran.record.run_id)
    assert stored.messages() == ran.messages
    assert stored.record == ran.record


def test_start_returns_at_once_and_drain_never_blocks(tmp_path: Path, release: threading.Event) -> None:
    bench = Bench(tmp_path)
    handle = bench.executor.start(script([], build=lambda _: hang(release)), NO_VALUES)
    assert not handle.is_finished()
    assert handle.record is None
    assert handle.status is RunStatus.RUNNING
    assert not handle.wait(0.0)
    handle.drain()
    release.set()
    assert bench.finish(handle).record.status is RunStatus.COMPLETED


@pytest.mark.parametrize(
    ("verdict", "code"),
    [(VerdictKind.PASS, 0), (VerdictKind.INFO, 0), (VerdictKind.FAIL, 2), (VerdictKind.INCONCLUSIVE, 3)],
)
def test_verdict_decides_the_exit_code_of_a_completed_run(tmp_path: Path, verdict: VerdictKind, code: int) -> None:
    frame = Frame.completed("done", 0.1, verdict=Verdict(verdict, "1 of 1"))
    record = Bench(tmp_path).run(script([], next=lambda _: frame)).record
    assert (record.status, record.verdict.kind, record.exit_code) == (RunStatus.COMPLETED, verdict, code)


def test_completed_without_a_verdict_is_info(tmp_path: Path) -> None:
    record = Bench(tmp_path).run(script([], next=lambda _: Frame(status=RunStatus.COMPLETED, phase="done"))).record
    assert record.verdict == Verdict(VerdictKind.INFO, "numbers without a judgement")
    assert record.frame.verdict == record.verdict


def test_a_benchmark_may_say_itself_that_it_failed(tmp_path: Path) -> None:
    record = Bench(tmp_path).run(script([], next=lambda _: Frame.failed("probe", "port 9 refused", 0.2))).record
    assert (record.status, record.frame.phase, record.exit_code) == (RunStatus.FAILED, "probe", 1)
    assert record.verdict == Verdict(VerdictKind.INCONCLUSIVE, "port 9 refused")
    assert [line.text for line in record.frame.log] == ["port 9 refused"]


# The box


def test_refused_touches_nothing_and_leaves_the_report_open(tmp_path: Path) -> None:
    calls: list[str] = []
    seen: list[str] = []
    ran = Bench(tmp_path, evidence=lambda: Evidence(seen, decision=Decision.REFUSE, concerns=["hot", "busy"])).run(script(calls))
    assert calls == ["build", "cleanup"]
    assert seen == ["open", "abandon"]
    assert (ran.record.status, ran.record.exit_code) == (RunStatus.REFUSED, 4)
    assert ran.record.frame.phase == "hardware precheck"
    assert ran.record.verdict.reason == "hot; busy; set NODEPROOF_NO_HW_PRECHECK=1 to run all the same"
    assert ran.record.warnings == ("hardware: hot", "hardware: busy")
    assert not {"after", "delta", "postcheck"} & ran.hardware.keys()
    assert not (tmp_path / "artifacts").exists()


def test_kill_switch_warns_every_run_and_refuses_none(tmp_path: Path) -> None:
    evidence = Evidence(decision=Decision.REFUSE, concerns=["hot"])
    bench = Bench(tmp_path, evidence=lambda: evidence)
    for _ in range(2):
        ran = bench.run(script([]), switches=Switches(never_refuse=True))
        assert ran.record.status is RunStatus.COMPLETED
        assert ran.record.warnings[0].startswith("hardware: NODEPROOF_NO_HW_PRECHECK is set")
        assert ran.record.warnings[1] == "hardware: hot"
    assert evidence.switches == Switches(never_refuse=True)
    clean = Bench(tmp_path, evidence=Evidence).run(script([]), switches=Switches(never_refuse=True))
    assert len(clean.record.warnings) == 1


def test_invalid_box_is_warned_of_and_never_changes_the_status(tmp_path: Path) -> None:
    post = Postcheck(Validity.INVALID, ["throttled 1.73 %"])
    record = Bench(tmp_path, evidence=lambda: Evidence(postcheck=post)).run(script([])).record
    assert (record.status, record.verdict) == (RunStatus.COMPLETED, PASS)
    assert record.warnings == (
        "hardware: throttled 1.73 %",
        "hardware: the numbers of this run are not valid: the box was not fit while they were taken",
    )


@pytest.mark.parametrize(
    ("sensitivity", "kind"), [(Sensitivity.STABILITY, VerdictKind.FAIL), (Sensitivity.SPEED, VerdictKind.PASS)]
)
def test_hardware_that_failed_fails_a_run_of_stability(tmp_path: Path, sensitivity: Sensitivity, kind: VerdictKind) -> None:
    post = Postcheck(Validity.INVALID, ["1 new uncorrected error"], failed=True)
    record = Bench(tmp_path, evidence=lambda: Evidence(postcheck=post)).run(script([], sensitivity)).record
    assert record.verdict.kind is kind
    assert record.status is RunStatus.COMPLETED


def _raise(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [OSError("no sensor"), SystemExit(3)])
def test_failed_first_capture_gives_a_report_of_unknowns(tmp_path: Path, error: BaseException) -> None:
    """L5: a run without a look at the box has a report all the same, and its validity is unknown."""
    seen: list[str] = []
    ran = Bench(tmp_path, evidence=lambda: Evidence(seen, acts={"open": lambda: _raise(error)})).run(script([]))
    assert ran.record.status is RunStatus.COMPLETED
    reason = f"the box could not be looked at: {error}"
    assert ran.hardware["postcheck"] == {"validity": "unknown", "concerns": [reason]}
    assert ran.record.warnings == (f"hardware: {reason}",)
    assert seen == ["open", "abandon"]


def test_evidence_that_cannot_be_made_or_is_none_gives_a_report_of_unknowns(tmp_path: Path) -> None:
    def broken() -> Evidence:
        raise RunError("no provider")

    for make in (broken, lambda: Evidence(acts={"open": lambda: "report"})):
        ran = Bench(tmp_path, evidence=make).run(script([]))
        assert ran.record.status is RunStatus.COMPLETED
        assert "unknown" in str(ran.hardware["postcheck"])


def test_hung_first_capture_is_given_up(tmp_path: Path, release: threading.Event) -> None:
    """L4: a wedged driver costs the look at the box, not the run."""
    ran = Bench(tmp_path, evidence=lambda: Evidence(acts={"open": lambda: hang(release)})).run(script([]))
    assert ran.record.status is RunStatus.COMPLETED
    assert ran.record.abandoned == (Stage.HARDWARE,)
    assert "no answer after " in ran.record.warnings[0]


@pytest.mark.parametrize("hung", [False, True])
def test_failed_or_hung_capture_afterwards_leaves_the_report_open(
    tmp_path: Path, release: threading.Event, *, hung: bool
) -> None:
    act = (lambda: hang(release)) if hung else (lambda: _raise(OSError("no sensor")))
    seen: list[str] = []
    ran = Bench(tmp_path, evidence=lambda: Evidence(seen, acts={"close": act})).run(script([]))
    assert ran.record.status is RunStatus.COMPLETED
    assert ran.hardware["perf_class"] == "box@here"
    assert "postcheck" not in ran.hardware
    assert ran.record.warnings[0].startswith("hardware: the box could not be looked at after the run: ")
    assert seen == ["open", "sample", "close", "abandon"]
    assert ran.record.abandoned == ((Stage.AFTER,) if hung else ())


def test_sampling_that_fails_and_watch_that_cannot_be_ended_are_warnings(tmp_path: Path) -> None:
    acts = {
        "sample": lambda: _raise(OSError("no thread")),
        "close": lambda: _raise(OSError("a")),
        "abandon": lambda: _raise(OSError("b")),
    }
    ran = Bench(tmp_path, evidence=lambda: Evidence(acts=acts)).run(script([]))
    assert ran.record.status is RunStatus.COMPLETED
    assert [text.rpartition(": ")[2] for text in ran.record.warnings] == ["no thread", "a", "b"]


def test_cells_are_judged_and_live_looks_shown(tmp_path: Path) -> None:
    judged: list[object] = []

    def step(bench: Scripted) -> None:
        since = bench.given.now()
        judged.append(bench.given.judge("cell 1", since))

    bench = Bench(tmp_path, evidence=Evidence)
    handle = bench.executor.start(script([], next=step), NO_VALUES)
    ran = bench.finish(handle)
    assert len(judged) == 3
    assert "cell 1" in repr(judged[0])
    live = ran.handle.live()
    assert live is not None
    assert live.mono_s == 2.0


# Coherence


class Probe:
    """Answers as a test wants."""

    def __init__(self, report: CoherenceReport | BaseException | threading.Event) -> None:
        self._report = report
        self.asked: list[tuple[TargetEndpoint, ModelExpectation | None]] = []

    def probe(self, target: TargetEndpoint, intended_for: ModelExpectation | None, cancel: CancelSignal) -> CoherenceReport:
        del cancel
        self.asked.append((target, intended_for))
        if isinstance(self._report, BaseException):
            raise self._report
        if isinstance(self._report, threading.Event):
            hang(self._report)
            return CoherenceReport()
        return self._report


def test_coherence_comes_after_the_precheck_and_before_load(tmp_path: Path) -> None:
    probe = Probe(CoherenceReport(answers=("arithmetic: 4", "recall: Paris")))
    ran = Bench(tmp_path, evidence=Evidence, coherence=probe).run(script([]), target=TARGET)
    stages = [event.stage for event in ran.events if isinstance(event, StageEvent)]
    assert stages == [Stage.START, Stage.HARDWARE, Stage.COHERENCE, *ORDER[2:]]
    assert [line for line in ran.lines if line.startswith("coherence")] == [
        "coherence: arithmetic: 4",
        "coherence: recall: Paris",
    ]
    assert probe.asked == [(TARGET, None)]
    assert (ran.record.target_url, ran.record.target_model) == ("http://127.0.0.1:9", "model-1b")


def test_coherence_is_not_asked_for_local_work_nor_when_skipped_nor_when_refused(tmp_path: Path) -> None:
    probe = Probe(CoherenceReport())
    bench = Bench(tmp_path, coherence=probe)
    bench.run(script([]))
    bench.run(script([]), target=TARGET, probe_coherence=False)
    bench.run(script([]), target=TARGET, evidence=lambda: Evidence(decision=Decision.REFUSE))
    assert probe.asked == []


@pytest.mark.parametrize(
    ("report", "warning"),
    [
        (CoherenceReport(concern="says 5", answers=("x",)), "coherence: says 5"),
        (OSError("refused"), "coherence: the endpoint could not be probed: refused"),
        (SystemExit("stop"), "coherence: the endpoint could not be probed: stop"),
    ],
)
def test_coherence_only_warns(tmp_path: Path, report: CoherenceReport | BaseException, warning: str) -> None:
    """L12: the warning stands in the record."""
    ran = Bench(tmp_path, evidence=Evidence, coherence=Probe(report)).run(script([]), target=TARGET)
    assert ran.record.status is RunStatus.COMPLETED
    assert ran.record.warnings == (warning,)


def test_hung_coherence_is_given_up(tmp_path: Path, release: threading.Event) -> None:
    ran = Bench(tmp_path, evidence=Evidence, coherence=Probe(release)).run(script([]), target=TARGET)
    assert ran.record.status is RunStatus.COMPLETED
    assert ran.record.abandoned == (Stage.COHERENCE,)


# Errors, in every call and of every kind

PLACES = [
    ("build", Stage.START, "setup", ["build"]),
    ("metadata", Stage.START, "setup", ["build", "cleanup"]),
    ("load", Stage.LOAD, "setup", ["build", "load", "cleanup"]),
    ("configure", Stage.CONFIGURE, "setup", ["build", "load", "configure", "cleanup"]),
    ("next", Stage.RUN, "run", ["build", "load", "configure", "next", "cleanup"]),
]
ERRORS = [
    (RunError("it broke"), RunStatus.FAILED),
    (ValueError("it broke"), RunStatus.FAILED),
    (OSError(5, "it broke"), RunStatus.FAILED),
    (RunCancelled("it broke"), RunStatus.FAILED),
    (StopIteration("it broke"), RunStatus.FAILED),
    (MemoryError("it broke"), RunStatus.FAILED),
    (RecursionError("it broke"), RunStatus.FAILED),
    (SystemExit("it broke"), RunStatus.CRASHED),
    (KeyboardInterrupt("it broke"), RunStatus.CRASHED),
    (GeneratorExit("it broke"), RunStatus.CRASHED),
]


@pytest.mark.parametrize(("call", "stage", "phase", "calls"), PLACES, ids=[place[0] for place in PLACES])
@pytest.mark.parametrize(("error", "status"), ERRORS, ids=[type(error).__name__ for error, _ in ERRORS])
def test_error_anywhere(
    tmp_path: Path, call: str, stage: Stage, phase: str, calls: list[str], error: BaseException, status: RunStatus
) -> None:
    """L1: whatever a plug-in raises, there is one terminal frame, one cleanup, an end, and a record."""
    seen: list[str] = []

    def act(_: Scripted) -> None:
        raise error from RunError("the cause of it")

    ran = Bench(tmp_path, evidence=Evidence).run(script(seen, acts={call: act}))
    assert seen == calls
    assert (ran.record.status, ran.record.frame.phase, ran.record.exit_code) == (status, phase, 1)
    cause = ran.record.frame.cause
    assert cause is not None
    assert (cause.stage, cause.type) == (stage, type(error).__name__)
    assert cause.chain[-1] == "the cause of it"
    assert "it broke" in ran.record.verdict.reason
    assert "the cause of it" in ran.record.verdict.reason
    assert ran.record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert [is_final(frame) for frame in ran.frames] == [True]
    assert "postcheck" in ran.hardware
    assert ran.handle.saved_to == str(tmp_path / "runs" / "scripted" / ran.record.run_id)


def test_bad_parameter_is_named_and_nothing_driven(tmp_path: Path) -> None:
    calls: list[str] = []
    record = Bench(tmp_path).run(script(calls), ParamValues({"steps": 1000})).record
    assert calls == ["build", "load", "cleanup"]
    assert record.verdict.reason == "Steps (steps): 1000 is not between 0 and 100"
    assert (record.status, record.frame.phase) == (RunStatus.FAILED, "setup")


@pytest.mark.parametrize(
    "given",
    [17, "frame", Frame(status=RunStatus.RUNNING, phase=object()), Frame(status="odd", phase="x"), b""],  # type: ignore[arg-type]
)
def test_what_is_no_frame_ends_the_run(tmp_path: Path, given: object) -> None:
    calls: list[str] = []
    record = Bench(tmp_path).run(script(calls, next=lambda _: given)).record
    assert calls.count("next") == 1
    assert (record.status, record.frame.phase) == (RunStatus.FAILED, "run")
    assert "next() returned" in record.verdict.reason


def test_a_metric_that_is_no_number_was_not_measured(tmp_path: Path) -> None:
    frame = Frame.completed("done", 0.0, verdict=PASS, metrics={"a": float("nan"), "b": float("inf"), "c": 1.0})
    record = Bench(tmp_path, evidence=Evidence).run(script([], next=lambda _: frame)).record
    assert record.frame.metrics == {"c": 1.0}
    assert record.warnings == ("metric a is nan: it was not measured", "metric b is inf: it was not measured")


def test_metadata_that_is_none_ends_the_run(tmp_path: Path) -> None:
    class Odd(Scripted):
        def metadata(self) -> object:  # type: ignore[override]
            return "me"

    calls: list[str] = []
    descriptor = script(calls)
    odd = msgspec.structs.replace(descriptor, build=lambda: Odd(lambda: descriptor, calls, {}))
    record = Bench(tmp_path).run(odd).record
    assert "metadata() returned a str" in record.verdict.reason
    assert calls == ["cleanup"]


def test_what_is_no_benchmark_ends_the_run(tmp_path: Path) -> None:
    descriptor = msgspec.structs.replace(script([]), build=object)
    record = Bench(tmp_path).run(descriptor).record
    assert record.status is RunStatus.FAILED
    assert "metadata" in record.verdict.reason


# Cleaning up


@pytest.mark.parametrize("error", [RunError("stuck file"), SystemExit("stuck file")])
def test_cleanup_error_is_a_warning_and_keeps_the_verdict(tmp_path: Path, error: BaseException) -> None:
    calls: list[str] = []
    record = Bench(tmp_path, evidence=Evidence).run(script(calls, cleanup=lambda _: _raise(error))).record
    assert calls.count("cleanup") == 1
    assert (record.status, record.verdict) == (RunStatus.COMPLETED, PASS)
    assert record.warnings == ("cleanup: stuck file",)


def test_cleanup_that_hangs_is_given_up(tmp_path: Path, release: threading.Event) -> None:
    record = Bench(tmp_path, evidence=Evidence).run(script([], cleanup=lambda _: hang(release))).record
    assert record.status is RunStatus.COMPLETED
    assert record.abandoned == (Stage.CLEANUP,)
    (warning,) = record.warnings
    assert warning.startswith("cleanup: no answer after ")
    assert warning.endswith(" s; its thread was given up")


def test_terminal_frame_before_cleanup_and_finished_after_it(tmp_path: Path, release: threading.Event) -> None:
    bench = Bench(tmp_path, graces=QUICK._replace(cleanup_grace_s=10))
    inside = threading.Event()

    def cleanup(_: Scripted) -> None:
        inside.set()
        hang(release)

    handle = bench.executor.start(script([], cleanup=cleanup), NO_VALUES)
    assert inside.wait(10)
    assert handle.status is RunStatus.COMPLETED
    assert any(message.frame is not None and is_final(message.frame) for message in handle.drain())
    assert not handle.is_finished()
    release.set()
    assert handle.wait(10)


# Being stopped


def _stopped(
    bench: Bench, calls: list[str], stage: Stage, how: str = "cancel", acts: dict[str, Callable[[Scripted], object]] | None = None
) -> Ran:
    """Start, wait until the act ``stage`` is inside, cancel; what came of it."""
    handle = bench.executor.start(script(calls, acts=acts), NO_VALUES, target=TARGET)
    ends_s = time.monotonic() + 10
    while handle.stage is not stage and time.monotonic() < ends_s:
        time.sleep(0.002)
    time.sleep(0.02)
    handle.cancel() if how == "cancel" else handle.close()
    begun_s = time.monotonic()
    ran = bench.finish(handle)
    assert time.monotonic() - begun_s < 5
    return ran


def _tick(_: Scripted) -> Frame:
    time.sleep(0.01)
    return Frame.running("on", 0.1)


def _until_told(bench: Scripted) -> None:
    bench.given.wait(10)
    bench.given.check_cancelled()


@pytest.mark.parametrize("how", ["cancel", "close"])
@pytest.mark.parametrize(("call", "stage"), [("load", Stage.LOAD), ("configure", Stage.CONFIGURE), ("next", Stage.RUN)])
def test_cancel_reaches_work_in_flight(tmp_path: Path, call: str, stage: Stage, how: str) -> None:
    """L2, L3: one shape, whoever sees it first; nothing is given up when the benchmark heeds it."""
    calls: list[str] = []
    ran = _stopped(Bench(tmp_path, evidence=Evidence), calls, stage, how, {call: _until_told})
    record = ran.record
    assert calls.count("cleanup") == 1
    assert calls[-2:] == [call, "cleanup"]
    assert (record.status, record.frame.phase, record.exit_code) == (RunStatus.CANCELLED, "cancelled", 130)
    assert record.frame.cause is not None
    assert (record.frame.cause.stage, record.frame.cause.type) == (stage, "cancel")
    assert record.abandoned == ()
    assert record.warnings == ()
    assert "postcheck" in ran.hardware
    assert record.cancel_requested


@pytest.mark.parametrize(
    ("call", "stage", "phase"),
    [("build", Stage.START, "setup"), ("load", Stage.LOAD, "x"), ("configure", Stage.CONFIGURE, "x"), ("next", Stage.RUN, "x")],
)
def test_a_plug_in_that_never_comes_back_loses_its_thread(
    tmp_path: Path, release: threading.Event, call: str, stage: Stage, phase: str
) -> None:
    calls: list[str] = []
    ran = _stopped(Bench(tmp_path, evidence=Evidence), calls, stage, acts={call: lambda _: hang(release)})
    assert ran.record.status is RunStatus.CANCELLED
    assert ran.record.abandoned == (stage,)
    assert any("though it was told to stop; its thread was given up" in text for text in ran.record.warnings)
    assert calls.count("cleanup") == (0 if call == "build" else 1), phase


def test_cancel_while_the_box_is_looked_at(tmp_path: Path, release: threading.Event) -> None:
    calls: list[str] = []
    bench = Bench(tmp_path, evidence=lambda: Evidence(acts={"open": lambda: hang(release)}), graces=QUICK._replace(capture_s=10))
    ran = _stopped(bench, calls, Stage.HARDWARE)
    assert ran.record.status is RunStatus.CANCELLED
    assert calls == ["build", "cleanup"]
    assert ran.record.abandoned == (Stage.HARDWARE,)
    assert "unknown" in str(ran.hardware["postcheck"])


def test_cancel_during_coherence(tmp_path: Path, release: threading.Event) -> None:
    calls: list[str] = []
    bench = Bench(tmp_path, evidence=Evidence, coherence=Probe(release), graces=QUICK._replace(coherence_s=10))
    ran = _stopped(bench, calls, Stage.COHERENCE)
    assert ran.record.status is RunStatus.CANCELLED
    assert calls == ["build", "cleanup"]
    assert ran.record.frame.cause is not None
    assert ran.record.frame.cause.stage is Stage.COHERENCE


def test_cancel_while_the_box_is_looked_at_once_more_keeps_the_numbers(tmp_path: Path, release: threading.Event) -> None:
    bench = Bench(tmp_path, evidence=lambda: Evidence(acts={"close": lambda: hang(release)}), graces=QUICK._replace(capture_s=10))
    record = _stopped(bench, [], Stage.AFTER).record
    assert (record.status, record.verdict, record.exit_code) == (RunStatus.CANCELLED, PASS, 130)
    assert record.frame.metrics == {"rate": 2.5}
    assert "postcheck" not in (record.frame.hardware_state or {})


def test_cancel_between_frames_is_seen_by_the_executor(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    calls: list[str] = []
    record = _stopped(bench, calls, Stage.RUN, acts={"next": _tick}).record
    assert record.status is RunStatus.CANCELLED
    assert record.frame.phase == "cancelled"
    assert calls[-1] == "cleanup"


def test_cancel_that_races_the_terminal_frame_keeps_it_and_counts_as_cancelled(tmp_path: Path) -> None:
    """L3: the status tells; the benchmark's numbers and verdict stand."""
    holder: list[object] = []
    started = threading.Event()

    def step(_: Scripted) -> Frame:
        started.wait(10)
        holder[0].cancel()  # type: ignore[attr-defined]
        return Frame.completed("done", 1.0, verdict=PASS, metrics={"rate": 9.0})

    bench = Bench(tmp_path, evidence=Evidence)
    handle = bench.executor.start(script([], next=step), NO_VALUES)
    holder.append(handle)
    started.set()
    record = bench.finish(handle).record
    assert (record.status, record.verdict, record.exit_code) == (RunStatus.CANCELLED, PASS, 130)
    assert (record.frame.phase, record.frame.metrics) == ("done", {"rate": 9.0})
    assert record.frame.cause is not None
    assert record.frame.cause.stage is Stage.RUN


def test_cancel_after_the_terminal_frame_changes_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    handle = bench.executor.start(script([]), NO_VALUES)
    ran = bench.finish(handle)
    handle.cancel()
    handle.close()
    assert not handle.is_cancelled()
    assert ran.record.status is RunStatus.COMPLETED
    assert not ran.record.cancel_requested


def test_errors_of_a_benchmark_that_is_being_stopped_are_told(tmp_path: Path) -> None:
    def step(bench: Scripted) -> None:
        bench.given.wait(10)
        raise OSError("connection closed")

    ran = _stopped(Bench(tmp_path, evidence=Evidence), [], Stage.RUN, acts={"next": step})
    assert ran.record.status is RunStatus.CANCELLED
    assert "told to stop, it reported: connection closed" in ran.lines
    assert ran.record.frame.cause is not None
    assert "connection closed" in ran.record.frame.cause.chain


def test_what_a_benchmark_registered_is_called_at_a_cancel(tmp_path: Path) -> None:
    killed = threading.Event()

    def step(bench: Scripted) -> None:
        with bench.given.on_cancel(lambda: _raise(RunError("a callback that breaks"))), bench.given.on_cancel(killed.set):
            assert killed.wait(10)
        bench.given.check_cancelled()

    assert _stopped(Bench(tmp_path), [], Stage.RUN, acts={"next": step}).record.status is RunStatus.CANCELLED
    assert killed.is_set()


def test_a_lost_handle_cancels_and_the_record_is_written(tmp_path: Path) -> None:
    calls: list[str] = []
    bench = Bench(tmp_path)
    bench.executor.start(script(calls, next=_until_told), NO_VALUES)
    gc.collect()
    ends_s = time.monotonic() + 10
    while not bench.store.history() and time.monotonic() < ends_s:
        time.sleep(0.01)
    (run,) = bench.store.history()
    assert run.status is RunStatus.CANCELLED
    assert bench.store.load(run.run_id).record.verdict.reason.startswith("nobody reads this run any more")
    assert calls.count("cleanup") <= 1


def test_leaving_the_with_block_cancels(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    with bench.executor.start(script([], next=_until_told), NO_VALUES) as handle:
        pass
    assert bench.finish(handle).record.verdict.reason.startswith("its reader closed it")


def test_deadline_stops_a_run_that_goes_on(tmp_path: Path, release: threading.Event) -> None:
    bench = Bench(tmp_path, evidence=Evidence)
    record = bench.run(script([], next=lambda _: hang(release)), deadline_s=0.2).record
    assert (record.status, record.frame.phase, record.exit_code) == (RunStatus.TIMED_OUT, "timed_out", 1)
    assert record.verdict.reason.startswith("the deadline of 0.2 s has passed")
    assert record.frame.cause is not None
    assert record.frame.cause.type == "deadline"
    assert record.abandoned == (Stage.RUN,)
    assert not record.cancel_requested


def test_deadline_is_seen_between_quick_steps(tmp_path: Path) -> None:
    record = Bench(tmp_path).run(script([], next=lambda _: Frame.running("on", 0.0)), deadline_s=0.1).record
    assert record.status is RunStatus.TIMED_OUT


def test_deadline_does_not_cut_the_look_afterwards(tmp_path: Path) -> None:
    slow = Evidence(acts={"close": lambda: time.sleep(0.3)})
    record = Bench(tmp_path, evidence=lambda: slow).run(script([]), deadline_s=0.25).record
    assert record.status is RunStatus.COMPLETED


def test_shutdown_ends_every_run(tmp_path: Path, release: threading.Event) -> None:
    bench = Bench(tmp_path)
    handles = [bench.executor.start(script([], next=_until_told), NO_VALUES) for _ in range(3)]
    assert bench.executor.shutdown(10)
    assert all(handle.is_finished() for handle in handles)
    stuck = bench.executor.start(script([], cleanup=lambda _: hang(release)), NO_VALUES)
    assert not bench.executor.shutdown(0.01)
    assert stuck.wait(10)


# Numbers, threads, stores


def test_copies_share_the_count(tmp_path: Path) -> None:
    executor = Bench(tmp_path).executor
    handles = [one.start(script([]), NO_VALUES) for one in (executor, copy.copy(executor), executor)]
    assert all(handle.wait(10) for handle in handles)
    assert [handle.number for handle in handles] == [1, 2, 3]
    assert len({handle.run_id for handle in handles}) == 3


def test_a_thread_that_was_given_up_is_told_to_the_next_run(tmp_path: Path, release: threading.Event) -> None:
    bench = Bench(tmp_path, evidence=Evidence)
    bench.run(script([], next=lambda _: hang(release)), deadline_s=0.05)
    assert "thread run-1-plugin of an earlier run was given up" in bench.run(script([])).record.warnings[0]
    release.set()
    ends_s = time.monotonic() + 10
    while any(thread.name == "run-1-plugin" for thread in threading.enumerate()) and time.monotonic() < ends_s:
        time.sleep(0.005)
    assert bench.run(script([])).record.warnings == ()


def test_threads_given_up_in_cleanup_and_coherence_are_told_as_well(tmp_path: Path, release: threading.Event) -> None:
    bench = Bench(tmp_path, evidence=Evidence, coherence=Probe(release))
    bench.run(script([], cleanup=lambda _: hang(release)), target=TARGET)
    told = bench.run(script([])).record.warnings
    assert [text.split()[1] for text in told] == ["run-1-coherence", "run-1-plugin"]


def test_no_thread_is_left(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    Bench(tmp_path).run(script([]))
    ends_s = time.monotonic() + 10
    while set(threading.enumerate()) - before and time.monotonic() < ends_s:
        time.sleep(0.005)
    assert set(threading.enumerate()) - before == set()


def test_no_thread_to_be_had_is_an_end_with_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    bench = Bench(tmp_path)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    handle = bench.executor.start(script([]), NO_VALUES)
    assert handle.is_finished()
    record = handle.record
    assert record is not None
    assert (record.status, record.verdict.reason) == (RunStatus.FAILED, "can't start new thread")
    assert "could not be stored" in handle.save_error


def test_without_saving_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """H3."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    paths: list[str] = []

    def load(bench: Scripted) -> None:
        paths.append(bench.given.file_path("raw.txt"))
        Path(paths[0]).write_text("raw")

    ran = Bench(tmp_path / "state").run(script([], load=load), save=False)
    assert ran.record.status is RunStatus.COMPLETED
    assert ran.handle.saved_to == ran.handle.save_error == ""
    assert not Path(paths[0]).exists()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "state").exists()


def test_files_and_provenance_belong_to_the_record(tmp_path: Path) -> None:
    def load(bench: Scripted) -> None:
        Path(bench.given.file_path("raw.txt")).write_text("raw")
        bench.given.ran("stream", version="5.10", sha256="ab", path="/opt/stream")
        bench.given.ran("stream", version="5.10", sha256="cd", path="/opt/stream")
        bench.given.debug("d")
        bench.given.error("e")
        bench.given.warn("w\udcff")
        assert bench.given.run_number == 1
        assert bench.given.target is None
        assert not bench.given.is_cancelled()

    ran = Bench(tmp_path, evidence=Evidence).run(script([], load=load))
    assert [(entry.name, entry.sha256) for entry in ran.record.provenance] == [("stream", "cd")]
    assert ran.record.warnings == ("e", "w?")
    stored = Bench(tmp_path).store.load(ran.record.run_id)
    assert [os.path.basename(path) for path in stored.files()] == ["raw.txt"]


def test_fingerprint_follows_what_ran_and_what_was_asked(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    same = [bench.run(script([])).record.fingerprint for _ in range(2)]
    other = bench.run(script([]), ParamValues({"steps": 1})).record.fingerprint
    moved = bench.run(script([], load=lambda one: one.given.ran("x", sha256="1", path="/a"))).record.fingerprint
    again = bench.run(script([], load=lambda one: one.given.ran("x", sha256="1", path="/b"))).record.fingerprint
    assert same[0] == same[1]
    assert len({same[0], other, moved}) == 3
    assert moved == again


def test_a_store_that_cannot_be_written_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("in the way")
    calls: list[str] = []
    ran = Bench(tmp_path).run(script(calls))
    assert calls == []
    assert (ran.record.status, ran.record.frame.phase) == (RunStatus.FAILED, "setup")
    assert "is no directory" in ran.record.verdict.reason
    assert "could not be stored" in ran.handle.save_error


class Refusing(RunStore):
    """A disk that fills up when the record is to be stored."""

    def publish(self, run: OpenRun, record: RunRecord) -> str:
        raise WriteError(f"{run.path}/{record.run_id}", "No space left on device")


def test_a_record_that_cannot_be_stored_lives_on_in_memory(tmp_path: Path) -> None:
    ran = Bench(tmp_path, evidence=Evidence, store=Refusing(str(tmp_path))).run(script([]))
    assert ran.record.status is RunStatus.COMPLETED
    assert ran.handle.saved_to == ""
    assert "No space left on device" in ran.handle.save_error
    assert ran.record.warnings == (ran.handle.save_error,)
    assert (tmp_path / "runs" / ".open" / ran.record.run_id / "log.jsonl").stat().st_size > 0


def test_a_log_that_cannot_be_written_is_told_and_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = OpenRun.append
    lines: list[bytes] = []

    def append(run: OpenRun, line: bytes) -> None:
        lines.append(line)
        if len(lines) > 4:
            raise WriteError("log.jsonl", "No space left on device")
        real(run, line)

    monkeypatch.setattr(OpenRun, "append", append)
    ran = Bench(tmp_path, evidence=Evidence).run(script([]))
    assert ran.record.status is RunStatus.COMPLETED
    assert ran.record.warnings == ("the log of this run could not be written: log.jsonl: No space left on device",)
    assert ran.handle.saved_to


def test_a_fault_of_the_executor_itself_still_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever breaks at the end of a run, the terminal frame is sent, the benchmark cleaned up, the record stored."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("nodeproof.runs.box.BoxWatch.judge", broken)
    calls: list[str] = []
    ran = Bench(tmp_path, evidence=Evidence).run(script(calls))
    assert calls[-1] == "cleanup"
    assert ran.record.status is RunStatus.CRASHED
    assert ran.record.warnings == ("the executor failed in stage after: planted",)
    assert ran.handle.saved_to
    monkeypatch.undo()
    monkeypatch.setattr("nodeproof.runs.conduct.Run._look_before", broken)
    early = Bench(tmp_path, evidence=Evidence).run(script(calls))
    assert (early.record.status, early.record.frame.phase) == (RunStatus.FAILED, "executor")
    assert calls[-1] == "cleanup"
