"""From what sources said of chips to readings and absences, each chip by itself.

A number from the best source that has one counts. What no source has a number for is an absence with the reason of the first
that gave one; the same absence of all chips is told once.
"""

from collections.abc import Collection, Mapping, Sequence

from nodeproof.clock import Instant
from nodeproof.collectors.base import Cycle
from nodeproof.collectors.npu.gains import EccGains
from nodeproof.collectors.npu.labels import ChipLabels
from nodeproof.collectors.services.ascend import ChipSaid
from nodeproof.collectors.services.ascend_told import ChipKey, Told
from nodeproof.errors import Absence, NoData

__all__ = ["Teller"]

_NOBODY = NoData(Absence.UNSUPPORTED, "no source here tells it of this kind of card")


class Teller:
    """Tells one group's metrics."""

    def __init__(self, names: Collection[str], labels: ChipLabels, gains: EccGains | None = None) -> None:
        self._names = tuple(names)
        self._labels = labels
        self._gains = gains

    def tell(self, cycle: Cycle, chips: Mapping[ChipKey, Sequence[ChipSaid]]) -> None:
        """Everything about ``chips``."""
        wanted = [name for name in self._names if cycle.wants(name)]
        among = frozenset(wanted)
        absences: dict[str, dict[ChipKey, NoData]] = {}
        stamps: dict[Instant, Cycle] = {}
        for key, said in chips.items():
            told = self._best(key, said, among)
            for name in wanted:
                at, readings, absence = told.get(name, (None, [], _NOBODY))
                if at is None or not readings:
                    absences.setdefault(name, {})[key] = absence
                    continue
                stamp = stamps.get(at)
                if stamp is None:
                    stamp = stamps[at] = cycle.as_of(at)
                for one in readings:
                    stamp.add(name, _number(one), self._labels.of(key, one))
        for stamp in stamps.values():
            cycle.take(stamp)
        self._miss(cycle, absences, len(chips))

    def _best(
        self, key: ChipKey, said: Sequence[ChipSaid], wanted: Collection[str]
    ) -> dict[str, tuple[Instant | None, list[Told], NoData]]:
        """By name: when it was read, its numbers, and why there is none."""
        found: dict[str, tuple[Instant | None, list[Told], NoData]] = {}
        silent: NoData | None = None
        for answer in said:
            if isinstance(answer, NoData):
                silent = silent or answer
                continue
            earlier = {name for name, (at, readings, _) in found.items() if at is not None and readings}
            gained = self._gains.of(key, answer) if self._gains is not None else ()
            for told in (*answer.told, *gained):
                if told.name not in wanted or told.name in earlier:
                    continue
                at, readings, absence = found.get(told.name, (None, [], _NOBODY))
                if isinstance(told.value, NoData):
                    found[told.name] = (at, readings, told.value if absence is _NOBODY else absence)
                else:
                    found[told.name] = (answer.at, [*readings, told], absence)
        if silent is not None:
            for name in wanted:
                at, readings, absence = found.get(name, (None, [], _NOBODY))
                if not readings and absence is _NOBODY:
                    found[name] = (at, readings, silent)
        return found

    def _miss(self, cycle: Cycle, absences: Mapping[str, Mapping[ChipKey, NoData]], chips: int) -> None:
        for name, by_chip in absences.items():
            alike: dict[tuple[Absence, str, str], list[ChipKey]] = {}
            for key, absence in by_chip.items():
                alike.setdefault((absence.state, absence.reason, absence.remedy), []).append(key)
            for (state, reason, remedy), keys in alike.items():
                if len(keys) == chips:
                    cycle.miss(name, state, reason, remedy=remedy)
                    continue
                for key in keys:
                    cycle.miss(name, state, reason, self._labels.chip(key), remedy=remedy)


def _number(told: Told) -> float:
    assert isinstance(told.value, float)  # noqa: S101 - absences were sorted out
    return told.value
