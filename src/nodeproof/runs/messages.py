"""The log of a run: events and frames in one order, each with its number and time, for a reader now and for the record.

It is bounded in both directions. A reader that does not drain loses progress and status first, then the oldest messages, never
the terminal frame. The record loses progress, status and debug lines beyond a size, then other lines, never a frame and not the
first thousand warnings. What was lost is counted, and said once.
"""

import collections
import threading
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from nodeproof.clock import Clock, rfc3339
from nodeproof.model.run import (
    Event,
    ExecutorMessage,
    Frame,
    LogEvent,
    LogLevel,
    ProgressEvent,
    StatusEvent,
    is_final,
)

__all__ = ["LogLimits", "MessageLog"]


class LogLimits(NamedTuple):
    """How much is kept."""

    undrained: int = 10_000
    """Messages that wait for a reader."""
    chatter_bytes: int = 8 << 20
    """Progress, status and debug lines end when the log is as long."""
    total_bytes: int = 32 << 20
    """All but frames and the first warnings end here."""
    warnings: int = 1000
    """Kept in the record and in the log whatever its length."""
    text_chars: int = 8192
    """One line."""


class MessageLog:
    """Takes messages from any thread; hands each to ``sink`` as one line of JSON, in order, and to :meth:`drain`."""

    def __init__(self, clock: Clock, sink: Callable[[bytes], object], limits: LogLimits | None = None) -> None:
        self._clock = clock
        self._sink = sink
        self._limits = limits or LogLimits()
        self._lock = threading.Lock()
        self._undrained: collections.deque[ExecutorMessage] = collections.deque()
        self._sequence = 0
        self._last_mono_s = 0.0
        self._bytes = 0
        self._closed = False
        self._warnings: list[str] = []
        self._encoder = msgspec.json.Encoder()
        self.dropped = 0
        """Messages that did not fit into the log."""
        self.unread = 0
        """Messages that nobody drained in time; the log has them."""
        self.terminal: Frame | None = None
        """The last frame, once it was sent."""

    def event(self, event: Event) -> None:
        """Add an event. After :meth:`close` it goes nowhere: that is never the sender's error."""
        if isinstance(event, LogEvent | StatusEvent) and len(event.text) > self._limits.text_chars:
            event = msgspec.structs.replace(event, text=event.text[: self._limits.text_chars - 1] + "…")
        with self._lock:
            if self._closed:
                return
            if self._has_room(event):
                self._add(event=event)
            else:
                self._drop()

    def frame(self, frame: Frame) -> None:
        """Add a frame; there is only one terminal one, and none comes after it."""
        with self._lock:
            if self._closed or self.terminal is not None:
                return
            self._add(frame=frame)
            if is_final(frame):
                self.terminal = frame

    def drain(self) -> list[ExecutorMessage]:
        """Everything since the last time, in order. Never blocks for longer than it takes to copy."""
        with self._lock:
            messages = list(self._undrained)
            self._undrained.clear()
        return messages

    def warnings(self) -> list[str]:
        """Texts of warnings and errors so far."""
        with self._lock:
            return list(self._warnings)

    def close(self) -> None:
        """Take nothing more."""
        with self._lock:
            self._closed = True

    def _has_room(self, event: Event) -> bool:
        limits = self._limits
        if isinstance(event, LogEvent):
            if event.level in {LogLevel.WARN, LogLevel.ERROR} and len(self._warnings) < limits.warnings:
                return True
            return self._bytes < (limits.chatter_bytes if event.level is LogLevel.DEBUG else limits.total_bytes)
        return not isinstance(event, StatusEvent | ProgressEvent) or self._bytes < limits.chatter_bytes

    def _drop(self) -> None:
        self.dropped += 1
        if self.dropped == 1:
            self._add(event=LogEvent(LogLevel.WARN, "the log of this run is full: chatter is counted from here on, not kept"))

    def _add(self, *, event: Event | None = None, frame: Frame | None = None) -> None:
        now = self._clock.now()
        # The clock is read under the lock, so times keep the order of the numbers; a clock that jumps back cannot break that.
        self._last_mono_s = max(self._last_mono_s, now.mono_s)
        message = ExecutorMessage(self._sequence + 1, rfc3339(now.wall_s), self._last_mono_s, event, frame)
        line = self._encoder.encode(message) + b"\n"
        self._sequence += 1
        if message.warning and len(self._warnings) < self._limits.warnings:
            self._warnings.append(message.warning)
        self._bytes += len(line)
        self._sink(line)
        self._offer(message)

    def _offer(self, message: ExecutorMessage) -> None:
        if len(self._undrained) >= self._limits.undrained:
            self.unread += 1
            if isinstance(message.event, StatusEvent | ProgressEvent):
                return
            self._undrained.popleft()
        self._undrained.append(message)
