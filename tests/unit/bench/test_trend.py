"""Whether something grows, by how much at least, and when that cannot be told."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.stats.trend import MIN_POINTS, Bound, Trend, bound, trend


def test_a_line_is_found_exactly() -> None:
    found = trend(range(0, 100, 10), [50.0 + 0.2 * at for at in range(0, 100, 10)])
    assert found is not None
    assert found.change == pytest.approx(18.0)
    assert found.low == pytest.approx(18.0)
    assert found.high == pytest.approx(18.0)
    assert found.start == pytest.approx(50.0)
    assert found.points == 10
    share = found.percent()
    assert share is not None
    assert share.change == pytest.approx(36.0)
    assert share.negated().change == pytest.approx(-36.0)


def test_sens_own_interval() -> None:
    """Twelve points by hand: 66 slopes, C = 1.96 sqrt(12*11*29/18) = 28.58, so the ends are the 18th and the 49th of them."""
    values = [0, 3, 1, 4, 2, 6, 5, 9, 7, 8, 11, 10]
    found = trend(range(12), values)
    assert found is not None
    slopes = sorted((values[j] - values[i]) / (j - i) for i in range(12) for j in range(i + 1, 12))
    assert found.low == pytest.approx(slopes[17] * 11)
    assert found.high == pytest.approx(slopes[48] * 11)


def test_outliers_move_nothing() -> None:
    values = [10.0] * 40
    values[5], values[30], values[39] = 900.0, 0.0, 700.0
    found = trend(range(40), values)
    assert found is not None
    assert (found.change, found.low, found.high) == (0.0, 0.0, 0.0)


def test_noise_without_a_trend_includes_zero_and_keeps_a_wide_limit() -> None:
    chance = random.Random(1)  # noqa: S311 - noise
    found = trend(range(24), [100 + chance.gauss(0, 1) for _ in range(24)])
    assert found is not None
    assert found.low < 0 < found.high
    share = found.percent()
    assert share is not None
    assert bound(share, 10.0) is Bound.KEPT
    assert bound(share, 0.0) is Bound.UNCLEAR


def test_limits() -> None:
    assert bound(Trend(5.0, 4.0, 6.0, 1.0, 9), 3.9) is Bound.BROKEN
    assert bound(Trend(5.0, 4.0, 6.0, 1.0, 9), 4.0) is Bound.UNCLEAR
    assert bound(Trend(5.0, 4.0, 6.0, 1.0, 9), 6.0) is Bound.KEPT


def test_what_tells_no_trend() -> None:
    assert trend(range(MIN_POINTS - 1), range(MIN_POINTS - 1)) is None
    assert trend([1.0] * 20, range(20)) is None
    assert trend(range(9), [math.nan, 1, 2, 3, 4, 5, 6, 7, math.inf]) is None
    falling = trend(range(9), [-1.0] * 9)
    assert falling is not None
    assert falling.percent() is None


def test_many_points_cost_no_more_than_a_few_hundred() -> None:
    found = trend(range(50_000), [1000.0 + at / 1000 for at in range(50_000)])
    assert found is not None
    assert found.points == 240
    assert found.change == pytest.approx(50.0, rel=0.01)


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1e9, 1e9)), min_size=0, max_size=60))
def test_the_change_lies_within_its_interval(points: list[tuple[float, float]]) -> None:
    found = trend([at for at, _ in points], [value for _, value in points])
    if found is not None:
        assert found.low <= found.change <= found.high
        assert all(math.isfinite(value) for value in found[:4])
