"""Conjugate gradients with the multigrid preconditioner, all threads together, on the scheduled form of the matrix."""

import numpy as np

from nodeproof.stress.workloads.hpcg_problem import LEVELS, Columns, Values
from nodeproof.stress.workloads.hpcg_schedule import DIAGONAL, NEXT, PREVIOUS, Level
from nodeproof.stress.workloads.native import Floats, Words, barrier, kernel, now_ns

__all__ = [
    "DOT",
    "MULTIGRID",
    "MULTIPLY",
    "SLOTS",
    "STRIDE",
    "TIMERS",
    "TOTAL",
    "UPDATE",
    "Levels",
    "conjugate_gradients",
    "cycle",
    "dot",
    "multiply",
]

Levels = tuple[Level, Level, Level, Level]
TOTAL, DOT, UPDATE, MULTIPLY, MULTIGRID = range(5)
"""Rows of the timers, in nanoseconds."""
TIMERS = 5
SLOTS = 3  # of partial sums
STRIDE = 16  # words between the partial sums of different threads


@kernel(reassociate=True)
def _multiply_rows(values: Values, columns: Columns, x: Floats, y: Floats) -> None:
    """Rows of one block: `y` is the part of the result that belongs to it."""
    for row in range(y.size):
        total = 0.0
        for place in range(PREVIOUS):
            total += values[row, place] * x[columns[row, place]]
        for place in range(PREVIOUS, DIAGONAL + 1):
            total += values[row, place] * x[columns[row, place]]
        y[row] = total


@kernel()
def multiply(level: Level, x: Floats, y: Floats, rank: int) -> None:
    """The result y = A x, this thread's rows. A barrier must follow."""
    block = level.block
    for stored in range(level.bounds[rank, 0], level.bounds[rank, -1]):
        first, row = stored * block, level.first_row[stored]
        _multiply_rows(level.values[first : first + block], level.columns[first : first + block], x, y[row : row + block])


@kernel(reassociate=True)
def _smooth_up(values: Values, columns: Columns, r: Floats, x: Floats, row: int) -> None:
    """Rows of one block in ascending order."""
    for offset in range(values.shape[0]):
        total = 0.0
        for place in range(PREVIOUS):
            total += values[offset, place] * x[columns[offset, place]]
        total += values[offset, NEXT] * x[columns[offset, NEXT]]
        total = r[row + offset] - total
        x[row + offset] = (total - values[offset, PREVIOUS] * x[columns[offset, PREVIOUS]]) / values[offset, DIAGONAL]


@kernel(reassociate=True)
def _smooth_down(values: Values, columns: Columns, r: Floats, x: Floats, row: int) -> None:
    """Rows of one block in descending order."""
    for offset in range(values.shape[0] - 1, -1, -1):
        total = 0.0
        for place in range(PREVIOUS):
            total += values[offset, place] * x[columns[offset, place]]
        total += values[offset, PREVIOUS] * x[columns[offset, PREVIOUS]]
        total = r[row + offset] - total
        x[row + offset] = (total - values[offset, NEXT] * x[columns[offset, NEXT]]) / values[offset, DIAGONAL]


@kernel()
def _smooth(level: Level, rank: int, threads: int, sync: Words) -> None:
    """One symmetric Gauss-Seidel step on `x` with right-hand side `r`, all threads; they have met when it begins and ends."""
    block, values, columns = level.block, level.values, level.columns
    count = level.bounds.shape[1] - 1
    for step in range(count):
        for stored in range(level.bounds[rank, step], level.bounds[rank, step + 1]):
            first = stored * block
            _smooth_up(values[first : first + block], columns[first : first + block], level.r, level.x, level.first_row[stored])
        if step + 1 < count:  # the last step ascending and the first descending are of the same rows, which others do not read
            barrier(sync, threads)
    for step in range(count - 1, -1, -1):
        for stored in range(level.bounds[rank, step + 1] - 1, level.bounds[rank, step] - 1, -1):
            first = stored * block
            _smooth_down(values[first : first + block], columns[first : first + block], level.r, level.x, level.first_row[stored])
        barrier(sync, threads)


@kernel()
def _share(size: int, rank: int, threads: int) -> tuple[int, int]:
    return size * rank // threads, size * (rank + 1) // threads


@kernel()
def cycle(levels: Levels, rank: int, threads: int, sync: Words) -> None:
    """One V-cycle, all threads: on the finest grid from `r` to `x`."""
    first, last = _share(levels[0].x.size, rank, threads)
    levels[0].x[first:last] = 0.0
    barrier(sync, threads)
    for depth in range(LEVELS - 1):
        level, coarse = levels[depth], levels[depth + 1]
        _smooth(level, rank, threads, sync)
        multiply(level, level.x, level.ax, rank)
        barrier(sync, threads)
        first, last = _share(coarse.r.size, rank, threads)
        for point in range(first, last):
            place = level.fine[point]
            coarse.r[point] = level.r[place] - level.ax[place]
            coarse.x[point] = 0.0
        barrier(sync, threads)
    _smooth(levels[LEVELS - 1], rank, threads, sync)
    for depth in range(LEVELS - 2, -1, -1):
        level, coarse = levels[depth], levels[depth + 1]
        first, last = _share(coarse.x.size, rank, threads)
        for point in range(first, last):
            level.x[level.fine[point]] += coarse.x[point]
        barrier(sync, threads)
        _smooth(level, rank, threads, sync)


@kernel(reassociate=True)
def _dot_part(a: Floats, b: Floats) -> float:
    total = 0.0
    for index in range(a.size):
        total += a[index] * b[index]
    return total


@kernel(reassociate=True)
def _update_part(a: Floats, factor: float, b: Floats, result: Floats) -> None:
    """The sum a + factor * b."""
    for index in range(a.size):
        result[index] = a[index] + factor * b[index]


@kernel()
def dot(a: Floats, b: Floats, rank: int, threads: int, sync: Words, parts: Floats, slot: int) -> float:
    """The product of two vectors, the same number on all threads and in every run: parts are added in order of rank.

    A slot may be used again when the threads have met once more.
    """
    first, last = _share(a.size, rank, threads)
    parts[slot, rank * STRIDE] = _dot_part(a[first:last], b[first:last])
    barrier(sync, threads)
    total = 0.0
    for other in range(threads):
        total += parts[slot, other * STRIDE]
    return total


@kernel()
def conjugate_gradients(
    levels: Levels, b: Floats, x: Floats, p: Floats, ap: Floats,
    iterations: int, tolerance: float, precondition: bool,  # noqa: FBT001 - numba passes it so
    rank: int, threads: int, sync: Words, parts: Floats, times: Words, done: Words, norms: Floats,
) -> int:  # fmt: skip
    """Solve A x = b from x = 0 until the residual is under tolerance times the first one; the iterations made.

    Rank 0 adds to the timers, counts iterations in `done` and writes the first and the last norm of the residual.
    """
    scratch = np.zeros(2, np.int64)
    finest = levels[0]
    r, z = finest.r, finest.x
    first, last = _share(b.size, rank, threads)
    part = slice(first, last)
    barrier(sync, threads)
    begun = now_ns(scratch)
    spent = np.zeros(TIMERS, np.int64)
    x[part] = 0.0
    p[part] = 0.0
    barrier(sync, threads)
    norm = _first_residual(finest, b[part], p, ap, part, rank, threads, sync, parts, spent, scratch)
    clock = now_ns(scratch)
    norm_first, rz, made = norm, 0.0, 0
    while made < iterations and norm / norm_first > tolerance:
        if precondition:
            cycle(levels, rank, threads, sync)
        else:
            z[part] = r[part]
            barrier(sync, threads)
        clock = _charge(spent, MULTIGRID, clock, scratch)
        before = rz
        rz = dot(r, z, rank, threads, sync, parts, 0)
        clock = _charge(spent, DOT, clock, scratch)
        if made == 0:
            p[part] = z[part]
        else:
            _update_part(z[part], rz / before, p[part], p[part])
        barrier(sync, threads)
        clock = _charge(spent, UPDATE, clock, scratch)
        multiply(finest, p, ap, rank)
        barrier(sync, threads)
        clock = _charge(spent, MULTIPLY, clock, scratch)
        alpha = rz / dot(p, ap, rank, threads, sync, parts, 1)
        clock = _charge(spent, DOT, clock, scratch)
        _update_part(x[part], alpha, p[part], x[part])
        _update_part(r[part], -alpha, ap[part], r[part])
        clock = _charge(spent, UPDATE, clock, scratch)
        norm = dot(r, r, rank, threads, sync, parts, 2) ** 0.5
        clock = _charge(spent, DOT, clock, scratch)
        made += 1
        if rank == 0:
            done[0] += 1
    if rank == 0:
        spent[TOTAL] = now_ns(scratch) - begun
        times[:] += spent
        norms[0] = norm_first
        norms[1] = norm
    return made


@kernel()
def _first_residual(
    finest: Level, b: Floats, p: Floats, ap: Floats, part: slice,
    rank: int, threads: int, sync: Words, parts: Floats, spent: Words, scratch: Words,
) -> float:  # fmt: skip
    """Norm of b - A p, which becomes `r`."""
    clock = now_ns(scratch)
    multiply(finest, p, ap, rank)
    barrier(sync, threads)
    clock = _charge(spent, MULTIPLY, clock, scratch)
    _update_part(b, -1.0, ap[part], finest.r[part])
    barrier(sync, threads)
    clock = _charge(spent, UPDATE, clock, scratch)
    norm = dot(finest.r, finest.r, rank, threads, sync, parts, 2) ** 0.5
    _charge(spent, DOT, clock, scratch)
    return float(norm)


@kernel()
def _charge(spent: Words, timer: int, since: int, scratch: Words) -> int:
    """Add the time since then to a timer; the time now."""
    now = now_ns(scratch)
    spent[timer] += now - since
    return now
