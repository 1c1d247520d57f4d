"""Children of this process, as the kernel lists them.

The runner may have children of its own for as long as it runs (a browser, a fork server), so "no child is left" is a comparison.
"""

import os
from pathlib import Path

__all__ = ["children"]


def children() -> set[int]:
    """Numbers of all children of all threads, those that have ended and were not waited for among them."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(number) for file in lists for number in file.read_text().split()}
