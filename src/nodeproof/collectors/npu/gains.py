"""New memory errors of each chip since the reading before, out of the driver's totals (observe.md 10.1 #10)."""

from collections.abc import Iterator

from nodeproof.collectors.services.ascend_told import ChipAnswer, ChipKey, Told
from nodeproof.errors import Absence, NoData

__all__ = ["EccGains"]

_NAMES = tuple(f"{memory}_{kind}_ecc" for memory in ("hbm", "ddr") for kind in ("single", "double"))
_FIRST = NoData(Absence.UNKNOWN, "a second reading is needed to tell what came since the first")


class EccGains:
    """Remembers the totals, by chip and by kind of memory and error: two chips of a card are two."""

    def __init__(self) -> None:
        self._totals: dict[tuple[ChipKey, str], float] = {}
        self._answers: dict[ChipKey, tuple[ChipAnswer, tuple[Told, ...]]] = {}

    def of(self, key: ChipKey, answer: ChipAnswer) -> tuple[Told, ...]:
        """The gains that ``answer`` brought; the same ones when it is asked about again."""
        kept = self._answers.get(key)
        if kept is None or kept[0] is not answer:
            totals = {told.name: told for told in answer.told if told.name.endswith("_ecc_errors_total")}
            if not totals:
                return ()
            kept = self._answers[key] = (answer, tuple(self._gained(key, totals)))
        return kept[1]

    def _gained(self, key: ChipKey, totals: dict[str, Told]) -> Iterator[Told]:
        for name in _NAMES:
            told = totals.get(f"{name}_errors_total")
            if told is None:
                continue
            if isinstance(told.value, NoData):
                yield Told(name, told.value)
                continue
            before = self._totals.get((key, name))
            self._totals[key, name] = told.value
            if before is None:
                # A total of 0 has gained nothing, whenever it began; any other may be old.
                yield Told(name, 0.0 if told.value == 0 else _FIRST.again())
            else:
                yield Told(name, told.value - before if told.value >= before else told.value)
