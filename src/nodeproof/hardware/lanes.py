"""A thread for each source, so that a file or device that hangs costs only itself.

A lane makes at most one call at a time, on a thread that lives as long as the lane (a few looks a second would otherwise start
a thread a source each time). Who asks waits for a bounded time. An answer that comes too late belongs to a moment that is over:
it is thrown away, and the lane is well again.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from nodeproof.errors import Absence, NoData, NodeproofError
from nodeproof.host.own_process import thread_cpu_s

__all__ = ["Lane"]

_T = TypeVar("_T")


class _Call(Generic[_T]):
    __slots__ = ("done", "result")

    def __init__(self) -> None:
        self.done = threading.Event()
        self.result: _T | NoData = NoData(Absence.UNKNOWN, "no answer yet")


class Lane(Generic[_T]):
    """One source. ``call`` may raise NoData or anything else. To be used by one thread at a time."""

    def __init__(self, name: str, call: Callable[[], _T]) -> None:
        self.name = name
        self.cpu_s = 0.0
        """CPU time of the calls that have ended."""
        self._call = call
        self._go = threading.Semaphore(0)
        self._flight: _Call[_T] | None = None
        self._late = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin a call, unless the last one has not come back."""
        if self._flight is not None and not self._flight.done.is_set():
            self._late = True
            return
        self._flight, self._late = _Call(), False
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=f"look:{self.name}", daemon=True)
            try:
                self._thread.start()
            except RuntimeError as error:  # no thread to be had: task limit or memory
                self._thread = None
                self._flight.result = NoData(Absence.READ_ERROR, f"{self.name}: {error}", remedy="raise the limit on threads")
                self._flight.done.set()
                return
        self._go.release()

    def finish(self, timeout_s: float) -> _T | NoData:
        """What the call begun by :meth:`start` brought, waiting at most so long."""
        flight = self._flight
        if flight is None:
            return NoData(Absence.UNKNOWN, f"{self.name} was not asked")
        if not flight.done.wait(max(0.0, timeout_s)):
            return NoData(Absence.STALE, f"{self.name} does not answer: the read hangs, or the machine has no time for it")
        if self._late:
            return NoData(Absence.STALE, f"{self.name} answered too late")
        return flight.result

    def close(self) -> None:
        """Let the thread end; one that hangs ends when its call does."""
        self._closed = True
        self._go.release()

    def _serve(self) -> None:
        while True:
            self._go.acquire()
            flight = self._flight
            if self._closed or flight is None:
                return
            before_s = thread_cpu_s()
            flight.result = self._answer()
            self.cpu_s += thread_cpu_s() - before_s
            flight.done.set()

    def _answer(self) -> _T | NoData:
        try:
            return self._call()
        except NoData as absence:
            return absence
        except NodeproofError as error:
            return NoData(Absence.READ_ERROR, str(error))
        except Exception as error:  # noqa: BLE001 - a reader's or provider's bug costs its own source only
            return NoData(Absence.READ_ERROR, f"{self.name}: {type(error).__name__}: {error}")
