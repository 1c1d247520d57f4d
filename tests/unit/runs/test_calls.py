"""Cancel tokens, workers, and the supervisor that always comes back."""

import functools
import threading
import time

import pytest

from nodeproof.errors import RunCancelled
from nodeproof.model.run import Stage
from nodeproof.runs.cancel import CancelToken
from nodeproof.runs.supervise import GivenUpError, Supervisor
from nodeproof.runs.worker import Worker


def test_first_order_counts() -> None:
    token = CancelToken()
    assert not token.is_cancelled()
    assert not token.wait(0.0)
    token.check_cancelled()
    assert token.set("by hand")
    assert not token.set("later")
    assert (token.reason, token.is_cancelled(), token.wait(5)) == ("by hand", True, True)
    with pytest.raises(RunCancelled, match="by hand"):
        token.check_cancelled()


def test_registered_calls_are_made_once_while_registered() -> None:
    token = CancelToken()
    called: list[str] = []
    done = threading.Event()
    with token.on_cancel(lambda: called.append("left")):
        pass

    def inside() -> None:
        called.append("inside")
        done.set()

    with token.on_cancel(inside):
        token.set("x")
        assert done.wait(5)
        with token.on_cancel(lambda: called.append("at once")):
            assert called == ["inside", "at once"]


def test_calls_that_break_or_have_no_thread_do_not_stop_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    token = CancelToken()
    called: list[str] = []

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    def broken() -> None:
        raise SystemExit

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with token.on_cancel(broken), token.on_cancel(lambda: called.append("told")):
        assert token.set("x")
    assert called == ["told"]


def _where(number: int) -> tuple[int, str]:
    return number, threading.current_thread().name


def test_worker_makes_calls_in_order_on_one_thread() -> None:
    worker = Worker("w")
    calls = [worker.submit(functools.partial(_where, number)) for number in range(3)]
    assert calls[-1].wait(5)
    assert [call.result() for call in calls] == [(0, "w"), (1, "w"), (2, "w")]
    assert worker.is_alive()
    worker.stop()
    deadline_s = time.monotonic() + 5
    while worker.is_alive() and time.monotonic() < deadline_s:
        time.sleep(0.001)
    assert not worker.is_alive()
    Worker("idle").stop()


def test_worker_hands_on_what_was_raised() -> None:
    worker = Worker("w")
    call = worker.submit(lambda: 1 // 0)
    assert call.wait(5)
    with pytest.raises(ZeroDivisionError):
        call.result()
    worker.stop()


def test_worker_that_was_given_up_makes_no_more_calls() -> None:
    release, made = threading.Event(), threading.Event()
    worker = Worker("w")
    stuck = worker.submit(lambda: release.wait(10))
    waiting = worker.submit(made.set)
    worker.abandon()
    release.set()
    assert stuck.wait(5)
    assert waiting.wait(5)
    with pytest.raises(RuntimeError, match="thread w was given up"):
        waiting.result()
    assert not made.is_set()


def supervisor_of(grace_s: float = 0.05) -> tuple[Supervisor, CancelToken]:
    token = CancelToken()
    return Supervisor(token, grace_s), token


def test_supervisor_gives_value_or_error() -> None:
    supervisor, _ = supervisor_of()
    worker = Worker("w", supervisor.wake)
    assert supervisor.call(worker, lambda: 3, stage=Stage.RUN) == 3
    with pytest.raises(ZeroDivisionError):
        supervisor.call(worker, lambda: 1 // 0, stage=Stage.RUN)
    worker.stop()
    assert supervisor.abandoned == []


def test_supervisor_gives_up_at_the_limit_and_after_the_grace() -> None:
    supervisor, token = supervisor_of()
    release = threading.Event()
    with pytest.raises(GivenUpError, match=r"^no answer after 0\.[0-9] s; its thread was given up$"):
        supervisor.call(Worker("a"), lambda: release.wait(10), stage=Stage.AFTER, limit_s=0.05)
    token.set("x")
    with pytest.raises(GivenUpError, match="though it was told to stop"):
        supervisor.call(Worker("b"), lambda: release.wait(10), stage=Stage.RUN, limit_s=10)
    assert supervisor.abandoned == [Stage.AFTER, Stage.RUN]
    worker = Worker("c", supervisor.wake)
    threading.Timer(0.1, release.set).start()
    assert supervisor.call(worker, lambda: release.wait(10), stage=Stage.CLEANUP, limit_s=10, cancellable=False)
    worker.stop()


def test_orders_of_a_finalizer_are_taken_by_the_supervisor() -> None:
    supervisor, token = supervisor_of()
    supervisor.order("reader gone")
    supervisor.wake()
    assert not token.is_cancelled()
    supervisor.look()
    assert token.reason == "reader gone"
    waiting, waiting_token = supervisor_of()
    threading.Timer(0.05, waiting.order, args=("later",)).start()
    with pytest.raises(GivenUpError):
        waiting.call(Worker("w"), lambda: time.sleep(0.5), stage=Stage.RUN)
    assert waiting_token.reason == "later"


def test_deadline_marks_the_run_overdue_unless_it_was_cancelled_before() -> None:
    supervisor, token = supervisor_of()
    supervisor.set_deadline(0.0)
    supervisor.look()
    assert (supervisor.overdue, token.reason) == (True, "the deadline of 0 s has passed")
    other, other_token = supervisor_of()
    other_token.set("by hand")
    other.set_deadline(0.0)
    other.look()
    assert (other.overdue, other_token.reason) == (False, "by hand")
    third, third_token = supervisor_of()
    third.set_deadline(0.0)
    third.set_deadline(None)
    third.look()
    assert not third_token.is_cancelled()
