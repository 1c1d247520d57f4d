"""HPC Challenge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.job import Correctness
from nodeproof.stress.parsers.hpcc import judge, parse
from nodeproof.stress.parsers.judgement import Judgement
from support.benchmark_outputs import recorded


def _judge(raw: bytes) -> Judgement:
    return judge(parse(raw))


def test_case_13_the_summary_in_the_units_of_the_other_benchmarks() -> None:
    judgement = _judge(recorded("13"))
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values["hpl_gflops"] == pytest.approx(88.6677)
    assert judgement.values["stream_triad_mb_s"] == pytest.approx(24858.5)
    assert judgement.details["node_stream_triad_mb_s"] == pytest.approx(49717)
    assert judgement.details["ranks"] == 2
    # 3.8213e-11 / (1.11022e-16 x (2560.25 x 5.05887 + 0.499879) x 10000)
    assert judgement.details["hpl_residual"] == pytest.approx(0.00265735, rel=1e-4)
    assert judgement.evidence[0].text == "Success=1"


def test_a_failed_test_and_a_residual_over_the_threshold_are_failures() -> None:
    raw = recorded("13")
    failed = _judge(raw.replace(b"Success=1", b"Success=0"))
    assert (failed.correctness, failed.reason, failed.values) == (Correctness.FAILED, "hpcc says Success=0", {})
    wrong = _judge(raw.replace(b"HPL_RnormI=3.8213e-11", b"HPL_RnormI=3.8213e-7"))
    assert (wrong.correctness, wrong.cause) == (Correctness.FAILED, "failed_validation")
    assert wrong.reason == "HPL's scaled residual 26.5735 is not below 16"


def test_a_summary_that_is_cut_off_or_does_not_say_success_is_not_proven() -> None:
    raw = recorded("13")
    cut = _judge(raw[: raw.index(b"StarSTREAM_Copy")])
    assert (cut.correctness, cut.reason) == (Correctness.NOT_PROVEN, "the output ends within the summary")
    silent = _judge(raw.replace(b"Success=1\n", b""))
    assert silent.reason == "the summary has no Success=1"


def test_two_summaries_are_ambiguous() -> None:
    assert _judge(recorded("13") * 2).cause == "ambiguous"


def test_without_norms_the_residual_is_unknown_and_success_counts() -> None:
    judgement = _judge(b"Begin of Summary section.\nSuccess=1\nHPL_Tflops=?\nnoise\nEnd of Summary section.\n")
    assert (judgement.correctness, judgement.values) == (Correctness.VALIDATED, {})
    assert judgement.details["hpl_residual"] is None
    assert judgement.details["node_stream_triad_mb_s"] is None


def test_no_summary_names_what_the_program_said() -> None:
    judgement = _judge(b"hpcc: error while loading shared libraries: libmpi.so\n")
    assert (judgement.cause, judgement.crashed) == ("missing_library", True)


@given(st.binary(max_size=300))
def test_any_bytes_are_judged_and_prove_nothing(noise: bytes) -> None:
    assert _judge(b"Begin of Summary section.\n" + noise).correctness is not Correctness.VALIDATED
    assert _judge(noise).correctness is not Correctness.VALIDATED
