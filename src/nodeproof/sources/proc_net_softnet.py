"""``/proc/net/softnet_stat``: a line a processor, hexadecimal columns without names (net/core/net-procfs.c, softnet_seq_show).

``0000096b 00000000 00000001 00000000 ...``: packets processed, packets dropped because the backlog was full, times that a poll
ran out of its budget. The columns behind differ between kernels and are not used.
"""

from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["Softnet", "parse"]


class Softnet(NamedTuple):
    """Sums over all processors; each kernel counter is 32 bits wide and wraps."""

    processed: int
    dropped: int
    squeezed: int


def parse(raw: bytes, /) -> Softnet:
    """Sums of the first three columns; damaged lines are passed over. Raises ParseError when no line can be used."""
    rows = [row for row in map(_row, raw.split(b"\n")) if row is not None]
    if not rows:
        raise ParseError(
            "/proc/net/softnet_stat", 0, raw[:40].decode("utf-8", "replace"), "hexadecimal columns, a line a processor"
        )
    return Softnet(*map(sum, zip(*rows, strict=True)))


def _row(line: bytes) -> tuple[int, int, int] | None:
    fields = line.split(None, 3)
    try:
        return int(fields[0], 16), int(fields[1], 16), int(fields[2], 16)
    except (IndexError, ValueError):
        return None
