"""HPCG."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.job import Correctness
from nodeproof.stress.parsers.hpcg import is_result_name, judge, newest_result, parse
from nodeproof.stress.parsers.judgement import Judgement
from support.benchmark_outputs import hpcg_report, recorded


def _judge(text: str | bytes) -> Judgement:
    return judge(parse(text if isinstance(text, bytes) else text.encode()))


def test_case_23_a_short_run_is_valid_and_not_official() -> None:
    judgement = _judge(recorded("23"))
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values == {"gflops": 3.32293, "time_seconds": 22.6935}
    assert judgement.source == "result_file"
    details = judgement.details
    assert details["official"] is False
    assert (details["processes"], details["threads"], details["nx"], details["ny"], details["nz"]) == (2, 1, 64, 64, 64)
    assert (details["version"], details["memory_bytes"]) == ("3.1", 374895000.0)
    assert details["checks"] == dict.fromkeys(("convergence", "symmetry", "iterations", "reproducibility"), True)
    assert judgement.reason == "HPCG calls its result valid; rated over 22.6935 s, an official result needs 1800 s"


def test_case_24_f1_a_run_of_1800_s_takes_its_time_from_the_total() -> None:
    judgement = _judge(recorded("24"))
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values == {"gflops": 3.32293, "time_seconds": 1803.41}
    assert judgement.details["official"] is True
    assert judgement.reason.endswith("rated over 1803.41 s, long enough for an official result")


def test_case_26_version_3_puts_a_colon_and_may_hold_no_time() -> None:
    judgement = _judge(recorded("26"))
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values == {"gflops": 0.773687}
    assert judgement.details["official"] is None
    assert (judgement.details["raw_gflops"], judgement.details["converged_gflops"]) == (0.792704, 0.792704)
    assert "not an official result" in judgement.reason


def test_case_30_an_abort_names_its_cause() -> None:
    judgement = judge(parse(recorded("30"), "stdout"))
    assert (judgement.correctness, judgement.cause, judgement.crashed) == (Correctness.NOT_PROVEN, "config_error", True)
    assert "divisible by 8" in judgement.reason
    assert judgement.evidence[0].source == "stdout"
    assert judgement.values == {}


_YAML = """n104-8p-1t version: V3.0
Release date: November 11, 2015
Machine Summary:\x20
  Distributed Processes: 8
  Threads per processes: 1
Local Domain Dimensions:\x20
  nx: 104
  ny: 104
  nz: 104
########## V&V Testing Summary  ##########:\x20
Spectral Convergence Tests:\x20
  Result: PASSED
  Unpreconditioned:\x20
    Maximum iteration count: 11
Departure from Symmetry |x'Ay-y'Ax|/(2*||x||*||A||*||y||)/epsilon:\x20
  Result: PASSED
Iteration Count Information:\x20
  Result: PASSED
  Total number of reference iterations: 50
  Total number of optimized iterations: 50
Reproducibility Information:\x20
  Result: PASSED
Benchmark Time Summary:\x20
  MG: 33.8221
  Total: 50.3291
Floating Point Operations Summary:\x20
  Total: 1.67111e+11
GFLOP/s Summary:\x20
  Raw Total: 3.32037
  Total with convergence overhead: 3.32037
__________ Final Summary __________:\x20
  HPCG result is VALID with a GFLOP/s rating of: 3.28908
      HPCG 2.4 Rating (for historical value) is: 3.30425
  Results are valid but execution time (sec) is: 50.3291
       You have selected the QuickPath option: Results are official for legacy installed systems.
"""


def test_the_yaml_of_a_vendors_build() -> None:
    judgement = _judge(_YAML)
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values == {"gflops": 3.28908, "time_seconds": 50.3291}
    details = judgement.details
    assert (details["version"], details["processes"], details["nx"]) == ("3.0", 8, 104)
    assert len(details["checks"]) == 4
    assert details["quick_path"] is True
    assert details["official"] is False


def test_one_result_that_is_printed_twice_is_one_result() -> None:
    judgement = _judge("HPCG result is VALID with a GFLOP/s rating of 3.289080\n" + _YAML)
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values["gflops"] == 3.28908
    assert [item.line_no for item in judgement.evidence] == [1, 33]


def test_several_results_are_ambiguous() -> None:
    other = _judge("HPCG result is VALID with a GFLOP/s rating of 4.1\n" + _YAML)
    assert (other.correctness, other.cause) == (Correctness.NOT_PROVEN, "ambiguous")
    unread = _judge("HPCG result is VALID with a GFLOP/s rating of ?\n" + _YAML)
    assert unread.cause == "ambiguous"
    assert _judge("HPCG result is INVALID.\n" + _YAML).cause == "ambiguous"


def test_a_blank_before_the_colons_of_a_vendor() -> None:
    judgement = _judge(hpcg_report().replace("::", " :: ").replace("=22.1496", " = 22.1496"))
    assert judgement.values == {"gflops": 22.1496, "time_seconds": 62.2467}


def test_the_time_of_the_final_summary_goes_before_the_total() -> None:
    text = hpcg_report().replace("Summary::Total=62.2467", "Summary::Total=1.0")
    assert _judge(text).values["time_seconds"] == 62.2467
    assert _judge(hpcg_report(seconds=2116.07)).values["time_seconds"] == 2116.07


def test_an_invalid_result_has_failed() -> None:
    judgement = _judge(hpcg_report(verdict="INVALID"))
    assert (judgement.correctness, judgement.cause, judgement.values) == (Correctness.FAILED, "failed_validation", {})
    assert judgement.reason == "HPCG calls its result invalid"
    assert judgement.evidence[0].text == "Final Summary::HPCG result is=INVALID."


@pytest.mark.parametrize("check", ["convergence", "symmetry", "iterations", "reproducibility"])
def test_a_failed_check_beats_the_word_valid(check: str) -> None:
    judgement = _judge(hpcg_report(failing=check))
    assert (judgement.correctness, judgement.reason) == (Correctness.FAILED, f"HPCG's own check failed: {check}")
    assert judgement.evidence[0].text.endswith("Result=FAILED")
    assert _judge(hpcg_report(failing=check, verdict="INVALID")).reason == f"HPCG calls its result invalid: {check}"


def test_a_report_that_lacks_a_check_is_not_proven() -> None:
    text = hpcg_report().replace("Reproducibility Information::Result=PASSED\n", "")
    judgement = _judge(text)
    assert (judgement.cause, judgement.reason) == ("incomplete", "the report lacks the check of reproducibility")


def test_more_iterations_than_the_reference_count_against_the_rate() -> None:
    # 22.5 raw with 450 iterations where the reference needs 400: 22.5 x 400 / 450 = 20 is the most that the rules allow.
    honest = _judge(hpcg_report("20.0", raw="22.5", own=450))
    assert honest.correctness is Correctness.VALIDATED
    judgement = _judge(hpcg_report("22.1496", raw="22.5", own=450))
    assert (judgement.correctness, judgement.cause, judgement.values) == (Correctness.NOT_PROVEN, "rule_violation", {})
    assert judgement.reason == "rated 22.1496 GFLOP/s, and 22.5 raw with 450 iterations where the reference needs 400 allow 20"
    assert _judge(hpcg_report("22.6", raw="22.5")).cause == "rule_violation"


def test_without_iterations_the_raw_rate_is_the_limit() -> None:
    text = hpcg_report("30.0").replace("Total number of reference iterations=400", "Total number of reference iterations=?")
    assert _judge(text).cause == "rule_violation"
    assert _judge(text.replace("Raw Total=22.5", "Raw Total=?")).correctness is Correctness.VALIDATED


@pytest.mark.parametrize("rating", ["22,1496", "nan", "-3", "0", ""])
def test_a_rating_that_is_none_is_damage(rating: str) -> None:
    judgement = _judge(hpcg_report(rating))
    assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "damaged")
    assert ("LC_ALL=C" in judgement.reason) == ("," in rating)


def test_a_report_that_is_cut_off_before_its_verdict_has_no_result() -> None:
    text = hpcg_report()
    judgement = _judge(text[: text.index("Final Summary")])
    assert (judgement.cause, judgement.crashed) == ("no_result", False)
    assert _judge("HPCG result is\n").cause == "no_result"


def test_a_report_behind_megabytes_of_noise() -> None:
    noise = b"Call [0] Number of Iterations [11] Scaled Residual [5.85705e-14]\n" * 50_000
    assert _judge(noise + hpcg_report().encode()).values["gflops"] == 22.1496


def test_names_of_reports() -> None:
    assert is_result_name("HPCG-Benchmark_3.1_2026-08-17_10-00-00.txt")
    assert is_result_name("hpcg-benchmark-3.0_2016.01.08.yaml")
    assert is_result_name("n192-4p-32t_V3.1_2026.txt")
    assert not is_result_name("hpcg20260817T100000.txt")
    assert not is_result_name("notes.txt")
    assert not is_result_name("HPCG-Benchmark.csv")


def test_only_a_new_or_changed_report_is_the_result_of_this_run() -> None:
    old = {"HPCG-Benchmark_1.txt": (10, 100, "a"), "HPCG-Benchmark_2.txt": (10, 200, "b")}
    assert newest_result(old, dict(old)) is None
    assert newest_result({}, {}) is None
    assert newest_result(old, old | {"notes.txt": (1, 999, "n")}) is None
    assert newest_result(old, old | {"HPCG-Benchmark_1.txt": (10, 100, "c")}) == "HPCG-Benchmark_1.txt"
    fresh = {"HPCG-Benchmark_3.txt": (10, 300, "d"), "n8-1p-1t.yaml": (10, 301, "e")}
    assert newest_result(old, old | fresh) == "n8-1p-1t.yaml"


@given(st.binary(max_size=300))
def test_any_bytes_are_judged_and_prove_nothing(noise: bytes) -> None:
    assert _judge(noise).correctness is not Correctness.VALIDATED


_LINES = [
    *hpcg_report().splitlines(),
    *hpcg_report(failing="symmetry").splitlines(),
    "HPCG result is INVALID.",
    "noise",
    ":",
    "=",
    "::",
]


@given(st.lists(st.sampled_from(_LINES), max_size=40))
def test_a_pass_needs_the_word_and_no_failed_check(lines: list[str]) -> None:
    judgement = _judge("\n".join(lines))
    if judgement.correctness is Correctness.VALIDATED:
        assert judgement.values["gflops"] == 22.1496
        assert "HPCG result is INVALID." not in lines


@given(st.floats(0.01, 1e6), st.floats(0.1, 1e5))
def test_what_hpcg_prints_comes_back(rating: float, seconds: float) -> None:
    printed, time = f"{rating:.6g}", float(f"{seconds:.6g}")
    judgement = _judge(hpcg_report(printed, time, raw=printed))
    assert judgement.values == {"gflops": float(printed), "time_seconds": time}
    assert judgement.details["official"] is (time >= 1800)
