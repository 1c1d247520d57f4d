"""Rows in an order that lets threads smooth at the same time.

Two such orders are known here; both are read from the column numbers and hold for any matrix whose pattern is symmetric.

*Chunks*: the rows are cut into two chunks a thread, so long that a row refers to its own chunk and the two beside it only.
Every thread does its first chunk, row after row; then, when all have come so far, its second. Threads meet twice in a sweep,
so that a thread that loses its CPU for a moment costs little. It is the Gauss-Seidel of another numbering of the rows, which
needs a few iterations more; the official rules count them against the rate.

*Levels*: consecutive rows form blocks. A block's level is one more than the highest level of the blocks with smaller rows
that its rows refer to; blocks of one level do not refer to each other. Level after level is a sweep in natural order,
exactly, so no iteration more is needed; but threads meet after every level, hundreds of times in a sweep. It serves where
chunks would be too short.

Each thread keeps the rows of its blocks in the order in which it comes to them, written first by itself. Within a row the
entries of the nearest rows and of the row itself stand last: the result of the row before is then needed only at the end of
a row's sum.
"""

from typing import NamedTuple

import numpy as np

from nodeproof.stress.workloads.hpcg_problem import WIDTH, Columns, Reference, Values
from nodeproof.stress.workloads.native import Bytes, Floats, Words, kernel

__all__ = ["DIAGONAL", "NEXT", "PREVIOUS", "Level", "Plan", "copy_rows", "plan", "replace_diagonal"]

PREVIOUS, NEXT, DIAGONAL = WIDTH - 3, WIDTH - 2, WIDTH - 1
"""Places of the row before, the row after and the row itself; absent neighbours have value 0 and the row's own number."""
_LEAST_REACHES = 2
"""Length of a chunk from which the iterations more cost less than meeting after every level, in reaches of a row."""
_LEAST_BLOCK = 8
_ROW_NS = 15.0
_BARRIER_NS = 150.0
_BARRIER_THREAD_NS = 15.0
"""Rough costs, to choose the size of blocks by."""


class Plan(NamedTuple):
    """Who smooths what, when."""

    block: int
    """Rows of a block."""
    first_row: Words
    """First row of each block, blocks in the order of storage: thread by thread, for each level by level."""
    bounds: Words
    """For each thread and step the first block in that order; one column more for the end. A step is a level or a half of
    the chunks; the blocks of one thread and step are done one after the other, ascending or descending."""


class Level(NamedTuple):
    """One grid in its fast form, and the vectors of the multigrid cycle."""

    values: Values
    columns: Columns
    block: int
    first_row: Words
    bounds: Words
    fine: Columns
    r: Floats
    x: Floats
    ax: Floats


@kernel()
def _levels(columns: Columns, counts: Bytes, block: int, levels: Words) -> int:
    """Level of each block; how many there are."""
    highest = 0
    for which in range(levels.size):
        level = 0
        for row in range(which * block, min((which + 1) * block, counts.size)):
            for place in range(counts[row]):
                other = columns[row, place] // block
                if other < which and levels[other] >= level:
                    level = levels[other] + 1
        levels[which] = level
        highest = max(highest, level)
    return highest + 1


@kernel()
def _reach(columns: Columns, counts: Bytes) -> int:
    """How far a row refers at most: the largest difference of column and row."""
    most = 0
    for row in range(counts.size):
        forward, back = int(columns[row, counts[row] - 1]) - row, row - int(columns[row, 0])
        most = max(most, forward, back)
    return most


def plan(grid: Reference, line: int, threads: int, order: str | None = None) -> Plan:
    """Chunks where they are long enough, else levels; or the order asked for, though chunks only where they are possible.

    `line` rows divide all rows evenly.
    """
    chunk_rows = grid.counts.size // (2 * threads) // line * line
    reach = _reach(grid.columns, grid.counts)
    possible = threads == 1 or chunk_rows >= reach
    worth_it = order == "chunks" or threads == 1 or chunk_rows >= _LEAST_REACHES * reach
    if order != "levels" and possible and worth_it:
        return _chunks(grid.counts.size // line, line, threads)
    return _best_levels(grid, line, threads)


def _chunks(lines: int, line: int, threads: int) -> Plan:
    """Two chunks of whole lines a thread; one when it is alone."""
    colours = 1 if threads == 1 else 2
    pieces = threads * colours
    cuts = [lines * piece // pieces for piece in range(pieces + 1)]
    bounds = np.array([cuts[rank * colours : rank * colours + colours + 1] for rank in range(threads)], np.int64)
    return Plan(line, np.arange(lines, dtype=np.int64) * line, bounds)


def _best_levels(grid: Reference, line: int, threads: int) -> Plan:
    """The quickest of a few sizes of blocks."""
    best: tuple[float, int, Words] | None = None
    for block in _block_sizes(line):
        levels = np.zeros(grid.counts.size // block, np.int64)
        _levels(grid.columns, grid.counts, block, levels)
        sizes = np.bincount(levels)
        cost = float((-(-sizes // threads) * (block * _ROW_NS)).sum() + sizes.size * (_BARRIER_NS + _BARRIER_THREAD_NS * threads))
        if best is None or cost < best[0]:
            best = (cost, block, levels)
    if best is None:
        raise ValueError("no size of blocks to choose from")
    return _share(best[1], best[2], threads)


def _block_sizes(line: int) -> list[int]:
    divisors = [size for size in range(line, 0, -1) if line % size == 0]
    large = [size for size in divisors if size >= _LEAST_BLOCK] or divisors[:1]
    return sorted({large[0], large[len(large) // 2], large[-1]})


def _share(block: int, levels: Words, threads: int) -> Plan:
    """Cut every level into one part a thread."""
    order = np.argsort(levels, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(levels))))
    counts = np.diff(starts)
    parts: list[Words] = []
    bounds = np.zeros((threads, counts.size + 1), np.int64)
    stored = 0
    for rank in range(threads):
        bounds[rank, 0] = stored
        for level, count in enumerate(counts):
            first, last = count * rank // threads, count * (rank + 1) // threads
            parts.append(order[starts[level] + first : starts[level] + last])
            stored += last - first
            bounds[rank, level + 1] = stored
    return Plan(block, np.concatenate(parts).astype(np.int64) * block, bounds)


@kernel()
def copy_rows(grid: Reference, plan: Plan, values: Values, columns: Columns, rank: int) -> None:
    """Write this thread's rows in the order of storage."""
    for stored in range(plan.bounds[rank, 0], plan.bounds[rank, -1]):
        for offset in range(plan.block):
            row = plan.first_row[stored] + offset
            target = stored * plan.block + offset
            for place in range(WIDTH):
                values[target, place] = 0.0
                columns[target, place] = row
            others = 0
            for place in range(grid.counts[row]):
                column = np.int64(grid.columns[row, place])
                if column == row:
                    where = DIAGONAL
                elif column == row - 1:
                    where = PREVIOUS
                elif column == row + 1:
                    where = NEXT
                else:
                    where = others
                    others += 1
                values[target, where] = grid.values[row, place]
                columns[target, where] = column


@kernel()
def replace_diagonal(level: Level, diagonal: Floats, rank: int) -> None:
    """Put other values on the diagonal, this thread's rows."""
    for stored in range(level.bounds[rank, 0], level.bounds[rank, -1]):
        for offset in range(level.block):
            level.values[stored * level.block + offset, DIAGONAL] = diagonal[level.first_row[stored] + offset]
