"""Slow sources, kept away from the quick ones.

A tool, a file-system call or a device that can block gets a :class:`Background`: at most one call in flight, on a thread of its
own that ends with the call; the last answer is kept with the moment it was got. A call that overruns its deadline makes the
answer stale and is not started a second time; when it comes back at last, the source is well again without anybody's help.
"""

import threading
from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from nodeproof.clock import Clock, Instant
from nodeproof.errors import Absence, NoData, NodeproofError

__all__ = ["Answer", "Background"]

_T = TypeVar("_T")

_EARLY_S = 0.5
_EARLY_SHARE = 0.1
"""A call may begin this much early: the cycle that asks for it comes every few seconds, now and then a moment too soon."""


class Answer(NamedTuple, Generic[_T]):
    """The newest thing a slow source said."""

    value: _T
    at: Instant
    """When the call that brought it began."""


class Background(Generic[_T]):
    """One slow source.

    ``call`` runs at most every ``interval_s`` seconds and never twice at once; it may raise NoData or any error. An answer older
    than three intervals plus the deadline is stale.
    """

    def __init__(self, name: str, call: Callable[[], _T], *, interval_s: float, deadline_s: float, clock: Clock) -> None:
        self.name = name
        self._call = call
        self._interval_s = interval_s
        self._deadline_s = deadline_s
        self._clock = clock
        self._lock = threading.Lock()
        self._answer: Answer[_T] | None = None
        self._failure: NoData | None = None
        self._started: Instant | None = None
        self._running = False
        self._done = threading.Event()

    def latest(self) -> Answer[_T]:
        """The newest answer; starts a call when one is due. Raises NoData when there is none that can be believed."""
        now = self._clock.now()
        with self._lock:
            due_s = self._interval_s - min(_EARLY_S, self._interval_s * _EARLY_SHARE)
            if not self._running and (self._started is None or now.mono_s - self._started.mono_s >= due_s):
                self._launch(now)
            return self._judge(now)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the call in flight; True when none is left. For commands that read once."""
        with self._lock:
            if not self._running:
                return True
        return self._done.wait(timeout_s)

    def _launch(self, now: Instant) -> None:
        self._running = True
        self._started = now
        self._done.clear()
        try:
            threading.Thread(target=self._work, args=(now,), name=f"slow:{self.name}", daemon=True).start()
        except RuntimeError as error:  # no thread to be had: task limit or memory
            self._running = False
            self._failure = NoData(Absence.READ_ERROR, f"{self.name}: {error}", remedy="raise TasksMax or the limit on threads")
            self._done.set()

    def _work(self, started: Instant) -> None:
        answer: Answer[_T] | None = None
        failure: NoData | None = None
        try:
            answer = Answer(self._call(), started)
        except NoData as absence:
            failure = absence.again()
        except NodeproofError as error:
            failure = NoData(Absence.READ_ERROR, str(error))
        except Exception as error:  # noqa: BLE001 - a plug-in's bug costs its own source only
            failure = NoData(Absence.READ_ERROR, f"{self.name}: {type(error).__name__}: {error}")
        with self._lock:
            if answer is not None:
                self._answer = answer
            self._failure = failure
            self._running = False
            self._done.set()

    def _judge(self, now: Instant) -> Answer[_T]:
        overdue_s = now.mono_s - self._started.mono_s if self._running and self._started is not None else 0.0
        if overdue_s > self._deadline_s:
            raise NoData(Absence.STALE, f"{self.name} has not answered for {overdue_s:.0f} s")
        if self._failure is not None:
            raise self._failure.again()
        if self._answer is None:
            raise NoData(Absence.UNKNOWN, f"{self.name} has not answered yet")
        age_s = now.mono_s - self._answer.at.mono_s
        if age_s > 3 * self._interval_s + self._deadline_s:
            raise NoData(Absence.STALE, f"the last answer of {self.name} is {age_s:.0f} s old")
        return self._answer
