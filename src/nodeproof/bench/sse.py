"""Server-sent events out of bytes that were cut anywhere (WHATWG HTML, section 9.2.6).

One real line of input::

    data: {"id":"1","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}

Lines end with LF, CRLF or CR, and with nothing else: U+2028 inside a text is no line end. Text is never decoded here, so a
character that was cut in two is whole again when its event is.
"""

import re
from typing import Final

__all__ = ["Event", "SseOverflow", "SseSplitter"]

Event = tuple[bytes, bytes]
"""Name of the event (empty = none was given) and its data, lines joined by LF."""

_BOM: Final = b"\xef\xbb\xbf"
_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_DATA: Final = b"data"
_SPACE: Final = 0x20


class SseOverflow(ValueError):  # noqa: N818 - says what happened
    """An event is larger than the limit."""


class SseSplitter:
    """Feed it what was read, in order; it gives events as soon as their empty line has come."""

    __slots__ = ("_at_start", "_carry", "_carry_bytes", "_data", "_data_bytes", "_limit", "_name", "_skip_lf", "comments")

    def __init__(self, max_event_bytes: int = 64 << 20) -> None:
        self.comments = 0
        """Keep-alive comments seen."""
        self._limit = max_event_bytes
        self._at_start = True
        self._skip_lf = False
        """The last line ended with CR: an LF that comes now belongs to it."""
        self._carry: list[bytes] = []
        """Pieces of a line that has not ended."""
        self._carry_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""

    @property
    def idle(self) -> bool:
        """Whether nothing of an event has come that is not whole."""
        return not (self._carry or self._data or self._skip_lf or self._name)

    def passed(self) -> None:
        """Somebody else has taken what came, which were whole events."""
        self._at_start = False

    def feed(self, piece: bytes) -> list[Event]:
        """Events that ``piece`` completes. Raises SseOverflow."""
        if (
            not self._carry
            and not self._data
            and not self._skip_lf
            and piece.startswith(b"data: ")
            and piece.find(b"\n") == len(piece) - 2
            and piece.endswith(b"\n\n")
            and not self._name
            and b"\r" not in piece
        ):
            # One whole event, as nearly all servers write nearly all of them.
            self._at_start = False
            return [(b"", piece[6:-2])]
        return self._split(piece)

    def finish(self) -> list[Event]:
        """The event that the end of a stream left without its empty line. For streams that ended as they should."""
        events: list[Event] = []
        if self._carry:
            line = b"".join(self._carry)
            self._carry, self._carry_bytes = [], 0
            self._line(line.removeprefix(_BOM) if self._at_start else line, events)
        self._line(b"", events)
        return events

    def _split(self, piece: bytes) -> list[Event]:
        if self._skip_lf and piece:
            self._skip_lf = False
            if piece[0] == 0x0A:
                piece = piece[1:]
        if _LINE_END.search(piece) is None:
            self._keep(piece)
            return []
        self._carry.append(piece)
        buffer = b"".join(self._carry)
        if self._at_start:
            buffer = buffer.removeprefix(_BOM)
            self._at_start = False
        self._skip_lf = buffer.endswith(b"\r")
        *lines, rest = _LINE_END.split(buffer)
        self._carry, self._carry_bytes = [], 0
        self._keep(rest)
        events: list[Event] = []
        for line in lines:
            self._line(line, events)
        return events

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._carry.append(piece)
            self._carry_bytes += len(piece)
            self._check()

    def _line(self, line: bytes, events: list[Event]) -> None:
        if not line:
            if self._data:
                events.append((self._name, b"\n".join(self._data)))
                self._data, self._data_bytes = [], 0
            self._name = b""
            return
        field, colon, value = line.partition(b":")
        if colon and value and value[0] == _SPACE:
            value = value[1:]
        if field == _DATA:
            self._data.append(value)
            self._data_bytes += len(value) + 1
            self._check()
        elif field == b"event":
            self._name = value
        elif not field:
            self.comments += 1

    def _check(self) -> None:
        if self._carry_bytes + self._data_bytes > self._limit:
            raise SseOverflow(f"an event is larger than {self._limit} bytes")
