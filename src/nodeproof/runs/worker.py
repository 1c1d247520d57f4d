"""Calls into code that may never come back, on threads that can be given up."""

import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Call", "Worker"]

_T = TypeVar("_T")


class Call(Generic[_T]):
    """One call: not done yet, or its value, or what it raised."""

    def __init__(self, function: Callable[[], _T], woken: Callable[[], None]) -> None:
        self._function = function
        self._woken = woken
        self._done = threading.Event()
        self._value: list[_T] = []
        self.error: BaseException | None = None
        """What it raised, of any kind."""

    @property
    def done(self) -> bool:
        """Whether it came back."""
        return self._done.is_set()

    def run(self) -> None:
        """Make the call. Never raises."""
        try:
            self._value.append(self._function())
        except BaseException as error:  # noqa: BLE001 - the end of a plug-in's thread is told, whatever ended it
            self.error = error
        self._done.set()
        self._woken()

    def fail(self, error: BaseException) -> None:
        """It cannot be made."""
        self.error = error
        self._done.set()
        self._woken()

    def wait(self, timeout_s: float) -> bool:
        """Wait for it, at most ``timeout_s``; whether it came back."""
        return self._done.wait(timeout_s)

    def result(self) -> _T:
        """Its value; raises what it raised. Only when done."""
        if self.error is not None:
            raise self.error
        return self._value[0]


class Worker:
    """One thread that makes calls in the order they are handed in. Started with the first of them; ends with :meth:`stop`."""

    def __init__(self, name: str, woken: Callable[[], None] = lambda: None) -> None:
        """``woken`` is called, on the worker's thread, after each call."""
        self.name = name
        self._woken = woken
        self._queue: queue.SimpleQueue[Call[object] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self.abandoned_at_s: float | None = None
        """When it was given up (``time.monotonic``); its thread may live on until its call comes back, if ever."""

    def submit(self, function: Callable[[], _T]) -> Call[_T]:
        """Hand in a call. Never blocks, never raises: a thread that cannot be had is the call's error."""
        call = Call(function, self._woken)
        if self._thread is None:
            thread = threading.Thread(target=self._serve, name=self.name, daemon=True)
            try:
                thread.start()
            except RuntimeError as error:
                call.fail(error)
                return call
            self._thread = thread
        self._queue.put(call)  # type: ignore[arg-type]  # the queue does not care for the value's type
        return call

    def stop(self) -> None:
        """End the thread after the calls handed in so far."""
        if self._thread is not None:
            self._queue.put(None)

    def abandon(self) -> None:
        """Give the worker up: its thread ends when the call in flight comes back."""
        self.abandoned_at_s = time.monotonic()
        self.stop()

    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def _serve(self) -> None:
        while (call := self._queue.get()) is not None:
            if self.abandoned_at_s is None:
                call.run()
            else:
                call.fail(RuntimeError(f"thread {self.name} was given up"))
