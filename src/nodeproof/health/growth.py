"""What counters gained lately, and how far readings stand from their best. A total since boot says nothing of today."""

from typing import NamedTuple

__all__ = ["Growth", "Key"]

Key = tuple[object, ...]
"""What tells one series from another."""

_MANY = 1024
"""Tracks above which those of vanished things are looked for."""

_LEAST_KEPT_S = 60.0
"""A counter that is away for less has not vanished: its source may only have failed for a while."""

_PEAK_KEPT_S = 3600.0
"""A port that has been away for longer is another one, where so many come and go."""

_GRAINS = 256
"""Rises within this part of the window are kept as one, at the time of the first: a counter that never rests stays small."""


class _Rise(NamedTuple):
    mono_s: float
    gain: float
    before: float


class _Track:
    """One counter."""

    __slots__ = ("_rises", "_stepped_back_from", "_window_s", "last", "mono_s", "samples", "stamp")

    def __init__(self, value: float, stamp: str, mono_s: float, window_s: float) -> None:
        self.last = value
        self.stamp = stamp
        self.mono_s = mono_s
        self.samples = 1
        self._window_s = window_s
        self._rises: list[_Rise] = []
        self._stepped_back_from: float | None = None

    @property
    def kept_s(self) -> float:
        """How long it is worth keeping when nobody reads it any more: interfaces of containers come and go all day."""
        return max(_LEAST_KEPT_S, self._window_s)

    def step(self, value: float, stamp: str, mono_s: float) -> None:
        """A fresh reading. A step back is a restart only when the next reading confirms it: a torn one is undone."""
        if self._stepped_back_from is not None and value >= self._stepped_back_from:
            self.last = self._stepped_back_from
        was, self._stepped_back_from = self.last, None
        if value > was:
            self._rise(_Rise(mono_s, value - was, was))
        elif value < was:
            self._step_back(value)
        self.last, self.stamp, self.mono_s, self.samples = value, stamp, mono_s, self.samples + 1

    def _step_back(self, value: float) -> None:
        rise = self._rises[-1] if self._rises else None
        if rise is not None and rise.mono_s == self.mono_s and value >= rise.before:
            # The reading before this one was torn upwards.
            self._rises.pop()
            if value > rise.before:
                self._rise(_Rise(rise.mono_s, value - rise.before, rise.before))
        else:
            self._stepped_back_from = self.last

    def add(self, gain: float, stamp: str, mono_s: float) -> None:
        """A fresh reading that is a gain already."""
        if gain > 0:
            self._rise(_Rise(mono_s, gain, 0.0))
        self.stamp, self.mono_s, self.samples = stamp, mono_s, self.samples + 1

    def _rise(self, rise: _Rise) -> None:
        rises = self._rises
        # The newest stays by itself, because the next reading may undo it.
        if len(rises) > 1 and rises[-1].mono_s - rises[-2].mono_s < self._window_s / _GRAINS:
            newest = rises.pop()
            rises[-1] = rises[-1]._replace(gain=rises[-1].gain + newest.gain)
        rises.append(rise)

    def gained(self, mono_s: float) -> float:
        """Gained within the window that ends at ``mono_s``."""
        rises = self._rises
        if not rises:
            return 0.0
        begin = mono_s - self._window_s
        while rises and rises[0].mono_s <= begin:
            del rises[0]
        return sum(rise.gain for rise in rises)


class Growth:
    """Growth of many counters, each within its window, and peaks of many gauges."""

    def __init__(self) -> None:
        self._tracks: dict[Key, _Track] = {}
        self._families: dict[Key, float] = {}
        self._peaks: dict[Key, tuple[float, float]] = {}

    def mark(self, family: Key, mono_s: float) -> None:
        """Series of ``family`` are read at ``mono_s``; the first time counts."""
        self._families.setdefault(family, mono_s)

    def began_before(self, family: Key, mono_s: float) -> bool:
        """Whether series of ``family`` were read before ``mono_s``."""
        return self._families[family] < mono_s

    def of_counter(
        self, key: Key, value: float, stamp: str, mono_s: float, window_s: float, *, from_zero: bool = False
    ) -> float | None:
        """What the counter ``key`` gained within ``window_s``; None when one reading alone cannot tell.

        A counter that stands at 0 has gained nothing. Readings with the stamp of the one before count once. ``from_zero``: a
        counter not seen before has just begun.
        """
        track = self._tracks.get(key)
        if track is None and from_zero:
            track = self._tracks[key] = _Track(0.0, "", mono_s, window_s)
        elif track is None:
            track = self._tracks[key] = _Track(value, stamp, mono_s, window_s)
        if stamp != track.stamp:
            track.step(value, stamp, mono_s)
        if track.samples == 1 and value != 0:
            return None
        return track.gained(mono_s)

    def of_gains(self, key: Key, gain: float, stamp: str, mono_s: float, window_s: float) -> float:
        """Sum within ``window_s`` of readings that are gains since the reading before them."""
        track = self._tracks.get(key)
        if track is None:
            track = self._tracks[key] = _Track(0.0, "", mono_s, window_s)
        if stamp != track.stamp:
            track.add(gain, stamp, mono_s)
        return track.gained(mono_s)

    def of_peak(self, key: Key, value: float, mono_s: float) -> float:
        """``value`` in per cent of the highest value of ``key`` so far; 100 where that is 0."""
        peak = max(value, self._peaks.get(key, (value, 0.0))[0])
        self._peaks[key] = (peak, mono_s)
        return 100.0 * value / peak if peak > 0 else 100.0

    def forget_vanished(self, mono_s: float, keep_s: float) -> None:
        """Drop what nobody has read for ``keep_s``, when there is much of it; counters whose window is shorter before that."""
        if len(self._tracks) > _MANY:
            self._tracks = {
                key: track for key, track in self._tracks.items() if mono_s - track.mono_s < min(keep_s, track.kept_s)
            }
        if len(self._peaks) > _MANY:
            self._peaks = {key: peak for key, peak in self._peaks.items() if mono_s - peak[1] < min(keep_s, _PEAK_KEPT_S)}
