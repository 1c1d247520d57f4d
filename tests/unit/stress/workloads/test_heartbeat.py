"""The line that shows progress."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.stress.workloads import heartbeat
from nodeproof.stress.workloads.console import Console
from nodeproof.stress.workloads.heartbeat import Heartbeat
from support.workloads import beats, result

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def test_a_line_by_hand() -> None:
    line = 'nodeproof-heartbeat {"workload":"hpl","phase":"factor","done":7.0,"total":62.0,"unit":"panels","elapsed_s":4.01}'
    assert heartbeat.parse(line) == Heartbeat(workload="hpl", phase="factor", done=7.0, total=62.0, unit="panels", elapsed_s=4.01)


@given(
    st.builds(
        Heartbeat, workload=st.text(), phase=st.text(), done=NUMBERS, total=st.none() | NUMBERS, unit=st.text(), elapsed_s=NUMBERS
    )
)
def test_what_is_rendered_is_read_back_on_one_line(beat: Heartbeat) -> None:
    line = heartbeat.render(beat)
    assert heartbeat.parse(line) == beat
    assert len(line.split("\n")) == 1


@given(st.text())
def test_any_text_is_a_heartbeat_or_none(text: str) -> None:
    assert heartbeat.parse(text) is None or text.startswith(heartbeat.HEARTBEAT_PREFIX)
    assert heartbeat.parse(heartbeat.HEARTBEAT_PREFIX + text) is None or text.lstrip().startswith("{")


class _Time:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _console(monkeypatch: pytest.MonkeyPatch, *, json_only: bool = False) -> tuple[Console, io.StringIO, _Time]:
    clock, stream = _Time(), io.StringIO()
    monkeypatch.setattr("nodeproof.stress.workloads.console.time.monotonic", clock)
    return Console("hpl", json_only=json_only, stream=stream), stream, clock


def test_a_heartbeat_is_written_only_when_there_was_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    console, stream, clock = _console(monkeypatch)
    for done in (1, 1, 2):
        clock.now += 10.0
        console.beat("run", done, 5)
    assert [beat.done for beat in beats(stream.getvalue())] == [1.0, 2.0]


def test_heartbeats_of_one_phase_keep_a_second_apart_and_a_new_phase_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    console, stream, clock = _console(monkeypatch)
    console.beat("run", 1)
    clock.now += 0.5
    console.beat("run", 2)
    console.beat("verify", 0)
    clock.now += 1.0
    console.beat("verify", 1)
    assert [(beat.phase, beat.done) for beat in beats(stream.getvalue())] == [("run", 1.0), ("verify", 0.0), ("verify", 1.0)]


def test_the_rate_is_work_over_the_time_of_the_phase(monkeypatch: pytest.MonkeyPatch) -> None:
    console, stream, clock = _console(monkeypatch)
    clock.now += 50.0
    console.beat("run", 0, 9, work_done=0.0, rate_unit="FLOP/s")
    clock.now += 4.0
    console.beat("run", 3, 9, work_done=1000.0, rate_unit="FLOP/s")
    first, second = beats(stream.getvalue())
    assert (first.rate, first.rate_unit) == (None, None)
    assert (second.rate, second.rate_unit, second.elapsed_s) == (250.0, "FLOP/s", 54.0)


def test_with_json_the_official_text_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    console, stream, _ = _console(monkeypatch, json_only=True)
    console.line("T/V N NB")
    console.result({"gflops": 1.5})
    assert stream.getvalue().startswith("nodeproof-result ")
    assert result(stream.getvalue()) == {"workload": "hpl", "implementation": "nodeproof", "gflops": 1.5}
