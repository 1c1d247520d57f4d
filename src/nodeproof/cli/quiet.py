"""Output that nobody can take any more."""

import os
import sys

__all__ = ["drop_output"]


def drop_output() -> None:
    """Let everything printed from now on vanish: Python must not complain once more while it closes what cannot be written."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - it lives as long as we do
