"""Calls that may not come back, made by somebody who always does."""

import contextlib
import math
import queue
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from nodeproof.errors import RunError
from nodeproof.model.run import Stage
from nodeproof.runs.cancel import CancelToken
from nodeproof.runs.worker import Worker

__all__ = ["GivenUpError", "Graces", "Supervisor"]

_T = TypeVar("_T")
_LONG_S = 3600.0


class Graces(NamedTuple):
    """How long the executor waits for code that it does not trust."""

    cancel_grace_s: float = 5.0
    """For a call in flight to come back after a cancel."""
    cleanup_grace_s: float = 10.0
    capture_s: float = 30.0
    """For one look at the box."""
    coherence_s: float = 120.0
    save_s: float = 300.0
    """For the record, and the hashing of what the run left."""


class GivenUpError(RunError):
    """A call did not come back in time; its thread was given up."""


class Supervisor:
    """Waits for calls on workers: until they come back, the cancel's grace is over, or time is up.

    For one thread, but for :meth:`wake` and :meth:`order`.
    """

    def __init__(self, token: CancelToken, cancel_grace_s: float) -> None:
        self.token = token
        self._cancel_grace_s = cancel_grace_s
        # A queue and no event: putting into it is the one thing that a finalizer may do whatever lock its thread holds.
        self._wake: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ends_s: float | None = None
        self._deadline_s = 0.0
        self.overdue = False
        """The run was stopped by its deadline."""
        self.abandoned: list[Stage] = []
        """Stages whose call never came back."""
        self.given_up: list[Worker] = []
        """The workers that were in them."""

    def wake(self) -> None:
        """Look again: something has changed."""
        self._wake.put("")

    def order(self, reason: str) -> None:
        """Have the run cancelled by the supervisor's own thread. May be called from a finalizer."""
        self._wake.put(reason)

    def set_deadline(self, seconds: float | None) -> None:
        """Stop the run so many seconds from now; None = never."""
        self._deadline_s = seconds or 0.0
        self._ends_s = None if seconds is None else time.monotonic() + seconds

    def look(self) -> None:
        """Take orders, and see whether the deadline has passed."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._obey(self._wake.get_nowait())
        if self._ends_s is not None and time.monotonic() >= self._ends_s:
            self._ends_s = None
            self.overdue = self.token.set(f"the deadline of {self._deadline_s:g} s has passed")

    def call(
        self, worker: Worker, function: Callable[[], _T], *, stage: Stage, limit_s: float | None = None, cancellable: bool = True
    ) -> _T:
        """Make a call on ``worker``; its value, or what it raised. Raises GivenUpError when it does not come back."""
        call = worker.submit(function)
        begun_s = time.monotonic()
        told_s: float | None = None
        while True:
            self.look()
            if call.done:
                return call.result()
            now_s = time.monotonic()
            if told_s is None and cancellable and self.token.is_cancelled():
                told_s = now_s
            ends_s = math.inf if limit_s is None else begun_s + limit_s
            if told_s is not None:
                ends_s = min(ends_s, told_s + self._cancel_grace_s)
            if now_s >= ends_s:
                worker.abandon()
                self.abandoned.append(stage)
                self.given_up.append(worker)
                raise GivenUpError(_waited(now_s - begun_s, told=told_s is not None))
            self._sleep(min(ends_s, math.inf if self._ends_s is None else self._ends_s, now_s + _LONG_S) - now_s)

    def _sleep(self, seconds: float) -> None:
        with contextlib.suppress(queue.Empty):
            self._obey(self._wake.get(timeout=max(0.001, seconds)))

    def _obey(self, reason: str) -> None:
        if reason:
            self.token.set(reason)


def _waited(seconds: float, *, told: bool) -> str:
    text = f"no answer after {seconds:.1f} s"
    return f"{text}, though it was told to stop; its thread was given up" if told else f"{text}; its thread was given up"
