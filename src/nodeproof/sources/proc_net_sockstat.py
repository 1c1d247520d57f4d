"""``/proc/net/sockstat`` and ``sockstat6``: ``TCP: inuse 12 orphan 0 tw 3 alloc 15 mem 2`` (proc_pid_net(5), net/ipv4/proc.c).

``tw`` counts IPv4 and IPv6 together; ``inuse`` of each is in the file of its own family (``TCP6: inuse 4``).
"""

from nodeproof.errors import ParseError
from nodeproof.sources.unsigned import unsigned

__all__ = ["parse"]


def parse(raw: bytes, /) -> dict[str, dict[str, int]]:
    """Numbers by protocol, then by name; damaged pairs are passed over. ParseError when there is no usable line."""
    protocols: dict[str, dict[str, int]] = {}
    for line in raw.split(b"\n"):
        protocol, colon, rest = line.partition(b":")
        words = rest.decode("utf-8", "replace").split()
        numbers = {
            name: number for name, value in zip(words[::2], words[1::2], strict=False) if (number := unsigned(value)) is not None
        }
        if colon and numbers:
            protocols[protocol.strip().decode("utf-8", "replace")] = numbers
    if not protocols:
        raise ParseError("/proc/net/sockstat", 0, raw[:40].decode("utf-8", "replace"), "lines of a protocol, a colon and pairs")
    return protocols
