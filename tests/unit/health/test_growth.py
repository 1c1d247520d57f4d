"""Growth of counters within a window."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from nodeproof.health.growth import Growth

HOUR = 3600.0


def gains(values: list[float], *, window_s: float = HOUR, every_s: float = 1.0) -> list[float | None]:
    """Growth after each reading of one counter."""
    growth = Growth()
    return [
        growth.of_counter(("c",), value, str(number), number * every_s, window_s) for number, value in enumerate(values, start=1)
    ]


def test_the_first_reading_of_a_total_tells_no_growth() -> None:
    assert gains([500, 500, 501]) == [None, 0, 1]


def test_a_total_of_zero_has_not_grown() -> None:
    assert gains([0, 2]) == [0, 2]


def test_the_same_reading_twice_counts_once() -> None:
    growth = Growth()
    assert growth.of_counter(("c",), 0, "a", 1.0, HOUR) == 0
    assert growth.of_counter(("c",), 5, "b", 2.0, HOUR) == 5
    assert growth.of_counter(("c",), 5, "b", 3.0, HOUR) == 5
    assert growth.of_counter(("c",), 5, "b", 4.0, HOUR) == 5


def test_growth_leaves_the_window() -> None:
    assert gains([0, 3, 3, 3, 4], window_s=2.5) == [0, 3, 3, 3, 1]


def test_a_restart_counts_on_from_where_it_began() -> None:
    assert gains([100, 107, 2, 4]) == [None, 7, 7, 9]


def test_a_restart_never_gives_a_negative_or_a_leap() -> None:
    assert gains([1000, 0, 1, 2]) == [None, 0, 1, 2]
    assert gains([1000, 5, 0, 1]) == [None, 0, 0, 1]


def test_a_reading_torn_downwards_is_undone() -> None:
    assert gains([500, 3, 500, 501]) == [None, 0, 0, 1]


def test_a_reading_torn_upwards_is_undone() -> None:
    assert gains([3, 9e9, 3, 4]) == [None, 9e9 - 3, 0, 1]
    assert gains([3, 9e9, 5, 5]) == [None, 9e9 - 3, 2, 2]


def test_a_fall_to_less_than_before_the_last_rise_is_a_restart() -> None:
    assert gains([10, 12, 3, 4]) == [None, 2, 2, 3]


def test_a_fall_long_after_a_rise_undoes_nothing() -> None:
    assert gains([10, 12, 12, 11, 11]) == [None, 2, 2, 2, 2]


def test_gains_are_added_up_within_the_window() -> None:
    growth = Growth()
    found = [growth.of_gains(("g",), gain, str(n), float(n), 3.0) for n, gain in enumerate([1, 0, 2, 0, 0, 0], start=1)]
    assert found == [1, 1, 3, 2, 2, 0]


def test_a_gain_read_twice_counts_once() -> None:
    growth = Growth()
    assert growth.of_gains(("g",), 4, "a", 1.0, 10.0) == 4
    assert growth.of_gains(("g",), 4, "a", 2.0, 10.0) == 4


def test_a_series_that_appears_late_began_at_zero() -> None:
    """Defect 10: the step from nothing to the first error was never reported."""
    growth = Growth()
    assert growth.of_counter(("late",), 2, "a", 5.0, HOUR, from_zero=True) == 2
    assert growth.of_counter(("late",), 2, "b", 6.0, HOUR, from_zero=True) == 2


def test_families_know_when_they_were_first_read() -> None:
    growth = Growth()
    growth.mark(("f",), 10.0)
    growth.mark(("f",), 20.0)
    assert not growth.began_before(("f",), 10.0)
    assert growth.began_before(("f",), 20.0)


def test_a_counter_that_never_rests_stays_small() -> None:
    growth = Growth()
    total = 0.0
    for second in range(5000):
        total += 1
        grown = growth.of_counter(("busy",), total, str(second), float(second), HOUR)
    assert len(growth._tracks["busy",]._rises) < 300
    assert grown is not None
    assert abs(grown - 3600) <= 3600 / 256 + 1


def test_share_of_the_peak() -> None:
    growth = Growth()
    found = [growth.of_peak(("p",), value, 1.0) for value in (0, 100, 25, 200, 100)]
    assert found == [100, 100, 25, 100, 50]


def test_vanished_counters_are_forgotten_when_there_are_many() -> None:
    growth = Growth()
    for number in range(1100):
        growth.of_counter((number,), 0, "a", float(number), HOUR)
        growth.of_peak((number,), 1, float(number))
    growth.forget_vanished(1100.0, 100.0)
    assert len(growth._tracks) == len(growth._peaks) == 99  # those read at 1001 to 1099


def test_a_counter_of_something_vanished_is_not_kept_beyond_its_window() -> None:
    growth = Growth()
    for number in range(1100):
        growth.of_gains((number,), 0, "a", 0.0, 3.0)
        growth.of_peak((number,), 1, 0.0)
    growth.of_counter(("day",), 0, "a", 0.0, 24 * HOUR)
    growth.forget_vanished(59.0, 24 * HOUR)
    assert len(growth._tracks) == 1101, "its source may only have failed for a while"
    growth.forget_vanished(60.0, 24 * HOUR)
    assert list(growth._tracks) == [("day",)]
    assert len(growth._peaks) == 1100
    growth.forget_vanished(3600.0, 24 * HOUR)
    assert growth._peaks == {}


def test_few_counters_are_never_forgotten() -> None:
    growth = Growth()
    growth.of_counter(("c",), 7, "a", 1.0, HOUR)
    growth.forget_vanished(1e9, 1.0)
    assert growth.of_counter(("c",), 9, "b", 1e9, 2e9) == 2


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60))
def test_growth_is_never_negative_and_never_more_than_all_rises(values: list[int]) -> None:
    rises = sum(max(0, after - before) for before, after in pairwise(values))
    for grown in gains([float(value) for value in values]):
        assert grown is None or 0 <= grown <= rises


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40))
def test_a_counter_that_only_grows_gains_the_difference(steps: list[int]) -> None:
    total, values = 0, []
    for step in steps:
        total += step
        values.append(float(total))
    assert gains(values)[-1] == values[-1] - values[0]
