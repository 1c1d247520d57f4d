"""A long run judged over its time: does its rate sink, does its memory grow?"""

from nodeproof.stress.baseline import drift
from nodeproof.stress.workloads.heartbeat import Heartbeat

__all__ = ["SoakSamples"]

_MOST = 4096
_WARM_UP = 0.25
"""The first part of a run fills caches and pools; growth there is no leak."""


class SoakSamples:
    """Rates and resident memory, thinned so that any length of run fits."""

    def __init__(self) -> None:
        self._rates: list[float] = []
        self._memory: list[float] = []
        self._last_memory_s = float("-inf")
        self._memory_step_s = 1.0

    def rate(self, beat: Heartbeat) -> None:
        """Take the rate of a heartbeat."""
        if beat.rate is not None and beat.rate > 0:
            self._rates.append(beat.rate)
            if len(self._rates) > _MOST:
                del self._rates[::2]

    def memory(self, at_s: float, resident_bytes: int) -> None:
        """Take the resident size of the tree, at most once a step."""
        if at_s - self._last_memory_s < self._memory_step_s or resident_bytes <= 0:
            return
        self._last_memory_s = at_s
        self._memory.append(float(resident_bytes))
        if len(self._memory) > _MOST:
            del self._memory[::2]
            self._memory_step_s *= 2

    def judge(self) -> tuple[dict[str, object], list[str]]:
        """Both trends, and what of them is a concern."""
        rates = drift(self._rates)
        grown = drift(self._memory[int(len(self._memory) * _WARM_UP) :])
        concerns = []
        if rates.found and rates.change is not None and rates.change < 0:
            concerns.append(f"its rate sank while it ran: {rates.reason}")
        if grown.found and grown.change is not None and grown.change > 0:
            concerns.append(f"its memory grew while it ran: {grown.reason}")
        return {
            "rate_samples": len(self._rates),
            "rate_change": rates.change,
            "rate": rates.reason,
            "memory_samples": len(self._memory),
            "memory_change": grown.change,
            "memory": grown.reason,
        }, concerns
