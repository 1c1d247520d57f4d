"""One condition over time: when it begins to count, and when it ends."""

from nodeproof.clock import Instant
from nodeproof.health.rules import Limit
from nodeproof.health.sample import Sample

__all__ = ["Latch"]


class Latch:
    """Whether one condition counts. Fed with one sample at a time; the same sample twice changes nothing."""

    __slots__ = ("_good_since", "_stamp", "_streak", "active", "at", "sample", "since_wall_s")

    def __init__(self) -> None:
        self.active = False
        self.sample: Sample | None = None
        """The newest sample that showed the condition."""
        self.at: float = 0.0
        """When that sample was judged, in seconds since boot."""
        self.since_wall_s: float = 0.0
        """When the first of the samples in a row that showed it was judged."""
        self._streak = 0
        self._stamp: str | None = None
        self._good_since: float | None = None

    @property
    def idle(self) -> bool:
        """Nothing to remember."""
        return not self.active and not self._streak

    def feed(self, sample: Sample, limit: Limit, at: Instant, *, confirm: bool) -> bool:
        """Take a sample in; whether the condition counts now."""
        fresh = sample.stamp != self._stamp
        self._stamp = sample.stamp
        if limit.holds(sample.value, sample.factor):
            self._bad(sample, at, fresh=fresh, enter=limit.enter if confirm else 1)
        elif not self.active:
            self._streak = 0
        elif not limit.clears(sample.value, sample.factor):
            self._good_since = None
        elif fresh or not confirm:
            self._good(at, limit.leave_s if confirm else 0.0)
        return self.active

    def _bad(self, sample: Sample, at: Instant, *, fresh: bool, enter: int) -> None:
        self._good_since = None
        self.sample = sample
        self.at = at.mono_s
        if self.active:
            return
        if fresh or not self._streak:
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
            self._good_since = None
