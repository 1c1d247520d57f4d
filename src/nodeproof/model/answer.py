"""The answer of ``check``; apart from the structs of files, so that a scheduler's prolog need not load those."""

from typing import NamedTuple

__all__ = ["EXIT_CODES", "UNKNOWN", "Answer", "unknown"]

UNKNOWN = "unknown"
EXIT_CODES = {"sound": 0, "warning": 1, "critical": 2, UNKNOWN: 3}
"""Exit code of each word."""


class Answer(NamedTuple):
    """One word on a node."""

    exit_code: int
    word: str
    line: str
    """One line for a log."""


def unknown(problem: str) -> Answer:
    """It could not be told, and why."""
    return Answer(EXIT_CODES[UNKNOWN], UNKNOWN, f"UNKNOWN: {problem}")
