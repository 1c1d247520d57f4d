"""Running totals and windows, worked by hand; and that forgetting points never changes an amount between those that stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence, NoData
from nodeproof.hardware.tracks import Counters, Track


def track(*points: tuple[float, float]) -> Track:
    made = Track("it")
    for at_s, increment in points:
        made.add(at_s, increment)
    return made


def test_a_window_lies_between_the_readings_around_it() -> None:
    made = track((0, 0), (10, 5), (20, 7), (30, 11))
    amount = made.window(12, 18)
    assert (amount.value, amount.complete, amount.begin_s, amount.end_s, amount.span_s) == (7.0, True, 10.0, 20.0, 10.0)
    assert made.window(10, 20).value == 7.0
    assert made.window(0, 30).value == 23.0
    assert (made.total, made.last_s, len(made)) == (23.0, 30.0, 4)


def test_what_was_never_read_says_why() -> None:
    never = Track("it")
    amount = never.window(0, 1)
    assert (amount.value, amount.complete) == (None, False)
    assert amount.absence is not None
    assert (amount.absence.state, amount.absence.reason) == (Absence.UNKNOWN, "it was never read")
    never.miss(1, NoData(Absence.NOT_APPLICABLE, "no such thing"))
    again = never.window(0, 1).absence
    assert again is not None
    assert again.state is Absence.NOT_APPLICABLE
    assert (never.last_s, never.total) == (None, 0.0)


def test_a_window_that_was_only_partly_seen_is_a_lower_bound() -> None:
    made = track((10, 0), (20, 3))
    early, late = made.window(5, 20), made.window(10, 25)
    assert (early.value, early.complete) == (3.0, False)
    assert (late.value, late.complete) == (3.0, False)
    assert early.absence is not None
    assert "only after the window had begun" in early.absence.reason
    assert late.absence is not None
    assert "not read at the window's end" in late.absence.reason
    made.miss(25, NoData(Absence.STALE, "hangs"))
    hung = made.window(10, 25).absence
    assert hung is not None
    assert (hung.state, hung.reason) == (Absence.STALE, "hangs")


def test_one_reading_is_no_difference() -> None:
    made = track((10, 0))
    for window in ((5.0, 15.0), (10.0, 10.0), (9.0, 10.0)):
        assert made.window(*window).value is None
    assert track((10, 0), (20, 3)).window(30, 40).value is None


def test_a_failed_reading_is_healed_by_the_next() -> None:
    made = track((0, 0), (10, 1))
    made.miss(20, NoData(Absence.READ_ERROR, "I/O error"))
    made.add(30, 4)
    assert made.window(10, 20) == (4.0, True, None, 10.0, 30.0)


def test_breaks_touch_only_their_windows_and_stay_bounded() -> None:
    made = track(*((float(at), 1.0) for at in range(1000)))
    for at in range(600):
        made.break_off(at, at + 1, NoData(Absence.UNKNOWN, "began anew"))
    assert not made.window(10, 11).complete
    assert not made.window(599, 600).complete
    assert made.window(700, 701).complete


def test_two_readings_at_one_time_are_one() -> None:
    made = track((0, 0), (10, 1), (10, 2))
    assert (len(made), made.window(0, 10).value) == (2, 3.0)


def test_counters_name_the_parts_that_moved() -> None:
    counters = Counters("errors")
    counters.take(0, {"mc0": 1, "mc1": 5})
    counters.take(10, {"mc0": 2, "mc1": 8})
    counters.take(20, {"mc0": 2, "mc1": 9})
    assert counters.track.window(0, 20) == (5.0, True, None, 0.0, 20.0)
    assert counters.subject(0, 20) == "mc1, mc0"
    assert counters.subject(10, 20) == "mc1"
    assert counters.subject(20, 30) == ""


def test_counters_of_many_parts_are_shortened() -> None:
    counters = Counters("errors", max)
    counters.take(0, {f"p{at}": 0 for at in range(9)})
    counters.take(1, {f"p{at}": at for at in range(9)})
    assert (counters.track.window(0, 1).value, counters.subject(0, 1)) == (8.0, "p8, p7, p6, p5 and 4 more")


@pytest.mark.parametrize(
    ("later", "value", "reason"),
    [
        ({"mc0": 0.0, "mc1": 6.0}, 1.0, "the counter of mc0 went backwards"),
        ({"mc1": 6.0}, 1.0, "mc0 came or went"),
        ({"mc0": None, "mc1": 6.0}, 1.0, "of mc0 cannot be read"),
        ({"mc0": 1.0, "mc1": 5.0, "mc2": 0.0}, 0.0, "mc2 came or went"),
    ],
)
def test_what_cannot_be_compared_is_unknown_not_zero(later: dict[str, float | None], value: float, reason: str) -> None:
    counters = Counters("errors")
    counters.take(0, {"mc0": 1, "mc1": 5})
    counters.take(10, later)
    amount = counters.track.window(0, 10)
    assert (amount.value, amount.complete) == (value, False)
    assert amount.absence is not None
    assert reason in amount.absence.reason


def test_a_part_unreadable_from_the_first_look_on_stays_unknown() -> None:
    counters = Counters("errors")
    counters.take(0, {"mc0": None, "mc1": 5})
    counters.take(10, {"mc0": None, "mc1": 5})
    assert not counters.track.window(0, 10).complete


def test_nothing_readable_at_all_is_an_absence() -> None:
    counters = Counters("errors")
    counters.take(0, {"mc0": None})
    absence = counters.track.window(0, 1).absence
    assert absence is not None
    assert (absence.state, absence.reason) == (Absence.READ_ERROR, "errors of mc0 cannot be read")
    empty = Counters("errors")
    empty.take(0, {})
    empty.take(1, {})
    assert empty.track.window(0, 1).value == 0.0


def test_notes_are_bounded() -> None:
    counters = Counters("errors")
    for at in range(2000):
        counters.note(at, at + 1, f"p{at}", 1)
    assert counters.subject(0, 2000).endswith("508 more")


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=60), st.integers(1, 4))
def test_thinning_keeps_the_whole_and_every_kept_window(increments: list[int], times: int) -> None:
    made = track(*((float(at), float(step)) for at, step in enumerate(increments)))
    totals = [sum(increments[1 : at + 1]) for at in range(len(increments))]
    for _ in range(times):
        made.thin()
    last = float(len(increments) - 1)
    assert made.window(0, last).value == totals[-1]
    amount = made.window(last / 2, last)
    assert amount.value == totals[int(amount.end_s)] - totals[int(amount.begin_s)]


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=20), st.floats(0, 100), st.floats(0, 100))
def test_a_part_is_never_more_than_the_whole(points: list[tuple[float, float]], one: float, other: float) -> None:
    made = track(*sorted(points))
    begin, end = min(one, other), max(one, other)
    part, whole = made.window(begin, end), made.window(0, 100)
    if part.value is not None:
        assert whole.value is not None
        assert part.value <= whole.value + 1e-9
