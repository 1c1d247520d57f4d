"""Whether the prompts of a cell met the server's prefix cache in one way: all of them warm, or all of them cold."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from nodeproof.bench.guards.result import GuardResult, GuardState

__all__ = ["WARM", "CacheState", "CachedPrompt", "cache_agreement"]

WARM = 0.8
"""Share of a prompt that must have come from the cache for it to be warm (bench.md 10)."""


class CacheState(StrEnum):
    """What the prompts of a cell are meant to find."""

    WARM = "warm"
    COLD = "cold"
    ANY = "any"
    """Either, as long as it is the same for all."""


class CachedPrompt(NamedTuple):
    """What the usage of one answer says. None = not said."""

    prompt_tokens: int | None
    cached_tokens: int | None

    @property
    def warm(self) -> bool | None:
        """Whether most of it came from the cache; None when that cannot be told."""
        if not self.prompt_tokens or self.cached_tokens is None:
            return None
        return self.cached_tokens >= WARM * self.prompt_tokens


def cache_agreement(prompts: Sequence[CachedPrompt], expected: CacheState = CacheState.ANY) -> GuardResult:
    """All warm or all cold, and as ``expected``. A server that does not tell makes it unmeasured, not cold."""
    warm = sum(1 for prompt in prompts if prompt.warm is True)
    cold = sum(1 for prompt in prompts if prompt.warm is False)
    untold = len(prompts) - warm - cold
    counts = {"prompts": float(len(prompts)), "warm": float(warm), "cold": float(cold), "untold": float(untold)}
    cached = [prompt.cached_tokens for prompt in prompts if prompt.cached_tokens is not None]
    if cached:
        counts["min_cached_tokens"], counts["max_cached_tokens"] = float(min(cached)), float(max(cached))
    state, reason = _judged(warm, cold, untold, expected)
    return GuardResult("cache", state, counts, reason)


def _judged(warm: int, cold: int, untold: int, expected: CacheState) -> tuple[GuardState, str]:
    if warm and cold:
        return GuardState.VACUOUS, f"{warm} prompts came from the prefix cache and {cold} did not: the figures mix both"
    if expected is CacheState.WARM and cold:
        return GuardState.VACUOUS, f"{cold} prompts were to come from the prefix cache and did not: nothing here is warm"
    if expected is CacheState.COLD and warm:
        return GuardState.VACUOUS, f"{warm} prompts were to be new to the server and came from its prefix cache"
    if untold:
        total = warm + cold + untold
        return GuardState.UNMEASURED, f"the server does not say how much of {untold} prompts (of {total}) was cached"
    if not warm and not cold:
        return GuardState.UNMEASURED, "there are no answers"
    return GuardState.OK, ""
