"""Two runs: refused where the instrument differs, with what differs; a difference means something only beyond the scatter."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.compare.box import BoxDifference, Limits, compare_boxes
from nodeproof.bench.compare.conditions import Difference
from nodeproof.bench.compare.direction import better_sign
from nodeproof.bench.compare.pair import (
    RunComparison,
    Word,
    change_interval,
    compare_records,
    comparison_exit_code,
    equal_runs,
)
from nodeproof.bench.compare.scatter import noise_of
from nodeproof.model.hardware import Sensitivity, Validity
from nodeproof.model.run import RunRecord
from support.gate import NOW, record

GPU = {
    "machine": {"machine_id": "a", "gpu": "H200", "driver": "570.1"},
    "sm_clock_max_mhz": 1980.0,
    "mem_total_kb": 1000000,
    "chassis_temps_c": [{"name": "x", "temp_c": 40.0}, {"name": "y", "temp_c": 45.0}],
}


def run(
    run_id: str = "run-1", before: dict[str, Any] | None = None, after: dict[str, Any] | None = None, **changes: Any
) -> RunRecord:
    """A record with a state of its box."""
    made = record(**changes)
    state = {**(made.frame.hardware_state or {}), "before": GPU if before is None else before, "after": after or {}}
    return msgspec.structs.replace(made, run_id=run_id, frame=msgspec.structs.replace(made.frame, hardware_state=state))


def test_equal_runs_are_comparable() -> None:
    found = compare_records(run("run-1"), run("run-2"))
    assert (found.comparable, found.refused, found.reasons, found.conditions) == (True, False, [], [])
    assert [(one.key, one.first, one.second, one.change, one.word) for one in found.metrics] == [
        ("rate", 25.0, 25.0, 0.0, Word.SAME)
    ]
    assert comparison_exit_code(found) == 0


def test_another_instrument_is_refused_with_what_differs() -> None:
    one = run("run-1", params={"concurrency": "4"}, dataset="file-sha256:1")
    other = run("run-2", params={"concurrency": "8"}, dataset="file-sha256:2", target_model="n")
    found = compare_records(one, other)
    assert (found.comparable, found.refused, found.metrics) == (False, True, [])
    assert found.reasons == ["not the same was run: the fingerprints of the instruments differ"]
    assert found.conditions == [
        Difference("model", "m", "n"),
        Difference("data set", "file-sha256:1", "file-sha256:2"),
        Difference("parameter concurrency", "4", "8"),
    ]
    assert comparison_exit_code(found) == 3


@pytest.mark.parametrize(
    ("changes", "refused", "reason"),
    [
        ({"status": "failed"}, True, "run-2 did not come to its end: failed"),
        ({"validity": Validity.INVALID}, False, "the box was not seen to be fit during run-2: invalid"),
        ({"validity": Validity.UNKNOWN}, False, "the box was not seen to be fit during run-2: unknown"),
    ],
)
def test_what_keeps_a_number_from_meaning_anything(changes: dict[str, Any], reason: str, *, refused: bool) -> None:
    found = compare_records(run("run-1"), run("run-2", metrics={"rate": 50.0}, **changes))
    assert (found.comparable, found.refused, found.reasons[-1]) == (False, refused, reason)
    assert {one.word for one in found.metrics} <= {Word.UNKNOWN}
    assert comparison_exit_code(found) == 3


def test_changed_bytes_refuse() -> None:
    found = compare_records(run("run-1"), run("run-2"), problems=["record.json was changed"])
    assert (found.refused, found.reasons, found.metrics) == (True, ["record.json was changed"], [])


def test_correctness_does_not_ask_for_a_fit_box() -> None:
    one, other = (
        run(name, validity=Validity.UNKNOWN, sensitivity=Sensitivity.CORRECTNESS, before={}) for name in ("run-1", "run-2")
    )
    assert compare_records(one, other).comparable


def pair(first: float, second: float, key: str = "ttft_p50_ms", others: tuple[float, ...] = (), **more: Any) -> RunComparison:
    equals = [run(f"run-{n}", metrics={key: value}) for n, value in enumerate(others, 10)]
    return compare_records(run("run-1", metrics={key: first}), run("run-2", metrics={key: second}), equals, **more)


@pytest.mark.parametrize(
    ("first", "second", "key", "word"),
    [
        (100.0, 110.0, "ttft_p50_ms", Word.WORSE),
        (100.0, 90.0, "ttft_p50_ms", Word.BETTER),
        (100.0, 110.0, "output_tok_s", Word.BETTER),
        (100.0, 90.0, "output_tok_s", Word.WORSE),
        (100.0, 110.0, "strange", Word.DIFFERENT),
        (100.0, 101.0, "ttft_p50_ms", Word.SAME),
    ],
)
def test_a_difference_beyond_what_equal_runs_show(first: float, second: float, key: str, word: Word) -> None:
    found = pair(first, second, key, others=(99.0, 100.0, 101.0, 100.5))
    # median 100.25; deviations 1.25 0.25 0.75 0.25, their median 0.5; 1.96 * sqrt(2) * 1.4826 * 0.5 / 100.25
    assert found.metrics[0].noise == pytest.approx(1.96 * math.sqrt(2) * 1.4826 * 0.5 / 100.25)
    assert found.metrics[0].noise_runs == 4
    assert found.metrics[0].word is word


def test_without_equal_runs_a_difference_is_not_told() -> None:
    found = pair(100.0, 110.0, others=(99.0, 101.0)).metrics[0]
    assert (found.word, found.noise, found.noise_runs) == (Word.UNKNOWN, None, 2)
    assert found.reason == "how far equal runs differ is not known: repeat it at least thrice"
    assert comparison_exit_code(pair(100.0, 110.0)) == 3


def test_repeats_within_a_run_tell_the_scatter_too() -> None:
    one = run("run-1", metrics={"ttft_p50_ms": 100.0, "aa_ttft_p50_difference_pct": 4.0})
    other = run("run-2", metrics={"ttft_p50_ms": 103.0, "aa_ttft_p50_difference_pct": 2.0})
    found = compare_records(one, other).metrics
    assert [(metric.key, metric.noise, metric.word) for metric in found] == [("ttft_p50_ms", 0.04, Word.SAME)]


def test_an_interval_that_holds_no_change_tells_nothing_unless_it_is_narrow() -> None:
    wide = pair(100.0, 110.0, intervals=({"ttft_p50_ms": (80.0, 120.0)}, {"ttft_p50_ms": (90.0, 130.0)})).metrics[0]
    assert wide.word is Word.UNKNOWN
    assert "holds none at all" in wide.reason
    narrow = pair(100.0, 100.5, intervals=({"ttft_p50_ms": (99.0, 101.0)}, {"ttft_p50_ms": (99.5, 101.5)})).metrics[0]
    assert narrow.word is Word.SAME
    clear = pair(
        100.0, 150.0, others=(99.0, 100.0, 101.0), intervals=({"ttft_p50_ms": (99.0, 101.0)}, {"ttft_p50_ms": (149.0, 151.0)})
    ).metrics[0]
    assert clear.word is Word.WORSE
    assert clear.low == pytest.approx(0.482, abs=0.002)
    assert clear.high == pytest.approx(0.518, abs=0.002)


def test_a_first_value_of_zero_has_no_share() -> None:
    found = pair(0.0, 3.0).metrics[0]
    assert (found.change, found.word, found.reason) == (None, Word.UNKNOWN, "the first value is 0")
    assert pair(0.0, 0.0).metrics[0].word is Word.SAME


_POSITIVE = st.floats(0.001, 1e6)


@given(_POSITIVE, _POSITIVE, st.floats(1.0, 3.0), st.floats(1.0, 3.0))
def test_the_interval_holds_the_change_and_is_no_narrower_than_either(a: float, b: float, wide: float, wider: float) -> None:
    found = change_interval(a, (a / wide, a * wide), b, (b / wider, b * wider))
    assert found is not None
    low, ratio, high = math.log1p(found[0]), math.log(b / a), math.log1p(found[1])
    assert low <= ratio + 1e-6
    assert high >= ratio - 1e-6
    assert found[0] > -1
    assert high - low >= 2 * max(math.log(wide), math.log(wider)) - 1e-6


def test_an_interval_needs_values_above_zero() -> None:
    assert change_interval(1.0, (0.0, 2.0), 1.0, (0.5, 2.0)) is None
    assert change_interval(1.0, None, 1.0, (0.5, 2.0)) is None


def other_gpu(**changes: Any) -> dict[str, Any]:
    machine = {**GPU["machine"], **changes.pop("machine", {})}  # type: ignore[dict-item]  # it is one
    return {**GPU, "machine": machine, **changes}


@pytest.mark.parametrize(
    ("state", "differences"),
    [
        ({}, []),
        ({"machine": {"machine_id": "b", "driver": "570.9"}}, []),
        ({"machine": {"gpu": "H100"}}, [BoxDifference("accelerator", "H200", "H100")]),
        ({"machine": {"driver": "580.1"}}, [BoxDifference("driver (major version)", "570", "580")]),
        ({"sm_clock_max_mhz": 1970.0}, []),
        ({"sm_clock_max_mhz": 1900.0}, [BoxDifference("highest accelerator clock, MHz", "1980", "1900")]),
        ({"sm_clock_max_mhz": None}, [BoxDifference("highest accelerator clock, MHz", "1980", "not known")]),
        ({"mem_total_kb": 951000}, []),
        ({"mem_total_kb": 949000}, [BoxDifference("memory, kB", "1e+06", "949000")]),
        ({"chassis_temps_c": [{"temp_c": 60.0}]}, []),
        ({"chassis_temps_c": [{"temp_c": 61.0}]}, [BoxDifference("hottest chassis sensor, °C", "45", "61")]),
        ({"throttle_active": {"hw_thermal": True}}, [BoxDifference("slowed by heat", "no", "hw_thermal")]),
        ({"throttle_active": {"sw_power_cap": True}}, []),
    ],
)
def test_one_box(state: dict[str, Any], differences: list[BoxDifference]) -> None:
    verdict = compare_boxes(run(), run(before=other_gpu(**state)))
    assert verdict.differences == differences
    assert verdict.one_box is (not differences)


def test_what_is_known_of_neither_keeps_two_machines_apart() -> None:
    bare = {"machine": {"machine_id": "a"}, "mem_total_kb": 1000}
    assert compare_boxes(run(before=bare), run(before=bare)).one_box
    two = compare_boxes(run(before=bare), run(before={**bare, "machine": {"machine_id": "b"}}))
    assert (two.same_machine, two.differences, two.unknown, two.one_box) == (False, [], ["hottest chassis sensor, °C"], False)
    found = compare_records(run("run-1", before=bare), run("run-2", before={**bare, "machine": {"machine_id": "b"}}))
    assert found.reasons == ["two machines, of neither of which is known: hottest chassis sensor, °C"]
    assert compare_boxes(run(before={}), run(before={}), Limits()).unknown == ["memory, kB", "hottest chassis sensor, °C"]


@pytest.mark.parametrize("state", [None, {}, {"before": 3}, {"before": {"machine": "x", "devices": 3, "chassis_temps_c": [1]}}])
def test_odd_states_are_unknown(state: Any) -> None:
    made = record()
    odd = msgspec.structs.replace(made, frame=msgspec.structs.replace(made.frame, hardware_state=state))
    assert not compare_boxes(odd, odd).same_machine


def test_equal_runs() -> None:
    one = run("run-1")
    others = [
        run("run-2"),
        run("run-3", params={"concurrency": "9"}),
        run("run-4", target_model="n"),
        run("run-5", status="failed"),
        run("run-6", validity=Validity.UNKNOWN),
        run("run-7", before=other_gpu(machine={"gpu": "H100"})),
        run("run-8", recorded_at=NOW - 1),
    ]
    assert [other.run_id for other in equal_runs(one, others, ["run-8"])] == ["run-2"]
    assert noise_of("rate", [run("run-2")], (one,)).share is None


@pytest.mark.parametrize(
    ("key", "sign"),
    [
        ("ttft_p50_ms", -1),
        ("output_tok_s", 1),
        ("c16_aggregate_tok_s", 1),
        ("requests_per_s", 1),
        ("slo_attainment_pct", 1),
        ("overall_accuracy", 1),
        ("triad_mb_s", 1),
        ("transport_errors", -1),
        ("vacuous_cells", -1),
        ("samples", 0),
        ("concurrency_mean", 0),
    ],
)
def test_the_good_way_of_a_key(key: str, sign: int) -> None:
    assert better_sign(key) == sign
