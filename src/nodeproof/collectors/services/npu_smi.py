"""``npu-smi``, never on the quick path: one call for all cards every few seconds, and a slow round for what the table lacks.

A card whose calls hang costs its own deadline and is left out of the rest of the round; the others are asked as ever.
"""

import contextlib
from collections.abc import Mapping

from nodeproof.clock import Instant
from nodeproof.collectors.services.ascend_told import ChipAnswer, ChipIdentity, ChipKey, of_details, of_processes, of_table
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData, ParseError
from nodeproof.host.background import Answer
from nodeproof.host.commands import absence_of_command
from nodeproof.host.machine import Machine
from nodeproof.sources import npu_smi, npu_smi_details
from nodeproof.sources.npu_cells import Reading
from nodeproof.sources.npu_smi import NpuTable
from nodeproof.sources.npu_smi_details import ChipIds

__all__ = ["DETAIL_INTERVAL_S", "INTERVAL_S", "PACKAGE", "TOPOLOGY_INTERVAL_S", "NpuSmi"]

INTERVAL_S = 5.0
"""Between two tables: the tool takes a second and more on eight cards."""
DETAIL_INTERVAL_S = 60.0
TOPOLOGY_INTERVAL_S = 600.0
PACKAGE = "the Ascend driver package (npu-smi)"
_STALE_AFTER_S = 4 * DETAIL_INTERVAL_S
_TABLE_DEADLINE_S = 20.0
_DEADLINE_S = 10.0
_MOST_TOPOLOGY = 8192
_QUESTIONS = ("common", "usages", "memory", "ecc")
"""Kinds of ``npu-smi info -t``; one call serves many metrics and all chips of a card."""


class NpuSmi:
    """Answers of ``npu-smi``; get it by ``machine.shared(NpuSmi)``."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._details: dict[ChipKey, ChipAnswer | NoData] = {}
        self._cards: tuple[int, ...] = ()
        self._ids: dict[ChipKey, ChipIds] = {}
        self._mapped = False
        self._told_at: Instant | None = None
        self._told: dict[ChipKey, ChipAnswer] = {}
        background = machine.background
        self._table = background("npu-smi info", self._ask_table, interval_s=INTERVAL_S, deadline_s=_TABLE_DEADLINE_S)
        self._round = background(
            "npu-smi info -t", self._ask_details, interval_s=DETAIL_INTERVAL_S, deadline_s=2 * DETAIL_INTERVAL_S
        )
        self._topology = background("npu-smi topo", self._ask_topology, interval_s=TOPOLOGY_INTERVAL_S, deadline_s=_DEADLINE_S)

    def installed(self) -> bool:
        """Whether there is such a program here."""
        return self._machine.commands.find("npu-smi") is not None

    def table(self) -> Answer[NpuTable]:
        """The newest table. Never blocks. Raises NoData when there is none that can be believed."""
        if not self.installed():
            raise NoData(Absence.UNSUPPORTED, "npu-smi is not installed", remedy=f"install {PACKAGE}")
        return self._table.latest()

    def chips(self) -> dict[ChipKey, ChipAnswer]:
        """What the table says of each chip. Raises NoData."""
        answer = self.table()
        if self._told_at != answer.at:
            listed = answer.value.processes
            self._told_at = answer.at
            self._told = {
                ChipKey(chip.npu_id, chip.chip_id): ChipAnswer(answer.at, (*of_table(chip), *of_processes(chip, listed)))
                for chip in answer.value.chips
            }
        return self._told

    def details(self) -> Mapping[ChipKey, ChipAnswer | NoData]:
        """What the slow round has found so far, or why not, by chip. Raises NoData when there is no table."""
        self._cards = tuple(sorted({chip.npu_id for chip in self.table().value.chips}))
        with contextlib.suppress(NoData):  # each chip's answer says for itself how old it is
            self._round.latest()
        return {key: self._believable(answer) for key, answer in self._details.items()}

    def _believable(self, said: ChipAnswer | NoData) -> ChipAnswer | NoData:
        if isinstance(said, NoData):
            return said
        age_s = self._machine.clock.now().mono_s - said.at.mono_s
        if age_s > _STALE_AFTER_S:
            return NoData(Absence.STALE, f"npu-smi info -t told it last {age_s:.0f} s ago")
        return said

    def identities(self) -> dict[ChipKey, ChipIdentity]:
        """Name, address and ids of each chip in the table. Raises NoData."""
        found = {}
        for chip in self.table().value.chips:
            key = ChipKey(chip.npu_id, chip.chip_id)
            ids = self._ids.get(key)
            phy_id = ids.phy_id if ids is not None and ids.phy_id is not None else chip.phy_id
            found[key] = ChipIdentity(chip.name, chip.bus_id, ids.logic_id if ids is not None else None, phy_id)
        return found

    def topology(self) -> str:
        """``npu-smi info -t topo``, asked for once it is wanted. Raises NoData."""
        return self._topology.latest().value

    def wait(self, timeout_s: float) -> bool:
        """Wait for the table that is being asked for; for what is read only once."""
        return self._table.wait(timeout_s)

    def _ask_table(self) -> NpuTable:
        table = npu_smi.parse(self._run("info", deadline_s=_TABLE_DEADLINE_S))
        if not self._mapped:
            self._map()
        return table

    def _map(self) -> None:
        """The ids under which programs know the chips; asked for until it was answered."""
        try:
            ids = npu_smi_details.chip_ids(self._run("info", "-m"))
        except (NoData, ParseError):
            return
        self._ids = {ChipKey(row.npu_id, row.chip_id): row for row in ids}
        self._mapped = True

    def _ask_topology(self) -> str:
        text = self._run("info", "-t", "topo").decode("utf-8", "replace").strip()
        if "Phy-ID" not in text and "NPU" not in text:
            raise NoData(Absence.READ_ERROR, f"npu-smi info -t topo: {text[:120] or 'no answer'}")
        return text[:_MOST_TOPOLOGY]

    def _ask_details(self) -> int:
        for card in self._cards:
            at = self._machine.clock.now()
            found = self._ask_card(card, at)
            kept = {key: answer for key, answer in self._details.items() if key.npu_id != card}
            self._details = kept | found
        return len(self._cards)

    def _ask_card(self, card: int, at: Instant) -> dict[ChipKey, ChipAnswer | NoData]:
        readings: dict[int, dict[str, Reading]] = {}
        codes: dict[int, tuple[int, ...] | None] = {}
        failure: NoData | None = None
        for question in (*_QUESTIONS, "health"):
            try:
                blocks = npu_smi_details.parse(self._run("info", "-t", question, "-i", str(card), subject=f"NPU {card}"))
            except ParseError as error:
                failure = NoData(Absence.READ_ERROR, str(error))
                continue
            except NoData as absence:
                failure = absence.again()
                if absence.state is Absence.STALE:
                    break
                continue
            for chip, block in blocks.items():
                readings.setdefault(chip, {}).update(npu_smi_details.readings(block))
                if question == "health":
                    codes[chip] = npu_smi_details.error_codes(block)
        if not readings:
            return {ChipKey(card, 0): failure or NoData(Absence.UNSUPPORTED, "npu-smi info -t tells nothing of this card")}
        return {
            ChipKey(card, chip): ChipAnswer(at, tuple(of_details(found, codes.get(chip)))) for chip, found in readings.items()
        }

    def _run(self, *arguments: str, deadline_s: float = _DEADLINE_S, subject: str = "") -> bytes:
        """Standard output. Raises NoData; one that says STALE means that the program hung."""
        try:
            result = self._machine.commands.run(("npu-smi", *arguments), deadline_s=deadline_s, subject=subject)
        except CommandError as error:
            if error.failure in {CommandFailure.TIMED_OUT, CommandFailure.STUCK}:
                raise NoData(Absence.STALE, str(error)) from None
            raise absence_of_command(error, package=PACKAGE) from None
        return result.stdout or result.stderr
