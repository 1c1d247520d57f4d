"""Where a curve bends."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.speed.knee import Point, find_knee


def _curve(*tok_s: float) -> list[Point]:
    return [Point(2**place, value) for place, value in enumerate(tok_s)]


@pytest.mark.parametrize(
    ("tok_s", "knee"),
    [
        ((10.0, 20.0, 40.0, 40.0, 41.0), 4),
        ((10.0, 10.0, 10.0), 1),
        ((10.0, 20.0, 40.0, 80.0), None),
        ((10.0, 20.0, 40.0, 44.0), 4),
        ((10.0, 20.0, 40.0, 44.5), None),
        ((10.0, 20.0, 40.0, 30.0, 20.0), 4),
        # As a model server on two cores was seen to do it: 115 at one, then 134, 170 and 190.
        ((115.0, 120.0, 134.0, 170.0, 190.0), None),
        ((10.0, 20.0), None),
        ((), None),
        ((0.0, 0.0, 0.0), None),
    ],
)
def test_knees(tok_s: tuple[float, ...], knee: int | None) -> None:
    assert find_knee(_curve(*tok_s)).concurrency == knee


def test_in_words() -> None:
    assert find_knee(_curve(10.0, 20.0, 38.0, 40.0)).text == "knee at 4 at once: 38 tok/s, 95% of the peak; 8 at once bring 40"
    assert find_knee(_curve(10.0, 20.0, 40.0)).text == ("no knee up to 4 at once: throughput is still 2.00 times that of 2")
    assert find_knee(_curve(10.0)).text == "a knee takes 3 comparable cells, there are 1"


@given(st.lists(st.floats(0.1, 1e6), min_size=3, max_size=9), st.randoms(use_true_random=False))
def test_a_knee_is_a_point_that_reaches_the_peak_and_none_below_it_does(tok_s: list[float], chance: object) -> None:
    points = _curve(*tok_s)
    shuffled = list(points)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]  # a Random
    found = find_knee(shuffled)
    assert found == find_knee(points)
    enough = [point.concurrency for point in points if point.tok_s >= 0.9 * max(tok_s)]
    assert found.concurrency in {enough[0], None}
    assert (found.concurrency is None) is (enough[0] == points[-1].concurrency)
    assert all(before.concurrency < after.concurrency for before, after in itertools.pairwise(points))
