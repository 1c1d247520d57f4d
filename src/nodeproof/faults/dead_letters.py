"""Events that a subscriber did not take and that were given up: kept to be looked at, and to be sent once more when it is well.

One JSON list a subscriber, the newest last. When there is no more room the oldest go: the log of faults has them for longer.
"""

import contextlib
import os
from collections.abc import Collection

import msgspec

from nodeproof.host.atomic import store_file
from nodeproof.model.fault import FaultEvent

__all__ = ["DeadLetter", "DeadLetterFile"]

_MOST = 1000
_MOST_BYTES = 1024 * 1024
_encoder = msgspec.json.Encoder()


class DeadLetter(msgspec.Struct, frozen=True, omit_defaults=True):
    """An event that was given up."""

    at: str
    reason: str
    attempts: int
    event: FaultEvent | None = None
    lost: int = 0
    """Entries that fell out of the log before they could be looked at; there is no ``event`` then."""


class DeadLetterFile:
    """What was given up of one subscriber. One writer at a time; read by anybody."""

    def __init__(self, path: str) -> None:
        self._path = path

    def read(self) -> list[DeadLetter]:
        """All of them; a file that cannot be read holds none."""
        with contextlib.suppress(OSError, msgspec.MsgspecError), open(self._path, "rb") as file:
            return msgspec.json.decode(file.read(), type=list[DeadLetter])
        return []

    def bury(self, letter: DeadLetter) -> None:
        """One more. Raises WriteError."""
        self._store([*self.read(), letter])

    def drop(self, numbers: Collection[int]) -> None:
        """Without the events of these numbers. Raises WriteError."""
        self._store([one for one in self.read() if one.event is None or one.event.sequence not in numbers])

    def forget(self) -> None:
        """There is nobody any more whose letters they were."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def _store(self, letters: list[DeadLetter]) -> None:
        kept: list[bytes] = []
        room = _MOST_BYTES
        for letter in reversed(letters[-_MOST:]):
            text = _encoder.encode(letter)
            room -= len(text) + 1
            if room < 0 and kept:
                break
            kept.append(text)
        store_file(self._path, b"[" + b",".join(reversed(kept)) + b"]")
