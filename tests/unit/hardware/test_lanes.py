"""A source on its own thread: answers, failures, hangs, lateness."""

import threading

import pytest

from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.hardware.lanes import Lane


def test_an_answer_and_every_kind_of_failure() -> None:
    answers: list[object] = [
        7,
        NoData(Absence.NOT_APPLICABLE, "no"),
        CommandError("tool", CommandFailure.TIMED_OUT, "slow"),
        ValueError("bug"),
    ]

    def call() -> object:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    lane = Lane("it", call)
    told: list[object] = []
    for _ in range(4):
        lane.start()
        told.append(lane.finish(5.0))
    lane.close()
    assert told[0] == 7
    absences = [(answer.state, answer.reason) for answer in told[1:] if isinstance(answer, NoData)]
    assert absences == [
        (Absence.NOT_APPLICABLE, "no"),
        (Absence.READ_ERROR, "tool: slow"),
        (Absence.READ_ERROR, "it: ValueError: bug"),
    ]
    assert lane.cpu_s > 0


def test_a_hang_is_stale_its_late_answer_is_thrown_away_and_then_all_is_well() -> None:
    release = threading.Event()
    calls: list[int] = []

    def call() -> int:
        calls.append(1)
        release.wait(10.0)
        return len(calls)

    lane = Lane("it", call)
    lane.start()
    hung = lane.finish(0.01)
    lane.start()  # the first call is still in flight: no second one
    release.set()
    late = lane.finish(5.0)
    lane.start()
    assert isinstance(hung, NoData)
    assert isinstance(late, NoData)
    assert (hung.state, late.state, late.reason) == (Absence.STALE, Absence.STALE, "it answered too late")
    assert lane.finish(5.0) == 2
    lane.close()


def test_who_never_asked_gets_no_answer_and_a_closed_lane_gives_none() -> None:
    lane = Lane("it", lambda: 1)
    idle = lane.finish(0.0)
    assert isinstance(idle, NoData)
    assert idle.reason == "it was not asked"
    lane.start()
    assert lane.finish(5.0) == 1
    lane.close()
    lane.start()
    assert isinstance(lane.finish(0.01), NoData)


def test_no_thread_to_be_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = Lane("it", lambda: 1)

    def refuse(_self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as exhausted:
        exhausted.setattr(threading.Thread, "start", refuse)
        lane.start()
    answer = lane.finish(1.0)
    assert isinstance(answer, NoData)
    assert (answer.reason, answer.remedy) == ("it: can't start new thread", "raise the limit on threads")
    lane.start()
    assert lane.finish(5.0) == 1
    lane.close()
