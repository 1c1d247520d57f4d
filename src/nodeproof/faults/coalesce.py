"""Many kernel events made few: equal ones become one with a count, a first and a last time. Pure and bounded.

A driver in trouble writes tens of thousands of equal lines a second. Events are equal when kind, device and code are. Each kind
has room of its own for so many keys, so that a flood of one kind with ever new devices cannot push the others out: the key that
was quiet longest goes, and is counted in ``dropped``.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from nodeproof.model.event import EventKind, KernelEvent, Severity

__all__ = ["CoalescedEvent", "Coalescer", "FlapPolicy", "LinkChange", "LinkFlap", "link_flap"]

_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}


class CoalescedEvent(msgspec.Struct, frozen=True):
    """Equal events, seen as one."""

    event: KernelEvent
    """The newest of them, with the gravest severity any of them had."""
    count: int
    first_s: float
    """Seconds since boot of the first one."""
    last_s: float
    """Seconds since boot of the newest one."""


class _Entry:
    __slots__ = ("count", "event", "first_s", "kept_back", "severity", "told_s")

    def __init__(self, event: KernelEvent) -> None:
        self.event = event
        self.severity = event.severity
        self.count = event.count
        self.first_s = event.mono_s
        self.told_s = -math.inf
        self.kept_back = False
        """It grew since it was told of."""

    def add(self, event: KernelEvent) -> bool:
        """Take one more; True when it made the whole graver."""
        self.event = event
        self.count += event.count
        graver = _RANK[event.severity] > _RANK[self.severity]
        if graver:
            self.severity = event.severity
        return graver

    def whole(self) -> CoalescedEvent:
        event = self.event
        if event.severity is not self.severity:
            event = msgspec.structs.replace(event, severity=self.severity)
        return CoalescedEvent(event, self.count, self.first_s, self.event.mono_s)


_Key = tuple[EventKind, bool, str, str]


class Coalescer:
    """Collects events. ``take`` says when one is worth telling: the first, a graver one, then at most one in ``tell_every_s``.

    ``due`` tells what was kept back until then, so that the last word on a burst is its true count.
    """

    def __init__(self, *, keys_per_kind: int = 128, tell_every_s: float = 60.0) -> None:
        self._keys_per_kind = keys_per_kind
        self._tell_every_s = tell_every_s
        self._kinds: dict[tuple[EventKind, bool], OrderedDict[tuple[str, str], _Entry]] = {}
        self._untold: dict[_Key, _Entry] = {}
        """What grew since it was told of."""
        self.dropped = 0
        """Keys given up for want of room."""

    def take(self, event: KernelEvent, *, tell: bool = True) -> CoalescedEvent | None:
        """Add ``event``; the whole it belongs to when somebody should be told of it now. Without ``tell`` nobody is."""
        # What nobody vouches for is kept apart, or it would add to the count of the true ones.
        entries = self._kinds.setdefault((event.kind, event.verified), OrderedDict())
        key = (event.device, event.code)
        entry = entries.get(key)
        graver = False
        if entry is None:
            if len(entries) >= self._keys_per_kind:
                self._forget(entries.popitem(last=False)[1])
                self.dropped += 1
            entry = entries[key] = _Entry(event)
        else:
            entries.move_to_end(key)
            graver = entry.add(event)
        if not tell:
            return None
        if graver or event.mono_s - entry.told_s >= self._tell_every_s:
            entry.told_s = event.mono_s
            self._forget(entry)
            return entry.whole()
        if not entry.kept_back:
            entry.kept_back = True
            self._untold[_key(event)] = entry
        return None

    def due(self, now_s: float) -> list[CoalescedEvent]:
        """What was kept back and has waited for long enough at ``now_s``."""
        ripe = [entry for entry in self._untold.values() if now_s - entry.told_s >= self._tell_every_s]
        for entry in ripe:
            self._forget(entry)
            entry.told_s = now_s
        return [entry.whole() for entry in ripe]

    def newest(self, whole: CoalescedEvent) -> CoalescedEvent:
        """``whole`` as it is by now, to be told of in its place."""
        event = whole.event
        entries = self._kinds.get((event.kind, event.verified))
        entry = None if entries is None else entries.get((event.device, event.code))
        if entry is None:
            return whole
        self._forget(entry)
        return entry.whole()

    def _forget(self, entry: _Entry) -> None:
        if entry.kept_back:
            entry.kept_back = False
            del self._untold[_key(entry.event)]

    def events(self) -> list[CoalescedEvent]:
        """Everything held, the newest last."""
        wholes = [entry.whole() for entries in self._kinds.values() for entry in entries.values()]
        wholes.sort(key=lambda whole: whole.last_s)
        return wholes


def _key(event: KernelEvent) -> _Key:
    return (event.kind, event.verified, event.device, event.code)


class LinkChange(NamedTuple):
    """One change of a network link."""

    mono_s: float
    """When, in seconds since boot (the clock of ``Instant.mono_s``)."""
    up: bool


class FlapPolicy(NamedTuple):
    """When a link counts as flapping."""

    window_s: float = 600.0
    """Flaps this close together make a flapping link."""
    least: int = 3
    """This many of them."""
    stable_s: float = 600.0
    """Quiet this long and up, the warning clears; the history stays."""


class LinkFlap(msgspec.Struct, frozen=True):
    """How one link behaved."""

    interface: str
    count: int
    """Times it went down and came back, in all of its known history."""
    first_s: float
    """First time it went down."""
    last_s: float
    """Newest change."""
    up: bool
    """What the driver said last."""
    severity: Severity
    """Warning while it flaps, info when it was stable long enough, or never flapped."""
    clears_at_s: float | None
    """When the warning goes if nothing more happens; None when there is none."""


def link_flap(interface: str, changes: Sequence[LinkChange], now_s: float, policy: FlapPolicy = FlapPolicy()) -> LinkFlap | None:  # noqa: B008 - immutable
    """Judge the ``changes`` (oldest first) of ``interface`` at ``now_s``; None when it never went down and came back."""
    flaps: list[float] = []
    down_s: float | None = None
    first_s = 0.0
    for change in changes:
        if not change.up:
            down_s = change.mono_s if down_s is None else down_s
        elif down_s is not None:
            first_s = first_s if flaps else down_s
            flaps.append(change.mono_s)
            down_s = None
    if not flaps:
        return None
    last = changes[-1]
    dense = any(flaps[i] - flaps[i - policy.least + 1] <= policy.window_s for i in range(policy.least - 1, len(flaps)))
    stable = last.up and now_s - last.mono_s >= policy.stable_s
    active = dense and not stable
    return LinkFlap(
        interface,
        len(flaps),
        first_s,
        last.mono_s,
        last.up,
        Severity.WARNING if active else Severity.INFO,
        last.mono_s + policy.stable_s if active and last.up else None,
    )
