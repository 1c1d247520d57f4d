"""The kernel's list of sockets (sock_diag(7)): netlink messages, each a header of 16 bytes and ``struct inet_diag_msg``.

The header holds the length, itself included, and the kind in native byte order; the second byte of the rest is the socket's state
(include/net/tcp_states.h). An answer ends with a message of kind NLMSG_DONE.
"""

import struct

from nodeproof.errors import ParseError
from nodeproof.sources.proc_net_tcp import STATES

__all__ = ["parse"]

_HEAD = struct.Struct("=IH")
_HEADER_BYTES = 16
_ERROR, _DONE, _SOCKET = 2, 3, 20
_NAMES = dict(enumerate(STATES, 1)) | {12: "SYN_RECV"}
"""12 is a request socket that waits for its last acknowledgement."""


def parse(raw: bytes, /) -> dict[str, int]:
    """Sockets by state, only states that occur; states unknown here are passed over. Raises ParseError.

    An answer without its end is no answer: what came of it is fewer than there are.
    """
    states: dict[int, int] = {}
    place, head = 0, _HEAD.unpack_from
    while place + _HEADER_BYTES <= len(raw):
        length, kind = head(raw, place)
        if kind == _DONE:
            return _named(states)
        if kind == _ERROR or length < _HEADER_BYTES:
            break
        if kind == _SOCKET and place + _HEADER_BYTES + 1 < len(raw):
            state = raw[place + _HEADER_BYTES + 1]
            states[state] = states.get(state, 0) + 1
        place += (length + 3) & ~3
    raise ParseError("sock_diag", 0, raw[place : place + 16].hex(), "messages of sockets and one that ends them")


def _named(states: dict[int, int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for state, count in states.items():
        name = _NAMES.get(state)
        if name is not None:
            counts[name] = counts.get(name, 0) + count
    return counts
