"""Amounts that only grow, against time, and how much they grew in a window. Pure.

A run is watched for hours and judged by windows that it names afterwards, so everything is kept as a running total: a window's
amount is the difference of two totals, and half of the points can be dropped without making any amount wrong, only coarser in
time. A reading that fails costs nothing once the next one succeeds: the difference then spans both intervals.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from nodeproof.errors import Absence, NoData

__all__ = ["Amount", "Counters", "Track"]

_MAX_BREAKS = 256
_MAX_ADVANCES = 512
_SHOWN = 4


class Amount(NamedTuple):
    """How much came in a window."""

    value: float | None
    complete: bool
    """False: ``value`` is a lower bound, as part of the window could not be seen."""
    absence: NoData | None
    """Why there is no value, or why it is not complete."""
    begin_s: float = 0.0
    end_s: float = 0.0
    """The readings that ``value`` lies between: the last one before the window and the first one after it."""

    @property
    def span_s(self) -> float:
        """Time between those readings."""
        return self.end_s - self.begin_s


class _Break(NamedTuple):
    begin_s: float
    end_s: float
    absence: NoData


class Track:
    """One running total. Times only go forwards."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._times = array("d")
        self._totals = array("d")
        self._breaks: list[_Break] = []
        self._absence: NoData | None = None
        self._missed_s = float("-inf")

    @property
    def last_s(self) -> float | None:
        """Time of the newest reading."""
        return self._times[-1] if self._times else None

    @property
    def total(self) -> float:
        """Everything since the first reading; 0 before it."""
        return self._totals[-1] if self._totals else 0.0

    def add(self, at_s: float, increment: float) -> None:
        """A reading: ``increment`` came since the one before; the first one only begins the track."""
        if self._times and at_s <= self._times[-1]:
            self._totals[-1] += increment
            return
        self._totals.append(self._totals[-1] + increment if self._totals else 0.0)
        self._times.append(at_s)

    def miss(self, at_s: float, absence: NoData) -> None:
        """No reading at this time, and why."""
        self._absence = absence
        self._missed_s = at_s

    def break_off(self, begin_s: float, end_s: float, absence: NoData) -> None:
        """Between these times more may have come than was counted: a counter began anew, a part came or went."""
        if len(self._breaks) == _MAX_BREAKS:
            first, second = self._breaks[:2]
            self._breaks[:2] = [_Break(first.begin_s, second.end_s, first.absence)]
        self._breaks.append(_Break(begin_s, end_s, absence))

    def window(self, begin_s: float, end_s: float) -> Amount:
        """What came between two times."""
        if not self._times:
            return Amount(None, complete=False, absence=self._absence or NoData(Absence.UNKNOWN, f"{self._what} was never read"))
        first = bisect_right(self._times, begin_s) - 1
        last = bisect_left(self._times, end_s)
        gap: NoData | None = None
        if first < 0:
            first, gap = 0, NoData(Absence.UNKNOWN, f"{self._what} could be read only after the window had begun")
        if last == len(self._times):
            last -= 1
            seen = self._missed_s > self._times[-1]
            gap = (self._absence if seen else None) or NoData(Absence.UNKNOWN, f"{self._what} was not read at the window's end")
        if last <= first:
            return Amount(None, complete=False, absence=gap or NoData(Absence.UNKNOWN, f"{self._what} was read only once"))
        begin, end = self._times[first], self._times[last]
        gap = gap or next((entry.absence for entry in self._breaks if entry.begin_s < end and begin < entry.end_s), None)
        return Amount(self._totals[last] - self._totals[first], gap is None, gap, begin, end)

    def thin(self) -> None:
        """Drop every second point, never the first or the last."""
        last_time, last_total = self._times[-1:], self._totals[-1:]
        self._times, self._totals = self._times[::2], self._totals[::2]
        if last_time and self._times[-1] != last_time[0]:
            self._times.extend(last_time)
            self._totals.extend(last_total)

    def __len__(self) -> int:
        return len(self._times)


class _Advance(NamedTuple):
    begin_s: float
    end_s: float
    part: str
    amount: float


class Counters:
    """Counters of several parts (cores, controllers, devices) joined in one track, with the names of those that moved."""

    def __init__(self, what: str, combine: Callable[[Iterable[float]], float] = sum) -> None:
        self.track = Track(what)
        self._what = what
        self._combine = combine
        self._before: tuple[float, dict[str, float]] | None = None
        self._advances: list[_Advance] = []

    def take(self, at_s: float, values: Mapping[str, float | None]) -> None:
        """All parts at one time; a part that could not be read is None."""
        now = {part: value for part, value in values.items() if value is not None}
        unread = sorted(values.keys() - now.keys())
        if not now and unread:
            self.miss(at_s, NoData(Absence.READ_ERROR, f"{self._what} of {_names(unread)} cannot be read"))
            return
        if self._before is None:
            self._before = (at_s, now)
            self.track.add(at_s, 0.0)
            return
        then_s = self._before[0]
        self._advance(at_s, now, set(unread))
        if unread:
            reason = f"{self._what} of {_names(unread)} cannot be read"
            self.track.break_off(then_s, at_s, NoData(Absence.READ_ERROR, reason))

    def miss(self, at_s: float, absence: NoData) -> None:
        """Nothing could be read."""
        self.track.miss(at_s, absence)

    def subject(self, begin_s: float, end_s: float) -> str:
        """Parts that moved in the window, the greatest first."""
        amounts: dict[str, float] = {}
        for advance in self._advances:
            if advance.begin_s < end_s and begin_s < advance.end_s:
                amounts[advance.part] = amounts.get(advance.part, 0.0) + advance.amount
        return _names(sorted(amounts, key=lambda part: (-amounts[part], part)))

    def note(self, begin_s: float, end_s: float, part: str, amount: float) -> None:
        """Remember that ``part`` moved so much."""
        if len(self._advances) < _MAX_ADVANCES:
            self._advances.append(_Advance(begin_s, end_s, part, amount))

    def _advance(self, at_s: float, now: dict[str, float], unread: set[str]) -> None:
        then_s, before = self._before or (at_s, now)
        gone = sorted((before.keys() ^ now.keys()) - unread)
        restarted = sorted(part for part, value in now.items() if value < before.get(part, value))
        steps = {part: value - before[part] for part, value in now.items() if part in before and value >= before[part]}
        for part, step in steps.items():
            if step > 0 and part:
                self.note(then_s, at_s, part, step)
        self.track.add(at_s, self._combine(steps.values()) if steps else 0.0)
        if gone:
            reason = f"{self._what}: {_names(gone)} came or went"
            self.track.break_off(then_s, at_s, NoData(Absence.UNKNOWN, reason))
        if restarted:
            reason = f"{self._what}: the counter of {_names(restarted)} went backwards"
            self.track.break_off(then_s, at_s, NoData(Absence.UNKNOWN, reason))
        self._before = (at_s, now)


def _names(parts: list[str]) -> str:
    shown = ", ".join(parts[:_SHOWN])
    return f"{shown} and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else shown
