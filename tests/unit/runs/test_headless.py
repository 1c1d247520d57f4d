"""A run in one call (bench.md 2.4, 8.2)."""

import threading
from pathlib import Path

import pytest

from nodeproof.errors import ParamError, RunError
from nodeproof.model.hardware import LiveSample
from nodeproof.model.run import ExecutorMessage, Frame, GlowEvent, RunSource, RunStatus, Verdict, VerdictKind, is_final
from nodeproof.runs.executor import RunHandle
from nodeproof.runs.headless import HeadlessOptions, RunReporter, SilentReporter, run_blocking, values_for
from support.runs import Bench, Evidence, Scripted, script

QUICKLY = HeadlessOptions(poll_s=0.01)


class Reporter(RunReporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.started_count = 0
        self.messages: list[ExecutorMessage] = []
        self.ticks: list[LiveSample | None] = []

    def started(self, handle: RunHandle) -> None:
        assert handle.number == 1
        self.started_count += 1

    def message(self, message: ExecutorMessage) -> None:
        self.messages.append(message)

    def tick(self, live: LiveSample | None) -> None:
        self.ticks.append(live)


def test_unreachable_endpoint(tmp_path: Path) -> None:
    """H1, H2: told once, one terminal frame, on and off, saved with source and version; exit code 1."""

    def load(_: Scripted) -> None:
        raise ConnectionRefusedError("127.0.0.1:9 refused")

    reporter = Reporter()
    bench = Bench(tmp_path)
    outcome = run_blocking(bench.executor, script([], load=load), {}, reporter, options=QUICKLY)
    frames = [message.frame for message in reporter.messages if message.frame is not None]
    assert reporter.started_count == 1
    assert [is_final(frame) for frame in frames] == [True]
    glows = [message.event.on for message in reporter.messages if isinstance(message.event, GlowEvent)]
    assert glows == [True, False]
    stored = bench.store.load(outcome.record.run_id).record
    assert stored.frame == frames[0]
    assert stored.source is RunSource.CLI
    assert stored.nodeproof_version
    assert outcome.saved_to
    assert (outcome.exit_code, outcome.cancelled) == (1, False)


def test_no_save_leaves_nothing(tmp_path: Path) -> None:
    """H3."""
    bench = Bench(tmp_path / "state")
    outcome = run_blocking(bench.executor, script([]), {}, SilentReporter(), options=QUICKLY._replace(save=False))
    assert (outcome.exit_code, outcome.saved_to, outcome.save_error) == (0, "", "")
    assert not (tmp_path / "state").exists()


def test_cancel_from_the_start(tmp_path: Path) -> None:
    """H4."""

    def step(bench: Scripted) -> Frame:
        bench.given.wait(0.01)
        return Frame.running("on", 0.0)

    bench = Bench(tmp_path)
    outcome = run_blocking(bench.executor, script([], next=step), {}, Reporter(), options=QUICKLY, should_cancel=lambda: True)
    assert (outcome.exit_code, outcome.cancelled) == (130, True)
    assert bench.store.load(outcome.record.run_id).record.status is RunStatus.CANCELLED


def test_invalid_parameter_starts_nothing(tmp_path: Path) -> None:
    """H5."""
    calls: list[str] = []
    reporter = Reporter()
    with pytest.raises(ParamError, match=r"^Steps \(steps\): 'many' is no whole number"):
        run_blocking(Bench(tmp_path / "state").executor, script(calls), {"steps": "many"}, reporter)
    assert (calls, reporter.started_count, reporter.messages) == (["build"], 0, [])
    assert not (tmp_path / "state").exists()
    assert values_for(script([]), {"steps": "7"}).int("steps") == 7


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        (Frame.completed("done", 0, verdict=Verdict(VerdictKind.PASS, "1")), 0),
        (Frame.completed("done", 0, verdict=Verdict(VerdictKind.FAIL, "1")), 2),
        (Frame.failed("run", "x", 0), 1),
    ],
)
def test_exit_codes(tmp_path: Path, frame: Frame, code: int) -> None:
    """H6."""
    outcome = run_blocking(Bench(tmp_path).executor, script([], next=lambda _: frame), {}, SilentReporter(), options=QUICKLY)
    assert outcome.exit_code == code


def test_quiet_times_show_the_box(tmp_path: Path) -> None:
    reporter = Reporter()
    release = threading.Event()
    threading.Timer(0.2, release.set).start()
    bench = Bench(tmp_path, evidence=Evidence)
    run_blocking(bench.executor, script([], load=lambda _: release.wait(10)), {}, reporter, options=QUICKLY)
    assert reporter.ticks
    assert LiveSample(at=1.0, mono_s=2.0) in reporter.ticks


def test_a_reporter_that_breaks_ends_the_run(tmp_path: Path) -> None:
    class Broken(RunReporter):
        def message(self, message: ExecutorMessage) -> None:
            raise KeyboardInterrupt(message.sequence)

    bench = Bench(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        run_blocking(bench.executor, script([], next=lambda one: one.given.wait(10)), {}, Broken(), options=QUICKLY)
    (run,) = bench.store.history()
    assert run.status is RunStatus.CANCELLED


def test_a_run_without_a_record_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunHandle, "record", None)
    with pytest.raises(RunError, match="without a record"):
        run_blocking(Bench(tmp_path).executor, script([]), {}, SilentReporter(), options=QUICKLY)
