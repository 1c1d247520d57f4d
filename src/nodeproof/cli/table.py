"""Tables for people: plain columns in a pipe, ``rich`` on a terminal."""

import sys
from collections.abc import Sequence

__all__ = ["print_table", "printable", "printable_lines"]


def printable(text: str, limit: int = 200) -> str:
    """``text`` without control characters, so that no label can move the cursor or colour the terminal; cut at ``limit``."""
    clean = text if text.isprintable() else "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


def printable_lines(text: str) -> str:
    """The same for a text of several lines, none of them cut."""
    return "\n".join(printable(line, len(line)) for line in text.split("\n"))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Print ``rows`` below ``headers``; the columns whose numbers stand in ``right`` are flush right."""
    cells = [[printable(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _print_rich(headers, cells, right)
    else:
        _print_plain(headers, cells, right)


def _print_plain(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    table = [list(headers), *[list(row) for row in rows]]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        cells = [
            cell.rjust(width) if n in right else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _print_rich(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> None:
    from rich import box  # noqa: PLC0415 - only where a person is looking
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(headers):
        table.add_column(header, justify="right" if number in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(highlight=False).print(table)
