"""Who is at the other end of a Unix socket: the kernel's word and not theirs (SO_PEERCRED, SO_PEERGROUPS in socket(7))."""

import contextlib
import socket
import struct
from typing import NamedTuple

__all__ = ["Peer", "peer_of"]

_CREDENTIALS = struct.Struct("iII")
"""struct ucred: pid, uid, gid."""
_SO_PEERGROUPS = 59
_MAX_GROUPS = 65536
_GID_BYTES = 4


class Peer(NamedTuple):
    """As it was when it connected."""

    pid: int
    uid: int
    gid: int
    groups: frozenset[int]
    """Supplementary ones, without :attr:`gid`; empty also where the kernel cannot tell (before 4.13)."""

    def in_group(self, gid: int) -> bool:
        """Whether it is a member."""
        return gid == self.gid or gid in self.groups


def peer_of(connection: socket.socket) -> Peer:
    """The process at the other end. Raises OSError."""
    pid, uid, gid = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    groups: tuple[int, ...] = ()
    with contextlib.suppress(OSError):
        data = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _MAX_GROUPS)
        groups = struct.unpack(f"{len(data) // _GID_BYTES}I", data)
    return Peer(pid, uid, gid, frozenset(groups) - {gid})
