"""Cards that are there and that this version does not read: counted, and all that health needs of them reported missing.

A node with a card nobody can read never looks healthy; a node without cards says so once.
"""

from collections import Counter

from nodeproof.collectors.base import Collector, Cycle, Group, GroupCollector, Selection
from nodeproof.collectors.services.pci_accelerators import PciAccelerators
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine

__all__ = ["create_presence"]

_PERIOD_S = 60.0
_SHOWN = 3


class _Presence:
    """One component's cards."""

    def __init__(self, machine: Machine, component: str, kinds: str, unread: tuple[str, ...]) -> None:
        self._scan = machine.shared(PciAccelerators)
        self._component = component
        self._kinds = kinds
        self._unread = unread

    def read(self, cycle: Cycle) -> None:
        """Count the cards by vendor. Raises NoData when the bus cannot be looked through."""
        cards = self._scan.cards(self._component)
        if not cards:
            cycle.miss("device_count", Absence.NOT_APPLICABLE, f"there is no {self._kinds} on the PCI bus")
            return
        for vendor, count in sorted(Counter(card.vendor for card in cards).items()):
            cycle.add("device_count", count, {"vendor": vendor})
        addresses = ", ".join(card.address for card in cards[:_SHOWN])
        more = f" and {len(cards) - _SHOWN} more" if len(cards) > _SHOWN else ""
        for name in self._unread:
            cycle.miss(name, Absence.UNSUPPORTED, f"this version cannot read the cards at {addresses}{more}")


def create_presence(machine: Machine, selection: Selection, *, component: str, kinds: str, unread: tuple[str, ...]) -> Collector:
    """A collector of ``component`` that counts its cards and names in ``unread`` what it cannot tell of them."""
    presence = _Presence(machine, component, kinds, unread)
    return GroupCollector(component, (Group(("device_count", *unread), presence.read, _PERIOD_S),), machine, selection)
