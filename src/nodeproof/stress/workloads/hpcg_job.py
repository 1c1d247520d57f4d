"""The HPCG run: set up, reference, fast form, tests, and sets of iterations until the time is up, in the official order."""

import argparse
import io
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple, cast

import numpy as np

from nodeproof.host.machine import Machine
from nodeproof.stress.workloads import hpcg_problem, hpcg_schedule, hpcg_solver, native, team
from nodeproof.stress.workloads.box import Box, look
from nodeproof.stress.workloads.console import Console
from nodeproof.stress.workloads.hpcg_problem import LEVELS, WIDTH, Columns, Grid, Reference
from nodeproof.stress.workloads.hpcg_report import REFERENCE_ITERATIONS, Measured, failures, rating, report, work
from nodeproof.stress.workloads.hpcg_schedule import Level
from nodeproof.stress.workloads.hpcg_solver import Levels
from nodeproof.stress.workloads.launch import CannotRunError
from nodeproof.stress.workloads.native import Floats

__all__ = ["Hpcg", "finest", "run"]

_RATED_S: Final = {"quick": 10.0, "standard": 60.0, "soak": 1800.0}
_LEAST_POINTS: Final = {"quick": 64, "standard": 104, "soak": 104}
_MOST_QUICK_POINTS: Final = 128
_CACHE_FACTOR: Final = {"quick": 2.0, "standard": 4.0, "soak": 4.0}
_OFFICIAL_MEMORY_SHARE: Final = 0.25
_ROW_BYTES: Final = 850
"""Of all grids and vectors while both forms of the matrix are there, for each row of the finest grid."""
_MATRIX_ROW_BYTES: Final = 12 * WIDTH
_PAIR_CALLS: Final = 10
_MOST_ITERATIONS: Final = 10 * REFERENCE_ITERATIONS
_SEQUENCES: Final = 2
"""Times each convergence test is made."""
_TEST_ITERATIONS: Final = 50
_TEST_TOLERANCE: Final = 1e-12
_TEST_ROWS: Final = 9
_TEST_SCALE: Final = 1e6
_MATRIX_NORM: Final = 52.0


class _Outcome(NamedTuple):
    iterations: int
    first_norm: float
    last_norm: float
    times: native.Words

    @property
    def scaled(self) -> float:
        return self.last_norm / self.first_norm


def run(options: argparse.Namespace, console: Console) -> None:
    """Run the benchmark and tell its report."""
    try:
        box = look(Machine.here(), options.threads)
        grids = hpcg_problem.grids(finest(options, box))
    except ValueError as error:
        raise CannotRunError(str(error)) from None
    need = grids[0].rows * _ROW_BYTES
    if need > box.memory_bytes:
        raise CannotRunError(f"{grids[0].rows} rows need {need / 2**20:.0f} MiB, {box.memory_bytes / 2**20:.0f} MiB may be used")
    console.line("HPCG benchmark, nodeproof's own implementation (not the reference HPCG 3.1)")
    _compile(box, console)
    hpcg = Hpcg(grids, box.cpus, options.order, console)
    measured = hpcg.measure(float(options.seconds or _RATED_S[options.plan]), options.seed)
    for line in report(measured):
        console.line(line)
    _result(console, options, box, measured)


def finest(options: argparse.Namespace, box: Box) -> Grid:
    """The finest grid: as asked for, or a cube that caches cannot hold; `soak` fills a quarter of the memory (official rule)."""
    asked = (options.nx, options.ny, options.nz)
    if any(asked):
        nx = options.nx or next(points for points in asked if points)
        ny = options.ny or nx
        return Grid(nx, ny, options.nz or ny)
    plan = options.plan
    rows = _CACHE_FACTOR[plan] * box.llc_bytes / _MATRIX_ROW_BYTES
    if plan == "soak":
        rows = max(rows, _OFFICIAL_MEMORY_SHARE * box.memory_bytes / (_ROW_BYTES / 2))
    points = max(_LEAST_POINTS[plan], math.ceil(rows ** (1 / 3) / 8) * 8)
    if plan == "quick":
        points = min(points, _MOST_QUICK_POINTS)
    return Grid(points, points, points)


def _compile(box: Box, console: Console) -> None:
    """Have every kernel compiled or loaded, on a problem too small to count and on one thread."""
    with native.watch_compiling(console):
        small = Hpcg(hpcg_problem.grids(Grid(16, 16, 16)), box.cpus[:1], None, Console("hpcg", stream=io.StringIO()))
        small.set_up()
        small.refer()
        small.optimize("levels")
        small.solve("compile", 1, 0.0)
        small.test_convergence()
        small.test_symmetry(1)


class Hpcg:
    """One problem on some CPUs, phase by phase; `measure` runs them all in the official order."""

    def __init__(self, grids: tuple[Grid, ...], cpus: tuple[int, ...], order: str | None, console: Console) -> None:
        self._grids = grids
        self._cpus = cpus
        self._threads = len(cpus)
        self._order = order
        self._console = console
        rows = grids[0].rows
        self._references: tuple[Reference, ...] = ()
        self._levels: Levels | None = None
        self._b, self._x, self._p, self._ap = (np.empty(rows) for _ in range(4))
        self._sync = np.zeros(native.BARRIER_WORDS, np.int64)
        self._parts = np.zeros((hpcg_solver.SLOTS, self._threads * hpcg_solver.STRIDE))
        self._steps = 0
        self.used_order = ""

    def measure(self, rated_s: float, seed: int) -> Measured:
        """All phases."""
        setup_s = _timed(self.set_up)
        pair_s, tolerance = self.refer()
        optimize_s = _timed(lambda: self.optimize(self._order))
        plain, preconditioned = self.test_convergence()
        departure_multiply, departure_multigrid = self.test_symmetry(seed)
        first = self.solve("tune", _MOST_ITERATIONS, tolerance)
        iterations = max(REFERENCE_ITERATIONS, first.iterations)
        sets = int(rated_s / (first.times[hpcg_solver.TOTAL] / 1e9)) + 1
        outcomes = [self.solve(f"run {index + 1} of {sets}", iterations, 0.0) for index in range(sets)]
        times = np.sum([outcome.times for outcome in outcomes], axis=0) / 1e9
        residuals = np.array([outcome.scaled for outcome in outcomes])
        mean = float(residuals[0] + (residuals - residuals[0]).mean())
        return Measured(
            grids=self._grids,
            threads=self._threads,
            order=self.used_order,
            sets=sets,
            iterations=iterations,
            reached=first.scaled <= tolerance,
            setup_s=setup_s,
            optimize_s=optimize_s,
            reference_pair_s=pair_s,
            total_s=float(times[hpcg_solver.TOTAL]),
            dot_s=float(times[hpcg_solver.DOT]),
            update_s=float(times[hpcg_solver.UPDATE]),
            multiply_s=float(times[hpcg_solver.MULTIPLY]),
            multigrid_s=float(times[hpcg_solver.MULTIGRID]),
            plain_iterations=plain,
            preconditioned_iterations=preconditioned,
            departure_multiply=departure_multiply,
            departure_multigrid=departure_multigrid,
            residual_mean=mean,
            residual_variance=float(((residuals - mean) ** 2).mean()),
            data_bytes=self._bytes(),
            optimized_bytes=sum(level.values.nbytes + level.columns.nbytes for level in self._levels or ()),
        )

    @property
    def levels(self) -> Levels:
        """The grids in their fast form. Raises RuntimeError before `optimize`."""
        if self._levels is None:
            raise RuntimeError("the fast form of the matrix is made by optimize()")
        return self._levels

    @property
    def solution(self) -> Floats:
        """What the last solve left."""
        return self._x

    def set_up(self) -> None:
        """Make the four grids' matrices in natural order, each thread some planes. Raises ArithmeticError when one is wrong."""
        self._references = tuple(self._make(depth, grid) for depth, grid in enumerate(self._grids))

    def refer(self) -> tuple[float, float]:
        """The reference on one thread: seconds of a product and a V-cycle, and the residual left by fifty iterations."""
        done = np.zeros(1, np.int64)
        references = self._references
        x = np.random.default_rng(0).random(self._grids[0].rows)
        pair_s = _timed(
            lambda: self._alone(
                "reference pair", done, _PAIR_CALLS, lambda: hpcg_problem.reference_pair(references, x, _PAIR_CALLS, done)
            )
        )
        return pair_s / _PAIR_CALLS, self.reference_residual(REFERENCE_ITERATIONS)

    def reference_residual(self, iterations: int) -> float:
        """What so many iterations of the reference leave of the first residual."""
        done, left = np.zeros(1, np.int64), [0.0]

        def solve() -> None:
            left[0] = hpcg_problem.reference_cg(self._references, self._b, self._x, self._p, self._ap, iterations, done)

        self._alone("reference", done, iterations, solve)
        return left[0]

    def optimize(self, order: str | None) -> None:
        """Bring the matrices into the form that threads share, and forget the natural one.

        Raises CannotRunError when chunks are asked for that would be too short.
        """
        made: list[Level] = []
        for grid, reference in zip(self._grids, self._references, strict=True):
            plan = hpcg_schedule.plan(reference, grid.nx, self._threads, order)
            if not made:
                self.used_order = "levels" if plan.bounds.shape[1] > 3 else "chunks"
                if order == "chunks" and self.used_order != order:
                    raise CannotRunError(f"the grid is too flat to be cut into two chunks for each of {self._threads} threads")
            values, columns = np.empty((grid.rows, WIDTH)), np.empty((grid.rows, WIDTH), np.uint32)
            self._together(partial(hpcg_schedule.copy_rows, reference, plan, values, columns))
            vectors = (reference.r, reference.x, reference.ax)
            made.append(Level(values, columns, plan.block, plan.first_row, plan.bounds, reference.fine, *vectors))
        self._levels = cast("Levels", tuple(made))
        self._references = ()

    def test_convergence(self) -> tuple[int, int]:
        """Iterations without and with preconditioner on the matrix with an exaggerated diagonal; all is put back after."""
        scale = np.full(self._grids[0].rows, _TEST_SCALE)
        scale[:_TEST_ROWS] = np.arange(2, 2 + _TEST_ROWS) * _TEST_SCALE
        kept = self._b.copy()
        self._set_diagonal(26.0 * scale)
        self._b *= scale
        counts = []
        for precondition in (False, True):
            phase = "test preconditioned" if precondition else "test plain"
            counts.append(
                max(
                    self.solve(f"{phase} {turn}", _TEST_ITERATIONS, _TEST_TOLERANCE, precondition=precondition).iterations
                    for turn in range(_SEQUENCES)
                )
            )
        self._set_diagonal(np.full(scale.size, 26.0))
        self._b[:] = kept
        return counts[0], counts[1]

    def test_symmetry(self, seed: int) -> tuple[float, float]:
        """How far x'Ay is from y'Ax, for the operator and for the preconditioner, by the official scale."""
        rows = self._grids[0].rows
        generator = np.random.default_rng(seed)
        x, y = generator.random(rows) + 1.0, generator.random(rows) + 1.0
        scale = 2.0 * float(x @ x) * float(y @ y) * _MATRIX_NORM * np.finfo(np.float64).eps
        departures = [abs(float(x @ apply(y)) - float(y @ apply(x))) / scale for apply in (self._multiply, self._precondition)]
        return float(departures[0]), float(departures[1])

    def solve(self, phase: str, iterations: int, tolerance: float, *, precondition: bool = True) -> _Outcome:
        """Conjugate gradients on all threads."""
        levels = self.levels
        times, done, norms = np.zeros(hpcg_solver.TIMERS, np.int64), np.zeros(1, np.int64), np.zeros(2)
        flop = work(self._grids, 1, 2).flop - work(self._grids, 1, 1).flop

        def watch() -> None:
            work_done = flop * int(done[0]) if precondition else None
            self._console.beat(phase, int(done[0]), iterations, unit="iterations", work_done=work_done, rate_unit="FLOP/s")

        self._together(
            lambda rank: hpcg_solver.conjugate_gradients(
                levels, self._b, self._x, self._p, self._ap, iterations, tolerance, precondition,
                rank, self._threads, self._sync, self._parts, times, done, norms,
            ),
            watch,
        )  # fmt: skip
        return _Outcome(int(done[0]), float(norms[0]), float(norms[1]), times)

    def _make(self, depth: int, grid: Grid) -> Reference:
        values, columns = np.empty((grid.rows, WIDTH)), np.empty((grid.rows, WIDTH), np.uint32)
        counts, b = np.empty(grid.rows, np.uint8), self._b if depth == 0 else np.empty(grid.rows)
        vectors = tuple(np.empty(grid.rows) for _ in range(3))
        nonzeros = np.zeros(self._threads, np.int64)

        def make(rank: int) -> None:
            first, last = grid.nz * rank // self._threads, grid.nz * (rank + 1) // self._threads
            nonzeros[rank] = hpcg_problem.generate(grid.nx, grid.ny, grid.nz, first, last, values, columns, counts, b)
            plane = grid.nx * grid.ny
            for vector in (*vectors, *((self._x, self._p, self._ap) if depth == 0 else ())):
                vector[first * plane : last * plane] = 0.0

        self._together(make)
        if int(nonzeros.sum()) != grid.nonzeros:
            raise ArithmeticError(f"{int(nonzeros.sum())} nonzeros made, {grid.nonzeros} expected")
        fine: Columns = np.empty(self._grids[depth + 1].rows if depth + 1 < LEVELS else 0, np.uint32)
        if fine.size:
            hpcg_problem.restriction(grid.nx, grid.ny, grid.nz, fine)
        return Reference(values, columns, counts, fine, *vectors)

    def _together(self, task: team.Work, watch: Callable[[], None] | None = None) -> None:
        """Run on every CPU; without a watch of its own a task is one step of the set-up."""

        def step() -> None:
            self._console.beat("setup", self._steps, unit="tasks")

        team.run(self._cpus, task, watch or step)
        self._steps += 1

    def _alone(self, phase: str, done: native.Words, total: int, task: Callable[[], None]) -> None:
        team.run(self._cpus[:1], lambda _: task(), lambda: self._console.beat(phase, int(done[0]), total, unit="iterations"))

    def _set_diagonal(self, diagonal: Floats) -> None:
        finest = self.levels[0]
        self._together(lambda rank: hpcg_schedule.replace_diagonal(finest, diagonal, rank))

    def _multiply(self, vector: Floats) -> Floats:
        finest, result = self.levels[0], np.empty(vector.size)
        self._together(lambda rank: hpcg_solver.multiply(finest, vector, result, rank))
        return result

    def _precondition(self, vector: Floats) -> Floats:
        levels = self.levels
        levels[0].r[:] = vector
        self._together(lambda rank: hpcg_solver.cycle(levels, rank, self._threads, self._sync))
        return levels[0].x.copy()

    def _bytes(self) -> int:
        """Of all arrays that the rated time needs."""
        levels = sum(part.nbytes for level in self.levels for part in level if isinstance(part, np.ndarray))
        return levels + sum(vector.nbytes for vector in (self._b, self._x, self._p, self._ap))


def _timed(task: Callable[[], object]) -> float:
    """Seconds a task takes."""
    begun = time.monotonic()
    task()
    return time.monotonic() - begun


def _result(console: Console, options: argparse.Namespace, box: Box, measured: Measured) -> None:
    grid = measured.grids[0]
    console.result(
        {
            "plan": options.plan,
            "threads": measured.threads,
            "cpus": list(box.cpus),
            "nx": grid.nx,
            "ny": grid.ny,
            "nz": grid.nz,
            "order": measured.order,
            "matrix_format": f"{WIDTH} places a row, 8-byte values, 4-byte columns, used as a general sparse matrix",
            "matrix_bytes": grid.rows * _MATRIX_ROW_BYTES,
            "llc_bytes": box.llc_bytes,
            "llc_known": box.llc_known,
            "iterations_per_set": measured.iterations,
            "reference_iterations_per_set": REFERENCE_ITERATIONS,
            "sets": measured.sets,
            "gflops": rating(measured),
            "time_seconds": measured.total_s,
            "setup_seconds": measured.setup_s,
            "optimization_seconds": measured.optimize_s,
            "passed": measured.valid,
            "failures": failures(measured),
            "departure_spmv": measured.departure_multiply,
            "departure_mg": measured.departure_multigrid,
            "scaled_residual_mean": measured.residual_mean,
            "scaled_residual_variance": measured.residual_variance,
        }
    )
