"""How a benchmark gets on, on standard error: each new status and warning once, and the box in a few words."""

import sys

from nodeproof.cli.table import printable_lines
from nodeproof.model.hardware import LiveSample
from nodeproof.model.run import ExecutorMessage, LogEvent, LogLevel, ProgressEvent, StatusEvent
from nodeproof.runs.headless import RunReporter

__all__ = ["TerminalReporter"]

_LOUD = frozenset({LogLevel.WARN, LogLevel.ERROR})


class TerminalReporter(RunReporter):
    """Writes lines; on a terminal the status stands in one line that is written over."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._terminal = sys.stderr.isatty()
        self._status = ""
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
                self._over(text)
            case ProgressEvent():
                pass

    def tick(self, live: LiveSample | None) -> None:
        """Nothing new."""

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
