"""LU and the HPL run: solutions known by another library, the official figures, verdicts of bad solutions."""

import argparse
import io
import math

import numpy as np
import pytest

from support.workloads import ARRANGED, result, team_of

assert ARRANGED

from nodeproof.stress.parsers import hpl as hpl_parser  # noqa: E402 - the environment stands first
from nodeproof.stress.workloads import hpl_job, lu, team  # noqa: E402 - the same
from nodeproof.stress.workloads.box import Box  # noqa: E402 - the same
from nodeproof.stress.workloads.console import Console  # noqa: E402 - the same
from nodeproof.stress.workloads.hpl_job import Solved  # noqa: E402 - the same
from nodeproof.stress.workloads.launch import CannotRunError  # noqa: E402 - the same

pytestmark = pytest.mark.timeout(120)
GIB = 1 << 30


def _system(order: int, stride: int, block: int, threads: int, seed: int = 42) -> tuple[lu.Matrix, lu.Matrix]:
    matrix = np.zeros((stride, order + 1), order="F")
    for rank in range(threads):
        lu.fill(matrix, order, seed, block, rank, threads, np.zeros(threads * lu.WIDE, np.int64))
    return matrix, matrix[:order].copy()


def _solve(matrix: lu.Matrix, order: int, block: int, threads: int) -> lu.State:
    shared, functions = lu.state(order, block), lu.blas()
    calls = [lu.call(functions) for _ in range(threads)]
    team.run(team_of(threads), lambda rank: lu.solve(matrix, rank, threads, calls[rank], shared), lambda: None)
    return shared


@pytest.mark.parametrize(("order", "block"), [(1, 8), (7, 8), (8, 8), (9, 8), (64, 16), (65, 16), (200, 32)])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_solution_is_that_of_another_solver(order: int, block: int, threads: int) -> None:
    matrix, before = _system(order, order + 3, block, threads)
    shared = _solve(matrix, order, block, threads)
    wanted = np.linalg.solve(before[:, :order], before[:, order])
    assert np.abs(matrix[:order, order] - wanted).max() <= 1e-9 * max(1.0, np.abs(wanted).max())
    assert shared.factored.tolist()[:-1] == [1] * -(-order // block)
    assert shared.factored[-1] == 0
    assert shared.times[1] >= shared.times[0] > 0


def test_elements_are_uniform_from_minus_to_plus_a_half_and_depend_on_their_place_alone() -> None:
    one, _ = _system(120, 120, 16, 1)
    two, _ = _system(120, 128, 32, 3)
    assert np.array_equal(one, two[:120])
    assert -0.5 <= one.min() < -0.49 < 0.49 < one.max() < 0.5
    assert abs(one.mean()) < 0.01
    assert abs(one.std() - math.sqrt(1 / 12)) < 0.005
    assert len(np.unique(one)) == one.size


def test_a_singular_panel_is_noted() -> None:
    matrix, _ = _system(32, 32, 8, 1)
    matrix[:, 10] = 0.0
    assert _solve(matrix, 32, 8, 1).factored[-1] == 2  # column 10 is in the second panel


def test_the_residual_is_that_of_the_whole_system() -> None:
    order = 700  # more than one chunk of rows
    _, system = _system(order, order, 32, 1)
    solution = np.linspace(-2.0, 3.0, order)
    parts = np.zeros((2, 3))
    for rank in range(2):
        lu.residual(solution, 42, rank, 2, parts, np.zeros(2 * lu.WIDE, np.int64))
    left, norm, largest = parts.max(axis=0)
    assert left == pytest.approx(np.abs(system[:, order] - system[:, :order] @ solution).max(), rel=1e-12)
    assert norm == pytest.approx(np.abs(system[:, :order]).sum(axis=1).max(), rel=1e-12)
    assert largest == np.abs(system[:, order]).max()


def test_a_nan_in_the_solution_is_not_lost() -> None:
    solution = np.ones(64)
    solution[5] = np.nan
    parts = np.zeros((1, 3))
    lu.residual(solution, 42, 0, 1, parts, np.zeros(lu.WIDE, np.int64))
    assert math.isnan(parts[0, 0])
    assert not Solved(64, 8, 1.0, float(parts[0, 0]), (1.0, 1.0, 1.0, 1.0)).passed


def test_the_official_count_and_lines() -> None:
    # 2/3 1000^3 + 3/2 1000^2 = 668166666.67 operations in half a second
    solved = Solved(1000, 192, 0.5, 2.29383104e-03, (1.0, 2.0, 3.0, 4.0))
    assert solved.gflops == pytest.approx(1.3363333333)
    assert hpl_job.row_line(solved) == "WR10R2R1        1000   192     1     1               0.50             1.3363e+00"
    assert hpl_job.residual_line(solved) == "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.29383104e-03 ...... PASSED"


@pytest.mark.parametrize(("residual", "passed"), [(15.999, True), (16.0, False), (math.nan, False), (math.inf, False)])
def test_the_threshold_is_sixteen(residual: float, passed: bool) -> None:  # noqa: FBT001 - a case
    solved = Solved(8, 8, 1.0, residual, (1.0, 1.0, 1.0, 1.0))
    assert solved.passed is passed
    assert hpl_job.residual_line(solved).endswith("PASSED" if passed else "FAILED")


def _options(**changes: object) -> argparse.Namespace:
    base: dict[str, object] = {
        "plan": "quick",
        "seconds": None,
        "threads": 1,
        "order": None,
        "nb": None,
        "tests": None,
        "seed": 42,
    }
    return argparse.Namespace(**(base | changes))


def _box(monkeypatch: pytest.MonkeyPatch, memory_bytes: int) -> None:
    monkeypatch.setattr(hpl_job, "look", lambda *_: Box((team_of(1)[0],), memory_bytes, 32 << 20, llc_known=True))


def _run(**changes: object) -> str:
    stream = io.StringIO()
    hpl_job.run(_options(**changes), Console("hpl", stream=stream))
    return stream.getvalue()


def test_a_run_is_read_by_the_parser_of_the_official_program(monkeypatch: pytest.MonkeyPatch) -> None:
    _box(monkeypatch, GIB)
    output = _run(order=300, tests=2, nb=64)
    found = hpl_parser.parse(output.encode())
    assert [(row.n, row.nb, row.p, row.q) for row in found.rows] == [(300, 64, 1, 1)] * 2
    assert [[residual.passed for residual in row.residuals] for row in found.rows] == [[True]] * 2
    assert (found.tests_finished, found.tests_passed, found.tests_failed, found.tests_skipped, found.ended) == (2, 2, 0, 0, True)
    assert hpl_parser.judge(found).correctness == "validated"
    assert "not HPL 2.3" in output
    fields = result(output)
    assert (fields["n"], fields["passed"], len(fields["tests"])) == (300, True, 2)
    assert fields["gflops"] == max(test["gflops"] for test in fields["tests"])


def test_a_wrong_solution_is_told_as_the_official_program_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    _box(monkeypatch, GIB)
    solve = lu.solve

    def spoil(matrix: lu.Matrix, rank: int, threads: int, call: lu.Call, shared: lu.State) -> None:
        solve(matrix, rank, threads, call, shared)
        matrix[0, shared.rows] *= 1.0 + 1e-6

    monkeypatch.setattr(lu, "solve", spoil)
    output = _run(order=200, nb=64)
    found = hpl_parser.parse(output.encode())
    assert (found.tests_passed, found.tests_failed, found.ended) == (0, 1, True)
    assert hpl_parser.judge(found).correctness == "failed"
    assert "||A||_oo" in output.split("FAILED")[1]
    assert result(output)["passed"] is False


def test_standard_fills_seven_tenths_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    _box(monkeypatch, 8 * 1000**2)
    fields = result(_run(plan="standard", nb=8))
    # sqrt(0.7 * 8e6 / 8) = 836.66, in whole panels of 8: 832
    assert fields["n"] == 832
    assert 0.6 <= 8 * fields["n"] ** 2 / fields["memory_usable_bytes"] <= 0.8


def test_quick_solves_again_until_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    _box(monkeypatch, 8 * 400**2)
    fields = result(_run(seconds=1, nb=8))
    assert fields["n"] <= 336  # by memory, not by time
    assert len(fields["tests"]) > 1
    assert all(test["scaled_residual"] < 16 for test in fields["tests"])


def test_what_does_not_fit_is_refused_with_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    _box(monkeypatch, 8 * 1000**2)
    with pytest.raises(CannotRunError, match=r"N=2000 needs 0.03 GiB, 0.01 GiB may be used; at most N=936 fits"):
        _run(order=2000, nb=64)
    _box(monkeypatch, 1000)
    with pytest.raises(CannotRunError, match="no room for a matrix"):
        _run(plan="standard", nb=64)


def test_too_many_threads_are_refused() -> None:
    with pytest.raises(CannotRunError, match="CPUs may be used"):
        _run(threads=100_000)
