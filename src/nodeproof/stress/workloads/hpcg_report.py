"""The official counts of HPCG's operations and bytes, its rating, and its report in the official ``section::name=value`` lines.

``Final Summary::HPCG result is VALID with a GFLOP/s rating of=3.14159``
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from nodeproof.stress.workloads.hpcg_problem import Grid

__all__ = ["OFFICIAL_S", "REFERENCE_ITERATIONS", "Measured", "Work", "failures", "rating", "report", "work"]

REFERENCE_ITERATIONS: Final = 50
OFFICIAL_S: Final = 1800.0
_SYMMETRY: Final = "Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon"
_EXPECTED_PLAIN, _EXPECTED_PRECONDITIONED = 12, 2
_VARIANCE_MOST: Final = 1e-6
_DEPARTURE_MOST: Final = 1.0
_FLOAT, _INDEX = 8.0, 4.0  # bytes


class Measured(NamedTuple):
    """What a run measured and tested."""

    grids: Sequence[Grid]
    threads: int
    order: str
    """``chunks`` or ``levels``, of the finest grid."""
    sets: int
    iterations: int
    """Of each set: as many as reach the residual of the reference's fifty, at least fifty."""
    reached: bool
    """Whether the reference's residual was reached at all."""
    setup_s: float
    optimize_s: float
    reference_pair_s: float
    total_s: float
    dot_s: float
    update_s: float
    multiply_s: float
    multigrid_s: float
    plain_iterations: int
    preconditioned_iterations: int
    departure_multiply: float
    departure_multigrid: float
    residual_mean: float
    residual_variance: float
    data_bytes: int
    optimized_bytes: int

    @property
    def converges(self) -> bool:
        """The test on a matrix with a strong diagonal: few iterations must do."""
        return self.plain_iterations <= _EXPECTED_PLAIN and self.preconditioned_iterations <= _EXPECTED_PRECONDITIONED

    @property
    def symmetric(self) -> bool:
        """Whether operator and preconditioner are symmetric; a NaN is not."""
        return self.departure_multiply <= _DEPARTURE_MOST and self.departure_multigrid <= _DEPARTURE_MOST

    @property
    def reproducible(self) -> bool:
        """Whether all sets left the same residual; a NaN is not."""
        return self.residual_variance < _VARIANCE_MOST

    @property
    def valid(self) -> bool:
        """Whether the rating counts."""
        return self.converges and self.symmetric and self.reproducible and self.reached


class Work(NamedTuple):
    """Operations and bytes of all sets, as the official program counts them: by formula, not by what was done."""

    dot: float
    update: float
    multiply: float
    multigrid: float
    read_bytes: float
    written_bytes: float

    @property
    def flop(self) -> float:
        """All operations."""
        return self.dot + self.update + self.multiply + self.multigrid


def work(grids: Sequence[Grid], sets: int, iterations: int) -> Work:
    """Count for so many sets of so many iterations."""
    total = float(sets * iterations)
    rows, nonzeros = float(grids[0].rows), float(grids[0].nonzeros)
    vectors = 3.0 * total + sets
    products = total + sets
    entry = _FLOAT + _INDEX
    multigrid = 4.0 * total * grids[-1].nonzeros
    read = vectors * 4.0 * rows * _FLOAT + products * (nonzeros * entry + rows * _FLOAT)
    written = vectors * _FLOAT * (1.0 + rows) + products * rows * _FLOAT
    for grid in grids[:-1]:
        multigrid += 10.0 * total * grid.nonzeros
        read += total * (5.0 * grid.nonzeros * entry + 3.0 * grid.rows * _FLOAT)
        written += total * _FLOAT * (grid.rows + 2.0 * grid.nonzeros)
    read += total * (2.0 * grids[-1].nonzeros * entry + grids[-1].rows * _FLOAT)
    written += total * grids[-1].rows * _FLOAT
    return Work(vectors * 2.0 * rows, vectors * 2.0 * rows, products * 2.0 * nonzeros, multigrid, read, written)


def rating(measured: Measured) -> float:
    """The official rating in GFLOP/s: iterations beyond the reference's fifty count for nothing, ten sets pay for one setup."""
    counted = work(measured.grids, measured.sets, measured.iterations).flop * REFERENCE_ITERATIONS / measured.iterations
    return counted / (measured.total_s + measured.sets * (measured.optimize_s + measured.setup_s) / 10.0) / 1e9


def failures(measured: Measured) -> list[str]:
    """The tests that failed, in a few words each."""
    tests = (
        (measured.converges, "spectral convergence test"),
        (measured.symmetric, "departure from symmetry"),
        (measured.reached, "residual of the reference not reached"),
        (measured.reproducible, "sets left different residuals"),
    )
    return [name for passed, name in tests if not passed]


def report(measured: Measured) -> list[str]:
    """The lines of the report."""
    sections = (_machine, _problem, _memory, _tests, _times, _rates, _summary)
    return [
        "HPCG-Benchmark",
        "version=nodeproof's own implementation, after the rules of 3.1",
        *(line for section in sections for line in section(measured)),
    ]


def _section(name: str, values: Sequence[tuple[str, object]]) -> list[str]:
    return [f"{name}=", *(f"{name}::{key}={_text(value)}" for key, value in values)]


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _word(passed: bool) -> str:  # noqa: FBT001 - the verdict is the argument
    return "PASSED" if passed else "FAILED"


def _machine(measured: Measured) -> list[str]:
    finest = measured.grids[0]
    return [
        *_section("Machine Summary", [("Distributed Processes", 1), ("Threads per processes", measured.threads)]),
        *_section("Global Problem Dimensions", [("Global nx", finest.nx), ("Global ny", finest.ny), ("Global nz", finest.nz)]),
        *_section("Processor Dimensions", [("npx", 1), ("npy", 1), ("npz", 1)]),
        *_section(
            "Local Domain Dimensions",
            [("nx", finest.nx), ("ny", finest.ny), ("Lower ipz", 0), ("Upper ipz", 0), ("nz", finest.nz)],
        ),
    ]


def _problem(measured: Measured) -> list[str]:
    finest, coarser = measured.grids[0], measured.grids[1:]
    lines = ["########## Problem Summary  ##########="]
    lines += _section("Setup Information", [("Setup Time", measured.setup_s)])
    lines += _section(
        "Linear System Information", [("Number of Equations", finest.rows), ("Number of Nonzero Terms", finest.nonzeros)]
    )
    lines += _section("Multigrid Information", [("Number of coarse grid levels", len(coarser))])
    name = "Multigrid Information::Coarse Grids"
    lines.append(f"{name}=")
    for depth, grid in enumerate(coarser, 1):
        values = (
            ("Grid Level", depth),
            ("Number of Equations", grid.rows),
            ("Number of Nonzero Terms", grid.nonzeros),
            ("Number of Presmoother Steps", 1),
            ("Number of Postsmoother Steps", 1),
        )
        lines += [f"{name}::{key}={value}" for key, value in values]
    return lines


def _memory(measured: Measured) -> list[str]:
    return [
        "########## Memory Use Summary  ##########=",
        *_section(
            "Memory Use Information",
            [
                ("Total memory used for data (Gbytes)", measured.data_bytes / 1e9),
                ("Memory used for OptimizeProblem data (Gbytes)", measured.optimized_bytes / 1e9),
                ("Bytes per equation (Total memory / Number of Equations)", measured.data_bytes / measured.grids[0].rows),
            ],
        ),
    ]


def _tests(measured: Measured) -> list[str]:
    spectral = "Spectral Convergence Tests"
    return [
        "########## V&V Testing Summary  ##########=",
        *_section(spectral, [("Result", _word(measured.converges))]),
        *_section(
            f"{spectral}::Unpreconditioned",
            [("Maximum iteration count", measured.plain_iterations), ("Expected iteration count", _EXPECTED_PLAIN)],
        ),
        *_section(
            f"{spectral}::Preconditioned",
            [
                ("Maximum iteration count", measured.preconditioned_iterations),
                ("Expected iteration count", _EXPECTED_PRECONDITIONED),
            ],
        ),
        *_section(
            _SYMMETRY,
            [
                ("Result", _word(measured.symmetric)),
                ("Departure for SpMV", measured.departure_multiply),
                ("Departure for MG", measured.departure_multigrid),
            ],
        ),
        "########## Iterations Summary  ##########=",
        *_section(
            "Iteration Count Information",
            [
                ("Result", _word(measured.reached)),
                ("Reference CG iterations per set", REFERENCE_ITERATIONS),
                ("Optimized CG iterations per set", measured.iterations),
                ("Total number of reference iterations", REFERENCE_ITERATIONS * measured.sets),
                ("Total number of optimized iterations", measured.iterations * measured.sets),
            ],
        ),
        "########## Reproducibility Summary  ##########=",
        *_section(
            "Reproducibility Information",
            [
                ("Result", _word(measured.reproducible)),
                ("Scaled residual mean", measured.residual_mean),
                ("Scaled residual variance", measured.residual_variance),
            ],
        ),
    ]


def _times(measured: Measured) -> list[str]:
    done = work(measured.grids, measured.sets, measured.iterations)
    return [
        "########## Performance Summary (times in sec) ##########=",
        *_section(
            "Benchmark Time Summary",
            [
                ("Optimization phase", measured.optimize_s),
                ("DDOT", measured.dot_s),
                ("WAXPBY", measured.update_s),
                ("SpMV", measured.multiply_s),
                ("MG", measured.multigrid_s),
                ("Total", measured.total_s),
            ],
        ),
        *_section(
            "Floating Point Operations Summary",
            [
                ("Raw DDOT", done.dot),
                ("Raw WAXPBY", done.update),
                ("Raw SpMV", done.multiply),
                ("Raw MG", done.multigrid),
                ("Total", done.flop),
                ("Total with convergence overhead", done.flop * REFERENCE_ITERATIONS / measured.iterations),
            ],
        ),
    ]


def _rates(measured: Measured) -> list[str]:
    done = work(measured.grids, measured.sets, measured.iterations)
    share = REFERENCE_ITERATIONS / measured.iterations
    charged_s = measured.total_s + measured.sets * (measured.optimize_s + measured.setup_s) / 10.0
    moved = done.read_bytes + done.written_bytes
    overheads = "Total with convergence and optimization phase overhead"
    return [
        *_section(
            "GB/s Summary",
            [
                ("Raw Read B/W", done.read_bytes / measured.total_s / 1e9),
                ("Raw Write B/W", done.written_bytes / measured.total_s / 1e9),
                ("Raw Total B/W", moved / measured.total_s / 1e9),
                (overheads, moved * share / charged_s / 1e9),
            ],
        ),
        *_section(
            "GFLOP/s Summary",
            [
                ("Raw DDOT", done.dot / measured.dot_s / 1e9),
                ("Raw WAXPBY", done.update / measured.update_s / 1e9),
                ("Raw SpMV", done.multiply / measured.multiply_s / 1e9),
                ("Raw MG", done.multigrid / measured.multigrid_s / 1e9),
                ("Raw Total", done.flop / measured.total_s / 1e9),
                ("Total with convergence overhead", done.flop * share / measured.total_s / 1e9),
                (overheads, rating(measured)),
            ],
        ),
        *_section(
            "User Optimization Overheads",
            [
                ("Optimization phase time (sec)", measured.optimize_s),
                ("Optimization phase time vs reference SpMV+MG time", measured.optimize_s / measured.reference_pair_s),
            ],
        ),
    ]


def _summary(measured: Measured) -> list[str]:
    if not measured.valid:
        return _section("Final Summary", [("HPCG result is", "INVALID.")])
    done = work(measured.grids, measured.sets, measured.iterations).flop * REFERENCE_ITERATIONS / measured.iterations
    values: list[tuple[str, object]] = [
        ("HPCG result is VALID with a GFLOP/s rating of", rating(measured)),
        (
            "HPCG 2.4 rating for historical reasons is",
            done / (measured.total_s + measured.sets * measured.optimize_s / 10.0) / 1e9,
        ),
    ]
    if measured.total_s < OFFICIAL_S:
        values.append(("Results are valid but execution time (sec) is", measured.total_s))
        values.append(("Official results execution time (sec) must be at least", int(OFFICIAL_S)))
    return _section("Final Summary", values)
