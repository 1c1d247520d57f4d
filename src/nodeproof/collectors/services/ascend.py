"""The Ascend chips of this node as all sources together see them: DCMI where its library answers, else ``npu-smi``."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from nodeproof.clock import Instant
from nodeproof.collectors.services.ascend_told import ChipAnswer, ChipIdentity, ChipKey
from nodeproof.collectors.services.dcmi import DcmiChips
from nodeproof.collectors.services.npu_smi import NpuSmi
from nodeproof.collectors.services.pci_accelerators import PciAccelerators
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine

__all__ = ["Ascend", "ChipSaid", "Look"]

ChipSaid = ChipAnswer | NoData
_NOT_YET = NoData(Absence.UNKNOWN, "npu-smi info -t has not told it yet")
_NODES_PERIOD_S = 60.0
_NODE = re.compile(r"davinci\d{1,4}", re.ASCII)


class Look(NamedTuple):
    """What is known of all chips now."""

    chips: Mapping[ChipKey, tuple[ChipSaid, ...]]
    """By chip: what each source said of it, the best source first."""
    listed: frozenset[ChipKey]
    """Chips that a source lists now."""
    at: Instant
    """When the listing was made."""
    complete: bool
    """A chip that is not listed is gone: the listing could be read whole."""
    source: str
    """``DCMI`` or ``npu-smi``."""


class Ascend:
    """All sources; get it by ``machine.shared(Ascend)``. No call blocks."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._clock = machine.clock
        self._nodes: tuple[str, ...] | NoData | None = None
        self._nodes_s = 0.0
        self._dcmi = machine.shared(DcmiChips)
        self._driver = ""
        self._smi = machine.shared(NpuSmi)
        self._bus = machine.shared(PciAccelerators)
        self._platform = machine.shared(Platform)
        self._seen: dict[ChipKey, ChipIdentity] = {}

    def cards_on_bus(self) -> tuple[str, ...]:
        """PCI addresses of NPUs. Raises NoData when the bus cannot be looked through."""
        return tuple(card.address for card in self._bus.cards("npu"))

    def device_nodes(self) -> tuple[str, ...]:
        """``davinci0``, ``davinci1`` ... as they stood in ``/dev`` within the last minute. Raises NoData."""
        now_s = self._clock.now().mono_s
        if self._nodes is None or now_s - self._nodes_s >= _NODES_PERIOD_S:
            self._nodes_s = now_s
            try:
                self._nodes = tuple(name for name in self._files.names("/dev") if _NODE.fullmatch(name))
            except NoData as absence:
                self._nodes = absence.again()
        if isinstance(self._nodes, NoData):
            raise self._nodes.again()
        return self._nodes

    def some(self) -> bool:
        """Whether this node has NPUs, as far as anything here can tell."""
        if self._seen:
            return True
        for look in (self.cards_on_bus, self.device_nodes):
            try:
                if look():
                    return True
            except NoData:
                continue
        return False

    def owns_bus(self) -> bool:
        """Whether a card on the bus is for this system to use: a container sees cards that others have."""
        return self._platform.container is None

    def look(self) -> Look:
        """The chips now. Raises NoData when no source can be asked."""
        try:
            seen = self._dcmi.look()
        except NoData as absence:
            if absence.state is Absence.UNKNOWN:
                raise  # it is being asked: npu-smi would only be asked once for nothing
            return self._by_tool()
        self._seen |= seen.identities
        self._driver = seen.driver
        return Look(seen.chips, frozenset(seen.identities), seen.at, seen.whole, "DCMI")

    def _by_tool(self) -> Look:
        answer = self._smi.table()
        chips = {key: (said,) for key, said in self._smi.chips().items()}
        self._seen |= self._smi.identities()
        details = self._smi.details()
        merged = {key: (*said, details.get(key, _NOT_YET)) for key, said in chips.items()}
        return Look(merged, frozenset(chips), answer.at, not answer.value.faults, "npu-smi")

    def details(self) -> Mapping[ChipKey, tuple[ChipSaid, ...]]:
        """What is asked for more rarely, by chip. Raises NoData when no source can be asked."""
        return self.look().chips

    def identities(self) -> Mapping[ChipKey, ChipIdentity]:
        """Every chip that was ever seen since the start."""
        return self._seen

    def topology(self) -> str:
        """How the chips are connected, as the tool prints it. Raises NoData."""
        return self._smi.topology()

    def driver_version(self) -> str:
        """The driver's version as it tells it itself; empty when it does not."""
        return self._driver

    def wait(self, timeout_s: float) -> None:
        """Wait for the sources that are being asked; for what is read only once."""
        self._dcmi.wait(timeout_s)
        self._smi.wait(timeout_s)

    def nothing(self) -> NoData:
        """That there are no NPUs here."""
        return NoData(Absence.NOT_APPLICABLE, "there is no Huawei NPU on the PCI bus")
