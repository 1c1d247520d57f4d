"""``/proc/sys/fs/file-nr``: ``1632	0	9223372036854775807`` (proc_sys_fs(5)).

Open file handles, free ones, and the most there may be.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError
from nodeproof.sources.unsigned import unsigned

__all__ = ["FileHandles", "parse"]


class FileHandles(NamedTuple):
    """File handles of the whole machine."""

    used: int
    most: int


def parse(raw: bytes, /) -> FileHandles:
    """Read the one line. Raises ParseError."""
    text = raw.decode("utf-8", "replace")
    numbers = [unsigned(field) for field in text.split()]
    if len(numbers) < 3 or numbers[0] is None or numbers[1] is None or not numbers[2]:
        raise ParseError("/proc/sys/fs/file-nr", 1, text[:60], "three numbers, the last of them not 0")
    # Kernels before 2.6 counted allocated handles and listed the unused ones in the middle.
    return FileHandles(max(0, numbers[0] - numbers[1]), numbers[2])
