"""All GPUs of this machine: what each source tells, joined card by card.

Cards are known by their PCI address, because numbers shift when one is lost. For each vendor the sources are asked in order until
one answers; extra ones fill in what it left out. Last comes the PCI bus: it tells which cards should be there, and how their
links are, of cards that no driver speaks for, too.
"""

import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from nodeproof.clock import Instant
from nodeproof.collectors.services.amd_gpus import AmdFiles, AmdTools
from nodeproof.collectors.services.nvidia_smi import NvidiaSmi
from nodeproof.collectors.services.nvml import NvmlCards
from nodeproof.collectors.services.pci_accelerators import Card, PciAccelerators
from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.background import Answer
from nodeproof.host.machine import Machine
from nodeproof.model.gpu import CardReading, CardState
from nodeproof.sources import sys_pci

__all__ = ["CardSource", "FleetCard", "FleetReading", "GpuFleet", "VendorReading"]

_ROOT = "/sys/bus/pci/devices"
_DRIVERS = {"nvidia": "nvidia", "amd": "amdgpu"}
_PLAIN = "nvidia"
"""Beside cards of this vendor the others' labels bear their vendor's name."""
_GENERATIONS = {2.5: 1.0, 5.0: 2.0, 8.0: 3.0, 16.0: 4.0, 32.0: 5.0, 64.0: 6.0, 128.0: 7.0}
"""PCIe generation by transfer rate in GT/s (PCI Express Base Specification)."""


class CardSource(Protocol):
    """Whoever can tell of one vendor's cards."""

    name: str

    def cards(self, addresses: Sequence[str], *, deep: bool) -> Answer[list[CardReading]]:
        """These cards, or all it knows; ``deep`` asks for what changes seldom, too. Raises NoData."""
        ...


class FleetCard(NamedTuple):
    """One card, from all its sources."""

    gpu_id: str
    """Label of its metrics: the number its tool gives it, kept for the life of this process; ``amd0`` ... beside NVIDIA cards."""
    card: CardReading
    source: str
    """Who told of it: ``NVML``, ``nvidia-smi`` ... Empty when only the bus does."""


class VendorReading(NamedTuple):
    """All cards of one vendor."""

    vendor: str
    cards: tuple[FleetCard, ...]
    absence: NoData | None
    """Why no source answers; None when one does."""
    at: Instant | None
    """When the newest answer was got."""


class FleetReading(NamedTuple):
    """All cards."""

    vendors: tuple[VendorReading, ...]


class _Vendor:
    """What is remembered of one vendor's cards."""

    def __init__(self, name: str, sources: Sequence[CardSource], extras: Sequence[CardSource] = ()) -> None:
        self.name = name
        self.sources = sources
        self.extras = extras
        """What they have by now fills in what the sources left out."""
        self.seen: dict[str, CardReading] = {}
        """Cards that a source told of at some time, as they were then."""
        self.ids: dict[str, str] = {}


class GpuFleet:
    """The cards of this machine; get it by ``machine.shared(GpuFleet)``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._bus = machine.shared(PciAccelerators)
        self._platform = machine.shared(Platform)
        self._lock = threading.Lock()
        self._beside = False
        files, tools = machine.shared(AmdFiles), machine.shared(AmdTools)
        self._vendors = {
            "nvidia": _Vendor("nvidia", (machine.shared(NvmlCards), machine.shared(NvidiaSmi))),
            "amd": _Vendor("amd", (files, tools), (tools,)),
        }

    def read(self, *, deep: bool = False) -> FleetReading:
        """Every card now, ``deep`` with what changes seldom. Raises NoData when the bus cannot be looked through."""
        on_bus = [card for card in self._bus.cards("gpu") if self._is_ours(card)]
        with self._lock:
            self._beside = self._beside or any(card.vendor == _PLAIN for card in on_bus)
            found = []
            for vendor in self._vendors.values():
                addresses = [card.address for card in on_bus if card.vendor == vendor.name]
                if addresses or vendor.seen:
                    found.append(self._vendor(vendor, addresses, deep=deep))
            return FleetReading(tuple(found))

    def _is_ours(self, card: Card) -> bool:
        """Whether the vendor's driver may have it: one handed to a virtual machine (vfio-pci) is no card of this system."""
        try:
            driver = self._files.link_target(f"{_ROOT}/{card.address}/driver").rpartition("/")[2]
        except NoData:
            return True
        return driver == _DRIVERS[card.vendor]

    def _vendor(self, vendor: _Vendor, addresses: list[str], *, deep: bool) -> VendorReading:
        told, newest, absence = _ask(vendor.sources, sorted({*addresses, *vendor.seen}), deep=deep)
        told = _filled(told, vendor.extras, addresses, deep=deep)
        vendor.seen |= {address: card for address, (card, _) in told.items()}
        cards = dict(told)
        for address in {*addresses, *vendor.seen} - told.keys():
            card = self._untold(vendor, address, addresses, absence)
            if card is not None:
                cards[address] = (card, "")
        ids = self._ids(vendor, {address: card for address, (card, _) in sorted(cards.items())}, answered=bool(told))
        joined = (FleetCard(ids[address], self._with_link(card), source) for address, (card, source) in cards.items())
        return VendorReading(vendor.name, tuple(sorted(joined, key=_order)), absence, newest)

    def _untold(self, vendor: _Vendor, address: str, on_bus: list[str], absence: NoData | None) -> CardReading | None:
        """A card that no source tells of, for ``absence`` or while others are told of.

        None when it is not this system's: a container is given some of the machine's cards.
        """
        before = vendor.seen.get(address)
        identity = before.identity if before is not None else {}
        if absence is not None:
            state, reason = CardState.SILENT, absence.reason
        elif before is None and self._platform.container is not None:
            return None
        else:
            state = CardState.LOST
            reason = "on the PCI bus, and its driver does not list it" if address in on_bus else "not on the PCI bus any more"
        return CardReading(address=address, vendor=vendor.name, state=state, reason=reason, identity=identity)

    def _ids(self, vendor: _Vendor, cards: dict[str, CardReading], *, answered: bool) -> dict[str, str]:
        """Label by address: the tool's numbers where all cards have one, else their order on the bus; then kept."""
        known = dict(vendor.ids)
        fresh = [address for address in cards if address not in known]
        numbers = [cards[address].index for address in fresh]
        whole = not known and None not in numbers and len(set(numbers)) == len(numbers)
        prefix = vendor.name if self._beside and vendor.name != _PLAIN else ""
        taken = set(known.values())
        for position, address in enumerate(fresh, len(known)):
            number = cards[address].index if whole else position
            label = f"{prefix}{number}"
            while label in taken:
                number = (number or 0) + 1
                label = f"{prefix}{number}"
            known[address] = label
            taken.add(label)
        if answered:
            vendor.ids = known
        return known

    def _with_link(self, card: CardReading) -> CardReading:
        """The same with what the kernel tells of its PCIe link, where its own tool does not."""
        wanted = (("pcie_generation",), ("pcie_generation_max",), ("pcie_width",), ("pcie_width_max",))
        if card.state is CardState.LOST or all(key in card.values for key in wanted):
            return card
        link = {key: value for key, value in self._link(card.address).items() if key not in card.values}
        untold = {key: why for key, why in card.untold.items() if key not in link}
        return msgspec.structs.replace(card, values={**card.values, **link}, untold=untold)

    def _link(self, address: str) -> dict[tuple[str, ...], float]:
        """Of the link between card and slot, from the kernel; nothing where it does not tell."""
        found: dict[tuple[str, ...], float] = {}
        folder = f"{_ROOT}/{address}"
        for which, name in (("current", "pcie_generation"), ("max", "pcie_generation_max")):
            generation = self._generation(f"{folder}/{which}_link_speed")
            if generation is not None:
                found[name,] = generation
        for which, name in (("current", "pcie_width"), ("max", "pcie_width_max")):
            width = self._width(f"{folder}/{which}_link_width")
            if width is not None:
                found[name,] = float(width)
        return found

    def _generation(self, path: str) -> float | None:
        try:
            speed = sys_pci.parse_link_speed(self._files.read(path))
        except (NoData, ParseError):
            return None
        return None if speed is None else _GENERATIONS.get(speed)

    def _width(self, path: str) -> int | None:
        try:
            return sys_pci.parse_link_width(self._files.read(path))
        except (NoData, ParseError):
            return None


def _ask(
    sources: Iterable[CardSource], addresses: Sequence[str], *, deep: bool
) -> tuple[dict[str, tuple[CardReading, str]], Instant | None, NoData | None]:
    """What the first source that answers tells of each card; when that was; why none answers, as the first one puts it."""
    absence: NoData | None = None
    for source in sources:
        try:
            answer = source.cards(addresses, deep=deep)
        except NoData as error:
            if absence is None or absence.state is Absence.UNSUPPORTED:
                absence = error.again()
            continue
        return {card.address: (card, source.name) for card in answer.value}, answer.at, None
    return {}, None, absence or NoData(Absence.UNSUPPORTED, "nothing here can ask these cards")


def _filled(
    told: dict[str, tuple[CardReading, str]], extras: Iterable[CardSource], addresses: Sequence[str], *, deep: bool
) -> dict[str, tuple[CardReading, str]]:
    """The same with what ``extras`` know besides."""
    for source in extras if told else ():
        try:
            answer = source.cards(addresses, deep=deep)
        except NoData:
            continue
        for other in answer.value:
            if (found := told.get(other.address)) is not None and found[1] != source.name:
                told[other.address] = (_joined(found[0], other), found[1])
    return told


def _joined(card: CardReading, other: CardReading) -> CardReading:
    values = {**other.values, **card.values}
    untold = {key: why for key, why in {**other.untold, **card.untold}.items() if key not in values}
    return msgspec.structs.replace(
        card,
        identity={**card.identity, **other.identity},
        values=values,
        untold=untold,
        processes=card.processes if card.processes is not None else other.processes,
    )


def _order(card: FleetCard) -> tuple[int, str]:
    digits = card.gpu_id.lstrip("abcdefghijklmnopqrstuvwxyz")
    return (int(digits) if digits.isdigit() else 0, card.gpu_id)
