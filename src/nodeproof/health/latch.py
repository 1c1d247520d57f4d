"""Conditions over time: when each begins to count, and when it ends."""

from collections.abc import Collection
from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.health.rules import Compare, Limit, Probe
from nodeproof.health.sample import Moment, Sample, Sight, entity_of

__all__ = ["Held", "Latch", "Latches"]


class Latch:
    """Whether one condition of one thing counts. The same sample twice changes nothing."""

    __slots__ = ("_good_since", "_stamp", "_streak", "active", "read_mono_s", "sample", "since_wall_s")

    def __init__(self, sample: Sample) -> None:
        self.active = False
        self.sample = sample
        """The newest sample that showed the condition."""
        self.read_mono_s = 0.0
        """When that was read, in seconds since boot."""
        self.since_wall_s = 0.0
        """When the first of the samples in a row that showed it was judged."""
        self._streak = 0
        self._stamp: str | None = None
        self._good_since: float | None = None

    @property
    def idle(self) -> bool:
        """Nothing to remember."""
        return not self.active and not self._streak

    def feed(self, sample: Sample, limit: Limit, at: Instant, *, confirm: bool) -> None:
        """Take a sample in."""
        fresh = sample.stamp != self._stamp
        self._stamp = sample.stamp
        if limit.holds(sample.value, sample.factor):
            self._bad(sample, at, fresh=fresh, enter=limit.enter if confirm else 1)
        elif not self.active:
            self._streak = 0
        elif not limit.clears(sample.value, sample.factor):
            self._good_since = None
        elif fresh:
            self._good(at, limit.leave_s if confirm else 0.0)

    def _bad(self, sample: Sample, at: Instant, *, fresh: bool, enter: int) -> None:
        self._good_since = None
        self.sample = sample
        if self.active or not fresh:
            return
        if not self._streak:
            self.since_wall_s = at.wall_s
        self._streak += 1
        self.active = self._streak >= enter

    def _good(self, at: Instant, leave_s: float) -> None:
        if self._good_since is None:
            self._good_since = at.mono_s
        if at.mono_s - self._good_since >= leave_s:
            self.active = False
            self._streak = 0


class Held(NamedTuple):
    """One latch that is not idle."""

    latch: Latch
    current: bool
    """Whether its thing could be read now."""


class Latches:
    """All latches of an evaluator, by rule and thing."""

    def __init__(self, *, confirm: bool) -> None:
        self._confirm = confirm
        self._rules: dict[str, dict[tuple[str, ...], Latch]] = {}
        self._fed: dict[str, Sight] = {}

    def feed(self, rule: str, limit: Limit, sight: Sight, moment: Moment) -> None:
        """Take in what was seen. A thing that can no longer be read keeps its state: it has not been seen good.

        A thing that is gone, while the rest can be read, takes its state with it. The same sight twice changes nothing.
        """
        if self._fed.get(rule) is sight:
            return
        self._fed[rule] = sight
        readings, at = moment.readings, moment.at
        latches = self._rules.get(rule)
        worst = _worst(limit, sight.samples)
        for entity, sample in worst.items():
            latch = None if latches is None else latches.get(entity)
            bad = limit.holds(sample.value, sample.factor)
            if latch is None:
                if not bad:
                    continue
                latch = Latch(sample)
                latches = self._rules.setdefault(rule, {})
                latches[entity] = latch
            latch.feed(sample, limit, at, confirm=self._confirm)
            if bad:
                latch.read_mono_s = at.mono_s - readings.age_of(sample.metric, at)
        if latches:
            self._sweep(rule, limit.probe, sight, worst)

    def _sweep(self, rule: str, probe: Probe, sight: Sight, worst: Collection[tuple[str, ...]]) -> None:
        kept = {
            entity: latch
            for entity, latch in self._rules[rule].items()
            if not latch.idle and (entity in worst or any(_about(entity, entity_of(probe, e.labels)) for e in sight.unread))
        }
        if kept:
            self._rules[rule] = kept
        else:
            del self._rules[rule]

    def know(self, rule: str) -> bool:
        """Whether any latch of ``rule`` is not idle."""
        return rule in self._rules

    @property
    def rules(self) -> Collection[str]:
        """Rules with a latch that is not idle."""
        return self._rules.keys()

    def held(self, rule: str, sight: Sight) -> list[Held]:
        """The latches of ``rule`` that are not idle, as of the last :meth:`feed`."""
        latches = self._rules.get(rule)
        if not latches:
            return []
        read = {sample.entity for sample in sight.samples}
        return [Held(latch, entity in read) for entity, latch in latches.items()]


def _worst(limit: Limit, samples: list[Sample]) -> dict[tuple[str, ...], Sample]:
    """The worst sample of each thing."""
    sign = -1.0 if limit.compare is Compare.BELOW else 1.0
    worst: dict[tuple[str, ...], Sample] = {}
    for sample in samples:
        other = worst.get(sample.entity)
        if other is None or sign * (sample.value - other.value) > 0:
            worst[sample.entity] = sample
    return worst


def _about(entity: tuple[str, ...], absent: tuple[str, ...]) -> bool:
    """Whether an absence may be about ``entity``: what it does not name it does not rule out."""
    return all(not part or part == own for part, own in zip(absent, entity, strict=False))
