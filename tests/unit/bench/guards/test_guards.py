"""Each guard on what is sound, what proves nothing, and what was not told."""

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.bench.guards import (
    CachedPrompt,
    CacheState,
    GuardResult,
    GuardState,
    Reply,
    any_content,
    budget_delivered,
    cache_agreement,
    concerns,
    guard_metrics,
    liveness,
    majority_delivered,
    no_input_control,
    repeat_control,
    repeat_equality,
    state_of,
)

OK, VACUOUS, UNMEASURED = GuardState.OK, GuardState.VACUOUS, GuardState.UNMEASURED


@pytest.mark.parametrize(
    ("tokens", "state", "counts"),
    [
        ([100, 100], OK, {"answers": 2, "tokens": 200, "budget_tokens": 200}),
        ([80, 80], OK, {"answers": 2, "tokens": 160, "budget_tokens": 200}),
        ([80, 79], VACUOUS, {"answers": 2, "tokens": 159, "budget_tokens": 200}),
        ([0], VACUOUS, {"answers": 1, "tokens": 0, "budget_tokens": 100}),
        ([100, None], UNMEASURED, {"answers": 2, "uncounted_answers": 1}),
        ([], UNMEASURED, {"answers": 0, "uncounted_answers": 0}),
    ],
)
def test_the_budget_of_all_together(tokens: list[int | None], state: GuardState, counts: dict[str, float]) -> None:
    result = budget_delivered(tokens, 100)
    assert (result.guard, result.state, result.counts) == ("budget", state, counts)
    assert bool(result.reason) is (state is not OK)


def test_the_reason_holds_value_and_limit() -> None:
    assert budget_delivered([10, 20], 100).reason == "2 answers brought 30 of 200 tokens, at least 80% must come"
    assert majority_delivered([10, 20, 90], 100).reason == "1 of 3 answers have 80% of 100 tokens, at least half must"


@pytest.mark.parametrize(
    ("tokens", "state"),
    [
        ([80, 10], OK),
        ([80, 10, 10], VACUOUS),
        # Seven long answers cannot stand for the others: all together are far beyond the budget.
        ([1000, 1, 1, 1], VACUOUS),
        ([None, 80], UNMEASURED),
        ([], UNMEASURED),
    ],
)
def test_half_of_the_answers_by_themselves(tokens: list[int | None], state: GuardState) -> None:
    assert majority_delivered(tokens, 100).state is state


def test_one_long_answer_passes_the_budget_alone_and_not_the_majority() -> None:
    tokens = [1000, 1, 1, 1]
    assert budget_delivered(tokens, 100).state is OK
    assert majority_delivered(tokens, 100).counts == {"answers": 4, "full_answers": 1}


@pytest.mark.parametrize(("tokens", "state"), [([0, 3], OK), ([0, 0], VACUOUS), ([None], UNMEASURED), ([], UNMEASURED)])
def test_any_content(tokens: list[int | None], state: GuardState) -> None:
    assert any_content(tokens).state is state


_WARM, _COLD, _UNTOLD, _NO_USAGE = CachedPrompt(100, 80), CachedPrompt(100, 79), CachedPrompt(100, None), CachedPrompt(None, 5)


@pytest.mark.parametrize(
    ("prompts", "expected", "state"),
    [
        ([_WARM, _WARM], CacheState.ANY, OK),
        ([_COLD, _COLD], CacheState.ANY, OK),
        ([_WARM, _COLD], CacheState.ANY, VACUOUS),
        ([_WARM, _COLD, _UNTOLD], CacheState.ANY, VACUOUS),
        ([_WARM], CacheState.WARM, OK),
        ([_COLD], CacheState.WARM, VACUOUS),
        ([_COLD], CacheState.COLD, OK),
        ([_WARM], CacheState.COLD, VACUOUS),
        ([_WARM, _UNTOLD], CacheState.ANY, UNMEASURED),
        ([_NO_USAGE], CacheState.WARM, UNMEASURED),
        ([CachedPrompt(0, 0)], CacheState.ANY, UNMEASURED),
        ([], CacheState.ANY, UNMEASURED),
    ],
)
def test_the_cache_is_warm_or_cold_and_not_both(prompts: list[CachedPrompt], expected: CacheState, state: GuardState) -> None:
    assert cache_agreement(prompts, expected).state is state


def test_the_cache_in_numbers() -> None:
    result = cache_agreement([_WARM, _COLD, _UNTOLD])
    assert result.counts == {"prompts": 3, "warm": 1, "cold": 1, "untold": 1, "min_cached_tokens": 79, "max_cached_tokens": 80}
    assert result.reason == "1 prompts came from the prefix cache and 1 did not: the figures mix both"


@pytest.mark.parametrize(
    ("right", "by_chance", "state"),
    [
        ([False, False], 0.0, OK),
        ([False, True], 0.0, VACUOUS),
        ([False, True], 0.5, OK),
        ([True, True, False], 0.5, VACUOUS),
        ([True, None], 0.0, VACUOUS),
        ([False, None], 0.0, UNMEASURED),
        ([None], 0.0, UNMEASURED),
        ([], 0.0, UNMEASURED),
    ],
)
def test_what_is_answered_without_the_input(right: list[bool | None], by_chance: float, state: GuardState) -> None:
    assert no_input_control(right, by_chance=by_chance).state is state


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ([100.0, 104.0], OK),
        ([100.0, 106.0], VACUOUS),
        ([100.0, None], UNMEASURED),
        ([100.0, 100.0, None], UNMEASURED),
        ([100.0], UNMEASURED),
        ([0.0, 0.0], UNMEASURED),
        ([], UNMEASURED),
    ],
)
def test_equal_measurements_lie_close_together(values: list[float | None], state: GuardState) -> None:
    assert repeat_control(values, limit_pct=5.0).state is state


def test_the_difference_of_equal_measurements() -> None:
    result = repeat_control([90.0, 100.0, 110.0], limit_pct=5.0)
    assert result.counts == {"repeats": 3, "measured": 3, "difference_pct": 20.0}
    assert result.reason == "equal measurements lie 20 % apart, at most 5 % is believed"


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (["a", "b"], ["a", "b"], OK),
        (["a", "b"], ["a", "c"], VACUOUS),
        (["a", None], ["b", "c"], VACUOUS),
        (["a", None], ["a", "c"], UNMEASURED),
        ([], [], UNMEASURED),
    ],
)
def test_the_same_question_twice(first: list[str | None], second: list[str | None], state: GuardState) -> None:
    assert repeat_equality(first, second).state is state


def test_answers_that_are_not_as_many_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="shorter"):
        repeat_equality(["a"], [])


@pytest.mark.parametrize(
    ("replies", "state"),
    [
        ([Reply("q1", "one", 5), Reply("q2", "two", 5)], OK),
        ([Reply("q1", "one", 5), Reply("q1", "one", 5)], OK),
        ([Reply("q1", "same", 5), Reply("q2", "same", 5)], VACUOUS),
        ([Reply("q1", "", 0), Reply("q2", " \n", None)], VACUOUS),
        ([Reply("q1", "", 0), Reply("q2", "two", 5)], OK),
        ([Reply("q1", "one", 1), Reply("q2", "two", 5), Reply("q3", "three", 1)], VACUOUS),
        ([], UNMEASURED),
    ],
)
def test_equality_of_the_dead_proves_nothing(replies: list[Reply], state: GuardState) -> None:
    assert liveness(replies, min_tokens=2).state is state


def test_liveness_in_numbers() -> None:
    result = liveness([Reply("q1", "same", 5), Reply("q2", "same", 5)])
    assert result.counts == {"replies": 2, "dead": 0, "texts": 1, "questions": 2}
    assert result.reason == "2 different questions have one and the same answer: equality of it proves nothing"


_GOOD = GuardResult("budget", OK)
_BAD = GuardResult("cache", VACUOUS, {}, "a mixture")
_UNKNOWN = GuardResult("cache", UNMEASURED, {}, "not told")


def test_several_together() -> None:
    assert state_of([]) is UNMEASURED
    assert state_of([_GOOD]) is OK
    assert state_of([_GOOD, _UNKNOWN]) is UNMEASURED
    assert state_of([_UNKNOWN, _BAD, _GOOD]) is VACUOUS
    assert concerns([_GOOD, _UNKNOWN, _BAD]) == ["cache vacuous: a mixture", "cache unmeasured: not told"]
    assert guard_metrics([_GOOD, _UNKNOWN, _BAD, _BAD]) == {
        "guard_budget_unmeasured": 0.0,
        "guard_budget_vacuous": 0.0,
        "guard_cache_unmeasured": 1.0,
        "guard_cache_vacuous": 2.0,
    }
    assert (_GOOD.ok, _BAD.ok, _UNKNOWN.ok) == (True, False, False)


def test_a_result_can_be_kept() -> None:
    assert msgspec.json.decode(msgspec.json.encode(_BAD), type=GuardResult) == _BAD


_COUNTS = st.lists(st.none() | st.integers(0, 4096), max_size=12)


@given(_COUNTS, st.integers(1, 4096))
def test_no_guard_of_delivery_calls_nothing_ok(tokens: list[int | None], budget: int) -> None:
    for result in (budget_delivered(tokens, budget), majority_delivered(tokens, budget), any_content(tokens)):
        assert (result.state is UNMEASURED) is (not tokens or None in tokens)
        assert bool(result.reason) is not result.ok


@given(st.lists(st.tuples(st.none() | st.integers(0, 100), st.none() | st.integers(0, 100)), max_size=8))
def test_a_cell_is_never_both_warm_and_cold(pairs: list[tuple[int | None, int | None]]) -> None:
    prompts = list(itertools.starmap(CachedPrompt, pairs))
    states = {expected: cache_agreement(prompts, expected).state for expected in CacheState}
    assert not (states[CacheState.WARM] is OK and states[CacheState.COLD] is OK)
    assert (states[CacheState.ANY] is OK) is (states[CacheState.WARM] is OK or states[CacheState.COLD] is OK)
    assert all(prompt.warm is not None for prompt in prompts) or states[CacheState.ANY] is not OK
