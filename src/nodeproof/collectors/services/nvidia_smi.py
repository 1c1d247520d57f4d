"""NVIDIA cards through ``nvidia-smi``: asked only while NVML does not answer, every ten seconds, and nobody waits for it.

It knows more fields with every version, and refuses the whole question when one field is unknown to it: so it is first asked
which fields it knows. It also refuses when one card is lost: then each card is asked by its PCI address, and the lost one costs
itself only. Where there is no table at all, its XML is read.
"""

from collections.abc import Sequence

from nodeproof.collectors.services.pci_accelerators import PciAccelerators
from nodeproof.errors import Absence, CommandError, NoData
from nodeproof.host.background import Answer
from nodeproof.host.commands import CommandResult, absence_of_command
from nodeproof.host.machine import Machine
from nodeproof.model.gpu import CardReading, CardState, GpuProcess
from nodeproof.sources import nvidia_smi, nvidia_smi_cards
from nodeproof.sources.nvidia_smi import CardTrouble, Table

__all__ = ["NvidiaSmi"]

_TOOL = "nvidia-smi"
_PACKAGE = "the NVIDIA driver's utilities (nvidia-utils)"
_INTERVAL_S = 10.0
_DEADLINE_S = 30.0
"""Without persistence mode each call wakes every card first: seconds on a full chassis."""
_CARD_DEADLINE_S = 10.0
_MAX_REFUSED = 16
_PROCESS_FIELDS = ("gpu_uuid", "pid", "process_name", "used_gpu_memory")
_MISMATCH = "Driver/library version mismatch"
_NO_DEVICES = "No devices were found"


class NvidiaSmi:
    """The tool of this machine; get it by ``machine.shared(NvidiaSmi)``."""

    name = _TOOL

    def __init__(self, machine: Machine) -> None:
        self._commands = machine.commands
        self._bus = machine.shared(PciAccelerators)
        self._fields: tuple[str, ...] = ()
        self._source = machine.background(_TOOL, self.read, interval_s=_INTERVAL_S, deadline_s=_DEADLINE_S + 8 * _CARD_DEADLINE_S)

    def cards(self, addresses: Sequence[str], *, deep: bool) -> Answer[list[CardReading]]:  # noqa: ARG002 - it tells all of all
        """All cards as last read. Raises NoData."""
        return self._source.latest()

    def wait(self, timeout_s: float) -> None:
        """Wait for the call in flight: for those who look once."""
        self._source.wait(timeout_s)

    def read(self) -> list[CardReading]:
        """Ask now; takes seconds. Raises NoData."""
        table = self._ask_all()
        if not table.rows:
            table = self._ask_each(table)
        if not table.rows and not table.troubles and _MISMATCH not in table.message and _NO_DEVICES not in table.message:
            table = self._document() or table
        cards = nvidia_smi_cards.cards(table, self._processes() if table.rows else None)
        if not cards:
            raise _absence(table)
        return cards

    def _ask_all(self) -> Table:
        for _ in range(_MAX_REFUSED):
            fields = self._known_fields()
            table = _table(self._run(f"--query-gpu={','.join(fields)}", "--format=csv"))
            if not table.invalid_field or table.invalid_field not in fields:
                return table
            self._fields = tuple(field for field in fields if field != table.invalid_field)
        return table

    def _document(self) -> Table | None:
        """The cards out of the XML; None when there are none in it, either."""
        from nodeproof.sources import nvidia_smi_xml  # noqa: PLC0415 - a parser of XML that next to nobody needs

        try:
            table = nvidia_smi_xml.parse(self._run("-q", "-x").stdout)
        except NoData:
            return None
        return table if table.rows else None

    def _known_fields(self) -> tuple[str, ...]:
        """The fields wanted that this version knows."""
        if not self._fields:
            known = nvidia_smi.valid_fields(self._run("--help-query-gpu").stdout)
            self._fields = (
                tuple(_known_as(field, known) for field in nvidia_smi_cards.FIELDS) if known else nvidia_smi_cards.FIELDS
            )
            self._fields = tuple(field for field in self._fields if field)
        return self._fields

    def _ask_each(self, refused: Table) -> Table:
        """Card by card; only when it is one card's fault that all were refused."""
        if not refused.troubles:
            return refused
        rows = list(refused.rows)
        troubles = dict(refused.troubles)
        addresses = [card.address for card in self._bus.cards("gpu") if card.vendor == "nvidia"]
        for address in addresses:
            if address in troubles:
                continue
            try:
                table = self._ask_one(address)
            except CommandError as error:
                troubles[address] = CardTrouble(CardState.SILENT, str(error))
                continue
            rows += table.rows
            troubles |= table.troubles
        return refused._replace(rows=tuple(rows), troubles=troubles)

    def _ask_one(self, address: str) -> Table:
        argv = (_TOOL, "-i", address, f"--query-gpu={','.join(self._known_fields())}", "--format=csv")
        return _table(self._commands.run(argv, deadline_s=_CARD_DEADLINE_S, subject=address))

    def _processes(self) -> dict[str, tuple[GpuProcess, ...]] | None:
        try:
            result = self._run(f"--query-compute-apps={','.join(_PROCESS_FIELDS)}", "--format=csv,noheader")
        except NoData:
            return None
        return nvidia_smi.parse_processes(result.stdout, _PROCESS_FIELDS) if result.exit_code == 0 else None

    def _ask(self, *arguments: str, subject: str = "", deadline_s: float = _DEADLINE_S) -> Table:
        result = (
            self._commands.run((_TOOL, *arguments), deadline_s=deadline_s, subject=subject) if subject else self._run(*arguments)
        )
        return nvidia_smi.parse_table(result.stdout + b"\n" + result.stderr)

    def _run(self, *arguments: str) -> CommandResult:
        try:
            return self._commands.run((_TOOL, *arguments), deadline_s=_DEADLINE_S)
        except CommandError as error:
            raise absence_of_command(error, package=_PACKAGE) from None


def _table(result: CommandResult) -> Table:
    return nvidia_smi.parse_table(result.stdout + b"\n" + result.stderr)


def _known_as(field: str, known: frozenset[str]) -> str:
    """The name under which this nvidia-smi knows a field; empty when under none."""
    if field in known:
        return field
    older = field.replace("clocks_event_reasons.", "clocks_throttle_reasons.", 1)
    return older if older in known else ""


def _absence(table: Table) -> NoData:
    message = table.message or "it printed nothing"
    if _MISMATCH in message:
        return NoData(
            Absence.UNKNOWN,
            f"nvidia-smi: {message}: the driver was upgraded under a running kernel module",
            remedy="reload the module (rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia; modprobe nvidia) or restart the node",
        )
    if _NO_DEVICES in message:
        return NoData(Absence.UNKNOWN, "nvidia-smi finds no card", remedy="read the kernel log (journalctl -k -g NVRM)")
    return NoData(Absence.READ_ERROR, f"nvidia-smi: {message}", remedy="run nvidia-smi by hand; see that the driver is loaded")
