"""STREAM."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.job import Correctness
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.parsers.stream import TablePolicy, judge, parse
from support.benchmark_outputs import RATES, VALIDATES, recorded, stream_table

_MIB = 1024 * 1024
_VALUES = {"copy_mb_s": 101234.5, "scale_mb_s": 99876.1, "add_mb_s": 103456.7, "triad_mb_s": 102987.3}


def _judge(text: str | bytes, *, llc_bytes: int | None = None, policy: TablePolicy = "single") -> Judgement:
    return judge(parse(text if isinstance(text, bytes) else text.encode()), llc_bytes=llc_bytes, policy=policy)


def test_four_kernels_and_their_validation() -> None:
    judgement = _judge(stream_table())
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values == _VALUES
    assert judgement.source == "stdout"
    assert judgement.evidence[-1].text == VALIDATES.strip()
    assert judgement.is_comparable


def test_case_15_version_510() -> None:
    output = parse(recorded("15"))
    judgement = judge(output, llc_bytes=100 * _MIB)
    assert judgement.correctness is Correctness.VALIDATED
    expected = {"copy_mb_s": 108180.5, "scale_mb_s": 108572.8, "add_mb_s": 104571.7, "triad_mb_s": 105256.0}
    assert judgement.values == expected
    assert (output.version, output.elements, output.element_bytes, output.ntimes) == ("5.10", 120000000, 8, 200)
    assert (output.threads_requested, output.threads_counted, output.clock_ticks) == (4, 4, 13558)
    assert output.array_bytes == 960000000
    assert judgement.details["array_bytes"] == 960000000
    assert judgement.concerns == []


def test_case_16_f2_a_failed_validation_is_a_failure_whatever_the_rates_say() -> None:
    judgement = _judge(recorded("16"))
    assert judgement.correctness is Correctness.FAILED
    assert judgement.cause == "failed_validation"
    assert judgement.reason == "STREAM's own check of its arrays failed: array a[], 1 errors"
    assert judgement.values == {}
    assert judgement.details["tables"][0]["rates_mb_s"]["triad"] == 363208.7
    assert [item.line_no for item in judgement.evidence] == [32, 34]


def test_case_18_version_59_and_arrays_that_fit_into_the_cache() -> None:
    judgement = _judge(recorded("18"), llc_bytes=64 * _MIB)
    assert judgement.correctness is Correctness.VALIDATED
    assert judgement.values["triad_mb_s"] == 78111.2034
    assert judgement.details["version"] == "5.9"
    assert "total 45.8 MiB" in judgement.concerns[0]
    assert "4 x 64.0 MiB" in judgement.concerns[0]
    assert not judgement.is_comparable
    assert _judge(recorded("18")).is_comparable


def test_case_21_two_runs_are_ambiguous_unless_a_policy_says_which_counts() -> None:
    raw = recorded("21")
    judgement = _judge(raw)
    assert (judgement.correctness, judgement.cause, judgement.values) == (Correctness.NOT_PROVEN, "ambiguous", {})
    assert [table["rates_mb_s"]["triad"] for table in judgement.details["tables"]] == [105256.0, 58012.4]
    assert _judge(raw, policy="first").values["triad_mb_s"] == 105256.0
    assert _judge(raw, policy="last").values["triad_mb_s"] == 58012.4
    best = _judge(raw, policy="best")
    assert best.values["triad_mb_s"] == 105256.0
    assert best.reason == "all three arrays validate; best of 2 runs"


def test_rates_without_the_validation_line_are_not_proven() -> None:
    judgement = _judge(stream_table(verdict=""))
    assert (judgement.correctness, judgement.cause, judgement.values) == (Correctness.NOT_PROVEN, "unchecked", {})


def test_four_lines_that_a_dispatcher_filtered_out_are_not_proven() -> None:
    judgement = _judge("Copy:          31886.8\nScale:         33473.9\nAdd:           31981.6\nTriad:         31569.0\n")
    assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "unchecked")


def test_a_missing_kernel_is_named() -> None:
    judgement = _judge(stream_table({name: rate for name, rate in RATES.items() if name not in {"Add", "Copy"}}))
    assert (judgement.cause, judgement.reason) == ("incomplete", "no rate for copy, add")


def test_an_output_that_is_cut_off_within_the_table_is_incomplete() -> None:
    whole = stream_table()
    judgement = _judge(whole[: whole.index("Triad")])
    assert judgement.cause == "incomplete"


@pytest.mark.parametrize(
    ("header", "factor"),
    [("Rate (MB/s)", 1.0), ("Best Rate GB/s", 1000.0), ("MBytes/sec", 1.0), ("GiB/s", 1073.741824), ("KB/s", 0.001)],
)
def test_units(header: str, factor: float) -> None:
    assert _judge(stream_table(header=header)).values["triad_mb_s"] == pytest.approx(102987.3 * factor)


def test_without_a_unit_nothing_is_guessed() -> None:
    judgement = _judge(stream_table(header="Best Rate"))
    assert (judgement.correctness, judgement.cause, judgement.values) == (Correctness.NOT_PROVEN, "unit_unknown", {})
    assert _judge(stream_table().split("\n", 1)[1]).cause == "unit_unknown"


@pytest.mark.parametrize("cell", ["101234,5", "1.234,5"])
def test_a_localised_number_is_not_guessed(cell: str) -> None:
    judgement = _judge(stream_table().replace("101234.5", cell))
    assert judgement.cause == "damaged"
    assert "LC_ALL=C" in judgement.reason


@pytest.mark.parametrize("cell", ["nan", "-5.0", "0.0", "********", "inf"])
def test_a_rate_that_is_none_damages_the_table(cell: str) -> None:
    judgement = _judge(stream_table().replace("101234.5", cell))
    assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "damaged")
    assert "LC_ALL" not in judgement.reason


def test_a_rate_that_contradicts_its_time_is_damage() -> None:
    low = recorded("15").replace(b"105256.0", b" 15256.0")
    assert _judge(low).reason == "triad: rate 15256.0 and best time 0.027362 contradict each other"
    high = recorded("15").replace(b"105256.0", b"905256.0")
    assert _judge(high).cause == "damaged"
    assert _judge(recorded("15").replace(b"0.027362", b"?")).correctness is Correctness.VALIDATED
    assert _judge(recorded("18").replace(b"0.0006", b"0.0000")).correctness is Correctness.NOT_PROVEN


def test_a_time_shorter_than_its_last_digit_bounds_the_rate_from_below_only() -> None:
    text = recorded("18").replace(b"0.0004       0.0005", b"0.0000       0.0005")
    assert b"0.0000" in text
    assert _judge(text.replace(b"71843.2207", b"971843.220")).correctness is Correctness.VALIDATED


def test_errors_that_are_no_numbers_are_a_failure_though_the_solution_validates() -> None:
    text = stream_table(verdict=VALIDATES + "Results Validation Verbose Results:\n    Rel Errors on a, b, c:     nan 0.0 0.0\n")
    judgement = _judge(text)
    assert (judgement.correctness, judgement.cause) == (Correctness.FAILED, "failed_validation")
    fine = stream_table(verdict=VALIDATES + "    Rel Errors on a, b, c:     1e-16 0.0 0.0\n")
    assert _judge(fine).correctness is Correctness.VALIDATED


def test_all_arrays_that_failed_are_named() -> None:
    verdict = "".join(
        f"Failed Validation on array {name}[], AvgRelAbsErr > epsilon (1e-13)\n"
        f"     For array {name}[], {count} errors were found.\n"
        for name, count in (("a", 3), ("c", 8))
    )
    assert _judge(stream_table(verdict=verdict)).reason.endswith("array a[], 3 errors; array c[], 8 errors")
    old = _judge(stream_table(verdict="Failed Validation on array b[]\n        Expected  : 1.0\n"))
    assert old.reason.endswith("array b[]")
    assert _judge(stream_table(verdict="Failed Validation!\n")).reason.endswith("array not named")


def test_a_failure_in_any_run_is_a_failure_under_every_policy() -> None:
    text = stream_table() + stream_table(verdict="Failed Validation on array a[]\n")
    for policy in ("single", "first", "last", "best"):
        assert _judge(text, policy=policy).correctness is Correctness.FAILED


def test_a_failure_without_its_table_is_still_a_failure() -> None:
    assert _judge("Failed Validation on array a[]\n").correctness is Correctness.FAILED
    assert _judge(VALIDATES + stream_table(verdict="")).correctness is Correctness.NOT_PROVEN


def test_a_second_run_that_lacks_its_check_spoils_the_first_under_every_policy() -> None:
    assert _judge(stream_table() + stream_table(verdict=""), policy="first").cause == "unchecked"


def test_threads_that_did_not_run_and_a_coarse_timer_are_concerns() -> None:
    text = recorded("15").replace(b"counted = 4", b"counted = 2").replace(b"13558 clock", b"19 clock")
    assert _judge(text).concerns == [
        "4 threads were requested and 2 ran",
        "a test takes 19 ticks of the timer, less than 20: use larger arrays",
    ]


def test_lines_of_several_ranks_and_carriage_returns() -> None:
    tagged = "".join(f"[1,0]<stdout>:{line}\r\n" for line in stream_table().splitlines())
    assert _judge(tagged).values == _VALUES
    glued = stream_table().replace("Triad:", "WARNING: x Triad:")
    assert _judge(glued).reason == "no rate for triad"


def test_lower_case_and_leading_blanks() -> None:
    assert _judge("  " + stream_table().lower().replace("\n", "\n   ")).values == _VALUES


def test_no_table_names_what_the_program_said() -> None:
    judgement = _judge("stream_omp: error while loading shared libraries: libgomp.so.1\n")
    assert (judgement.cause, judgement.crashed) == ("missing_library", True)
    silent = _judge(b"")
    assert (silent.cause, silent.crashed, silent.evidence) == ("no_result", False, [])


def test_an_output_without_end_proves_nothing() -> None:
    judgement = _judge(b"Copy: 1.0\n" * 1_000_000 + stream_table().encode())
    assert (judgement.correctness, judgement.cause) == (Correctness.NOT_PROVEN, "damaged")


@given(st.binary(max_size=300))
def test_any_bytes_are_judged_and_prove_nothing(noise: bytes) -> None:
    judgement = _judge(noise)
    assert judgement.correctness is not Correctness.VALIDATED
    assert judgement.values == {}


@given(st.lists(st.sampled_from([*stream_table().splitlines(), "noise", "Failed Validation on array a[]", "\xff"]), max_size=30))
def test_a_pass_needs_every_kernel_and_the_validation(lines: list[str]) -> None:
    judgement = _judge("\n".join(lines))
    if judgement.correctness is Correctness.VALIDATED:
        assert set(judgement.values) == set(_VALUES)
        assert VALIDATES.strip() in lines
        assert "Failed Validation on array a[]" not in lines


_RATE = st.floats(1.0, 1e7).map(lambda rate: round(rate, 1))


@given(_RATE, _RATE, _RATE, _RATE)
def test_what_stream_prints_comes_back(copy: float, scale: float, add: float, triad: float) -> None:
    judgement = _judge(stream_table({"Copy": copy, "Scale": scale, "Add": add, "Triad": triad}))
    assert judgement.values == {"copy_mb_s": copy, "scale_mb_s": scale, "add_mb_s": add, "triad_mb_s": triad}
