"""What the benchmarks of pictures and of videos share: their order, the control without anything to see, and the verdict."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nodeproof.bench.client import Timeouts
from nodeproof.bench.course import Course
from nodeproof.bench.guards import guard_metrics, no_input_control
from nodeproof.bench.media.asker import Asker, Cell, Seen, Worth
from nodeproof.bench.media.integrity import concurrent_cell, cost_of, integrity_cells
from nodeproof.bench.media.items import Item, Make, Part
from nodeproof.bench.reach import require_reached
from nodeproof.model.run import Cell as TableCell
from nodeproof.model.run import CellStyle, Column, Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.runs.params import Int, IntList, ParamSpec

__all__ = ["SHARED_PARAMETERS", "Fidelity", "Group"]

SHARED_PARAMETERS = (
    ParamSpec("concurrencies", "At once", "Different ones in flight, each with its own answer", IntList(1, 256), (1, 2, 4)),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(30, 3600), 300),
    ParamSpec("seed", "Seed", "What is drawn", Int(0, (1 << 31) - 1), 1),
)  # fmt: skip
_UNLIKELY = 0.01
"""What is right without having been shown, and more likely than that, may be luck."""
_NAMED = 4
_STYLES = {Worth.PASS: CellStyle.GOOD, Worth.FAIL: CellStyle.BAD, Worth.SKIPPED: CellStyle.DIM, Worth.ERROR: CellStyle.WARN}


class Group(msgspec.Struct):
    """Checks of one kind."""

    name: str
    cells: list[Cell] = []

    def count(self, worth: Worth) -> int:
        """Of them, how many came out so."""
        return sum(cell.worth is worth for cell in self.cells)

    @property
    def measured(self) -> int:
        """How many say something."""
        return sum(cell.worth.measured for cell in self.cells)


class Fidelity(Course):
    """A benchmark that shows things. Who makes one names :attr:`THING` and gives :meth:`legs`."""

    THING = "picture"
    """In messages."""

    def course(self) -> Iterator[Frame]:
        """The question without anything shown, the legs, the control, the verdict."""
        values = self.values
        limit_s = float(values.int("request_timeout_s"))
        session = self.session(Timeouts(10.0, limit_s, limit_s, limit_s))
        self.asker = Asker(session, self.target.model, values.int("max_tokens"))
        self.groups: dict[str, Group] = {}
        self.seed = values.int("seed")
        words: Part = {"type": "text", "text": "Answer with the word yes."}
        bare = self.asker.ask((words,))
        plain = require_reached(session.send(bare), self.target.base_url)
        yield self.running("calibrate")
        if not plain.ok:
            text = f"vacuous: the endpoint does not answer even without a {self.THING} ({plain.outcome}: {plain.detail})"
            yield self.done(Verdict(VerdictKind.INCONCLUSIVE, text))
            return
        refusal = ""
        for phase in self.legs():
            if phase.startswith("refused: "):
                refusal = phase.removeprefix("refused: ")
                break
            yield self.running(phase)
        self.keep("fidelity.json", {name: group.cells for name, group in self.groups.items()})
        verdict = (
            Verdict(VerdictKind.INCONCLUSIVE, f"unmeasured: the endpoint takes no {self.THING} ({refusal})")
            if refusal
            else self._verdict()
        )
        yield self.done(verdict, metrics=self._metrics(), summary=self._tiles(), table=self._table(), dataset=f"seed:{self.seed}")

    def legs(self) -> Iterator[str]:
        """Check after check; yields what comes next, or ``refused: why`` and then nothing else."""
        raise NotImplementedError

    # What legs make use of

    def add(self, group: str, cell: Cell) -> Cell:
        """Note a check; it is told when it did not come out well."""
        self.groups.setdefault(group, Group(group)).cells.append(cell)
        if cell.worth is not Worth.PASS and cell.detail:
            self.handle.info(f"{cell.name}: {cell.worth}: {cell.detail}")
        return cell

    def probe(self, name: str, item: Item) -> Seen:
        """Show one and note what is seen."""
        seen = self.asker.show(item)
        self.add("probes", Cell(name, seen.worth, seen.detail))
        return seen

    def plain_cost(self, item: Item) -> int | None:
        """Prompt tokens of the question alone."""
        return cost_of(self._without(item))

    def control(self, probes: Mapping[str, Item]) -> None:
        """Ask every question with nothing to see. Who is right all the same has not looked before either."""
        luck = 1.0
        right: list[bool | None] = []
        for name, item in probes.items():
            seen = self._without(item)
            right.append(seen.worth is Worth.PASS if seen.worth.measured else None)
            worth = {Worth.PASS: Worth.FAIL, Worth.FAIL: Worth.PASS}.get(seen.worth, Worth.ERROR)
            if worth is Worth.FAIL:
                luck *= item.chance
            detail = f"answered rightly without a {self.THING}: {', '.join(item.expected)}" if worth is Worth.FAIL else ""
            self.add("control", Cell(f"no {self.THING}: {name}", worth, detail or (seen.detail if worth is Worth.ERROR else "")))
        self._lucky = luck > _UNLIKELY
        self._guard = no_input_control(right)

    def together(self, make: Make) -> Iterator[str]:
        """The checks that pictures and videos share, with what the model was seen to read."""
        for name in integrity_cells(self.asker, make, self.seed):
            self.add("integrity", name)
            yield f"integrity: {name.name}"
        for place, level in enumerate(self.values.int_list("concurrencies")):
            yield f"at once {level}"
            self.add("concurrency", concurrent_cell(self.asker, make, self.seed + 50_000 + 500 * place, level))

    def _without(self, item: Item) -> Seen:
        content: tuple[Part, ...] = ({"type": "text", "text": item.question},)
        return Seen(self.asker.session.send(self.asker.ask(content)), item)

    # The end

    def group(self, name: str) -> Group:
        """Checks of one kind; empty when there were none."""
        return self.groups.get(name) or Group(name)

    def _failures(self) -> list[Cell]:
        """What broke; probes only when too few of them are right."""
        found = []
        for group in self.groups.values():
            if group.name == "control":
                continue
            if group.name == "probes" and group.count(Worth.PASS) >= self.needed_probes():
                continue
            found += [cell for cell in group.cells if cell.worth is Worth.FAIL]
        return found

    def needed_probes(self) -> int:
        """So many must be right."""
        return len(self.group("probes").cells)

    def _verdict(self) -> Verdict:
        control = self.group("control")
        broken = [cell for cell in control.cells if cell.worth is Worth.FAIL]
        if broken and not self._lucky:
            return Verdict(VerdictKind.INCONCLUSIVE, f"vacuous: {broken[0].detail}")
        failures = self._failures()
        if failures:
            named = "; ".join(f"{cell.name}: {cell.detail}" for cell in failures[:_NAMED])
            more = f"; and {len(failures) - _NAMED} more" if len(failures) > _NAMED else ""
            return Verdict(VerdictKind.FAIL, named + more)
        unknown = [cell for group in self.groups.values() for cell in group.cells if cell.worth is Worth.ERROR]
        if unknown:
            return Verdict(
                VerdictKind.INCONCLUSIVE, f"{len(unknown)} checks could not be made: {unknown[0].name}: {unknown[0].detail}"
            )
        if not self.group("integrity").measured or not self.group("concurrency").measured:
            return Verdict(VerdictKind.INCONCLUSIVE, "unmeasured: the endpoint refused every check of integrity")
        return Verdict(VerdictKind.PASS, "; ".join(self._words()))

    def _words(self) -> list[str]:
        """Each kind: passed of measured."""
        words = [
            f"{group.name} {group.count(Worth.PASS)} of {group.measured}" for group in self.groups.values() if group.measured
        ]
        skipped = sum(group.count(Worth.SKIPPED) for group in self.groups.values())
        return [*words, f"{skipped} not offered"] if skipped else words

    def _metrics(self) -> dict[str, float]:
        """A count that is 0 is there, too."""
        found: dict[str, float] = {}
        for name in ("probes", "geometry", "integrity"):
            group = self.group(name)
            found |= {f"{name}_passed": float(group.count(Worth.PASS)), f"{name}_failed": float(group.count(Worth.FAIL))}
            found |= {f"{name}_skipped": float(group.count(Worth.SKIPPED)), f"{name}_errors": float(group.count(Worth.ERROR))}
        found["probes_total"] = float(len(self.group("probes").cells))
        found["concurrency_levels"] = float(len(self.group("concurrency").cells))
        found["concurrency_levels_clean"] = float(self.group("concurrency").count(Worth.PASS))
        if self.group("control").cells:
            found |= guard_metrics([self._guard])
            found["control_held"] = float(self._guard.ok)
        return found | self.more_metrics()

    def more_metrics(self) -> dict[str, float]:
        """Numbers of its own."""
        return {}

    def _tiles(self) -> Sequence[Stat]:
        return [Stat(group.name.capitalize(), f"{group.count(Worth.PASS)}/{group.measured}") for group in self.groups.values()]

    def _table(self) -> ResultTable:
        rows = [
            (TableCell(group.name), TableCell(cell.name), TableCell(str(cell.worth), _STYLES[cell.worth]), TableCell(cell.detail))
            for group in self.groups.values()
            for cell in group.cells
        ]
        return ResultTable("Checks", tuple(Column(title) for title in ("Kind", "Check", "Result", "Detail")), tuple(rows))
