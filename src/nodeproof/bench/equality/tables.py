"""Small tables and lists of names, bounded, for the last frames of this room."""

from collections.abc import Iterable, Sequence

from nodeproof.model.run import Cell, CellStyle, Column, ResultTable

__all__ = ["MAX_ROWS", "named", "table_of"]

MAX_ROWS = 40
"""A table shows no more; the record's files hold them all."""
_MAX_NAMES = 8
_BAD = frozenset({"diverged", "contaminated", "persistent", "alone unstable", "collapsed", "fail"})
_DOUBT = frozenset({"unmeasured", "inconclusive", "vacuous"})


def named(names: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    shown = ", ".join(names[:_MAX_NAMES])
    return f"{shown} and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else shown


def table_of(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> ResultTable | None:
    """Rows of texts; what tells of a fault stands out. None when there are no rows."""
    cells = tuple(tuple(Cell(text, _style(text)) for text in row) for row in rows)
    if not cells:
        return None
    more = f" (first {MAX_ROWS} of {len(cells)})" if len(cells) > MAX_ROWS else ""
    return ResultTable(title + more, tuple(Column(name) for name in columns), cells[:MAX_ROWS])


def _style(text: str) -> CellStyle:
    if text in _BAD:
        return CellStyle.BAD
    return CellStyle.WARN if text in _DOUBT else CellStyle.NEUTRAL
