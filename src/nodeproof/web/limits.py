"""How often a caller may do something."""

import collections
import math

from nodeproof.clock import Clock, SystemClock

__all__ = ["RateLimit"]

_MAX_CALLERS = 1024
"""More are forgotten, the one that was longest silent first."""


class RateLimit:
    """At most ``most`` times within ``window_s`` a caller. For one thread."""

    def __init__(self, most: int, window_s: float, clock: Clock | None = None) -> None:
        self._most = most
        self._window_s = window_s
        self._clock = clock or SystemClock()
        self._times: collections.OrderedDict[str, collections.deque[float]] = collections.OrderedDict()

    def wait_s(self, caller: str) -> int:
        """Whole seconds until ``caller`` may again; 0 = now."""
        times = self._times.get(caller)
        now_s = self._clock.now().mono_s
        while times and now_s - times[0] >= self._window_s:
            times.popleft()
        if not times or len(times) < self._most:
            return 0
        return max(1, math.ceil(times[0] + self._window_s - now_s))

    def count(self, caller: str) -> None:
        """It did it once more."""
        times = self._times.setdefault(caller, collections.deque(maxlen=self._most))
        self._times.move_to_end(caller)
        times.append(self._clock.now().mono_s)
        while len(self._times) > _MAX_CALLERS:
            self._times.popitem(last=False)
