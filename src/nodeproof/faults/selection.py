"""Which events a subscriber wants, and which of those a debounce keeps back. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from nodeproof.model.event import Severity
from nodeproof.model.fault import Change, FaultEvent, Subscription

__all__ = ["Debounce", "Held", "wants"]

_RANK = {"": 0, Severity.INFO: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}
_TOLD = frozenset({Change.SET, Change.CLEARED, Change.EVENT, Change.GRAVER})
"""What an operator did is no news for subscribers."""


def wants(subscription: Subscription, event: FaultEvent) -> bool:
    """Whether ``subscription`` asks for ``event``. A recovery carries the severity of what it ends: it passes where that did."""
    return (
        event.change in _TOLD
        and (not subscription.types or event.type in subscription.types)
        and (not subscription.components or event.component in subscription.components)
        and (not subscription.npu_ids or (event.component == "npu" and event.npu_id in subscription.npu_ids))
        and _RANK[event.severity] >= _RANK[subscription.min_severity]
    )


class Held(NamedTuple):
    """An event that waits for the end of its debounce."""

    due_s: float
    event: FaultEvent


class Debounce:
    """At most one event of a device and type within ``window_s``; the newest one comes when the window ends.

    A recovery is never kept back: it is told if its fault was told, and takes the fault along if that still waits. So the last
    word that a subscriber hears of a thing is always true.
    """

    def __init__(self, window_s: float, held: Iterable[FaultEvent] = ()) -> None:
        """``held``: what waited when the last process ended; it waits no longer."""
        self._window_s = window_s
        self._told_s: dict[tuple[str, str], float] = {}
        self._held = {_key(event): Held(0.0, event) for event in held}

    def passes(self, event: FaultEvent, now_s: float) -> bool:
        """Whether ``event`` is to be told now; kept, or dropped with its fault, otherwise."""
        if self._window_s <= 0:
            return True
        key = _key(event)
        if event.change is Change.CLEARED:
            waiting = self._held.pop(key, None)
            untold = waiting is not None and waiting.event.fault_id == event.fault_id and waiting.event.change is Change.SET
            return not untold
        last_s = self._told_s.get(key)
        if last_s is not None and now_s - last_s < self._window_s:
            self._held[key] = Held(last_s + self._window_s, event)
            return False
        self._note(key, now_s)
        return True

    def due(self, now_s: float) -> FaultEvent | None:
        """The oldest event whose wait is over, and which is not told yet; call :meth:`told` once it is."""
        ripe = [held for held in self._held.values() if held.due_s <= now_s]
        return min(ripe, key=lambda held: held.event.sequence).event if ripe else None

    def told(self, event: FaultEvent, now_s: float) -> None:
        """``event``, which was due, was told."""
        key = _key(event)
        if self._held.get(key, Held(0.0, event)).event is event:
            self._held.pop(key, None)
        self._note(key, now_s)

    @property
    def held(self) -> list[FaultEvent]:
        """What waits."""
        return [held.event for held in self._held.values()]

    def next_due_s(self) -> float | None:
        """When the next one's wait is over; None when nothing waits."""
        return min((held.due_s for held in self._held.values()), default=None)

    def _note(self, key: tuple[str, str], now_s: float) -> None:
        if len(self._told_s) > 4096:
            self._told_s = {known: told for known, told in self._told_s.items() if now_s - told < self._window_s}
        self._told_s[key] = now_s


def _key(event: FaultEvent) -> tuple[str, str]:
    return (event.device, event.type)
