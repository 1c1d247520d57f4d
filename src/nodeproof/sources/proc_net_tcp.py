"""``/proc/net/tcp`` and ``tcp6``: one line a socket, its state in hexadecimal.

::

      sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
       0: 0100007F:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1681 1 ...

(Documentation/networking/proc_net_tcp.rst; states: include/net/tcp_states.h.)
"""

from nodeproof.errors import ParseError

__all__ = ["STATES", "parse"]

STATES = (
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
)
"""States 01 to 0B, in the kernel's order."""

_NAMES = {b"%02X" % number: name for number, name in enumerate(STATES, 1)} | {b"0C": "SYN_RECV"}
"""0C is a request socket that waits for its last acknowledgement."""


def parse(raw: bytes, /) -> dict[str, int]:
    """Sockets by state, only states that occur; lines cut short and states unknown here are passed over. Raises ParseError."""
    header, _, body = raw.partition(b"\n")
    names = header.split()
    if b"st" not in names:
        raise ParseError("/proc/net/tcp", 1, header.decode("utf-8", "replace"), "a header with the column st")
    column = names.index(b"st")
    counts: dict[str, int] = {}
    for line in body.split(b"\n"):
        fields = line.split(None, column + 1)
        name = _NAMES.get(fields[column]) if len(fields) > column else None
        if name is not None:
            counts[name] = counts.get(name, 0) + 1
    return counts
