"""Single answers out of samples, and the window of a closed loop that ends with its requests."""

import math
from pathlib import Path

import numpy as np
import pytest

from nodeproof.bench.exchange import Exchange, Outcome
from nodeproof.bench.guards import CachedPrompt
from nodeproof.bench.load.plan import Lengths, LoadPlan, PromptPlan, Where
from nodeproof.bench.load.prompts import Questions
from nodeproof.bench.load.samples import Identity, SampleWriter
from nodeproof.bench.speed.figures import accept_length, energy_metrics, figure_table, gap_metrics, line, loop_interval, median_of
from nodeproof.bench.stats.report import report
from nodeproof.bench.stats.rows import Answers, read_answers
from support.endpoint import finished_exchange

_ALL_S = (0.0, math.inf)


def _written(path: Path, exchanges: list[Exchange]) -> list[str]:
    writer = SampleWriter(str(path), epoch_s=1000.0, worker=0)
    for number, exchange in enumerate(exchanges):
        writer.add(Identity(number), exchange)
    writer.close()
    return [str(path)]


def _read(path: Path, *exchanges: Exchange) -> Answers:
    return read_answers(_written(path, list(exchanges)), _ALL_S)


def test_the_clocks_of_an_answer(tmp_path: Path) -> None:
    first, second, third = (finished_exchange(1000.0 + second) for second in range(3))
    first.server.ttft_ms, first.server.decode_ms, first.usage.accepted_prediction_tokens = 80.0, 20.0, 3
    second.server.tokens_per_s = 125.0
    third.usage.completion_tokens, third.usage.prompt_tokens, third.usage.cached_prompt_tokens = None, 40, 32
    answers = _read(tmp_path / "s", first, second, third)
    assert len(answers) == 3
    # 100 ms to the first of five tokens, 10 ms from one to the next.
    assert answers.ttft_ms.tolist() == pytest.approx([100.0] * 3)
    assert answers.client_tpot_ms.tolist() == pytest.approx([10.0] * 3)
    assert answers.e2e_ms.tolist() == pytest.approx([140.0] * 3)
    # 20 ms for the four tokens after the first; or as the rate says.
    assert answers.server_tpot_ms[:2].tolist() == pytest.approx([5.0, 8.0])
    assert answers.server_tok_s[:2].tolist() == pytest.approx([200.0, 125.0])
    assert np.isnan(answers.server_tpot_ms[2])
    assert answers.server_ttft_ms[0] == pytest.approx(80.0)
    assert np.isnan(answers.server_ttft_ms[1:]).all()
    assert answers.tokens == [5, 5, None]
    assert answers.output.tolist() == [5.0, 5.0, 5.0]
    assert answers.accepted == [3, None, None]
    assert answers.prompts == [CachedPrompt(7, None), CachedPrompt(7, None), CachedPrompt(40, 32)]
    assert answers.outcomes == ["length"] * 3
    assert answers.gaps_ms.tolist() == pytest.approx([10.0] * 12)


def test_chunks_stand_for_tokens_that_nobody_counted_only_where_they_are_enough(tmp_path: Path) -> None:
    exchange = finished_exchange(1000.0)
    exchange.usage.completion_tokens = None
    answers = _read(tmp_path / "s", exchange)
    assert answers.delivered(5) == [5]
    assert answers.delivered(6) == [None]


def test_an_answer_in_one_piece_has_no_time_a_token(tmp_path: Path) -> None:
    exchange = finished_exchange(1000.0)
    del exchange.chunks_s[1:]
    answers = _read(tmp_path / "s", exchange)
    assert np.isnan(answers.client_tpot_ms).all()
    assert gap_metrics(answers) == {}
    assert median_of(answers.client_tpot_ms) is None


def test_chunks_of_one_read_have_no_gap(tmp_path: Path) -> None:
    exchange = finished_exchange(1000.0)
    exchange.chunks_s[1] = exchange.chunks_s[0]
    answers = _read(tmp_path / "s", exchange)
    assert answers.gaps_ms.tolist() == pytest.approx([20.0, 10.0, 10.0])
    metrics = gap_metrics(answers, "c1_")
    assert metrics["c1_arrival_gap_count"] == 3
    assert metrics["c1_arrival_gap_mean_ms"] == pytest.approx(40 / 3)
    assert metrics["c1_arrival_gap_max_ms"] == pytest.approx(20.0)
    assert metrics["c1_arrival_gap_cv"] == pytest.approx(2**0.5 * 10 / 3 / (40 / 3))
    assert "c1_stability" not in metrics


def test_jitter_with_samples_enough(tmp_path: Path) -> None:
    exchange = finished_exchange(1000.0)
    del exchange.chunks_s[:]
    exchange.chunks_s.extend(1000.1 + 0.01 * place for place in range(701))
    exchange.chunks_s[-1] += 0.03
    metrics = gap_metrics(_read(tmp_path / "s", exchange))
    assert metrics["arrival_gap_p50_ms"] == pytest.approx(10.0)
    assert metrics["arrival_gap_p99_ms"] == pytest.approx(10.0)
    assert metrics["stability"] == pytest.approx(0.0, abs=1e-3)


def test_no_answer_is_no_number(tmp_path: Path) -> None:
    answers = _read(tmp_path / "s", finished_exchange(1000.0, ok=False))
    assert (len(answers), answers.failed) == (0, 1)
    assert answers.tokens == []
    (row,) = figure_table("x", [line("server_tok_s", answers.server_tok_s, "server")]).rows
    assert [cell.text for cell in row] == ["server_tok_s", "-", "not told", "0", "server"]


def test_accepted_drafts() -> None:
    assert accept_length([100, 100, 100, 100, None], [50, 0, 100, None, 50]) == [2.0, 1.0, None, None, None]


def test_the_throughput_of_a_loop_is_as_sure_as_its_answers_are_alike(tmp_path: Path) -> None:
    alike = _read(tmp_path / "a", *(finished_exchange(1000.0 + place) for place in range(12)))
    assert loop_interval(50.0, alike) == pytest.approx((50.0, 50.0))
    mixed = [finished_exchange(1000.0 + place) for place in range(100)]
    for exchange in mixed[::2]:
        exchange.end_s += 0.14
    found = loop_interval(50.0, _read(tmp_path / "b", *mixed))
    # Five tokens each, in 140 ms or in 280 ms: at the rate of all those times would bring 5/3 less or 5/3 more.
    assert found is not None
    half = 1.96 * (5 / 3 * (100 / 99) ** 0.5) / 10 / 5
    assert found == pytest.approx((50 * (1 - half), 50 * (1 + half)))
    assert loop_interval(None, alike) is None
    assert loop_interval(50.0, _read(tmp_path / "c", *(finished_exchange(1000.0) for _ in range(9)))) is None


def test_energy_goes_by_rail_into_all_tokens_of_a_cell(tmp_path: Path) -> None:
    answers = read_answers(_written(tmp_path / "s", [finished_exchange(1000.0), finished_exchange(1005.0)]), (4.0, 6.0))
    assert (len(answers), answers.all_tokens) == (1, 10)
    metrics = energy_metrics({"npu_rail_energy_j": 40.0, "npu_rail_mean_power_w": 8.0}, answers.all_tokens, "c1_")
    assert metrics == {
        "c1_npu_rail_energy_j": 40.0,
        "c1_npu_rail_energy_window_tokens": 10.0,
        "c1_npu_rail_joules_per_token": 4.0,
        "c1_npu_rail_mean_power_w": 8.0,
    }
    assert energy_metrics({}, 10) == {}
    assert "gpu_rail_joules_per_token" not in energy_metrics({"gpu_rail_energy_j": 0.0}, 10)
    assert "gpu_rail_joules_per_token" not in energy_metrics({"gpu_rail_energy_j": 5.0}, 0)


# The window of a closed loop


def _loop(path: Path) -> tuple[LoadPlan, list[str]]:
    """Two at once, each answer 1 s: a warm-up of one that takes twice as long, then six, a second apart in pairs."""
    starts = [0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]
    exchanges = []
    for number, start_s in enumerate(starts):
        exchange = finished_exchange(1000.0 + start_s)
        exchange.end_s = 1000.0 + start_s + (2.0 if number == 0 else 1.0)
        exchanges.append(exchange)
    where = Where(base_url="", model="")
    plan = LoadPlan(
        where=where, prompts=PromptPlan(), concurrency=2, requests=8, warmup_requests=2, duration_s=600.0, drain_s=60.0
    )
    return plan, _written(path, exchanges)


def test_what_counts_begins_after_the_whole_warm_up_and_ends_with_the_last_begin(tmp_path: Path) -> None:
    plan, paths = _loop(tmp_path / "s")
    found = report(paths, plan)
    assert found.window_s == (2.0, 4.0)
    # The third began while the first was still warming up: it is none of those that count.
    assert found.counts == {"requests": 5, "requests_ok": 5, "requests_failed": 0, "warmup_requests": 3}
    # Four answers of a second within two seconds.
    assert found.figures["requests_per_s"].value == pytest.approx(2.0)
    answers = read_answers(paths, found.window_s)
    assert len(answers) == 5


def test_answers_outside_the_window_do_not_widen_a_rate(tmp_path: Path) -> None:
    exchanges = []
    for number in range(80):
        exchange = finished_exchange(1000.0 + number // 2)
        exchange.end_s = 1001.0 + number // 2
        exchanges.append(exchange)
    plan = LoadPlan(
        where=Where(base_url="", model=""), prompts=PromptPlan(), concurrency=2, duration_s=40.0, warmup_s=20.0, drain_s=60.0
    )
    found = report(_written(tmp_path / "s", exchanges), plan).figures["requests_per_s"]
    # Forty equal answers of two slots in twenty seconds: nothing varies.
    assert (found.value, found.low, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_where_all_were_asked_at_once_the_last_answer_is_the_end(tmp_path: Path) -> None:
    paths = _written(tmp_path / "s", [finished_exchange(1000.0) for _ in range(4)])
    where = Where(base_url="", model="")
    plan = LoadPlan(where=where, prompts=PromptPlan(), concurrency=4, requests=4, duration_s=600.0)
    assert report(paths, plan).window_s[1] == pytest.approx(0.14)


def test_warm_up_requests_that_are_not_there_begin_nothing(tmp_path: Path) -> None:
    paths = _written(tmp_path / "s", [])
    where = Where(base_url="", model="")
    plan = LoadPlan(where=where, prompts=PromptPlan(), requests=4, warmup_requests=2, duration_s=600.0)
    assert report(paths, plan).counts["requests"] == 0


# Prompts


def test_prompts_that_are_asked_again_have_one_length_and_a_task() -> None:
    prompts = PromptPlan(
        inputs=Lengths("fixed", 500), outputs=Lengths("fixed", 9), distinct=3, words=20, task="Count.", tag_digits=6
    )
    questions = Questions(LoadPlan(where=Where(base_url="", model=""), prompts=prompts), [])
    texts = [questions.question(number).text for number in range(7)]
    assert texts[0] == texts[3] == texts[6]
    assert len(set(texts)) == 3
    assert texts[1].startswith("000001.0 ")
    assert texts[1].endswith("\n\nCount.")
    assert {len(text.split()) for text in texts} == {22}
    assert questions.question(4).max_tokens == 9


def test_an_outcome_that_is_no_answer_counts_as_failed_wherever_it_stands(tmp_path: Path) -> None:
    early = finished_exchange(1000.0, ok=False)
    late = finished_exchange(1009.0)
    late.outcome = Outcome.IDLE_TIMEOUT
    answers = read_answers(_written(tmp_path / "s", [early, finished_exchange(1005.0), late]), (4.0, 6.0))
    assert (len(answers), answers.failed) == (1, 2)
