"""``/proc/net/snmp`` and ``/proc/net/netstat``: a line of names, then a line of numbers, for each protocol.

::

    Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails EstabResets CurrEstab InSegs OutSegs ...
    Tcp: 1 200 120000 -1 25 2 0 0 0 2367 1449 ...

(net/ipv4/proc.c; RFC 4022 for Tcp, RFC 4113 for Udp.) Kernels differ in which names they print, so numbers are found by name.
"""

from collections.abc import Collection

from nodeproof.errors import ParseError

__all__ = ["parse"]


def parse(raw: bytes, /, sections: Collection[str] = ()) -> dict[str, dict[str, int]]:
    """Numbers by protocol, then by name; only of ``sections`` when any are given.

    A pair of lines that do not fit each other is passed over. Raises ParseError when there is no usable pair.
    """
    tables: dict[str, dict[str, int]] = {}
    names_of: dict[str, list[str]] = {}
    seen = False
    for line in raw.decode("utf-8", "replace").split("\n"):
        section, colon, rest = line.partition(":")
        if not colon:
            continue
        if section not in names_of:
            names_of[section] = rest.split() if not sections or section in sections else []
            continue
        seen = True
        names, values = names_of.pop(section), rest.split()
        if not names or len(names) != len(values):
            continue
        try:
            tables[section] = dict(zip(names, map(int, values), strict=True))
        except ValueError:
            continue
    if not seen:
        raise ParseError("/proc/net/snmp", 0, raw[:40].decode("utf-8", "replace"), "pairs of lines: names, then numbers")
    return tables
