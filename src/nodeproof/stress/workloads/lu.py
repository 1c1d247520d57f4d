"""LU factorisation with partial pivoting of a large dense matrix, by threads that each call BLAS for themselves.

The matrix is stored by columns with the right-hand side as one more column, and is cut into panels of `block` columns.
Step k factors panel k and applies it to all columns right of it. Threads take pieces of work from one counter a step: the
first piece is the next panel, updated and at once factored, so that the factors of step k+1 are ready while the others
still update the rest of step k. No thread waits for a step to end: a piece waits only for its own columns and its panel.
As only the solution of one system is wanted, rows are not exchanged in the columns left of a panel: the factor L is
applied once and never used again.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeproof.stress.workloads.native import (
    BARRIER_WORDS,
    Bytes,
    Floats,
    Ints,
    Words,
    add_atomic,
    barrier,
    call_pointers,
    cython_address,
    kernel,
    load_atomic,
    now_ns,
    relax,
    store_atomic,
)

__all__ = ["CHUNK", "WIDE", "Blas", "Call", "Matrix", "State", "blas", "call", "element", "fill", "residual", "solve", "state"]

Matrix = NDArray[np.float64]
_PIECES_A_THREAD = 3  # of the columns that remain: enough to share evenly, few enough for wide products
_PIECE_FLOP = 2e10  # of one piece at most: well under two seconds, so that progress shows
CHUNK = 512  # rows of the residual computed at a time
WIDE = 16  # words between the counters of different threads
_LEFT, _UPPER, _NO, _UNIT = range(4)  # places in Call.letters; L means left and lower


class Blas(NamedTuple):
    """Addresses of the functions used."""

    dgemm: int
    dtrsm: int
    dgetrf: int
    dlaswp: int
    dgemv: int
    dtrsv: int


class Call(NamedTuple):
    """One thread's room for arguments, which BLAS takes by address.

    It must outlive every call: numba frees what it does not see used, and it does not see through an address.
    """

    blas: Blas
    sizes: Ints
    factors: Floats
    letters: Bytes


class State(NamedTuple):
    """What the threads of one solve share."""

    rows: int
    """Order of the system. The matrix has one column more and may have more rows, which only keep columns apart."""
    block: int
    """Columns of a panel."""

    sync: Words
    """Of the barrier."""
    taken: Words
    """Pieces of each step taken so far."""
    applied: Words
    """Steps applied to each panel's columns so far."""
    factored: Words
    """1 for each panel that is factored; the word after the last is the first singular panel plus one."""
    pivots: Ints
    """Row exchanges of each panel, counted from the panel's first row, from 1."""
    times: Words
    """Start and end of the solve in nanoseconds, by rank 0."""


def blas() -> Blas:
    """Find the functions in scipy."""
    names = (
        ("blas", "dgemm"),
        ("blas", "dtrsm"),
        ("lapack", "dgetrf"),
        ("lapack", "dlaswp"),
        ("blas", "dgemv"),
        ("blas", "dtrsv"),
    )
    return Blas(*(cython_address(f"scipy.linalg.cython_{module}", name) for module, name in names))


def call(functions: Blas) -> Call:
    """Room for one thread's calls."""
    return Call(functions, np.zeros(4, np.int32), np.array([-1.0, 1.0]), np.frombuffer(b"LUNU", np.uint8).copy())


def state(order: int, block: int) -> State:
    """Fresh state for one solve."""
    panels = -(-order // block)
    return State(
        order,
        block,
        np.zeros(BARRIER_WORDS, np.int64),
        np.zeros(panels * WIDE, np.int64),
        np.zeros(panels + 1, np.int64),
        np.zeros(panels + 1, np.int64),
        np.zeros(panels * block, np.int32),
        np.zeros(2, np.int64),
    )


@kernel()
def element(seed: int, row: int, column: int) -> float:
    """An element of the random matrix: uniform from -0.5 to 0.5, a function of its place alone (SplitMix64)."""
    mixed = np.uint64(seed) + np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(column) * np.uint64(0xD1B54A32D192ED03)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    return np.float64(np.int64(mixed) >> np.int64(11)) * (1.0 / 9007199254740992.0)


@kernel()
def fill(matrix: Matrix, rows: int, seed: int, block: int, rank: int, threads: int, done: Words) -> None:
    """Write this thread's columns of matrix and right-hand side, panel by panel in turn."""
    columns = rows + 1
    for first in range(rank * block, columns, threads * block):
        for column in range(first, min(first + block, columns)):
            for row in range(rows):
                matrix[row, column] = element(seed, row, column)
        done[rank * WIDE] += 1


@kernel()
def _gemm(call: Call, rows: int, columns: int, depth: int, left: int, right: int, result: int, stride: int) -> None:
    """Take left * right from the result, all inside one matrix of that column stride."""
    call.sizes[0] = rows
    call.sizes[1] = columns
    call.sizes[2] = depth
    call.sizes[3] = stride
    size, minus, one = call.sizes.ctypes.data, call.factors.ctypes.data, call.factors.ctypes.data + 8
    no = call.letters.ctypes.data + _NO
    call_pointers(
        call.blas.dgemm,
        (no, no, size, size + 4, size + 8, minus, left, size + 12, right, size + 12, one, result, size + 12),
    )


@kernel()
def _unit_solve(call: Call, order: int, columns: int, triangle: int, right: int, stride: int) -> None:
    """Put the unit lower triangle under some columns: right becomes its inverse times right."""
    call.sizes[0] = order
    call.sizes[1] = columns
    call.sizes[2] = stride
    size, one, letter = call.sizes.ctypes.data, call.factors.ctypes.data + 8, call.letters.ctypes.data
    call_pointers(
        call.blas.dtrsm,
        (letter + _LEFT, letter + _LEFT, letter + _NO, letter + _UNIT, size, size + 4, one, triangle, size + 8, right, size + 8),
    )


@kernel()
def _exchange(call: Call, columns: int, target: int, stride: int, count: int, pivots: int) -> None:
    """Exchange rows of some columns as a panel's pivots say."""
    call.sizes[0] = columns
    call.sizes[1] = stride
    call.sizes[2] = 1
    call.sizes[3] = count
    size = call.sizes.ctypes.data
    call_pointers(call.blas.dlaswp, (size, target, size + 4, size + 8, size + 12, pivots, size + 8))


@kernel()
def _factor(call: Call, rows: int, columns: int, target: int, stride: int, pivots: int) -> int:
    """Factor a panel in place; LAPACK's verdict: 0, or the first column without pivot."""
    call.sizes[0] = rows
    call.sizes[1] = columns
    call.sizes[2] = stride
    size = call.sizes.ctypes.data
    call_pointers(call.blas.dgetrf, (size, size + 4, target, size + 8, pivots, size + 12))
    return int(call.sizes[3])


@kernel()
def _triangle_solve(call: Call, order: int, triangle: int, right: int, stride: int) -> None:
    """Put the upper triangle under one column: right becomes its inverse times right."""
    call.sizes[0] = order
    call.sizes[1] = stride
    call.sizes[2] = 1
    size, letter = call.sizes.ctypes.data, call.letters.ctypes.data
    call_pointers(call.blas.dtrsv, (letter + _UPPER, letter + _NO, letter + _NO, size, triangle, size + 4, right, size + 8))


@kernel()
def _column_update(call: Call, rows: int, columns: int, left: int, right: int, result: int, stride: int) -> None:
    """Take left * right from the result, one column."""
    call.sizes[0] = rows
    call.sizes[1] = columns
    call.sizes[2] = stride
    call.sizes[3] = 1
    size, minus, one = call.sizes.ctypes.data, call.factors.ctypes.data, call.factors.ctypes.data + 8
    no = call.letters.ctypes.data + _NO
    call_pointers(call.blas.dgemv, (no, size, size + 4, minus, left, size + 8, right, size + 12, one, result, size + 12))


@kernel()
def _wait_for(address: int, value: int) -> None:
    """Wait until the word at an address has reached a value."""
    spins = 0
    while load_atomic(address) < value:
        spins = relax(spins)


@kernel()
def _apply(matrix: Matrix, step: int, first: int, last: int, call: Call, shared: State) -> None:
    """Apply panel `step` to the columns [first, last)."""
    rows, block, stride = shared.rows, shared.block, matrix.shape[0]
    top = step * block
    width = min(block, rows - top)
    base = matrix.ctypes.data
    column_bytes = stride * 8
    target = base + first * column_bytes + top * 8
    panel = base + top * column_bytes + top * 8
    _exchange(call, last - first, target, stride, width, shared.pivots.ctypes.data + top * 4)
    _unit_solve(call, width, last - first, panel, target, stride)
    if rows > top + width:
        _gemm(call, rows - top - width, last - first, width, panel + width * 8, target, target + width * 8, stride)


@kernel()
def _factor_panel(matrix: Matrix, panel: int, call: Call, shared: State) -> None:
    """Factor a panel whose columns are up to date, and tell the others."""
    rows, block, stride = shared.rows, shared.block, matrix.shape[0]
    top = panel * block
    width = min(block, rows - top)
    target = matrix.ctypes.data + top * stride * 8 + top * 8
    verdict = _factor(call, rows - top, width, target, stride, shared.pivots.ctypes.data + top * 4)
    if verdict != 0:
        shared.factored[-1] = panel + 1
    store_atomic(shared.factored.ctypes.data + panel * 8, 1)


@kernel()
def _step(matrix: Matrix, step: int, threads: int, call: Call, shared: State) -> None:
    """Take pieces of one step until there are none."""
    rows, block = shared.rows, shared.block
    panels = (rows + block - 1) // block
    applied = shared.applied.ctypes.data
    rest = panels - step - 2  # panels right of the next one; the right-hand side goes with the last piece
    widest = max(1, int(_PIECE_FLOP / (2.0 * (rows - step * block) * block * block)))
    width = max(1, min(widest, rest // (threads * _PIECES_A_THREAD)))
    pieces = (rest + width - 1) // width if rest > 0 else 1
    while True:
        piece = add_atomic(shared.taken.ctypes.data + step * WIDE * 8, 1)
        if piece > pieces:
            return
        if piece == 0:
            if step + 1 < panels:
                _wait_for(applied + (step + 1) * 8, step)
                _apply(matrix, step, (step + 1) * block, min((step + 2) * block, rows), call, shared)
                store_atomic(applied + (step + 1) * 8, step + 1)
                _factor_panel(matrix, step + 1, call, shared)
            continue
        begin = step + 2 + (piece - 1) * width
        end = min(begin + width, panels) if piece < pieces else panels
        end = max(begin, end)
        last_piece = piece == pieces
        for panel in range(begin, end):
            _wait_for(applied + panel * 8, step)
        if last_piece:
            _wait_for(applied + panels * 8, step)
        first = min(begin * block, rows)
        last = rows + 1 if last_piece else min(end * block, rows)
        _apply(matrix, step, first, last, call, shared)
        for panel in range(begin, end):
            store_atomic(applied + panel * 8, step + 1)
        if last_piece:
            store_atomic(applied + panels * 8, step + 1)


@kernel()
def _back_substitute(matrix: Matrix, rank: int, threads: int, call: Call, shared: State) -> None:
    """Solve U x = y in place of the right-hand side, blocks from the last; the threads share the rows above each block."""
    rows, block, stride = shared.rows, shared.block, matrix.shape[0]
    panels = (rows + block - 1) // block
    base = matrix.ctypes.data
    right = base + rows * stride * 8
    for panel in range(panels - 1, -1, -1):
        top = panel * block
        width = min(block, rows - top)
        column = base + top * stride * 8
        if rank == 0:
            _triangle_solve(call, width, column + top * 8, right + top * 8, stride)
        barrier(shared.sync, threads)
        first = top * rank // threads
        height = top * (rank + 1) // threads - first
        if height > 0:
            _column_update(call, height, width, column + first * 8, right + top * 8, right + first * 8, stride)
        barrier(shared.sync, threads)


@kernel()
def solve(matrix: Matrix, rank: int, threads: int, call: Call, shared: State) -> None:
    """Solve the system in place: the last column becomes the solution. Every thread of the team calls this."""
    panels = (shared.rows + shared.block - 1) // shared.block
    scratch = np.zeros(2, np.int64)
    barrier(shared.sync, threads)
    if rank == 0:
        shared.times[0] = now_ns(scratch)
        _factor_panel(matrix, 0, call, shared)
    for step in range(panels):
        _wait_for(shared.factored.ctypes.data + step * 8, 1)
        _step(matrix, step, threads, call, shared)
    barrier(shared.sync, threads)
    _back_substitute(matrix, rank, threads, call, shared)
    if rank == 0:
        shared.times[1] = now_ns(scratch)


@kernel(reassociate=True)
def residual(solution: Floats, seed: int, rank: int, threads: int, parts: Floats, done: Words) -> None:
    """Make the system anew and put it against the solution, row by row of this thread's share.

    `parts[rank]` receives the largest |b - A x|, row sum of |A|, and |b|.
    """
    rows = solution.size
    chunk = CHUNK
    worst, norm, largest = 0.0, 0.0, 0.0
    left = np.zeros(chunk)
    sums = np.zeros(chunk)
    for top in range(rank * chunk, rows, threads * chunk):
        height = min(chunk, rows - top)
        for row in range(height):
            left[row] = element(seed, top + row, rows)
            sums[row] = 0.0
            largest = max(largest, abs(left[row]))
        for column in range(rows):
            weight = solution[column]
            for row in range(height):
                value = element(seed, top + row, column)
                left[row] -= value * weight
                sums[row] += abs(value)
        for row in range(height):
            if worst == worst and not abs(left[row]) <= worst:  # noqa: PLR0124 - a NaN is kept, where max() would drop it
                worst = abs(left[row])
            norm = max(norm, sums[row])
        done[rank * WIDE] += 1
    parts[rank, 0] = worst
    parts[rank, 1] = norm
    parts[rank, 2] = largest
