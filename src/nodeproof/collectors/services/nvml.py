"""NVIDIA cards through NVML: no program is started for it, and a card that hangs costs itself only (``host.nvml``)."""

from collections.abc import Sequence

from nodeproof.errors import Absence, NoData
from nodeproof.host.background import Answer
from nodeproof.host.files import legible
from nodeproof.host.machine import Machine
from nodeproof.host.nvml import NvmlCard
from nodeproof.model.gpu import CardReading, CardState, GpuProcess, Untold, is_blank
from nodeproof.sources.gpu_reasons import better_reason, with_usage

__all__ = ["NvmlCards"]


_BLANK = Untold(Absence.UNKNOWN, "the driver gives a mark for 'not told' in place of a number")


class NvmlCards:
    """The cards that NVML knows; get it by ``machine.shared(NvmlCards)``."""

    name = "NVML"

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def cards(self, addresses: Sequence[str], *, deep: bool) -> Answer[list[CardReading]]:
        """These cards now; at most the deadline of ``host.nvml`` long. Raises NoData."""
        nvml = self._machine.nvml
        if nvml is None:
            raise NoData(Absence.UNSUPPORTED, "NVML cannot be asked on this machine")
        at = self._machine.clock.now()
        found = [self._reading(card) for card in nvml.look(addresses, deep=deep) if card.ours]
        if not found:
            raise NoData(Absence.UNKNOWN, "NVML shows none of the cards on the PCI bus")
        return Answer(found, at)

    def _reading(self, card: NvmlCard) -> CardReading:
        values = {key: value for key, value in card.values if not is_blank(value)}
        untold = {key: Untold(state, reason) for key, state, reason in card.untold}
        untold |= {key: _BLANK for key, value in card.values if is_blank(value)}
        state = CardState(card.state)
        if values:
            with_usage(values, untold)
        return CardReading(
            address=card.address,
            vendor="nvidia",
            index=card.index,
            state=state,
            reason=card.reason,
            identity=card.identity,
            values=values,
            untold={key: better_reason(key, absence, values) for key, absence in untold.items()},
            processes=self._processes(card),
        )

    def _processes(self, card: NvmlCard) -> tuple[GpuProcess, ...] | None:
        if card.processes is None:
            return None
        return tuple(GpuProcess(pid, self._name(pid), used, graphics) for pid, used, graphics in card.processes)

    def _name(self, pid: int) -> str:
        """What the kernel calls a process; empty for one of another container."""
        try:
            return legible(self._machine.files.read_text(f"/proc/{pid}/comm"))
        except NoData:
            return ""
