"""HPL."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.job import Correctness
from nodeproof.stress.parsers.hpl import judge, operations, parse
from nodeproof.stress.parsers.judgement import Judgement
from support.benchmark_outputs import hpl_output, hpl_residual, hpl_row, hpl_summary, recorded


def _judge(text: str | bytes) -> Judgement:
    return judge(parse(text if isinstance(text, bytes) else text.encode()))


def test_case_01_progress_lines_of_a_vendor_are_no_result() -> None:
    judgement = _judge(recorded("01"))
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values == {
        "n": 384000,
        "nb": 384,
        "p": 1,
        "q": 2,
        "process": 2,
        "time_seconds": 4645.37,
        "gflops": 8126.1,
    }
    details = judgement.details
    assert (details["progress_first_gflops"], details["progress_last_gflops"]) == (7818.0, 8128.0)
    assert details["rows"][0]["residuals"] == [{"value": 4.12139792e-03, "printed": "4.12139792e-03", "passed": True}]
    assert (details["tests_passed"], details["tests_failed"], details["tests_skipped"]) == (1, 0, 0)
    assert (details["version"], details["threshold"], details["ended"]) == ("2.3", 16.0, True)
    assert judgement.reason == "1 of 1 tests passed their residual check"
    assert [item.line_no for item in judgement.evidence] == [51, 57, 60, 61, 62, 63, 66]


def test_case_03_a_failed_residual_publishes_no_rate() -> None:
    judgement = _judge(recorded("03"))
    assert (judgement.correctness, judgement.cause, judgement.values) == (Correctness.FAILED, "failed_residual", {})
    row = judgement.details["rows"][0]
    assert (row["gflops"], row["residuals"][0]["value"]) == (17.23, 0.0033977)
    assert judgement.details["tests_failed"] == 1
    assert judgement.details["threshold"] == 0.0


def test_case_05_a_grid_larger_than_the_ranks_names_hpls_own_reason() -> None:
    judgement = _judge(recorded("05"))
    assert (judgement.correctness, judgement.cause, judgement.crashed) == (Correctness.NOT_PROVEN, "config_error", True)
    assert judgement.reason == "HPL says: Need at least 4 processes for these tests"
    assert judgement.values == {}


def test_case_07_a_nan_residual_has_failed() -> None:
    judgement = _judge(recorded("07"))
    assert (judgement.correctness, judgement.cause, judgement.values) == (Correctness.FAILED, "failed_residual", {})
    residual = judgement.details["rows"][0]["residuals"][0]
    assert math.isnan(residual["value"])
    assert residual["printed"] == "nan"


def test_case_09_the_rate_per_gpu_is_not_the_rate() -> None:
    judgement = _judge(recorded("09"))
    assert judgement.correctness is Correctness.VALIDATED
    expected = {"n": 264192, "nb": 1024, "p": 4, "q": 2, "process": 8, "time_seconds": 37.29, "gflops": 329600.0}
    assert judgement.values == expected
    assert judgement.details["rows"][0]["gflops_per_gpu"] == 41200.0


@pytest.mark.parametrize("rate", ["5.5337e+02", "553.37", "5.5337E+02"])
def test_float_and_exponent_forms(rate: str) -> None:
    row = f"WR00C2R4       50000   256     4     2             150.60             {rate}\n"
    judgement = _judge(hpl_output([row]))
    assert judgement.values["gflops"] == 553.37
    assert judgement.values["process"] == 8


def test_operations_are_hpls() -> None:
    assert operations(3) == 2 / 3 * 27 + 1.5 * 9


@pytest.mark.parametrize("value", ["nan", "-nan", "NaN", "inf", "17.1"])
def test_a_residual_out_of_bounds_has_failed_even_when_it_says_passed(value: str) -> None:
    head = "- Computational tests pass if scaled residuals are less than                16.0\n"
    judgement = _judge(head + hpl_row() + hpl_residual(value) + hpl_summary(1))
    assert (judgement.correctness, judgement.cause) == (Correctness.FAILED, "failed_residual")


def test_the_threshold_in_the_words_of_the_built_in_workload() -> None:
    head = "- eps is 2.220446e-16; a test passes below 16.0\n"
    assert _judge(head + hpl_output()).details["threshold"] == 16.0
    assert _judge(head + hpl_row() + hpl_residual("17.1") + hpl_summary(1)).correctness is Correctness.FAILED


def test_a_residual_that_is_stars_proves_nothing() -> None:
    judgement = _judge(hpl_row() + hpl_residual("****************") + hpl_summary(1))
    assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "damaged")


def test_all_three_residuals_of_version_1_count() -> None:
    lines = [
        "||Ax-b||_oo / ( eps * ||A||_1  * N        ) =        0.0674622 ...... PASSED\n",
        "||Ax-b||_oo / ( eps * ||A||_1  * ||x||_1  ) =        0.0211 ...... PASSED\n",
        "||Ax-b||_oo / ( eps * ||A||_oo * ||x||_oo ) =        0.0051 ...... PASSED\n",
    ]
    judgement = _judge(hpl_row() + "".join(lines) + hpl_summary(1))
    assert judgement.correctness is Correctness.VALIDATED
    assert len(judgement.details["rows"][0]["residuals"]) == 3
    lines[1] = lines[1].replace("PASSED", "FAILED")
    assert _judge(hpl_row() + "".join(lines) + hpl_summary(1)).correctness is Correctness.FAILED


def test_f3_every_row_counts_and_the_fastest_is_the_result() -> None:
    rows = [hpl_row(50000, 150.6, 192), hpl_row(50000, 120.5, 256), hpl_row(50000, 160.0, 384)]
    judgement = _judge(hpl_output(rows))
    assert judgement.correctness is Correctness.VALIDATED
    assert (judgement.values["nb"], judgement.values["time_seconds"]) == (256, 120.5)
    assert judgement.reason == "3 of 3 tests passed their residual check, the fastest is the result"
    assert [row["nb"] for row in judgement.details["rows"]] == [192, 256, 384]


def test_f3_a_row_without_its_passed_line_is_not_proven() -> None:
    judgement = _judge(hpl_row() + hpl_residual() + hpl_row(40000, 80.0) + hpl_summary(2))
    assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "unchecked")
    assert judgement.reason == "1 of 2 tests have no residual line (first: N 40000, NB 256)"


def test_f3_without_end_of_tests_a_row_is_not_proven() -> None:
    judgement = _judge(hpl_row() + hpl_residual())
    assert (judgement.correctness, judgement.cause, judgement.values) == (Correctness.NOT_PROVEN, "incomplete", {})
    cut = hpl_output()
    assert _judge(cut[: cut.index("End of Tests")]).cause == "incomplete"


def test_f3_skipped_tests_are_not_proven() -> None:
    judgement = _judge(hpl_row() + hpl_residual() + hpl_summary(1, skipped=2))
    assert judgement.cause == "incomplete"
    assert judgement.reason == "2 tests were skipped because of illegal input values"


def test_f3_a_disabled_residual_check_is_not_proven() -> None:
    summary = hpl_summary(1).replace("completed and passed residual checks", "completed without checking")
    summary = "".join(line + "\n" for line in summary.splitlines() if "failed" not in line)
    judgement = _judge(hpl_row() + summary)
    assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "unchecked")
    assert judgement.details["tests_unchecked"] == 1
    with_residual = _judge(hpl_row() + hpl_residual() + summary)
    assert with_residual.cause == "incomplete"


def test_a_count_that_is_not_that_of_the_rows_is_not_proven() -> None:
    judgement = _judge(hpl_row() + hpl_residual() + hpl_summary(2))
    assert judgement.reason == "HPL counts 2 passed tests, and 1 rows are there"
    finished = hpl_output().replace("Finished      1", "Finished      3")
    assert _judge(finished).cause == "incomplete"


def test_failed_tests_in_the_count_are_a_failure_without_any_failed_line() -> None:
    judgement = _judge(hpl_row() + hpl_residual() + hpl_summary(0, failed=1))
    assert (judgement.correctness, judgement.reason) == (Correctness.FAILED, "HPL's own residual check failed: 1 tests failed")


def test_any_line_that_ends_in_failed_is_a_failure() -> None:
    judgement = _judge("checksum of panel 7 failed\n" + hpl_output())
    assert (judgement.correctness, judgement.evidence[0].line_no) == (Correctness.FAILED, 1)


def test_a_second_run_in_one_output_adds_to_the_counts() -> None:
    judgement = _judge(hpl_output([hpl_row(1000, 1.0)]) + hpl_output([hpl_row(2000, 4.0)]))
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.details["tests_passed"] == 2
    assert judgement.values["n"] == 2000


def test_a_row_that_contradicts_itself_is_damage() -> None:
    for rate in (553.37 * 1.1, 553.37 / 1.1):
        judgement = _judge(hpl_output([hpl_row(gflops=rate)]))
        assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "damaged")
        assert judgement.reason == "line 1: N, time and rate contradict each other"


def test_a_time_that_rounds_to_nothing_bounds_the_rate_from_below_only() -> None:
    assert _judge(hpl_output(["WR00R2R4 35 4 4 1 0.00  2.535e-01\n"])).correctness is Correctness.VALIDATED


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("WR00C2R4 50000 256 4 2 150,60 5.5337e+02\n", "line 1: '150,60' is a localised number; run the program under LC_ALL=C"),
        (
            "WR00C2R4 50000 256 4 2 150.60 5,5337e+02\n",
            "line 1: '5,5337e+02' is a localised number; run the program under LC_ALL=C",
        ),
        ("WR00C2R4 50000 256 4 2 150.60 inf\n", "line 1: 'inf' is no time or rate"),
        ("WR00C2R4 50000 256 4 2 150.60 0.0\n", "line 1: '0.0' is no time or rate"),
        ("WR00C2R4 50000 256 0 2 150.60 5.5337e+02\n", "line 1: N, NB, P and Q must be whole numbers above 0"),
        ("Column=1 WR00C2R4 50000 256 4 2 150.60 5.5337e+02\n", "line 1: a row mixed with other text"),
        ("WR00C2R4 50000 256 4 2 \n", "line 1: a row mixed with other text"),
    ],
)
def test_a_damaged_row_is_named(row: str, reason: str) -> None:
    judgement = _judge(row + hpl_residual() + hpl_summary(1))
    assert (judgement.correctness, judgement.cause, judgement.reason) == (Correctness.NOT_PROVEN, "damaged", reason)


def test_ranks_in_front_and_carriage_returns() -> None:
    tagged = "".join(f"[1,0]<stdout>:{line}\r" for line in hpl_output().splitlines())
    judgement = _judge(tagged)
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values["n"] == 50000


def test_a_table_without_a_row_and_the_legend_are_no_result() -> None:
    text = "Gflops : Rate of execution\nT/V                N    NB     P     Q               Time                 Gflops\n"
    judgement = _judge(text)
    assert (judgement.cause, judgement.crashed, judgement.reason) == ("no_result", False, "the output has no result row")


def test_memory_that_could_not_be_had_is_told() -> None:
    text = "HPL ERROR from process # 0, on line 610 of function HPL_pdtest:\n"
    text += ">>> [0,0] Memory allocation failed for A, x and b. Skip. <<<\n"
    judgement = _judge(text + hpl_summary(0, skipped=1))
    assert (judgement.cause, judgement.crashed) == ("out_of_memory", True)
    assert "Memory allocation failed for A, x and b" in judgement.reason
    assert _judge("HPL ERROR: could not read input\n>>> cut off").reason == "HPL could not read its input or get what it needs"


def test_progress_without_a_rate_is_none() -> None:
    details = _judge("Column=1 Fraction= 1%\n" + hpl_output()).details
    assert (details["progress_first_gflops"], details["progress_last_gflops"]) == (None, None)


def test_rows_without_end_prove_nothing() -> None:
    judgement = _judge(hpl_row() * 6000 + hpl_output())
    assert (judgement.correctness, judgement.reason) == (Correctness.NOT_PROVEN, "the output repeats itself without end")


@given(st.binary(max_size=300))
def test_any_bytes_are_judged_and_prove_nothing(noise: bytes) -> None:
    assert _judge(noise).correctness is not Correctness.VALIDATED


_ROW_PARTS = [
    hpl_row(),
    hpl_residual(),
    hpl_residual("nan"),
    hpl_residual(verdict="FAILED"),
    *hpl_summary(1).splitlines(keepends=True),
]


@given(st.lists(st.sampled_from([*_ROW_PARTS, "noise\n", "\xff\n"]), max_size=25))
def test_a_pass_needs_row_residual_counts_and_end(parts: list[str]) -> None:
    text = "".join(parts)
    if _judge(text).correctness is Correctness.VALIDATED:
        assert "FAILED" not in text
        assert "nan" not in text
        assert "End of Tests" in text
        assert text.count("WR00C2R4") == text.count("completed and passed")


@given(
    st.lists(
        st.tuples(st.integers(100, 10**6), st.floats(0.5, 1e5), st.integers(1, 512), st.integers(1, 64), st.integers(1, 64)),
        min_size=1,
        max_size=6,
    )
)
def test_what_hpl_prints_comes_back(tests: list[tuple[int, float, int, int, int]]) -> None:
    output = parse(hpl_output([hpl_row(n, seconds, nb, p, q) for n, seconds, nb, p, q in tests]).encode())
    assert [(row.n, row.nb, row.p, row.q) for row in output.rows] == [(n, nb, p, q) for n, _, nb, p, q in tests]
    judgement = judge(output)
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values["gflops"] == max(row.gflops for row in output.rows)
