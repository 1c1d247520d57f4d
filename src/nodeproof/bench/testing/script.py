"""What a scripted server does with one request: bytes, and when."""

from array import array
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

import msgspec

__all__ = ["Behaviour", "End", "Received", "Script", "Served", "Step"]


class Step(NamedTuple):
    """One write."""

    at_s: float
    """After the whole request was read, or after the one that waited for its turn had it."""
    data: bytes


class End(StrEnum):
    """How an answer ends after its last step."""

    CLEAN = "clean"
    """As HTTP wants it; the connection stays."""
    CLOSE = "close"
    """The connection is closed without the end of the framing."""
    ABORT = "abort"
    """The connection is reset."""
    HANG = "hang"
    """Nothing more happens."""


class Received(msgspec.Struct, frozen=True):
    """A request."""

    number: int
    """Counts the requests of the server from 0."""
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    at_s: float
    """CLOCK_MONOTONIC when its last byte was read."""

    def json(self) -> dict[str, object]:
        """The body as an object; empty when it is none."""
        try:
            found = msgspec.json.decode(self.body)
        except msgspec.DecodeError:
            return {}
        return found if isinstance(found, dict) else {}


class Script(msgspec.Struct, kw_only=True):
    """What is answered."""

    steps: Iterable[Step] = ()
    status: int = 200
    content_type: str = "text/event-stream; charset=utf-8"
    headers: Mapping[str, str] = {}
    chunked: bool = True
    """A step is an HTTP chunk. False = ``Content-Length`` of all steps together, or none with :attr:`until_close`."""
    until_close: bool = False
    """No framing at all: the body ends with the connection."""
    head_at_s: float | None = None
    """When the head goes out; None = together with the first step."""
    end: End = End.CLEAN
    slot: bool = False
    """Waits for one of the server's slots, and holds it to its end."""


class Served(msgspec.Struct):
    """What became of a request."""

    request: Received
    writes: "array[float]"
    """CLOCK_MONOTONIC just before each step was written."""
    started_s: float = 0.0
    """When it had its slot."""
    ended_s: float = 0.0
    disconnected: bool = False
    """The client went away before the end."""


class Behaviour:
    """What a server does. Called on the server's thread."""

    def __call__(self, request: Received) -> Script:
        """The answer to ``request``."""
        raise NotImplementedError

    @property
    def slots(self) -> int | None:
        """Requests that are worked on at once; None = any number."""
        return None

    def ended(self, served: Served) -> None:
        """An answer has ended."""
