"""``concurrency-sweep``: real cells against servers with known slots, and every verdict on cells made by hand."""

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from nodeproof.bench.guards import GuardResult, GuardState
from nodeproof.bench.speed.sweep import SWEEP_PARAMETERS, moe, sweep
from nodeproof.bench.speed.sweep_cells import SweepCell, warm_capable
from nodeproof.bench.speed.sweep_frame import find_knees, sweep_metrics, sweep_table, sweep_tiles, sweep_verdict
from nodeproof.bench.stats.quantiles import Figure
from nodeproof.bench.stats.recompute import recompute
from nodeproof.bench.testing import Model, Received, Rules, Script, ScriptServer
from nodeproof.bench.testing.model import document
from nodeproof.errors import ParamError
from nodeproof.model.hardware import Validity
from nodeproof.model.run import RunStatus, VerdictKind
from nodeproof.runs.params import ParamValues
from support.bench_runs import run_benchmark

pytestmark = pytest.mark.timeout(60)

_ONE_CELL = {"concurrencies": "2", "isls": "128", "osl": "8", "request_timeout_s": "10"}
_TASK = b"Write a complete Python module"


class _Half(Model):
    """Finds every other prompt in its cache."""

    def _cached(self, words: list[str]) -> int:
        return len(words) * (self.asked % 2)


# Whole runs


def test_the_knee_of_a_server_with_two_slots(tmp_path: Path) -> None:
    """Two slots of 120 ms: two at once bring twice as much as one, four bring no more and wait.

    It takes 2.5 s of answers: what a client and a busy machine add to each must be small beside it.
    """
    floors = {"min_c1": "1", "min_c2": "1", "min_peak": "1"}
    params = {**_ONE_CELL, "concurrencies": "1,2,4", "min_requests": "6", **floors}
    model = Model(ttft_s=0.050, tpot_s=0.010, slots=2, prefix_cache=True, times=True, accepted_share=0.5)
    with ScriptServer(model) as server:
        record, place = run_benchmark(tmp_path, server.url, "concurrency-sweep", params)
        asked = [one for one in server.served if _TASK in one.request.body and one.request.json()["max_tokens"] == 8]
    metrics = record.frame.metrics
    assert record.verdict.kind is VerdictKind.PASS, (record.verdict.reason, record.warnings)
    assert metrics["knee_concurrency"] == metrics["isl128_knee_concurrency"] == 2
    assert metrics["c2_aggregate_tok_s"] > 1.5 * metrics["c1_aggregate_tok_s"]
    # Eight tokens in 120 ms on each slot, and no more; two of four wait for the other two.
    assert metrics["c1_aggregate_tok_s"] <= 8 / 0.120
    assert metrics["c4_aggregate_tok_s"] <= 2 * 8 / 0.120 * 1.1
    assert metrics["c4_ttft_p50_ms"] >= 150
    assert metrics["c4_server_tpot_p50_ms"] == pytest.approx(10)
    assert metrics["c1_accept_len"] == 2.0
    assert (metrics["cells"], metrics["vacuous_cells"], metrics["cache_uncontrolled_cells"]) == (3, 0, 0)
    assert (metrics["non_mtp_arm_cells"], metrics["min_completion_tokens"]) == (0, 8)
    assert metrics["min_cached_prompt_pct"] > 90
    # Six samples are none for a median, and twelve none for a p90.
    assert not {"c1_ttft_p50_ms", "c4_ttft_p90_ms"} & metrics.keys()
    # A round over each prompt before what counts; the same prompts again and again.
    bodies = [one.request.body for one in asked]
    assert len(bodies) == (1 + 6 + 1) + (2 + 6 + 2) + (4 + 12 + 4)
    assert (len(set(bodies[:8])), len(set(bodies[8:18])), len(set(bodies[18:]))) == (1, 2, 4)
    body = asked[0].request.json()
    assert (body["seed"], body["reasoning_effort"], body["stream_options"]) == (0, "none", {"include_usage": True})
    assert [cell.name for cell in recompute(str(place / "files"))] == ["isl128-c1", "isl128-c2", "isl128-c4"]
    table = record.frame.table
    assert table is not None
    assert [row[1].text for row in table.rows] == ["1", "2 knee", "4"]


def test_answers_that_are_too_short_prove_nothing(tmp_path: Path) -> None:
    model = Model(ttft_s=0.0, tpot_s=0.0, tokens=3, honours_ignore_eos=False, prefix_cache=True)
    with ScriptServer(model) as server:
        record, _ = run_benchmark(tmp_path, server.url, "concurrency-sweep", {**_ONE_CELL, "min_c2": "1"})
    assert record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert record.verdict.reason.startswith("1 of 1 cells prove nothing; isl128-c2: budget vacuous: 14 answers brought 42 of 112")
    assert record.frame.metrics["vacuous_cells"] == 1
    assert not [key for key in record.frame.metrics if key.startswith("c2_")]
    table = record.frame.table
    assert table is not None
    assert table.rows[0][2].text.endswith("*")


def test_requests_that_fail_are_counted_and_fail_it(tmp_path: Path) -> None:
    seen = []

    def sometimes(request: Received) -> Script | None:
        if _TASK not in request.body or request.json()["max_tokens"] != 8:
            return None
        seen.append(request.number)
        return document({"error": {"message": "busy"}}, status=503) if len(seen) % 5 == 0 else None

    with ScriptServer(Rules(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True), sometimes)) as server:
        record, _ = run_benchmark(tmp_path, server.url, "concurrency-sweep", _ONE_CELL)
    assert (record.status, record.verdict.kind, record.exit_code) == (RunStatus.COMPLETED, VerdictKind.FAIL, 2)
    assert record.verdict.reason.startswith("3 requests failed in 1 cells; isl128-c2: 3 of 16 requests failed: request ")
    assert record.frame.metrics["requests_failed"] == 3


@pytest.mark.parametrize(
    ("model", "params", "kind", "uncontrolled"),
    [
        (_Half(ttft_s=0.0, tpot_s=0.0, prefix_cache=True), {"min_c2": "1"}, VerdictKind.INCONCLUSIVE, 1),
        (Model(ttft_s=0.0, tpot_s=0.0), {"min_c2": "1"}, VerdictKind.INCONCLUSIVE, 1),
        (Model(ttft_s=0.0, tpot_s=0.0), {"min_c2": "1", "cache_control": "observed"}, VerdictKind.PASS, 0),
        (Model(ttft_s=0.0, tpot_s=0.0), {"min_c2": "1", "warmup": "0"}, VerdictKind.PASS, 0),
        (Model(ttft_s=0.0, tpot_s=0.0, usage="never"), {"min_peak": "1", "cache_control": "observed"}, VerdictKind.PASS, 0),
    ],
)
def test_what_the_cache_must_show(
    tmp_path: Path, model: Model, params: Mapping[str, str], kind: VerdictKind, uncontrolled: int
) -> None:
    with ScriptServer(model) as server:
        record, _ = run_benchmark(tmp_path, server.url, "concurrency-sweep", {**_ONE_CELL, **params})
        asked = [one.request.body for one in server.served if _TASK in one.request.body and b'"max_tokens":8' in one.request.body]
    assert record.verdict.kind is kind, record.verdict.reason
    assert record.frame.metrics["cache_uncontrolled_cells"] == uncontrolled
    # A mixture is no figure; one whose cache is unknown is, and only cannot be judged.
    assert ("c2_aggregate_tok_s" in record.frame.metrics) is not isinstance(model, _Half)
    assert len(set(asked)) == (2 if params.get("warmup") != "0" else 16)


def test_a_cell_on_a_box_that_stays_unfit_is_not_compared(tmp_path: Path) -> None:
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        params = {**_ONE_CELL, "min_peak": "1"}
        record, place = run_benchmark(tmp_path, server.url, "concurrency-sweep", params, box=[Validity.INVALID, Validity.INVALID])
    assert record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert record.verdict.reason.endswith("isl128-c2: the box was not fit while it was measured")
    assert record.frame.metrics["doubted_cells"] == 1
    assert [cell.superseded for cell in recompute(str(place / "files"))] == [True, False]


def test_a_pool_that_cannot_hold_all_prompts_need_not_be_warm(tmp_path: Path) -> None:
    overrides = {"ssm_cache_slots": "6"}
    with ScriptServer(_Half(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        params = {**_ONE_CELL, "min_peak": "1"}
        record, _ = run_benchmark(tmp_path, server.url, "concurrency-sweep", params, serve_overrides=overrides)
    assert record.verdict.kind is VerdictKind.PASS, record.verdict.reason


@pytest.mark.parametrize("name", ["concurrency-sweep-moe", "concurrency-sweep-dflash2"])
def test_variants(tmp_path: Path, name: str) -> None:
    params = {"concurrencies": "1", "isls": "96", "osl": "4", "rounds": "1", "min_requests": "2"}
    with ScriptServer(Model(ttft_s=0.0, tpot_s=0.0, prefix_cache=True)) as server:
        record, _ = run_benchmark(tmp_path, server.url, name, params)
        essays = [one for one in server.served if b"long essay" in one.request.body and b"presence_penalty" in one.request.body]
    assert (record.benchmark_id, record.verdict.kind) == (name, VerdictKind.INFO)
    assert bool(essays) is name.endswith("moe")


def test_the_defaults_of_the_sweep_and_of_its_variant() -> None:
    plain = ParamValues.defaults(SWEEP_PARAMETERS).to_strings()
    other = ParamValues.defaults(moe().parameters()).to_strings()
    assert {key for key in plain if plain[key] != other[key]} == {"concurrencies", "isls", "osl", "prompt_mode"}
    assert (other["concurrencies"], other["isls"], other["osl"], other["prompt_mode"]) == ("1,2,4,8,16", "128", "1024", "essay")
    assert plain["concurrencies"] == "1,2,4,8,16,32"
    assert plain["isls"] == "128,512,1024,2048"
    assert (plain["osl"], plain["warmup"], plain["prompt_mode"], plain["request_timeout_s"]) == ("128", "1", "natural", "600")


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"concurrencies": "1,1"}, "concurrencies: each value can be measured once"),
        ({"isls": "64,64"}, "isls: each value can be measured once"),
        ({"concurrencies": "1,2", "min_c4": "9"}, "min_c4: concurrencies does not hold 4"),
        ({"concurrencies": "512"}, "512 is not between 1 and 256"),
        ({"prompt_mode": "poem"}, "is none of natural, count, essay"),
        ({"nothing": "1"}, "nothing"),
    ],
)
def test_sweeps_that_contradict_themselves(params: Mapping[str, str], problem: str) -> None:
    with pytest.raises(ParamError, match=problem):
        sweep().configure(ParamValues.from_overrides(SWEEP_PARAMETERS, params.items()))


@pytest.mark.parametrize(
    ("earlier", "concurrency", "slots", "capable"),
    [((1, 2, 4), 8, 38, False), ((1, 2, 4), 8, 39, True), ((1, 2, 4), 8, None, True), ((), 1, 3, False), ((), 1, 4, True)],
)
def test_how_many_slots_a_warm_cell_needs(earlier: tuple[int, ...], concurrency: int, slots: int, *, capable: bool) -> None:
    assert warm_capable(earlier, concurrency, slots) is capable


# Verdicts on cells made by hand

_OK = GuardResult("budget", GuardState.OK)
_SHORT = GuardResult("budget", GuardState.VACUOUS, {}, "too short")
_MIXED = GuardResult("cache", GuardState.VACUOUS, {}, "mixed")
_UNTOLD = GuardResult("cache", GuardState.UNMEASURED, {}, "not told")


def _cell(
    concurrency: int, tok_s: float | None, *guards: GuardResult, isl: int = 128, failed: int = 0, doubt: str = ""
) -> SweepCell:
    told = guards or (_OK,)
    none = Figure(None, 12)
    keys = ("ttft_p50_ms", "ttft_p90_ms", "ttft_p99_ms", "tpot_p50_ms", "tpot_p90_ms", "tpot_p99_ms")
    latencies = dict.fromkeys((*keys, "server_tpot_p50_ms", "server_tpot_p90_ms", "e2e_p50_ms"), none)
    latencies["ttft_p50_ms"] = Figure(7.0, 12)
    concerns = [doubt] if doubt else [f"{one.guard} {one.state}: {one.reason}" for one in told if not one.ok]
    return SweepCell(
        name=f"isl{isl}-c{concurrency}",
        isl=isl,
        concurrency=concurrency,
        aggregate_tok_s=tok_s,
        interval=None,
        latencies=latencies,
        gaps={"stability": 0.1},
        energy={"gpu_rail_energy_j": 50.0},
        answers=12,
        failed=failed,
        guards=list(told),
        doubt=doubt,
        concerns=[f"{failed} of 12 requests failed"] if failed else concerns,
        min_completion_tokens=100,
        min_cached_prompt_tokens=None,
        min_cached_prompt_pct=None,
        accept_len=1.2,
        line="",
    )


def _judged(cells: list[SweepCell], **floors: float) -> tuple[VerdictKind, str]:
    values = ParamValues(dict(ParamValues.defaults(SWEEP_PARAMETERS).items()) | floors)
    verdict = sweep_verdict(cells, values, sweep_metrics(cells, find_knees(cells)))
    return verdict.kind, verdict.reason


_GOOD = [_cell(1, 100.0), _cell(2, 180.0)]


@pytest.mark.parametrize(
    ("cells", "floors", "kind", "reason"),
    [
        (_GOOD, {}, VerdictKind.INFO, "2 cells were measured; no floor is set"),
        (_GOOD, {"min_c1": 100.0, "min_peak": 180.0}, VerdictKind.PASS,
         "c1_aggregate_tok_s 100 of 100; peak_aggregate_tok_s 180 of 180"),
        (_GOOD, {"min_c1": 90.0, "min_c2": 181.0}, VerdictKind.FAIL, "below the floor: c2_aggregate_tok_s 180 of 181"),
        (_GOOD, {"min_peak": 181.0}, VerdictKind.FAIL, "below the floor: peak_aggregate_tok_s 180 of 181"),
        ([_cell(1, 100.0, _SHORT)], {"min_c1": 200.0}, VerdictKind.INCONCLUSIVE,
         "1 of 1 cells prove nothing; isl128-c1: budget vacuous: too short"),
        ([_cell(1, 100.0), _cell(2, 1.0, _MIXED)], {"min_c1": 1.0}, VerdictKind.INCONCLUSIVE,
         "1 of 2 cells prove nothing; isl128-c2: cache vacuous: mixed"),
        ([_cell(1, 100.0, _UNTOLD)], {"min_c1": 1.0}, VerdictKind.INCONCLUSIVE,
         "1 of 1 cells prove nothing; isl128-c1: cache unmeasured: not told"),
        ([_cell(1, 100.0, doubt="slow generator")], {"min_c1": 1.0}, VerdictKind.INCONCLUSIVE,
         "1 of 1 cells prove nothing; isl128-c1: slow generator"),
        ([_cell(1, 100.0, _SHORT)], {}, VerdictKind.INCONCLUSIVE,
         "no cell of 1 can be used; isl128-c1: budget vacuous: too short"),
        ([_cell(1, 100.0), _cell(2, 1.0, _SHORT)], {}, VerdictKind.INFO,
         "2 cells were measured; no floor is set; 1 prove less than they seem to: isl128-c2"),
        # Requests that failed come first, floors or not.
        ([_cell(1, 100.0, _SHORT), _cell(2, 1.0, failed=3)], {"min_c1": 1.0}, VerdictKind.FAIL,
         "3 requests failed in 1 cells; isl128-c2: 3 of 12 requests failed"),
    ],
)  # fmt: skip
def test_verdicts(cells: list[SweepCell], floors: Mapping[str, float], kind: VerdictKind, reason: str) -> None:
    assert _judged(cells, **floors) == (kind, reason)


def test_metrics_are_of_the_best_cell_at_a_concurrency_and_of_every_cell() -> None:
    cells = [_cell(1, 100.0), _cell(2, 150.0), _cell(1, 120.0, isl=512), _cell(2, 900.0, _SHORT, isl=512)]
    metrics = sweep_metrics(cells, find_knees(cells))
    assert (metrics["c1_aggregate_tok_s"], metrics["c2_aggregate_tok_s"]) == (120.0, 150.0)
    assert (metrics["isl128_c1_aggregate_tok_s"], metrics["isl512_c1_aggregate_tok_s"]) == (100.0, 120.0)
    assert "isl512_c2_aggregate_tok_s" not in metrics
    assert (metrics["peak_aggregate_tok_s"], metrics["peak_concurrency"]) == (150.0, 2)
    assert (metrics["vacuous_cells"], metrics["non_mtp_arm_cells"], metrics["c1_stability"]) == (1, 4, 0.1)
    assert metrics["c1_gpu_rail_energy_j"] == 50.0
    assert (metrics["c1_ttft_p50_ms"], metrics["guard_budget_vacuous"]) == (7.0, 1)
    assert "c1_tpot_p50_ms" not in metrics
    assert "knee_concurrency" not in metrics
    assert "min_cached_prompt_tokens" not in metrics


def test_the_table_marks_what_may_not_be_compared() -> None:
    cells = [_cell(1, 100.0), _cell(2, 100.0, _UNTOLD), _cell(4, 101.0), _cell(8, None, failed=2), _cell(16, 9.0, _SHORT)]
    knees = find_knees(cells)
    rows = sweep_table(cells, knees).rows
    assert [row[1].text for row in rows] == ["1 knee", "2", "4", "8", "16"]
    assert [row[2].text for row in rows] == ["100", "100*", "101", "-*", "9*"]
    assert [str(row[-1].style) for row in rows] == ["good", "warn", "good", "bad", "bad"]
    tiles = sweep_tiles(cells, sweep_metrics(cells, knees), knees)
    assert [(tile.label, tile.value) for tile in tiles] == [("Peak", "101"), ("Knee, isl 128", "1"), ("Cells", "2 of 5")]


def test_a_cell_can_be_kept() -> None:
    assert msgspec.json.decode(msgspec.json.encode(_GOOD[0]), type=SweepCell) == _GOOD[0]
