"""Tables of ``/proc/net/stat``: ``arp_cache``, ``ndisc_cache``, ``nf_conntrack`` (net/core/neighbour.c).

A line of names, then a line of hexadecimal numbers for each processor: ``entries  allocs ...`` and ``00000002 00000008 ...``.
``entries`` is the size of the whole table and stands in every line; all others are the processor's own counts.
"""

from nodeproof.errors import ParseError

__all__ = ["parse"]

_WHOLE = "entries"


def parse(raw: bytes, /, source: str = "/proc/net/stat") -> dict[str, int]:
    """Sums over the processors by name, ``entries`` once; damaged lines are passed over. ParseError when none is usable."""
    head, _, rest = raw.decode("utf-8", "replace").partition("\n")
    names = head.split()
    sums: dict[str, int] = {}
    for line in rest.split("\n"):
        words = line.split()
        try:
            numbers = [int(word, 16) for word in words]
        except ValueError:
            continue
        if not numbers or len(numbers) > len(names) or min(numbers) < 0:
            continue
        for name, number in zip(names, numbers, strict=False):
            sums[name] = number if name == _WHOLE else sums.get(name, 0) + number
    if not sums:
        raise ParseError(source, 1, head[:60], "a line of names and a line of hexadecimal numbers a processor")
    return sums
