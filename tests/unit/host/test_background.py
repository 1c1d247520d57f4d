import contextlib
import threading
from collections.abc import Callable

import pytest

from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.background import Background
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles


class _Source:
    """A call that a test holds up and lets go."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.calls = 0
        self.action: Callable[[], int] = lambda: self.calls

    def __call__(self) -> int:
        self.calls += 1
        assert self.gate.wait(10)
        return self.action()


def _background(source: _Source, clock: ManualClock) -> Background[int]:
    return Background("tool", source, interval_s=10.0, deadline_s=5.0, clock=clock)


def _state(background: Background[int]) -> tuple[Absence, str]:
    with pytest.raises(NoData) as caught:
        background.latest()
    return caught.value.state, caught.value.reason


def _ask(background: Background[int]) -> None:
    """Start a call when one is due, and see it through."""
    with contextlib.suppress(NoData):
        background.latest()
    assert background.wait(10)


def test_the_first_answer_is_unknown_until_it_is_there() -> None:
    source, clock = _Source(), ManualClock(mono_s=100.0)
    source.gate.clear()
    background = _background(source, clock)
    assert background.wait(0)  # nothing in flight yet
    assert _state(background) == (Absence.UNKNOWN, "tool has not answered yet")
    assert not background.wait(0)
    source.gate.set()
    assert background.wait(10)
    assert background.latest() == (1, (1_790_000_000.0, 100.0))


def test_the_next_call_begins_when_the_interval_is_over_or_nearly() -> None:
    source, clock = _Source(), ManualClock()
    background = _background(source, clock)
    _ask(background)
    clock.advance(9.4)
    assert background.latest().value == 1
    clock.advance(0.1)
    _ask(background)
    assert background.latest().value == source.calls == 2


def test_a_hung_call_is_stale_after_its_deadline_never_doubled_and_heals_by_itself() -> None:
    source, clock = _Source(), ManualClock()
    background = _background(source, clock)
    _ask(background)
    source.gate.clear()
    clock.advance(10)
    assert background.latest().value == 1  # started the second call; the old answer still holds
    clock.advance(6)
    assert _state(background) == (Absence.STALE, "tool has not answered for 6 s")
    clock.advance(600)
    assert _state(background) == (Absence.STALE, "tool has not answered for 606 s")
    assert source.calls == 2
    source.gate.set()
    assert background.wait(10)
    _ask(background)
    assert background.latest().value == 3


def test_an_answer_nobody_renewed_grows_stale() -> None:
    source, clock = _Source(), ManualClock()
    background = _background(source, clock)
    _ask(background)
    source.gate.clear()
    clock.advance(36)
    assert _state(background) == (Absence.STALE, "the last answer of tool is 36 s old")
    source.gate.set()
    assert background.wait(10)


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (NoData(Absence.NO_PERMISSION, "no right"), Absence.NO_PERMISSION, "no right"),
        (ParseError("tool", 3, "x", "y"), Absence.READ_ERROR, "tool, line 3: found 'x', expected y"),
        (ZeroDivisionError("oh"), Absence.READ_ERROR, "tool: ZeroDivisionError: oh"),
    ],
)
def test_a_failure_replaces_the_answer_until_the_next_success(error: Exception, state: Absence, reason: str) -> None:
    source, clock = _Source(), ManualClock()
    background = _background(source, clock)
    _ask(background)

    def fail() -> int:
        raise error

    source.action = fail
    clock.advance(10)
    _ask(background)
    assert _state(background) == (state, reason)
    source.action = lambda: 7
    clock.advance(10)
    _ask(background)
    assert background.latest().value == 7


def test_no_thread_to_be_had_is_an_error_that_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    source, clock = _Source(), ManualClock()
    background = _background(source, clock)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        assert _state(background) == (Absence.READ_ERROR, "tool: can't start new thread")
    assert background.wait(0)
    clock.advance(10)
    _ask(background)
    assert background.latest().value == 1


def test_a_machine_waits_for_its_slow_sources_but_not_for_retired_ones(tmp_path_factory: pytest.TempPathFactory) -> None:
    machine = Machine(RecordedFiles(str(tmp_path_factory.mktemp("root"))), RecordedCommands({}), ManualClock())
    source, hung = _Source(), _Source()
    hung.gate.clear()
    kept = machine.background("kept", source, interval_s=1.0, deadline_s=1.0)
    retired = machine.background("retired", hung, interval_s=1.0, deadline_s=1.0)
    for background in (kept, retired):
        with pytest.raises(NoData):
            background.latest()
    machine.retire(retired)
    machine.settle(10)
    assert kept.latest().value == 1
    hung.gate.set()
    assert retired.wait(10)
    assert machine.shared(_Owner) is machine.shared(_Owner)
    machine.close()


class _Owner:
    def __init__(self, machine: Machine) -> None:
        self.machine = machine
