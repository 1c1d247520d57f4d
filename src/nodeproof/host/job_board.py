"""The board between a keeper and the owner of its job: the newest state, in memory that outlives the writer.

It is an anonymous file (memfd_create(2)) which both hold open. Unlike a pipe it never fills up, never blocks and never delivers
old news; unlike an answer it is still there when its writer was killed, and then tells the owner whom to look for. Two slots are
written in turn, each ``sequence, length, CRC-32`` (``<QII``) and a JSON object, so that a reader always finds a whole one.
"""

import json
import os
import struct
import zlib

__all__ = ["Board"]

_HEAD = struct.Struct("<QII")
_SLOT_BYTES = 256 * 1024
_TRIES = 4
"""Both slots can be met half-written when the writer writes twice during one look; not four times running."""


class Board:
    """Either end; one writer, any number of readers."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._sequence = 0

    @classmethod
    def make(cls) -> "Board":
        """A new, empty one. Raises OSError."""
        return cls(os.memfd_create("nodeproof-job", os.MFD_CLOEXEC))

    def write(self, state: dict[str, object]) -> None:
        """Put ``state`` up. Raises ValueError when it is larger than a slot."""
        body = json.dumps(state, separators=(",", ":")).encode()
        if len(body) > _SLOT_BYTES - _HEAD.size:
            raise ValueError(f"a state of {len(body)} bytes does not fit on the board")
        self._sequence += 1
        head = _HEAD.pack(self._sequence, len(body), zlib.crc32(body))
        os.pwrite(self.fd, head + body, (self._sequence % 2) * _SLOT_BYTES)

    def read(self) -> dict[str, object]:
        """The newest whole state; empty when there is none yet."""
        newest, found = 0, b""
        for slot in (0, 1) * _TRIES:
            if slot == 0 and found:
                break
            raw = os.pread(self.fd, _SLOT_BYTES, slot * _SLOT_BYTES)
            if len(raw) < _HEAD.size:
                continue
            sequence, length, checksum = _HEAD.unpack_from(raw)
            body = raw[_HEAD.size : _HEAD.size + length]
            if sequence > newest and zlib.crc32(body) == checksum and len(body) == length:
                newest, found = sequence, body
        state: dict[str, object] = json.loads(found) if found else {}
        return state

    def close(self) -> None:
        """Give the descriptor back."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
