"""Percentiles and their intervals, gaps in flat memory, and when the generator was the limit."""

from pathlib import Path

import numpy as np
import pytest

from nodeproof.bench.load.frames import aa_difference_pct, load_frame
from nodeproof.bench.load.measure import Cell
from nodeproof.bench.load.parameters import LOAD_PARAMETERS, LoadSettings
from nodeproof.bench.load.plan import Arrival, LoadPlan, PromptPlan, Where
from nodeproof.bench.load.samples import Identity, SampleWriter
from nodeproof.bench.stats.gaps import GapCounts
from nodeproof.bench.stats.quantiles import (
    mean_figure,
    minimum_samples,
    percentile,
    percentile_figure,
    quantile_grid,
    ratio_interval,
)
from nodeproof.bench.stats.report import report
from nodeproof.model.run import VerdictKind
from nodeproof.runs.params import ParamValues
from support.endpoint import finished_exchange


@pytest.mark.parametrize(("q", "needed"), [(0.5, 11), (0.9, 64), (0.95, 130), (0.99, 662), (0.1, 64)])
def test_a_percentile_needs_samples(q: float, needed: int) -> None:
    assert minimum_samples(q) == needed
    assert percentile_figure(np.arange(needed, dtype=float), q).value is not None
    short = percentile_figure(np.arange(needed - 1, dtype=float), q)
    assert (short.value, short.reason) == (None, f"p{q * 100:g} needs {needed} samples, there are {needed - 1}")


def test_percentiles_are_those_of_numpy_and_lie_in_their_interval() -> None:
    values = np.random.default_rng(7).lognormal(size=5000)
    for q in (0.5, 0.9, 0.99):
        figure = percentile_figure(values, q)
        assert figure.value == pytest.approx(float(np.quantile(values, q)))
        assert figure.low is not None
        assert figure.high is not None
        assert figure.value is not None
        assert figure.low < figure.value < figure.high
    assert percentile(np.array([1.0, 2.0]), 0.5) == 1.5


def test_the_interval_of_a_median_holds_the_truth_as_often_as_it_says() -> None:
    chance = np.random.default_rng(3)
    held = 0
    for _ in range(300):
        figure = percentile_figure(chance.exponential(size=200), 0.5)
        assert figure.low is not None
        assert figure.high is not None
        held += figure.low <= np.log(2) <= figure.high
    assert 0.90 <= held / 300 <= 0.99


def test_means_and_rates() -> None:
    values = np.random.default_rng(5).normal(10.0, 2.0, size=400)
    for count in (400, 100_000):
        many = np.resize(values, count)
        figure = mean_figure(many)
        assert figure.value == pytest.approx(float(many.mean()))
        assert figure.low is not None
        assert figure.high is not None
        assert (figure.high - figure.low) / 2 == pytest.approx(1.96 * float(many.std()) / count**0.5, rel=0.15)
    assert mean_figure(np.zeros(0)).value is None
    assert mean_figure(np.ones(1)) == (1.0, 1, None, None, "")
    assert ratio_interval(np.ones(9)) is None
    for count in (50, 100_000):
        ends = ratio_interval(np.tile([1.0, 0.0], count // 2))
        assert ends is not None
        assert ends[0] < 1 < ends[1]


def test_a_grid_goes_from_the_least_to_the_largest() -> None:
    assert quantile_grid(np.zeros(0)) == []
    assert quantile_grid(np.array([1.0, 2.0, 3.0]))[::25] == [1.0, 1.0, 2.0, 3.0, 3.0]
    counts = GapCounts()
    assert counts.grid() == []
    counts.add(np.array([10.0, 3e6, 20.0, 2e6, 30.0]), np.zeros(5, dtype=np.int64))
    grid = counts.grid()
    assert (len(grid), grid[::25]) == (101, [10.0, 20.0, 30.0, 2e6, 3e6])


def test_gaps_are_exact_to_a_microsecond_however_many() -> None:
    gaps = np.random.default_rng(2).lognormal(9.0, 1.5, size=30_000)
    counts = GapCounts()
    for start in range(0, len(gaps), 1000):
        counts.add(gaps[start : start + 1000], np.arange(start, start + 1000) // 10)
    assert counts.mean_us() == pytest.approx(float(gaps.mean()))
    for q in (0.5, 0.9, 0.99):
        figure = counts.percentile(q, requests=3000)
        assert figure.value == pytest.approx(float(np.sort(gaps)[int((len(gaps) - 1) * q)]), abs=1.0)
        assert figure.low is not None
        assert figure.high is not None
        assert figure.value is not None
        assert figure.low <= figure.value <= figure.high
    assert counts.percentile(0.5, requests=10).low is None
    seconds = GapCounts()
    seconds.add(np.array([2.5e6] * 20), np.arange(20))
    assert seconds.percentile(0.5, requests=20).value == 2.5e6
    assert GapCounts().mean_us() is None
    assert GapCounts().percentile(0.5, requests=0).value is None


def test_how_far_equal_measurements_lie_apart() -> None:
    assert aa_difference_pct([100.0, 103.0, None]) == pytest.approx(3 / 101.5 * 100)
    assert aa_difference_pct([100.0]) is None
    assert aa_difference_pct([0.0, 0.0]) is None


@pytest.mark.parametrize(
    ("lag_s", "share", "late_s", "limited"),
    [
        (0.0001, 0.2, 0.0, ""),
        (0.0001, 0.97, 0.0, "used 97% of its core"),
        (0.020, 0.2, 0.0, "20.0 ms late in a tenth of its looks"),
        (0.0001, 0.2, 0.5, "requests were sent 500.0 ms after they were due"),
    ],
)
def test_a_run_whose_generator_was_the_limit_proves_nothing(
    tmp_path: Path, lag_s: float, share: float, late_s: float, limited: str
) -> None:
    path = str(tmp_path / "s")
    writer = SampleWriter(path, epoch_s=1000.0, worker=0)
    for number in range(700):
        exchange = finished_exchange(1000.0 + number / 100)
        exchange.sent_s += late_s
        writer.add(Identity(number), exchange)
        writer.pulse(1000.0 + number / 100, lag_s, share, 1, 1)
    writer.close()
    arrival = Arrival(kind="constant", rate=100.0) if late_s else None
    plan = LoadPlan(where=Where(base_url="", model=""), prompts=PromptPlan(), duration_s=7.0, arrival=arrival, concurrency=0)
    found = report([path], plan)
    assert (found.limited == []) is not bool(limited)
    assert limited in "; ".join(found.limited)
    settings = LoadSettings(ParamValues.from_overrides(LOAD_PARAMETERS, ()))
    frame = load_frame([Cell(name="cell0", report=found, validity="valid")], settings, 1.0)
    assert frame.verdict is not None
    assert frame.verdict.kind is (VerdictKind.INCONCLUSIVE if limited else VerdictKind.INFO)
    assert frame.metrics["client_limited"] == float(bool(limited))


@pytest.mark.parametrize(
    ("validity", "failed", "kind", "reason"),
    [
        ("valid", 0, VerdictKind.INFO, "700 requests were answered"),
        ("invalid", 0, VerdictKind.INCONCLUSIVE, "the box was not fit"),
        ("unknown", 70, VerdictKind.FAIL, "10 % of requests failed, limit 1 %"),
    ],
)
def test_verdicts_of_a_load(tmp_path: Path, validity: str, failed: int, kind: VerdictKind, reason: str) -> None:
    path = str(tmp_path / "s")
    writer = SampleWriter(path, epoch_s=1000.0, worker=0)
    for number in range(700):
        writer.add(Identity(number), finished_exchange(1000.0 + number / 100, ok=number >= failed))
    writer.close()
    plan = LoadPlan(where=Where(base_url="", model=""), prompts=PromptPlan(), duration_s=7.0)
    cell = Cell(name="cell0", report=report([path], plan), validity=validity)
    verdict = load_frame([cell], LoadSettings(ParamValues.from_overrides(LOAD_PARAMETERS, ())), 1.0).verdict
    assert verdict is not None
    assert verdict.kind is kind
    assert reason in verdict.reason
