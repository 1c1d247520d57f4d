"""What a guard says, and what several say together."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

import msgspec

__all__ = ["GuardResult", "GuardState", "concerns", "guard_metrics", "state_of"]


class GuardState(StrEnum):
    """What a guard found."""

    OK = "ok"
    """The measurement could have failed in this way, and did not."""
    VACUOUS = "vacuous"
    """It does not show what its number is called: it proves nothing."""
    UNMEASURED = "unmeasured"
    """What the guard needs was not told: it cannot be said either way."""


class GuardResult(msgspec.Struct, frozen=True):
    """The answer of one guard about one cell."""

    guard: str
    """Its name in metrics: lower case, ``_`` between words."""
    state: GuardState
    counts: dict[str, float] = {}
    """What it was judged by; keys that are no plain counts end with their unit."""
    reason: str = ""
    """One sentence without a full stop: the value and the limit. Empty when there is nothing to say."""

    @property
    def ok(self) -> bool:
        """Whether the measurement may be believed as far as this guard goes."""
        return self.state is GuardState.OK


_GRAVITY = (GuardState.OK, GuardState.UNMEASURED, GuardState.VACUOUS)


def state_of(results: Iterable[GuardResult]) -> GuardState:
    """The worst of them: vacuous before unmeasured before ok. Of none at all: unmeasured."""
    states = [result.state for result in results]
    return max(states, key=_GRAVITY.index) if states else GuardState.UNMEASURED


def concerns(results: Iterable[GuardResult]) -> list[str]:
    """A sentence for each that is not ok, vacuous ones first."""
    bad = [result for result in results if not result.ok]
    bad.sort(key=lambda result: -_GRAVITY.index(result.state))
    return [f"{result.guard} {result.state}: {result.reason}" for result in bad]


def guard_metrics(results: Iterable[GuardResult]) -> dict[str, float]:
    """For each guard how many cells it found vacuous and unmeasured, as ``guard_<name>_<state>``; 0 is there, too."""
    counted: Counter[str] = Counter()
    for result in results:
        for state in (GuardState.VACUOUS, GuardState.UNMEASURED):
            counted[f"guard_{result.guard}_{state}"] += int(result.state is state)
    return {key: float(count) for key, count in sorted(counted.items())}
