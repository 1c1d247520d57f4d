"""What stands and what happened, read from the directory of a daemon: for commands and the page. Writes nothing."""

import os
from collections.abc import Callable

import msgspec

from nodeproof.errors import RecordError
from nodeproof.faults.journal import read_segment, segments
from nodeproof.model.fault import FaultEvent, FaultState

__all__ = ["ACTIVE_FILE", "read_events", "read_state"]

ACTIVE_FILE = "active.json"
_MOST_BYTES = 32 * 1024 * 1024
_decoder = msgspec.json.Decoder(FaultState)


def read_state(directory: str) -> FaultState | None:
    """What stands, as of the last change; None when nothing was ever kept here. Raises RecordError for a bad file."""
    path = os.path.join(directory, ACTIVE_FILE)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or error}") from None
    try:
        content = _content(fd)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror or error}") from None
    finally:
        os.close(fd)
    try:
        return _decoder.decode(content)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RecordError(f"{path} cannot be read: {error}") from None


def _content(fd: int) -> bytes:
    parts = []
    left = _MOST_BYTES
    while left > 0 and (part := os.read(fd, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def read_events(
    directory: str, *, limit: int, after: int = 0, wanted: Callable[[FaultEvent], bool] = lambda _: True
) -> list[FaultEvent]:
    """The newest ``limit`` entries above number ``after`` that are ``wanted``, oldest first.

    From the newest segment backwards, no further than is needed: programs ask for this again and again.
    """
    found: list[FaultEvent] = []
    for first, path in reversed(segments(directory)):
        found = [event for event in read_segment(path) if event.sequence > after and wanted(event)] + found
        if len(found) >= limit or first <= after + 1:
            break
    return found[-limit:] if limit > 0 else []
