"""The log of faults on disk: JSON lines, appended and synced, in segments; the oldest goes when there is no more room.

A segment is named after the number of its first entry. A last line without its end, which a crash leaves, is cut off; a line that
cannot be read is set aside beside the log (``*.bad``) when the log is opened, and passed over wherever it is met.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence

import msgspec

from nodeproof.host.append import AppendFile
from nodeproof.host.atomic import make_directory, store_file, sync_directory, write_error
from nodeproof.model.fault import FaultEvent

__all__ = ["Journal", "oldest_sequence", "read_journal", "read_segment", "segments"]

_SEGMENT_BYTES = 1024 * 1024
_TOTAL_BYTES = 16 * 1024 * 1024
_LINE_BYTES = 64 * 1024
_NAME = re.compile(r"events-(\d{12})\.jsonl")
_BLOCK = 256 * 1024
_decoder = msgspec.json.Decoder(FaultEvent)
_encoder = msgspec.json.Encoder()


def segments(directory: str) -> list[tuple[int, str]]:
    """First number and path of each segment, oldest first; empty when there is no such directory."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    found = [(int(match[1]), name) for name in names if (match := _NAME.fullmatch(name)) is not None]
    return [(first, os.path.join(directory, name)) for first, name in sorted(found)]


def read_journal(directory: str, after: int = 0) -> Iterator[FaultEvent]:
    """Entries numbered above ``after``, in order. What cannot be read is passed over, and so is a segment that goes meanwhile."""
    parts = segments(directory)
    last = after
    for number, (_first, path) in enumerate(parts):
        if number + 1 < len(parts) and parts[number + 1][0] <= after + 1:
            continue
        for event in read_segment(path):
            if event.sequence > last:
                last = event.sequence
                yield event


def read_segment(path: str) -> Iterator[FaultEvent]:
    """Entries of one segment; what cannot be read is passed over."""
    with contextlib.suppress(OSError):
        for line in _lines(path):
            event = _event(line)
            if event is not None:
                yield event


def _lines(path: str) -> Iterator[bytes]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        rest = b""
        while block := os.read(fd, _BLOCK):
            *whole, rest = (rest + block).split(b"\n")
            yield from whole
            if len(rest) > _LINE_BYTES:
                rest = rest[-1:]  # no entry is so long: what is left of it will not be one either
    finally:
        os.close(fd)


def _event(line: bytes) -> FaultEvent | None:
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, RecursionError):
        return None


class Journal:
    """The log, open for appending. One writer a directory; :class:`WriteError` from each call that cannot do its work."""

    def __init__(self, directory: str, *, segment_bytes: int = _SEGMENT_BYTES, total_bytes: int = _TOTAL_BYTES) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._total_bytes = total_bytes
        self._file: AppendFile | None = None
        self.bad_lines = 0
        """Lines that were set aside."""

    def open(self) -> list[FaultEvent]:
        """Repair what a crash left in the newest segment, and open it; its entries."""
        make_directory(self._directory)
        parts = segments(self._directory)
        if not parts:
            return []
        path = parts[-1][1]
        file = AppendFile(path)
        file.close()
        try:
            lines = [line for line in _lines(path) if line]
        except OSError as error:
            raise write_error(path, error) from None
        events = [event for line in lines if (event := _event(line)) is not None]
        if len(events) < len(lines):
            self._set_aside(path, lines)
        self._file = AppendFile(path)
        return events

    def _set_aside(self, path: str, lines: list[bytes]) -> None:
        bad = [line for line in lines if _event(line) is None]
        self.bad_lines += len(bad)
        store_file(f"{path}.bad", b"\n".join(bad) + b"\n")
        store_file(path, b"".join(line + b"\n" for line in lines if _event(line) is not None))

    def append(self, events: Sequence[FaultEvent]) -> None:
        """Write ``events``, in order and numbered, to the disk."""
        if not events:
            return
        if self._file is not None and (self._file.size >= self._segment_bytes or not self._file.still_there()):
            self.close()
        fresh = self._file is None
        if self._file is None:
            self._file = AppendFile(os.path.join(self._directory, f"events-{events[0].sequence:012d}.jsonl"))
        self._file.append(b"".join(_encoder.encode(event) + b"\n" for event in events))
        self._file.sync()
        if fresh:
            with contextlib.suppress(OSError):
                sync_directory(self._directory)
            self._make_room()

    def _make_room(self) -> None:
        parts = [path for _, path in segments(self._directory)]
        sizes = {path: os.stat(path).st_size for path in parts}
        total = sum(sizes.values()) + self._segment_bytes
        for path in parts[:-1]:
            if total <= self._total_bytes:
                return
            with contextlib.suppress(OSError):
                os.unlink(path)
            total -= sizes[path]

    def close(self) -> None:
        """Give the descriptor back."""
        if self._file is not None:
            self._file.close()
            self._file = None


def oldest_sequence(directory: str) -> int:
    """Number of the oldest entry that is still there; 1 when nothing is."""
    parts = segments(directory)
    return parts[0][0] if parts else 1
