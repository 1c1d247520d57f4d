"""How a benchmark gets on, on standard error: warnings once; on a terminal a line with status, time to go and the box."""

import sys
import time

from nodeproof.cli.table import printable_lines
from nodeproof.model.hardware import LiveSample
from nodeproof.model.run import ExecutorMessage, LogEvent, LogLevel, ProgressEvent, StatusEvent
from nodeproof.runs.headless import RunReporter

__all__ = ["TerminalReporter", "box_line", "time_left"]

_LOUD = frozenset({LogLevel.WARN, LogLevel.ERROR})
_FOREIGN = 0.05
_DEVICES = 2


class TerminalReporter(RunReporter):
    """Writes lines; on a terminal the status stands in one line that is written over."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._status = ""
        self._progress = (0, 0)
        self._box = ""
        self._began_s = time.monotonic()
        self._said: set[str] = set()
        self._width = 0

    def message(self, message: ExecutorMessage) -> None:
        """An event or a frame."""
        match message.event:
            case LogEvent(level=level, text=text) if level in _LOUD or (not self._quiet and level is LogLevel.INFO):
                if text not in self._said:
                    self._said.add(text)
                    self._line(f"{'' if level is LogLevel.INFO else 'warning: '}{text}")
            case StatusEvent(text=text) if not self._quiet and text != self._status:
                self._status = text
                self._over(self._now())
            case ProgressEvent(done=done, total=total):
                if done < self._progress[0] or total != self._progress[1]:
                    self._began_s = time.monotonic()
                self._progress = (done, total)

    def tick(self, live: LiveSample | None) -> None:
        """The box, as it was seen last."""
        self._box = "" if live is None else box_line(live)
        if not self._quiet and (self._status or self._box):
            self._over(self._now())

    def _now(self) -> str:
        parts = (self._status, time_left(*self._progress, time.monotonic() - self._began_s), self._box)
        return " · ".join(part for part in parts if part)

    def close(self) -> None:
        """Leave nothing half written."""
        if self._width:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
            self._width = 0

    def _line(self, text: str) -> None:
        self.close()
        print(printable_lines(f"bench: {text}"), file=sys.stderr)

    def _over(self, text: str) -> None:
        if not self._terminal:
            return
        line = printable_lines(text)[:160]
        sys.stderr.write("\r" + line.ljust(self._width))
        sys.stderr.flush()
        self._width = len(line)


def time_left(done: int, total: int, passed_s: float) -> str:
    """How long the rest may take by the pace so far; empty while there is no pace."""
    if not 0 < done < total:
        return ""
    return f"{done / total:.0%}, about {passed_s * (total - done) / done:.0f} s left"


def box_line(live: LiveSample) -> str:
    """A look at the box in a few words; what could not be read is left out."""
    parts = [
        "" if live.busy_share is None else f"cpu {live.busy_share:.0%}",
        "" if live.cpu_temp_c is None else f"{live.cpu_temp_c:.0f} °C",
        "" if not live.throttle_share else f"throttled {live.throttle_share:.0%}",
        "" if not live.foreign_share or live.foreign_share < _FOREIGN else f"others {live.foreign_share:.0%}",
    ]
    for device in live.devices[:_DEVICES]:
        temperature = "" if device.temp_c is None else f" {device.temp_c:.0f} °C"
        clock = "" if device.clock_mhz is None else f" {device.clock_mhz:.0f} MHz"
        parts.append(f"{device.device}{temperature}{clock}" if temperature or clock else "")
    if live.critical:
        parts.append(f"CRITICAL: {', '.join(live.critical)}")
    return ", ".join(part for part in parts if part)
