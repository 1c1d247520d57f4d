"""The hand-over between leaders."""

import logging
import threading

import pytest

from nodeproof.clock import SystemClock
from nodeproof.model.metric import Batch
from nodeproof.scheduler.scheduler import Scheduler, spread


class Held:
    """A collector whose first cycle lasts until it is let go."""

    default_interval_s = 60.0

    def __init__(self) -> None:
        self.name = self.component = "cpu"
        self.begun = threading.Event()
        self.release = threading.Event()

    def collect(self) -> Batch:
        self.begun.set()
        assert self.release.wait(5.0)
        return Batch("cpu", "t", 1.0, [], [])

    def forget(self) -> None: ...


def test_a_leader_that_has_come_back_meanwhile_is_not_relieved() -> None:
    held = Held()
    scheduler = Scheduler(spread([(held, 60.0, None)]), lambda _: None, SystemClock())
    scheduler._patience_s = 60.0  # the test is the onlooker
    scheduler.start()
    try:
        assert held.begun.wait(5.0)
        led, leader = scheduler._led, scheduler._leader
        assert led is not None
        held.release.set()
        while not scheduler.completed():
            threading.Event().wait(0.001)
        scheduler._relieve(led)
        assert scheduler._leader is leader, "two leaders would share one queue"
    finally:
        assert scheduler.stop(5.0) == []


def test_without_a_thread_to_be_had_the_old_leader_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    held = Held()
    scheduler = Scheduler(spread([(held, 60.0, None)]), lambda _: None, SystemClock())
    scheduler._patience_s = 60.0
    scheduler.start()

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    try:
        assert held.begun.wait(5.0)
        led, leader = scheduler._led, scheduler._leader
        assert led is not None
        with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
            patch.setattr(threading.Thread, "start", refuse)
            scheduler._relieve(led)
        assert (scheduler._led, scheduler._leader) == (led, leader)
        assert "no thread to go on with beside collector cpu: can't start new thread" in caplog.text
    finally:
        held.release.set()
        assert scheduler.stop(5.0) == []
    assert not scheduler.loops[0].running
