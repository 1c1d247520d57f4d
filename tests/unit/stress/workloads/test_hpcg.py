"""HPCG: the problem, the schedule that keeps the order, convergence, symmetry, and the official counts."""

import argparse
import io
import re

import numpy as np
import pytest

from support.workloads import ARRANGED, result, team_of

assert ARRANGED

from nodeproof.stress.parsers import hpcg as hpcg_parser  # noqa: E402 - the environment stands first
from nodeproof.stress.workloads import hpcg_job, hpcg_problem, hpcg_report, hpcg_schedule  # noqa: E402 - the same
from nodeproof.stress.workloads.box import Box  # noqa: E402 - the same
from nodeproof.stress.workloads.console import Console  # noqa: E402 - the same
from nodeproof.stress.workloads.hpcg_job import Hpcg  # noqa: E402 - the same
from nodeproof.stress.workloads.hpcg_problem import Grid, Reference  # noqa: E402 - the same
from nodeproof.stress.workloads.hpcg_report import Measured  # noqa: E402 - the same
from nodeproof.stress.workloads.launch import CannotRunError  # noqa: E402 - the same
from nodeproof.stress.workloads.native import Floats  # noqa: E402 - the same

pytestmark = pytest.mark.timeout(120)


def _reference(grid: Grid) -> tuple[Reference, Floats]:
    values, columns = np.zeros((grid.rows, hpcg_problem.WIDTH)), np.zeros((grid.rows, hpcg_problem.WIDTH), np.uint32)
    counts, b = np.zeros(grid.rows, np.uint8), np.zeros(grid.rows)
    made = hpcg_problem.generate(grid.nx, grid.ny, grid.nz, 0, grid.nz, values, columns, counts, b)
    assert made == grid.nonzeros
    empty = np.zeros(0, np.uint32)
    return Reference(values, columns, counts, empty, np.zeros(grid.rows), np.zeros(grid.rows), np.zeros(grid.rows)), b


def _dense(reference: Reference) -> Floats:
    rows = reference.counts.size
    matrix = np.zeros((rows, rows))
    for row in range(rows):
        for place in range(reference.counts[row]):
            matrix[row, reference.columns[row, place]] = reference.values[row, place]
    return matrix


def test_the_matrix_is_the_27_point_operator_and_all_ones_solve_it() -> None:
    reference, b = _reference(Grid(4, 3, 5))
    matrix = _dense(reference)
    assert np.array_equal(matrix, matrix.T)
    assert set(np.unique(matrix)) == {-1.0, 0.0, 26.0}
    assert np.count_nonzero(matrix) == (3 * 4 - 2) * (3 * 3 - 2) * (3 * 5 - 2)
    assert np.array_equal(matrix @ np.ones(60), b)
    assert sorted(set(reference.counts.tolist())) == [8, 12, 18, 27]  # corner, edge, face, inside


@pytest.mark.parametrize("grid", [Grid(16, 16, 12), Grid(8, 16, 16), Grid(17, 16, 16)])
def test_a_grid_that_cannot_be_halved_three_times_is_refused(grid: Grid) -> None:
    with pytest.raises(ValueError, match="multiple of 8 from 16"):
        hpcg_problem.grids(grid)


@pytest.mark.parametrize("order", ["chunks", "levels"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_rows_done_at_the_same_time_do_not_refer_to_each_other(order: str, threads: int) -> None:
    grid = Grid(8, 8, 16)
    reference, _ = _reference(grid)
    plan = hpcg_schedule.plan(reference, grid.nx, threads, order)
    assert sorted(plan.first_row.tolist()) == list(range(0, grid.rows, plan.block))
    matrix = _dense(reference) != 0
    for step in range(plan.bounds.shape[1] - 1):
        shares = []
        for rank in range(threads):
            blocks = plan.first_row[plan.bounds[rank, step] : plan.bounds[rank, step + 1]]
            shares.append([row for first in blocks for row in range(first, first + plan.block)])
        for rank, share in enumerate(shares):
            for other in shares[rank + 1 :]:
                assert not matrix[np.ix_(share, other)].any()


def test_levels_keep_the_natural_order() -> None:
    grid = Grid(8, 8, 8)
    reference, _ = _reference(grid)
    plan = hpcg_schedule.plan(reference, grid.nx, 2, "levels")
    when = np.zeros(grid.rows)
    for rank in range(2):
        for step in range(plan.bounds.shape[1] - 1):
            for first in plan.first_row[plan.bounds[rank, step] : plan.bounds[rank, step + 1]]:
                when[first : first + plan.block] = step
    rows, columns = np.nonzero(_dense(reference))
    lower = (columns < rows) & (columns // plan.block != rows // plan.block)
    assert (when[columns[lower]] < when[rows[lower]]).all()


def test_chunks_that_are_too_short_are_refused_and_levels_taken_by_themselves() -> None:
    grid = Grid(8, 8, 8)
    reference, _ = _reference(grid)
    assert hpcg_schedule.plan(reference, grid.nx, 8).bounds.shape[1] > 3
    hpcg = Hpcg(hpcg_problem.grids(Grid(16, 16, 16)), tuple(team_of(9)), "chunks", Console("hpcg", stream=io.StringIO()))
    hpcg.set_up()
    with pytest.raises(CannotRunError, match="two chunks for each of 9 threads"):
        hpcg.optimize("chunks")


def test_a_line_without_divisors_from_eight_is_taken_whole() -> None:
    grid = Grid(4, 6, 6)
    reference, _ = _reference(grid)
    assert hpcg_schedule.plan(reference, grid.nx, 2, "levels").block == 4


def _ready(threads: int, order: str | None = None, points: int = 16) -> tuple[Hpcg, float]:
    hpcg = Hpcg(
        hpcg_problem.grids(Grid(points, points, points)), tuple(team_of(threads)), order, Console("hpcg", stream=io.StringIO())
    )
    hpcg.set_up()
    _, tolerance = hpcg.refer()
    hpcg.optimize(order)
    return hpcg, tolerance


def test_one_thread_and_levels_leave_the_residual_of_the_reference() -> None:
    for threads, order in ((1, None), (2, "levels")):
        hpcg, _ = _ready(threads, order)
        scaled = [hpcg.solve("test", iterations, 0.0).scaled for iterations in (1, 5, 10)]
        reference = Hpcg(hpcg_problem.grids(Grid(16, 16, 16)), tuple(team_of(1)), None, Console("hpcg", stream=io.StringIO()))
        reference.set_up()
        for iterations, found in zip((1, 5, 10), scaled, strict=True):
            assert found == pytest.approx(reference.reference_residual(iterations), rel=1e-6)


def test_chunks_need_few_iterations_more() -> None:
    hpcg, tolerance = _ready(2, "chunks")
    outcome = hpcg.solve("test", 500, tolerance)
    assert outcome.scaled <= tolerance
    assert 45 <= outcome.iterations <= 56


@pytest.mark.parametrize(("threads", "order"), [(1, None), (2, "chunks"), (2, "levels")])
def test_convergence_and_symmetry(threads: int, order: str | None) -> None:
    hpcg, _ = _ready(threads, order)
    plain, preconditioned = hpcg.test_convergence()
    assert (plain <= 12, preconditioned <= 2) == (True, True)
    multiply, multigrid = hpcg.test_symmetry(7)
    assert multiply <= 1.0
    assert multigrid <= 1.0
    # the diagonal and the right-hand side are back: thirty iterations solve the system, and all ones are the solution
    assert hpcg.solve("test", 30, 0.0).scaled < 1e-12
    assert np.abs(hpcg.solution - 1.0).max() < 1e-9


def test_an_asymmetric_operator_is_noticed() -> None:
    hpcg, _ = _ready(1)
    finest = hpcg.levels[0]
    finest.values[100, 0] = 5.0
    multiply, _ = hpcg.test_symmetry(7)
    assert multiply > 1.0


def test_the_fast_form_is_made_before_it_is_used() -> None:
    hpcg = Hpcg(hpcg_problem.grids(Grid(16, 16, 16)), tuple(team_of(1)), None, Console("hpcg", stream=io.StringIO()))
    with pytest.raises(RuntimeError, match="optimize"):
        hpcg.test_convergence()


# A run of the reference HPCG 3.1 itself (64 x 64 x 64, one process, two sets of fifty iterations) printed these figures.
REFERENCE_TOTAL_S, REFERENCE_SETUP_S, REFERENCE_OPTIMIZE_S = 6.84393, 0.418981, 4.51e-07


def _measured(**changes: object) -> Measured:
    base = Measured(
        grids=hpcg_problem.grids(Grid(64, 64, 64)),
        threads=2,
        order="chunks",
        sets=2,
        iterations=50,
        reached=True,
        setup_s=REFERENCE_SETUP_S,
        optimize_s=REFERENCE_OPTIMIZE_S,
        reference_pair_s=0.126534,
        total_s=REFERENCE_TOTAL_S,
        dot_s=0.349375,
        update_s=0.179213,
        multiply_s=0.621314,
        multigrid_s=5.69374,
        plain_iterations=11,
        preconditioned_iterations=1,
        departure_multiply=1.34732e-07,
        departure_multigrid=2.15571e-07,
        residual_mean=1.13589e-11,
        residual_variance=0.0,
        data_bytes=187_353_000,
        optimized_bytes=0,
    )
    return base._replace(**changes)  # type: ignore[arg-type]  # names and values come from the cases


def _value(lines: list[str], name: str) -> str:
    return next(line.rpartition("=")[2] for line in lines if line.rpartition("=")[0].endswith(name))


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("Number of Nonzero Terms", "6859000"),
        ("Raw DDOT", "1.58335e+08"),
        ("Floating Point Operations Summary::Raw SpMV", "1.39924e+09"),
        ("Floating Point Operations Summary::Raw MG", "7.79118e+09"),
        ("Floating Point Operations Summary::Total", "9.50709e+09"),
        ("Floating Point Operations Summary::Total with convergence overhead", "9.50709e+09"),
        ("Raw Read B/W", "8.56347"),
        ("Raw Write B/W", "1.97926"),
        ("Raw Total B/W", "10.5427"),
        ("GB/s Summary::Total with convergence and optimization phase overhead", "10.4152"),
        ("GFLOP/s Summary::Raw MG", "1.36838"),
        ("GFLOP/s Summary::Raw Total", "1.38913"),
        ("GFLOP/s Summary::Total with convergence and optimization phase overhead", "1.37232"),
        ("HPCG result is VALID with a GFLOP/s rating of", "1.37232"),
        ("HPCG 2.4 rating for historical reasons is", "1.38913"),
        ("Results are valid but execution time (sec) is", "6.84393"),
    ],
)
def test_the_counts_and_rates_are_those_of_the_reference_program(name: str, printed: str) -> None:
    assert _value(hpcg_report.report(_measured()), name) == printed


def test_iterations_beyond_fifty_count_against_the_rate() -> None:
    more = _measured(iterations=60)
    assert hpcg_report.work(more.grids, 2, 60).flop > 1.19 * hpcg_report.work(more.grids, 2, 50).flop
    # the numerator is that of fifty iterations but for the few operations before the first
    assert hpcg_report.rating(more) == pytest.approx(hpcg_report.rating(_measured()), rel=2e-3)
    assert hpcg_report.rating(more) < hpcg_report.rating(_measured())


@pytest.mark.parametrize(
    "changes",
    [
        {"plain_iterations": 13},
        {"preconditioned_iterations": 3},
        {"departure_multiply": 1.5},
        {"departure_multigrid": float("nan")},
        {"reached": False},
        {"residual_variance": 1e-3},
    ],
)
def test_any_failed_test_makes_the_result_invalid(changes: dict[str, object]) -> None:
    measured = _measured(**changes)
    lines = hpcg_report.report(measured)
    assert lines[-1] == "Final Summary::HPCG result is=INVALID."
    assert sum("Result=FAILED" in line for line in lines) == 1
    assert len(hpcg_report.failures(measured)) == 1
    assert hpcg_parser.judge(hpcg_parser.parse("\n".join(lines).encode())).correctness == "failed"


def test_a_long_run_says_nothing_of_its_length() -> None:
    lines = hpcg_report.report(_measured(total_s=1800.0))
    assert not any("execution time" in line for line in lines)
    assert hpcg_parser.judge(hpcg_parser.parse("\n".join(lines).encode())).correctness == "validated"


def _options(**changes: object) -> argparse.Namespace:
    base: dict[str, object] = {
        "plan": "quick",
        "seconds": 1,
        "threads": None,
        "nx": 16,
        "ny": None,
        "nz": None,
        "order": None,
        "seed": 3,
    }
    return argparse.Namespace(**(base | changes))


def _box(monkeypatch: pytest.MonkeyPatch, memory_bytes: int = 1 << 30, llc_bytes: int = 32 << 20) -> Box:
    box = Box(tuple(team_of(1)), memory_bytes, llc_bytes, llc_known=True)
    monkeypatch.setattr(hpcg_job, "look", lambda *_: box)
    return box


def test_a_run_is_read_by_the_parser_of_the_official_report(monkeypatch: pytest.MonkeyPatch) -> None:
    _box(monkeypatch)
    stream = io.StringIO()
    hpcg_job.run(_options(nz=24), Console("hpcg", stream=stream))
    output = stream.getvalue()
    found = hpcg_parser.parse(output.encode())
    assert hpcg_parser.judge(found).correctness == "validated"
    fields = result(output)
    assert (fields["nx"], fields["ny"], fields["nz"], fields["order"], fields["passed"]) == (16, 16, 24, "chunks", True)
    assert fields["iterations_per_set"] >= 50
    assert fields["gflops"] == pytest.approx(found.rating_gflops, rel=1e-5)
    assert re.search(r"own implementation \(not the reference HPCG 3.1\)", output)


@pytest.mark.parametrize(
    ("plan", "llc_mib", "points"),
    [
        ("quick", 4, 64),  # the least
        ("quick", 64, 80),  # 2 x 64 MiB / 324 B = 414252 rows: 74.5 along each axis
        ("quick", 1024, 128),  # the most
        ("standard", 32, 104),
        ("standard", 512, 192),  # 4 x 512 MiB / 324 B: 187.8
        ("soak", 32, 224),  # a quarter of 16 GiB at 425 B a row: 216.2
    ],
)
def test_the_grid_follows_plan_caches_and_memory(monkeypatch: pytest.MonkeyPatch, plan: str, llc_mib: int, points: int) -> None:
    box = _box(monkeypatch, 16 << 30, llc_mib << 20)
    assert hpcg_job.finest(_options(plan=plan, nx=None), box) == Grid(points, points, points)


def test_what_cannot_run_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _box(monkeypatch, 1 << 20)
    with pytest.raises(CannotRunError, match="4096 rows need 3 MiB, 1 MiB may be used"):
        hpcg_job.run(_options(), Console("hpcg", stream=io.StringIO()))
    with pytest.raises(CannotRunError, match="multiple of 8"):
        hpcg_job.run(_options(nx=17), Console("hpcg", stream=io.StringIO()))
