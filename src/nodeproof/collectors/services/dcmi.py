"""Ascend chips through the driver's library: a quick look each cycle, a deeper one every half a minute, no program run."""

import contextlib
import threading
from collections.abc import Mapping
from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.collectors.services.ascend_told import ChipAnswer, ChipIdentity, ChipKey, Told
from nodeproof.errors import Absence, NoData
from nodeproof.host.dcmi import DcmiListing, RawChip
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue.npu import DETAIL_PERIOD_S, METRICS

__all__ = ["DcmiChips", "DcmiLook"]

_INTERVAL_S = 0.5
"""Shorter than any cycle: each cycle has its own look."""
_DEADLINE_S = 20.0
_WAIT_S = 0.25
"""So long a cycle waits for its look; a driver that is well answers in a tenth of that."""
_LISTING_PERIOD_S = 60.0
_STALE_AFTER_S = 4 * DETAIL_PERIOD_S
_EARLY_S = 0.5
_HASTE_S = 10.0
_RARE = frozenset(spec.name for spec in METRICS if spec.period_s)


class DcmiLook(NamedTuple):
    """What the driver said last."""

    chips: Mapping[ChipKey, tuple[ChipAnswer | NoData, ...]]
    identities: Mapping[ChipKey, ChipIdentity]
    at: Instant
    """When the chips were listed."""
    whole: bool
    driver: str


class DcmiChips:
    """Answers of DCMI; get it by ``machine.shared(DcmiChips)``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._lock = threading.Lock()
        self._listing: DcmiListing | None = None
        self._listed_at: Instant | None = None
        self._deep_s: float | None = None
        self._hasty = (float("-inf"), DETAIL_PERIOD_S)
        """Until when, and how often, what changes slowly is asked for more often."""
        self._quick: dict[ChipKey, ChipAnswer | NoData] = {}
        self._deep: dict[ChipKey, ChipAnswer] = {}
        self._source = machine.background("DCMI", self._round, interval_s=_INTERVAL_S, deadline_s=_DEADLINE_S)

    def look(self) -> DcmiLook:
        """The newest answers; waits a quarter of a second for those of this cycle. Raises NoData when DCMI is of no use."""
        if self._machine.dcmi is None:
            raise NoData(Absence.UNSUPPORTED, "nobody can ask libdcmi.so here")
        with contextlib.suppress(NoData):
            self._source.latest()  # begins this cycle's look
        self._source.wait(_WAIT_S)
        self._source.latest()
        now_s = self._machine.clock.now().mono_s
        with self._lock:
            if self._listing is None or self._listed_at is None:
                raise NoData(Absence.UNKNOWN, "the Ascend driver has not listed its cards yet")
            chips = {key: (said, *self._rare(key, now_s)) for key, said in self._quick.items()}
            return DcmiLook(chips, self._identities(), self._listed_at, self._listing.whole, self._listing.driver)

    def hasten(self, period_s: float) -> None:
        """For some seconds, ask at least so often for what changes slowly: somebody watches a run."""
        with self._lock:
            self._hasty = (self._machine.clock.now().mono_s + _HASTE_S, period_s)

    def wait(self, timeout_s: float) -> bool:
        """Wait for the look in flight; for what is read only once."""
        return self._source.wait(timeout_s)

    def _rare(self, key: ChipKey, now_s: float) -> tuple[ChipAnswer, ...]:
        answer = self._deep.get(key)
        return (answer,) if answer is not None and now_s - answer.at.mono_s <= _STALE_AFTER_S else ()

    def _identities(self) -> dict[ChipKey, ChipIdentity]:
        listed = self._listing.chips if self._listing is not None else ()
        return {
            ChipKey(card, device): ChipIdentity(
                str(told.get("name", "")), str(told.get("bus", "")), told.get("logic"), told.get("phy")
            )
            for card, device, told in listed
        }

    def _round(self) -> int:
        """One look. Raises NoData."""
        library = self._machine.dcmi
        if library is None:
            raise NoData(Absence.UNSUPPORTED, "nobody can ask libdcmi.so here")
        now = self._machine.clock.now()
        if self._listed_at is None or now.mono_s - self._listed_at.mono_s >= _LISTING_PERIOD_S - _EARLY_S:
            self._list(now)
        with self._lock:
            keys = [ChipKey(card, device) for card, device, _ in self._listing.chips] if self._listing is not None else []
            until_s, period_s = self._hasty
        every_s = period_s if now.mono_s < until_s else DETAIL_PERIOD_S
        deep = self._deep_s is None or now.mono_s - self._deep_s >= every_s - _EARLY_S
        answers = library.look([(key.npu_id, key.chip_id) for key in keys], deep=deep)
        if deep:
            self._deep_s = now.mono_s
        with self._lock:
            self._quick = {key: self._take(key, answers[key.npu_id, key.chip_id], now) for key in keys}
        return len(keys)

    def _take(self, key: ChipKey, raw: RawChip | NoData, at: Instant) -> ChipAnswer | NoData:
        """The quick part of an answer; what changes slowly is kept apart, until it is asked for again."""
        if isinstance(raw, NoData):
            return raw
        from nodeproof.sources import dcmi  # noqa: PLC0415 - a quarter of a megabyte that only nodes with such chips need

        told = [Told(one.name, one.value, one.labels) for one in dcmi.values(raw)]
        if dcmi.is_deep(raw):
            self._deep[key] = ChipAnswer(at, tuple(one for one in told if one.name in _RARE))
        return ChipAnswer(at, tuple(one for one in told if one.name not in _RARE))

    def _list(self, now: Instant) -> None:
        """List the chips anew; one that was listed before is still asked when the driver does not list anything now."""
        library = self._machine.dcmi
        if library is None:
            return
        try:
            listing = library.listing()
        except NoData:
            if self._listing is None:
                raise
            listing = self._listing._replace(whole=False)
        with self._lock:
            self._listing, self._listed_at = listing, now
