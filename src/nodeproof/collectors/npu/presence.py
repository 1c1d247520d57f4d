"""Which chips are there, and which were and no longer answer.

A chip is lost when a listing that could be read whole lacks it twice running: one torn table convicts nobody. Outside
containers a card on the PCI bus that no source lists is lost as well; it has no other name here than its address.
"""

from nodeproof.collectors.base import Cycle
from nodeproof.collectors.npu.labels import ChipLabels
from nodeproof.collectors.services.ascend import Ascend, Look
from nodeproof.collectors.services.ascend_told import ChipKey
from nodeproof.errors import Absence, NoData

__all__ = ["Presence"]

_CONFIRM = 2
"""So many whole listings without a chip mean that it is gone."""


class Presence:
    """Counts cards, and remembers chips."""

    def __init__(self, ascend: Ascend, labels: ChipLabels) -> None:
        self._ascend = ascend
        self._labels = labels
        self._unlisted: dict[ChipKey | str, int] = {}

    def read_counts(self, cycle: Cycle) -> None:
        """Cards on the bus and device nodes. Raises NoData when the bus cannot be looked through."""
        cards = self._ascend.cards_on_bus()
        if not cards and not self._ascend.some():
            nothing = self._ascend.nothing()
            cycle.miss("device_count", nothing.state, nothing.reason)
            return
        if cards:
            cycle.add("device_count", len(cards), {"vendor": "huawei"})
        else:
            cycle.miss("device_count", Absence.NOT_APPLICABLE, "the NPUs of this board are not on a PCI bus")
        try:
            cycle.add("device_nodes", len(self._ascend.device_nodes()))
        except NoData as absence:
            cycle.miss("device_nodes", absence.state, absence.reason)

    def lost(self, look: Look) -> tuple[list[ChipKey], list[str]]:
        """Chips that are gone, and addresses of cards that nobody lists. To be called once for each fresh look."""
        identities = self._ascend.identities()
        missing: set[ChipKey | str] = {key for key in identities if key not in look.listed}
        listed = {identity.bus_id for key, identity in identities.items() if identity.bus_id}
        named = all(identities[key].bus_id for key in look.listed if key in identities)
        if named and self._ascend.owns_bus():
            missing |= {address for address in self._on_bus() if address not in listed}
        if look.complete:
            self._unlisted = {one: self._unlisted.get(one, 0) + 1 for one in missing}
        gone = [one for one, times in self._unlisted.items() if times >= _CONFIRM]
        return sorted(one for one in gone if isinstance(one, ChipKey)), sorted(one for one in gone if isinstance(one, str))

    def _on_bus(self) -> tuple[str, ...]:
        try:
            return self._ascend.cards_on_bus()
        except NoData:
            return ()
