"""Progress of a benchmark on standard error: warnings once, one line on a terminal, nothing on standard output."""

import io
import sys

import pytest

from nodeproof.cli.bench_progress import TerminalReporter, box_line, time_left
from nodeproof.model.hardware import DeviceState, LiveSample
from nodeproof.model.run import Event, ExecutorMessage, LogEvent, LogLevel, ProgressEvent, StatusEvent


class Terminal(io.StringIO):
    """A standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def message(event: Event) -> ExecutorMessage:
    return ExecutorMessage(1, "2026-12-01T00:00:00+00:00", 1.0, event=event)


BOX = LiveSample(
    at=1.0, mono_s=1.0, busy_share=0.42, cpu_temp_c=61.4, throttle_share=0.1, foreign_share=0.2,
    devices=[DeviceState(device="gpu0", temp_c=70.0, clock_mhz=1980.0), DeviceState(device="gpu1")], critical=["core 1"],
)  # fmt: skip


def test_the_box_in_a_few_words() -> None:
    assert box_line(BOX) == "cpu 42%, 61 °C, throttled 10%, others 20%, gpu0 70 °C 1980 MHz, CRITICAL: core 1"
    assert box_line(LiveSample(at=1.0, mono_s=1.0)) == ""


def test_how_long_it_may_take() -> None:
    assert time_left(25, 100, 10.0) == "25%, about 30 s left"
    assert time_left(0, 100, 10.0) == time_left(100, 100, 10.0) == time_left(5, 0, 10.0) == ""


def test_a_terminal_has_one_line_that_is_written_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    reporter = TerminalReporter(quiet=False)
    reporter.message(message(StatusEvent("cell0: 12 answers")))
    reporter.message(message(ProgressEvent(1, 4)))
    reporter.tick(BOX)
    assert terminal.getvalue().rpartition("\r")[2].startswith("cell0: 12 answers · 25%, about 0 s left · cpu 42%")
    reporter.message(message(LogEvent(LogLevel.WARN, "hot\x1b[31m")))
    reporter.message(message(LogEvent(LogLevel.WARN, "hot\x1b[31m")))
    assert terminal.getvalue().count("bench: warning: hot\N{REPLACEMENT CHARACTER}[31m\n") == 1
    reporter.tick(None)
    reporter.close()
    assert terminal.getvalue().endswith("\r")
    assert capsys.readouterr().out == ""


def test_elsewhere_only_lines_and_quietly_only_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = TerminalReporter(quiet=True)
    for event in (StatusEvent("x"), LogEvent(LogLevel.INFO, "info"), LogEvent(LogLevel.ERROR, "bad"), ProgressEvent(1, 2)):
        reporter.message(message(event))
    reporter.tick(BOX)
    reporter.close()
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "bench: warning: bad\n")
