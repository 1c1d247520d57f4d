"""What a program printed: heartbeats as they come, the end for a report, the whole for a parser."""

import os
from collections.abc import Iterator

from nodeproof.stress.workloads import heartbeat
from nodeproof.stress.workloads.heartbeat import HEARTBEAT_PREFIX, Heartbeat

__all__ = ["MAX_OUTPUT_BYTES", "TAIL_BYTES", "LineReader", "plain_tail", "read_output"]

MAX_OUTPUT_BYTES = 64 * 1024 * 1024
TAIL_BYTES = 16 * 1024
"""So much of the end stands in a report (stress.md 4.7)."""
_PREFIX = HEARTBEAT_PREFIX.encode()
_MAX_LINE_BYTES = 64 * 1024


class LineReader:
    """Puts lines together out of pieces; a line without end is let go."""

    def __init__(self) -> None:
        self._rest = b""

    def heartbeats(self, chunk: bytes) -> Iterator[Heartbeat]:
        """Those in ``chunk``, with what was left over of the one before."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()[:_MAX_LINE_BYTES]
        for line in lines:
            if line.startswith(_PREFIX):
                found = heartbeat.parse(line.decode("utf-8", "replace"))
                if found is not None:
                    yield found


def read_output(path: str) -> bytes:
    """All that was kept of it. Raises OSError."""
    with open(path, "rb") as file:
        return file.read(MAX_OUTPUT_BYTES + (1 << 20))


def plain_tail(path: str) -> str:
    """The last 16 KiB without heartbeats, with a line in front when there was more. Raises OSError."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = max(0, size - 16 * TAIL_BYTES)
        file.seek(start)
        raw = file.read(16 * TAIL_BYTES)
    kept = b"\n".join(line for line in raw.split(b"\n") if not line.startswith(_PREFIX))
    cut = start > 0 or len(kept) > TAIL_BYTES
    text = kept[-TAIL_BYTES:].decode("utf-8", "replace")
    return f"[the beginning is left out; all of it is in the record of the run]\n{text}" if cut else text
