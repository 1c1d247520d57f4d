"""Signals, taken where the main thread waits.

A handler must not touch locks that the main thread may hold, so it does nothing; the interpreter writes the number of each signal
into a pipe (``signal.set_wakeup_fd``), and :meth:`Signals.wait` reads it there. Children inherit no blocked signal.
"""

import contextlib
import math
import os
import select
import signal
import types
from typing import Self

__all__ = ["Signals"]


class Signals:
    """Collects signals from :meth:`__enter__` to :meth:`__exit__`. For the main thread only."""

    def __init__(self, *numbers: signal.Signals) -> None:
        self._numbers = numbers
        self._previous: dict[signal.Signals, object] = {}
        self._reader, self._writer = -1, -1
        self._poll = select.poll()
        self._previous_fd = -1

    def __enter__(self) -> Self:
        """Begin to collect."""
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)
        self._previous_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in self._numbers:
            self._previous[number] = signal.signal(number, _ignore)
        return self

    def __exit__(self, *_: object) -> None:
        """Put back what was there."""
        for number, handler in self._previous.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # what signal() gave us it takes back
        signal.set_wakeup_fd(self._previous_fd)
        os.close(self._reader)
        os.close(self._writer)

    def wait(self, timeout_s: float) -> set[signal.Signals]:
        """The signals that have come, or come within ``timeout_s``; empty after that time."""
        # poll, since select knows no descriptor above 1023; rounded up, so as not to spin through the last millisecond.
        self._poll.poll(math.ceil(1000 * max(0.0, timeout_s)))
        arrived = b""
        with contextlib.suppress(BlockingIOError):
            arrived = os.read(self._reader, 4096)
        return {signal.Signals(number) for number in arrived if number in self._numbers}


def _ignore(number: int, frame: types.FrameType | None) -> None:
    """The wakeup descriptor has already told."""
    del number, frame
