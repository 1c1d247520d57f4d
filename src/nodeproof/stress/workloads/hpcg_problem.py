"""The problem of HPCG and its reference solution: a 27-point operator on a box of points, four grids, natural order.

The matrix is stored as a general sparse one, as the official rules ask: 8-byte values and 4-byte column numbers of every
nonzero, 27 places a row, columns ascending. Nothing below `generate` knows that it came from a stencil. The reference
kernels here run on one thread in natural order; the official rating compares the work of the fast ones against them.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodeproof.stress.workloads.native import Bytes, Floats, Words, kernel

__all__ = [
    "LEVELS",
    "WIDTH",
    "Columns",
    "Grid",
    "Reference",
    "Values",
    "generate",
    "grids",
    "reference_cg",
    "reference_pair",
    "restriction",
]

Columns = NDArray[np.uint32]
Values = NDArray[np.float64]

LEVELS = 4
WIDTH = 27
_DIAGONAL = 26.0


class Grid(NamedTuple):
    """Points of a grid along each axis."""

    nx: int
    ny: int
    nz: int

    @property
    def rows(self) -> int:
        """Points, which are equations."""
        return self.nx * self.ny * self.nz

    @property
    def nonzeros(self) -> int:
        """Nonzeros of the operator: along an axis of n points, 3n - 2 pairs of neighbours."""
        return (3 * self.nx - 2) * (3 * self.ny - 2) * (3 * self.nz - 2)


class Reference(NamedTuple):
    """One grid's matrix in natural order, and the vectors of the multigrid cycle."""

    values: Values
    columns: Columns
    counts: Bytes
    """Nonzeros of each row."""
    fine: Columns
    """For each point of the next coarser grid, the point of this one that it is; empty on the coarsest."""
    r: Floats
    x: Floats
    ax: Floats


def grids(finest: Grid) -> tuple[Grid, ...]:
    """The finest grid and those with half the points along each axis. Raises ValueError when it cannot be halved so often."""
    divisor = 1 << (LEVELS - 1)
    if any(points % divisor or points < 2 * divisor for points in finest):
        raise ValueError(
            f"{finest.nx} x {finest.ny} x {finest.nz}: points along each axis are a multiple of {divisor} from {2 * divisor}"
        )
    return tuple(Grid(finest.nx >> level, finest.ny >> level, finest.nz >> level) for level in range(LEVELS))


@kernel()
def generate(nx: int, ny: int, nz: int, first: int, last: int, values: Values, columns: Columns, counts: Bytes, b: Floats) -> int:
    """Make the rows of the planes [first, last): 26 on the diagonal, -1 for each neighbour; `b` so that all ones solve it.

    The nonzeros made.
    """
    total = 0
    for z in range(first, last):
        for y in range(ny):
            for x in range(nx):
                row = (z * ny + y) * nx + x
                count = 0
                for dz in range(max(z - 1, 0), min(z + 2, nz)):
                    for dy in range(max(y - 1, 0), min(y + 2, ny)):
                        for dx in range(max(x - 1, 0), min(x + 2, nx)):
                            column = (dz * ny + dy) * nx + dx
                            values[row, count] = _DIAGONAL if column == row else -1.0
                            columns[row, count] = column
                            count += 1
                counts[row] = count
                b[row] = _DIAGONAL - (count - 1)
                total += count
    return total


@kernel()
def restriction(nx: int, ny: int, nz: int, fine: Columns) -> None:
    """Number the points of this grid that are points of the next coarser one: every other along each axis."""
    coarse = 0
    for z in range(0, nz, 2):
        for y in range(0, ny, 2):
            for x in range(0, nx, 2):
                fine[coarse] = (z * ny + y) * nx + x
                coarse += 1


@kernel()
def _multiply(grid: Reference, x: Floats, y: Floats) -> None:
    for row in range(grid.counts.size):
        total = 0.0
        for place in range(grid.counts[row]):
            total += grid.values[row, place] * x[grid.columns[row, place]]
        y[row] = total


@kernel()
def _smooth_row(grid: Reference, row: int, r: Floats, x: Floats) -> None:
    total = r[row]
    diagonal = 0.0
    for place in range(grid.counts[row]):
        column = grid.columns[row, place]
        if column == row:
            diagonal = grid.values[row, place]
        else:
            total -= grid.values[row, place] * x[column]
    x[row] = total / diagonal


@kernel()
def _smooth(grid: Reference, r: Floats, x: Floats) -> None:
    """One symmetric Gauss-Seidel step: all rows in order, then all in reverse order."""
    rows = grid.counts.size
    for row in range(rows):
        _smooth_row(grid, row, r, x)
    for row in range(rows - 1, -1, -1):
        _smooth_row(grid, row, r, x)


@kernel()
def _cycle(levels: tuple[Reference, ...]) -> None:
    """One V-cycle: on the finest grid from `r` to `x`."""
    for depth in range(LEVELS - 1):
        grid, coarse = levels[depth], levels[depth + 1]
        grid.x[:] = 0.0
        _smooth(grid, grid.r, grid.x)
        _multiply(grid, grid.x, grid.ax)
        for point in range(coarse.r.size):
            place = grid.fine[point]
            coarse.r[point] = grid.r[place] - grid.ax[place]
    last = levels[LEVELS - 1]
    last.x[:] = 0.0
    _smooth(last, last.r, last.x)
    for depth in range(LEVELS - 2, -1, -1):
        grid, coarse = levels[depth], levels[depth + 1]
        for point in range(coarse.x.size):
            grid.x[grid.fine[point]] += coarse.x[point]
        _smooth(grid, grid.r, grid.x)


@kernel()
def _dot(a: Floats, b: Floats) -> float:
    total = 0.0
    for index in range(a.size):
        total += a[index] * b[index]
    return total


@kernel()
def reference_cg(
    levels: tuple[Reference, ...], b: Floats, x: Floats, p: Floats, ap: Floats, iterations: int, done: Words
) -> float:
    """Preconditioned conjugate gradients from zero, so many iterations; the residual left over the first one."""
    finest = levels[0]
    r, z = finest.r, finest.x
    x[:] = 0.0
    r[:] = b
    first = _dot(r, r) ** 0.5
    norm, rz = first, 0.0
    for iteration in range(iterations):
        _cycle(levels)
        before = rz
        rz = _dot(r, z)
        if iteration == 0:
            p[:] = z
        else:
            beta = rz / before
            for row in range(p.size):
                p[row] = z[row] + beta * p[row]
        _multiply(finest, p, ap)
        alpha = rz / _dot(p, ap)
        for row in range(p.size):
            x[row] += alpha * p[row]
            r[row] -= alpha * ap[row]
        norm = _dot(r, r) ** 0.5
        done[0] += 1
    return float(norm / first)


@kernel()
def reference_pair(levels: tuple[Reference, ...], x: Floats, calls: int, done: Words) -> None:
    """A product and a V-cycle, so often: the measure of the optimization phase."""
    finest = levels[0]
    for _ in range(calls):
        _multiply(finest, x, finest.r)
        _cycle(levels)
        x[:] = finest.x
        done[0] += 1
