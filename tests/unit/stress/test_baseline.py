"""A number against its history."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.job import Performance
from nodeproof.stress.baseline import baseline, drift, judge, mad, median


def test_median_and_spread() -> None:
    assert median([3.0, 1.0, 2.0]) == 2.0
    assert median([4.0, 1.0, 2.0, 3.0]) == 2.5
    assert mad([1.0, 2.0, 3.0, 4.0, 100.0]) == 1.0


def test_a_band_is_three_deviations_or_five_percent_whichever_is_more() -> None:
    tight = baseline([100.0, 100.0, 101.0, 99.0, 100.0])
    assert tight is not None
    assert (tight.median, tight.mad, tight.low, tight.high, tight.samples) == (100.0, 0.0, 95.0, 105.0, 5)
    wide = baseline([90.0, 100.0, 110.0, 95.0, 105.0])
    assert wide is not None
    # Deviations 10 0 10 5 5: their median 5; 3 x 1.4826 x 5 = 22.239.
    assert wide.mad == 5.0
    assert [wide.low, wide.high] == pytest.approx([77.761, 122.239])
    noise = baseline([1.0, 50.0, 100.0, 150.0, 200.0])
    assert noise is not None
    assert noise.low == 0.0


def test_numbers_that_are_none_make_no_baseline() -> None:
    assert baseline([100.0] * 4) is None
    assert baseline([100.0, 100.0, 100.0, 100.0, float("nan"), float("inf"), 0.0, -1.0]) is None


def test_a_number_below_within_and_above_its_band() -> None:
    before = [100.0, 100.0, 101.0, 99.0, 100.0]
    low = judge(80.0, before, "GFLOP/s")
    assert (low.performance, low.outlier) == (Performance.DEGRADED, "low")
    assert low.deviation == pytest.approx(-0.2)
    assert low.reason == "80 GFLOP/s, -20.0% from the median 100 of 5 runs (band 95 to 105): too low"
    same = judge(96.0, before, "GFLOP/s")
    assert (same.performance, same.outlier) == (Performance.IN_BAND, "")
    high = judge(150.0, before, "GFLOP/s")
    assert (high.performance, high.outlier) == (Performance.IN_BAND, "high")
    assert "higher than ever is normal here" in high.reason


def test_too_few_runs_and_a_number_that_is_none() -> None:
    few = judge(80.0, [100.0], "MB/s")
    assert (few.performance, few.deviation) == (Performance.NO_BASELINE, None)
    assert few.reason == "1 comparable runs before this one, 5 make a baseline"
    assert judge(float("nan"), [100.0] * 5, "MB/s").performance is Performance.NOT_JUDGED


def test_a_row_that_falls_drifts_and_one_that_shakes_does_not() -> None:
    falling = drift([100.0 - step for step in range(10)])
    # One a step: -9 over the row, of a median of 95.5.
    assert falling.found
    assert falling.change == pytest.approx(-9 / 95.5)
    assert falling.reason == "-9.4% over 10 samples"
    shaking = drift([100.0, 95.0, 104.0, 97.0, 103.0, 96.0, 101.0, 99.0])
    assert not shaking.found
    assert shaking.reason.startswith("no trend (")
    assert not drift([100.0, 100.1, 100.0, 100.1, 100.2, 100.1, 100.2, 100.2]).found


def test_one_bad_sample_is_no_drift() -> None:
    assert not drift([100.0] * 9 + [50.0]).found


def test_a_short_row_and_one_of_zeros_have_no_trend() -> None:
    assert drift([1.0] * 7).reason == "7 samples, 8 are needed to see a trend"
    assert drift([0.0] * 8).reason == "no trend"


def test_a_long_row_is_looked_at_evenly() -> None:
    found = drift([1000.0 - 0.1 * step for step in range(2000)])
    # Every fourth of 2000: 500 samples, from 1000 to 800.4.
    assert found.change == pytest.approx(-199.6 / 900.2)


_RATES = st.lists(st.floats(1.0, 1e6), min_size=5, max_size=40)


@given(_RATES)
def test_the_median_is_always_in_band_and_scaling_changes_no_verdict(values: list[float]) -> None:
    band = baseline(values)
    assert band is not None
    assert band.low <= band.median <= band.high
    assert judge(band.median, values, "x").performance is Performance.IN_BAND
    assert judge(band.low * 0.99 if band.low else -1.0, values, "x").performance is Performance.DEGRADED
