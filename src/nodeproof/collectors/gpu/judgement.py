"""What follows from a card's own readings, and from what it had before: whether its links are worse than they could be."""

import re
from collections.abc import Mapping

from nodeproof.errors import Absence
from nodeproof.model.gpu import CardReading, CardState, Key, Untold

__all__ = ["Judge"]

_BUSY_PERCENT = 20.0
"""From this load on a card runs its link at full speed; below it, and in slow P-states, it may save power on it."""
_SLOW_STATE = 3.0
_SUPPORTED: Key = ("nvlink_supported",)
_SWITCHED = re.compile(r"\bSXM|\bHGX\b|\bMI\d{3}")
"""Names of cards that sit on a baseboard with links between them; a PCIe card may have links that nothing is plugged into."""

_IDLE = Untold(Absence.NOT_APPLICABLE, "the card idles, and may run its link slower then")
_LOAD_UNKNOWN = Untold(Absence.UNKNOWN, "it is not known whether the card works: its load is not told")
_LINK_UNKNOWN = Untold(Absence.UNSUPPORTED, "its link, or what the link could be, is not told")
_NO_LINKS = Untold(Absence.NOT_APPLICABLE, "this card has no NVLink")
_NO_INSTANCES = Untold(Absence.NOT_APPLICABLE, "the card is not cut into MIG instances")
_NO_BRIDGE = Untold(Absence.NOT_APPLICABLE, "nothing is plugged into its NVLinks: none was ever up, nor any of its neighbours'")
_LINK_NAMES = ("nvlink_links", "nvlink_active_share", "nvlink_state", "nvlink_errors", "nvlink_traffic")


class Judge:
    """Remembers how many links cards had up."""

    def __init__(self) -> None:
        self._most: dict[str, float] = {}
        """By name of the card: the most links that any of this name had up."""

    def judge(self, card: CardReading) -> tuple[dict[Key, float], dict[Key, Untold]]:
        """The readings of ``card`` with those that follow from them."""
        values, untold = dict(card.values), dict(card.untold)
        supported = values.pop(_SUPPORTED, None)
        if card.state is not CardState.ANSWERS:
            return values, untold
        for aspect, found in (("width", _width(values)), ("generation", _generation(values))):
            key = ("pcie_degraded", aspect)
            if isinstance(found, Untold):
                untold[key] = found
            else:
                values[key] = float(found)
        if values.get(("mig_mode",), 0.0) == 0 and ("mig_instances",) not in values:
            untold["mig_instances",] = untold["mig_memory",] = _NO_INSTANCES
        if supported == 0:
            untold.update({(name,): _NO_LINKS for name in _LINK_NAMES})
        elif supported is not None:
            self._links(card, supported, values, untold)
        return values, untold

    def _links(self, card: CardReading, supported: float, values: dict[Key, float], untold: dict[Key, Untold]) -> None:
        silent = [found for key, found in untold.items() if key[0] == "nvlink_state"]
        if silent:
            untold["nvlink_links", "active"] = untold["nvlink_links", "expected"] = untold["nvlink_active_share",] = silent[0]
            return
        active = sum(value for key, value in values.items() if key[0] == "nvlink_state")
        name = card.identity.get("name", "")
        most = self._most[name] = max(active, self._most.get(name, 0.0))
        expected = max(most, supported if _belongs_to_switch(name, values) else 0.0)
        values["nvlink_links", "active"] = active
        if not expected:
            untold["nvlink_links", "expected"] = untold["nvlink_active_share",] = _NO_BRIDGE
            return
        values["nvlink_links", "expected"] = expected
        values["nvlink_active_share",] = round(100.0 * active / expected, 1)


def _belongs_to_switch(name: str, values: Mapping[Key, float]) -> bool:
    return ("fabric_state",) in values or _SWITCHED.search(name) is not None


def _width(values: dict[Key, float]) -> bool | Untold:
    now, most = values.get(("pcie_width",)), values.get(("pcie_width_max",))
    return _LINK_UNKNOWN if now is None or most is None else now < most


def _generation(values: dict[Key, float]) -> bool | Untold:
    now, most = values.get(("pcie_generation",)), values.get(("pcie_generation_max",))
    if now is None or most is None:
        return _LINK_UNKNOWN
    if now >= most:
        return False
    load = values.get(("utilization",))
    if load is None:
        return _LOAD_UNKNOWN
    busy = load >= _BUSY_PERCENT and values.get(("performance_state",), 0.0) < _SLOW_STATE
    return True if busy else _IDLE
