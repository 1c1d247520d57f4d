"""Whether answers were as long as they were meant to be: a rate of two tokens says nothing about a hundred and twenty-eight.

Tokens are those that the server counted; ``None`` stands for an answer whose tokens nobody counted.
"""

from collections.abc import Sequence

from nodeproof.bench.guards.result import GuardResult, GuardState

__all__ = ["FLOOR", "any_content", "budget_delivered", "majority_delivered"]

FLOOR = 0.8
"""Share of the budget that counts as delivered (bench.md 10)."""


def budget_delivered(tokens: Sequence[int | None], budget: int, *, floor: float = FLOOR) -> GuardResult:
    """All answers together: their tokens are at least ``floor`` of ``budget`` tokens for each."""
    unknown = _unknown("budget", tokens)
    if unknown is not None:
        return unknown
    total, wanted = _total(tokens), len(tokens) * budget
    counts = {"answers": float(len(tokens)), "tokens": float(total), "budget_tokens": float(wanted)}
    if total >= floor * wanted:
        return GuardResult("budget", GuardState.OK, counts)
    reason = f"{len(tokens)} answers brought {total} of {wanted} tokens, at least {floor:.0%} must come"
    return GuardResult("budget", GuardState.VACUOUS, counts, reason)


def majority_delivered(tokens: Sequence[int | None], budget: int, *, floor: float = FLOOR) -> GuardResult:
    """Each by itself: at least half of the answers have ``floor`` of ``budget`` tokens."""
    unknown = _unknown("majority", tokens)
    if unknown is not None:
        return unknown
    full = sum(1 for count in tokens if count is not None and count >= floor * budget)
    counts = {"answers": float(len(tokens)), "full_answers": float(full)}
    if 2 * full >= len(tokens):
        return GuardResult("majority", GuardState.OK, counts)
    reason = f"{full} of {len(tokens)} answers have {floor:.0%} of {budget} tokens, at least half must"
    return GuardResult("majority", GuardState.VACUOUS, counts, reason)


def any_content(tokens: Sequence[int | None]) -> GuardResult:
    """At least one answer has a token."""
    unknown = _unknown("content", tokens)
    if unknown is not None:
        return unknown
    empty = sum(1 for count in tokens if count == 0)
    counts = {"answers": float(len(tokens)), "empty_answers": float(empty)}
    if empty < len(tokens):
        return GuardResult("content", GuardState.OK, counts)
    return GuardResult("content", GuardState.VACUOUS, counts, f"all {empty} answers are empty")


def _unknown(guard: str, tokens: Sequence[int | None]) -> GuardResult | None:
    """The answer when there is nothing to count, or something that nobody counted."""
    uncounted = sum(1 for count in tokens if count is None)
    counts = {"answers": float(len(tokens)), "uncounted_answers": float(uncounted)}
    if not tokens:
        return GuardResult(guard, GuardState.UNMEASURED, counts, "there are no answers")
    if uncounted:
        reason = f"nobody counted the tokens of {uncounted} of {len(tokens)} answers"
        return GuardResult(guard, GuardState.UNMEASURED, counts, reason)
    return None


def _total(tokens: Sequence[int | None]) -> int:
    return sum(count for count in tokens if count is not None)
