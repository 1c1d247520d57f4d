"""``HPL.dat``, the input of HPL: ``1000 2000         Ns`` (HPL_pdinfo.c).

Every line has its place; what follows the values on a line is a remark. Lines 5, 7 and 10 say how many values of the next line
count. Line 4 says where results go (6 = standard output), line 13 from which residual on a test has failed (0 or less: no check).
"""

from typing import NamedTuple

from nodeproof.errors import ParseError
from nodeproof.stress.parsers.numbers import number, whole

__all__ = ["HplDat", "parse"]

_LINES = 13
_MOST = 64


class HplDat(NamedTuple):
    """What HPL will be asked to do."""

    device: int | None
    """6 = standard output, 7 = standard error, anything else a file."""
    sizes: tuple[int, ...]
    blocks: tuple[int, ...]
    grids: tuple[tuple[int, int], ...]
    """(P, Q)."""
    threshold: float | None


def parse(raw: bytes, /, source: str = "HPL.dat") -> HplDat:
    """Read what decides memory, ranks and proof. Raises ParseError when a value that HPL needs is not there."""
    lines = [line.split() for line in raw[:65536].decode("utf-8", "replace").split("\n")]
    if len(lines) < _LINES:
        raise ParseError(source, len(lines), "the end of the file", f"at least {_LINES} lines")
    sizes, blocks = _values(lines, 5, source), _values(lines, 7, source)
    rows, columns = _values(lines, 10, source), _values(lines, 10, source, ahead=2)
    sign, printed = (-1.0, lines[12][0][1:]) if lines[12][:1] and lines[12][0].startswith("-") else (1.0, "".join(lines[12][:1]))
    limit = number(printed)
    device = whole(lines[3][0]) if lines[3] else None
    return HplDat(device, sizes, blocks, tuple(zip(rows, columns, strict=True)), None if limit is None else sign * limit)


def _values(lines: list[list[str]], count_line: int, source: str, *, ahead: int = 1) -> tuple[int, ...]:
    """The values that line ``count_line`` counts, ``ahead`` lines below it."""
    cells = lines[count_line - 1]
    count = whole(cells[0]) if cells else None
    if not count or count > _MOST:
        raise ParseError(source, count_line, " ".join(cells[:4]), f"a count from 1 to {_MOST}")
    row = lines[count_line - 1 + ahead][:count]
    values = [value for value in map(whole, row) if value]
    if len(values) < count:
        raise ParseError(source, count_line + ahead, " ".join(row), f"{count} whole numbers above 0")
    return tuple(values)
