"""The HPL run: how large a system, how often, and the official lines about each."""

import argparse
import math
import time
from typing import Final

import numpy as np
import scipy

from nodeproof.host.machine import Machine
from nodeproof.stress.workloads import lu, native, team
from nodeproof.stress.workloads.box import Box, look
from nodeproof.stress.workloads.console import Console
from nodeproof.stress.workloads.launch import CannotRunError
from nodeproof.stress.workloads.lu import Matrix

__all__ = ["THRESHOLD", "Solved", "flop", "residual_line", "row_line", "run"]

THRESHOLD: Final = 16.0
"""Of the scaled residual, the official program's."""
_FEW_THREADS: Final = 32
_BLOCK_FEW: Final = 192
_BLOCK_MANY: Final = 128
"""With many threads the panel, which one thread factors, is what the others wait for: smaller then."""
_QUICK_S: Final = 22.0
"""At least 20 s are to be shown."""
_QUICK_LEAST_S: Final = 20.0
_SOAK_S: Final = 1800.0
_MEMORY_SHARE: Final = {"quick": 0.7, "standard": 0.7, "soak": 0.7}
"""Of the memory that may be used; for `quick` the most."""
_TRIAL_ORDER: Final = 4000
_TRIAL_TO_FULL: Final = 1.15
"""A large system is solved faster than the trial; if it is not, another is solved."""
_RULE: Final = "-" * 80
_DOUBLE_RULE: Final = "=" * 80
_VARIANT: Final = "WR10R2R1"
"""In the official column: wall time, one process, depth 1, ring, right-looking recursive."""


class Solved:
    """One system solved and checked."""

    def __init__(
        self, order: int, block: int, seconds: float, scaled_residual: float, norms: tuple[float, float, float, float]
    ) -> None:
        self.order = order
        self.block = block
        self.seconds = seconds
        self.scaled_residual = scaled_residual
        self.norms = norms
        """||Ax-b||, ||A||, ||x||, ||b||, each the largest-value norm."""

    @property
    def gflops(self) -> float:
        """The official rate."""
        return flop(self.order) / self.seconds / 1e9

    @property
    def passed(self) -> bool:
        """Whether the residual is under the threshold; a NaN is not."""
        return self.scaled_residual < THRESHOLD


def flop(order: int) -> float:
    """The official count of operations: 2/3 N^3 + 3/2 N^2."""
    return (2.0 / 3.0 * order + 1.5) * order * order


def row_line(solved: Solved) -> str:
    """The row of a test in the official columns."""
    return f"{_VARIANT}{solved.order:12d} {solved.block:5d} {1:5d} {1:5d} {solved.seconds:18.2f}    {solved.gflops:19.4e}"


def residual_line(solved: Solved) -> str:
    """The verdict of a test in the official words."""
    verdict = "PASSED" if solved.passed else "FAILED"
    return f"||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= {solved.scaled_residual:16.8e} ...... {verdict}"


def run(options: argparse.Namespace, console: Console) -> None:
    """Solve as many systems as plan and time ask for."""
    try:
        box = look(Machine.here(), options.threads)
    except ValueError as error:
        raise CannotRunError(str(error)) from None
    block = options.nb or (_BLOCK_FEW if len(box.cpus) <= _FEW_THREADS else _BLOCK_MANY)
    solver = _Solver(box, block, options.seed, console)
    solver.compile()
    order = _order(options, box, block, solver)
    matrix = _allocate(order)
    _header(console, order, block, box)
    least_s = _least_seconds(options)
    started, solved = time.monotonic(), list[Solved]()
    while True:
        solved.append(solver.test(matrix, order, len(solved), options.tests))
        _tell(console, solved[-1])
        enough = time.monotonic() - started >= least_s if options.tests is None else len(solved) >= options.tests
        if enough:
            break
    _footer(console, solved)
    _result(console, options, box, solved)


def _least_seconds(options: argparse.Namespace) -> float:
    """For how long systems are solved; a `standard` run is one system, however long it takes."""
    if options.seconds is not None:
        return float(options.seconds)
    if options.order is not None:
        return 0.0
    return {"quick": _QUICK_LEAST_S, "standard": 0.0, "soak": _SOAK_S}[options.plan]


def _order(options: argparse.Namespace, box: Box, block: int, solver: "_Solver") -> int:
    """Order of the system. Raises CannotRunError when its matrix does not fit into the memory that may be used."""
    most = int(math.sqrt(box.memory_bytes / 8.0)) - block
    if options.order is not None:
        if options.order > most:
            need, room = 8 * options.order**2 / 2**30, box.memory_bytes / 2**30
            raise CannotRunError(
                f"N={options.order} needs {need:.2f} GiB, {room:.2f} GiB may be used; at most N={max(most, 0)} fits"
            )
        return int(options.order)
    largest = int(math.sqrt(_MEMORY_SHARE[options.plan] * box.memory_bytes / 8.0)) // block * block
    if largest < block:
        raise CannotRunError(f"no room for a matrix: {box.memory_bytes / 2**20:.0f} MiB may be used")
    if options.plan != "quick":
        return largest
    rate = solver.trial(min(_TRIAL_ORDER, largest)) * _TRIAL_TO_FULL
    wanted = (1.5 * rate * (options.seconds or _QUICK_S)) ** (1.0 / 3.0)
    return int(max(block, min(largest, math.ceil(wanted / block) * block)))


def _allocate(order: int) -> Matrix:
    """Room for matrix and right-hand side, untouched. Columns are kept off the same cache sets."""
    rows = -(-order // 8) * 8
    if rows * 8 % 2048 == 0:
        rows += 8
    return np.empty((rows, order + 1), order="F")


class _Solver:
    """Solves systems on the CPUs of the box."""

    def __init__(self, box: Box, block: int, seed: int, console: Console) -> None:
        self._cpus = box.cpus
        self._block = block
        self._seed = seed
        self._console = console
        functions = lu.blas()
        self._calls = [lu.call(functions) for _ in box.cpus]

    def compile(self) -> None:
        """Have every kernel compiled or loaded, on a system too small to count."""
        matrix, order, block = _allocate(64), 64, 16
        with native.watch_compiling(self._console):
            lu.fill(matrix, order, self._seed, block, 0, 1, np.zeros(lu.WIDE, np.int64))
            lu.solve(matrix, 0, 1, self._calls[0], lu.state(order, block))
            lu.residual(matrix[:order, order].copy(), self._seed, 0, 1, np.zeros((1, 3)), np.zeros(lu.WIDE, np.int64))

    def trial(self, order: int) -> float:
        """FLOP/s on a small system, to size a large one; the better of two."""
        matrix = _allocate(order)
        rates = []
        for _ in range(2):
            self._fill(matrix, order, self._seed, "trial")
            rates.append(flop(order) / self._solve(matrix, order, self._block, "trial"))
        return max(rates)

    def test(self, matrix: Matrix, order: int, index: int, tests: int | None) -> Solved:
        """Make a system, solve it, check the solution against the system made anew."""
        seed = self._seed + index
        suffix = "" if index == 0 and tests in (None, 1) else f" {index + 1}"
        self._fill(matrix, order, seed, f"setup{suffix}")
        seconds = self._solve(matrix, order, self._block, f"factor{suffix}")
        solution = matrix[:order, order].copy()
        left, norm, largest = self._residual(solution, seed, f"verify{suffix}")
        size = float(np.abs(solution).max())
        scaled = left / (np.finfo(np.float64).eps * (norm * size + largest) * order)
        return Solved(order, self._block, seconds, float(scaled), (left, norm, size, largest))

    def _fill(self, matrix: Matrix, order: int, seed: int, phase: str) -> None:
        threads, panels = len(self._cpus), -(-(order + 1) // self._block)
        done = np.zeros(threads * lu.WIDE, np.int64)
        team.run(
            self._cpus,
            lambda rank: lu.fill(matrix, order, seed, self._block, rank, threads, done),
            lambda: self._console.beat(phase, int(done.sum()), panels, unit="panels"),
        )

    def _solve(self, matrix: Matrix, order: int, block: int, phase: str) -> float:
        """Solve in place; seconds."""
        threads, shared = len(self._cpus), lu.state(order, block)
        panels = -(-order // block)
        updates = panels * (panels + 1) // 2  # each panel's columns by all before it, and the right-hand side by all
        all_flop = flop(order)

        def watch() -> None:
            done = int(shared.applied.sum())
            work_done = _flop_done(shared.applied, order, block) if done < updates else all_flop
            self._console.beat(phase, done, updates, unit="updates", work_done=work_done, rate_unit="FLOP/s")

        team.run(self._cpus, lambda rank: lu.solve(matrix, rank, threads, self._calls[rank], shared), watch)
        return float(shared.times[1] - shared.times[0]) / 1e9

    def _residual(self, solution: native.Floats, seed: int, phase: str) -> tuple[float, float, float]:
        threads = len(self._cpus)
        parts, done = np.zeros((threads, 3)), np.zeros(threads * lu.WIDE, np.int64)
        chunks = -(-solution.size // lu.CHUNK)
        team.run(
            self._cpus,
            lambda rank: lu.residual(solution, seed, rank, threads, parts, done),
            lambda: self._console.beat(phase, int(done.sum()), chunks, unit="chunks"),
        )
        left, norm, largest = (float(value) for value in parts.max(axis=0))
        return left, norm, largest


def _flop_done(applied: native.Words, order: int, block: int) -> float:
    """Operations behind the updates done so far: step k on one panel is a product of (N - k block) x block x block."""
    steps = applied[:-1].astype(np.float64)
    return float((2.0 * block * block * (order * steps - block * steps * steps / 2.0)).sum())


def _header(console: Console, order: int, block: int, box: Box) -> None:
    for line in (
        _DOUBLE_RULE,
        "HPL benchmark, nodeproof's own implementation (not HPL 2.3 of the University of Tennessee)",
        f"LU with partial pivoting; one process, {len(box.cpus)} threads; BLAS of scipy {scipy.__version__}",
        _DOUBLE_RULE,
        "",
        f"N      : {order:8d}",
        f"NB     : {block:8d}",
        f"P      : {1:8d}",
        f"Q      : {1:8d}",
        "",
        _RULE,
        "",
        "- The matrix A is randomly generated for each test.",
        "- The following scaled residual check will be computed:",
        "      ||Ax-b||_oo / ( eps * ( || x ||_oo * || A ||_oo + || b ||_oo ) * N )",
        f"- eps is {np.finfo(np.float64).eps:.6e}; a test passes below {THRESHOLD:.1f}",
        "",
    ):
        console.line(line)


def _tell(console: Console, solved: Solved) -> None:
    console.line(_DOUBLE_RULE)
    console.line("T/V                N    NB     P     Q               Time                 Gflops")
    console.line(_RULE)
    console.line(row_line(solved))
    console.line(_RULE)
    console.line(residual_line(solved))
    if not solved.passed:
        for name, value in zip(("||Ax-b||_oo", "||A||_oo", "||x||_oo", "||b||_oo"), solved.norms, strict=True):
            console.line(f"{name:<48}= {value:18.6f}")


def _footer(console: Console, solved: list[Solved]) -> None:
    passed = sum(test.passed for test in solved)
    for line in (
        _DOUBLE_RULE,
        "",
        f"Finished {len(solved):6d} tests with the following results:",
        f"         {passed:6d} tests completed and passed residual checks,",
        f"         {len(solved) - passed:6d} tests completed and failed residual checks,",
        f"         {0:6d} tests skipped because of illegal input values.",
        _RULE,
        "",
        "End of Tests.",
        _DOUBLE_RULE,
    ):
        console.line(line)


def _result(console: Console, options: argparse.Namespace, box: Box, solved: list[Solved]) -> None:
    best = max(solved, key=lambda test: test.gflops)
    console.result(
        {
            "plan": options.plan,
            "threads": len(box.cpus),
            "cpus": list(box.cpus),
            "n": best.order,
            "nb": best.block,
            "p": 1,
            "q": 1,
            "seed": options.seed,
            "memory_usable_bytes": box.memory_bytes,
            "gflops": best.gflops,
            "time_seconds": best.seconds,
            "passed": all(test.passed for test in solved),
            "failures": [residual_line(test) for test in solved if not test.passed],
            "tests": [
                {"time_seconds": test.seconds, "gflops": test.gflops, "scaled_residual": test.scaled_residual} for test in solved
            ],
            "versions": {"numpy": np.__version__, "scipy": scipy.__version__},
        }
    )
