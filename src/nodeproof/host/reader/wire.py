"""Messages between reader and daemon: one JSON object a packet, descriptors beside it."""

import array
import os
import socket
from collections.abc import Sequence

import msgspec

from nodeproof.errors import CommandFailure

__all__ = ["MAX_PACKET_BYTES", "Answer", "Question", "receive", "send"]

MAX_PACKET_BYTES = 8 * 1024
_MAX_FDS = 2


class Question(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One of both is asked for."""

    open: str = ""
    run: list[str] = []
    deadline_s: float = 30.0


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """With a descriptor for a file; with two, output and errors, for a command that ran."""

    error: str = ""
    """Why not."""
    number: int = 0
    """The error number of a file that could not be opened."""
    failure: CommandFailure | None = None
    exit_code: int = 0
    duration_s: float = 0.0
    truncated: bool = False


def send(to: socket.socket, message: Question | Answer, fds: Sequence[int] = ()) -> None:
    """Send one packet. Raises OSError."""
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    to.sendmsg([msgspec.json.encode(message)], beside)


def receive(source: socket.socket) -> tuple[bytes, list[int]]:
    """One packet and its descriptors, which are the caller's to close; empty at the end. Raises OSError."""
    fds = array.array("i")
    data, beside, flags, _ = source.recvmsg(MAX_PACKET_BYTES, socket.CMSG_LEN(_MAX_FDS * fds.itemsize), socket.MSG_CMSG_CLOEXEC)
    for level, kind, content in beside:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
        for fd in fds:
            os.close(fd)
        raise OSError(90, os.strerror(90))
    return data, list(fds)
