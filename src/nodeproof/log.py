"""Log lines of the daemon and the command line, on standard error.

Under systemd each line carries the journal's priority prefix (sd-daemon(3)); elsewhere time and level.
"""

import logging
import sys

__all__ = ["setup"]

_JOURNAL_PRIORITY = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


class _JournalFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        """The message, each of its lines with its priority."""
        priority = _JOURNAL_PRIORITY.get(record.levelno, 6)
        return "\n".join(f"<{priority}>{line}" for line in super().format(record).splitlines())


def setup(level: str = "info", *, journal: bool = False) -> None:
    """Send log records of ``level`` and above to standard error; ``journal`` when systemd reads it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        _JournalFormatter("%(name)s: %(message)s") if journal else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    root = logging.getLogger("nodeproof")
    root.handlers[:] = [handler]
    root.propagate = False
    root.setLevel(level.upper())
