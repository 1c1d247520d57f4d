"""A long run judged over its time: does its rate sink, does its memory grow?

A workload repeats phases (``run 2``, ``factor 3``, ``march-0000-write``), and within one its rate moves by nature: the panels of
an LU shrink. So like is held against like: each repetition of a phase gives one sample, its rate as a share of what is usual for
that phase. Only a phase without an end gives one for each heartbeat, of the work done since the one before.
"""

import re

from nodeproof.stress.baseline import drift, median
from nodeproof.stress.workloads.heartbeat import Heartbeat

__all__ = ["SoakSamples"]

_MOST = 4096
_WARM_UP = 0.25
"""The first part of a run fills caches and pools; growth there is no leak."""
_MEMORY_STEP_S = 1.0
_COUNTED = re.compile(r" \d+(?: of \d+)?$")


class SoakSamples:
    """Rates and resident memory, thinned so that any length of run fits."""

    def __init__(self) -> None:
        self._rates: list[tuple[str, float]] = []
        """Kind of phase and rate."""
        self._beat: Heartbeat | None = None
        self._began_s = 0.0
        """When the phase of the newest heartbeat began, on the workload's clock."""
        self._memory: list[float] = []
        self._last_memory_s = float("-inf")
        self._memory_step_s = _MEMORY_STEP_S

    def rate(self, beat: Heartbeat) -> None:
        """Take a heartbeat."""
        former = self._beat
        if former is None or beat.phase != former.phase or beat.done < former.done:
            self._repetition(former)
            self._began_s = beat.elapsed_s
        elif beat.total is None:
            self._since(former, beat)
        self._beat = beat

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
        rates = drift(self._shares())
        grown = drift(self._memory[int(len(self._memory) * _WARM_UP) :])
        sank = rates.found and rates.change is not None and rates.change < 0
        grew = grown.found and grown.change is not None and grown.change > 0
        concerns = [f"its rate sank while it ran: {rates.reason}"] if sank else []
        concerns += [f"its memory grew while it ran: {grown.reason}"] if grew else []
        return {
            "rate_samples": len(self._rates),
            "rate_change": rates.change,
            "rate": rates.reason,
            "rate_sank": sank,
            "memory_samples": len(self._memory),
            "memory_change": grown.change,
            "memory": grown.reason,
            "memory_grew": grew,
        }, concerns

    def _repetition(self, last: Heartbeat | None) -> None:
        """A phase with an end is over; ``last`` is its last word."""
        if last is not None and last.rate and last.total is not None:
            self._keep(last.phase, last.rate)

    def _since(self, former: Heartbeat, beat: Heartbeat) -> None:
        """The part of an endless phase between two heartbeats, whose rates are those of the phase so far."""
        if former.rate is None or beat.rate is None:
            return
        before_s, now_s = former.elapsed_s - self._began_s, beat.elapsed_s - self._began_s
        if now_s > before_s:
            self._keep(beat.phase, (beat.rate * now_s - former.rate * before_s) / (now_s - before_s))

    def _keep(self, phase: str, rate: float) -> None:
        self._rates.append((_COUNTED.sub("", phase), rate))
        if len(self._rates) > _MOST:
            del self._rates[::2]

    def _shares(self) -> list[float]:
        """Each rate as a share of the median of its kind."""
        kinds: dict[str, list[float]] = {}
        for kind, rate in self._rates:
            kinds.setdefault(kind, []).append(rate)
        usual = {kind: median(rates) for kind, rates in kinds.items()}
        return [rate / usual[kind] for kind, rate in self._rates if usual[kind] > 0]
