"""Log lines of the daemon and the command line, on standard error.

Under systemd each line carries the journal's priority prefix (sd-daemon(3)); elsewhere time and level. Messages repeat names that
others chose (devices, programs, plug-ins): no control character of theirs reaches a terminal, and no line of theirs can pass for
one of ours, since all but the first of a record are indented.
"""

import logging
import sys

__all__ = ["setup"]

_JOURNAL_PRIORITY = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


def _lines(text: str) -> list[str]:
    first, *more = text.splitlines() or [""]
    lines = [first, *(f"    {line}" for line in more)]
    return [line if line.isprintable() else "".join(map(_shown, line)) for line in lines]


def _shown(char: str) -> str:
    return char if char.isprintable() else "\N{REPLACEMENT CHARACTER}"


class _PlainFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """Time, level and message."""
        return "\n".join(_lines(super().format(record)))


class _JournalFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """The message, each of its lines with its priority."""
        priority = _JOURNAL_PRIORITY.get(record.levelno, 6)
        return "\n".join(f"<{priority}>{line}" for line in _lines(super().format(record)))


def setup(level: str = "info", *, journal: bool = False) -> None:
    """Send log records of ``level`` and above to standard error; ``journal`` when systemd reads it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JournalFormatter("%(name)s: %(message)s") if journal else _PlainFormatter("%(asctime)s %(levelname)s %(message)s")
    )
    root = logging.getLogger("nodeproof")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(level.upper())
