"""How many points each component is worth, chosen by the hardware that answered (observe.md 5.1, 5.4)."""

from collections.abc import Mapping
from typing import NamedTuple

from nodeproof.health.readings import Readings

__all__ = ["ACCELERATORS", "ANSWERS", "COUNTS", "SCHEMES", "WEIGHT_SCHEMES", "Fleet", "FleetState", "choose"]

ACCELERATORS = ("gpu", "npu")

_NO_CARDS = "cpu_only"

SCHEMES: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "0.3.5": {
        _NO_CARDS: {"cpu": 25, "memory": 25, "disk": 30, "network": 10, "chassis": 10},
        "accelerated_2card": {"cpu": 20, "memory": 20, "disk": 20, "accelerator": 20, "network": 10, "chassis": 10},
        "accelerated_4card": {"cpu": 15, "memory": 15, "disk": 20, "accelerator": 30, "network": 10, "chassis": 10},
        "accelerated_8card": {"cpu": 15, "memory": 15, "disk": 15, "accelerator": 35, "network": 10, "chassis": 10},
    },
    "0.3.3": {
        _NO_CARDS: {"cpu": 30, "memory": 40, "disk": 30},
        "accelerated_2card": {"cpu": 10, "memory": 20, "disk": 10, "accelerator": 60},
        "accelerated_4card": {"cpu": 10, "memory": 20, "disk": 10, "accelerator": 60},
        "accelerated_8card": {"cpu": 10, "memory": 20, "disk": 10, "accelerator": 60},
    },
}
"""Points by rule set, scheme and component; ``accelerator`` is worth the same for GPUs and NPUs, and counts once."""

WEIGHT_SCHEMES = ("auto", *SCHEMES["0.3.5"])
"""What ``health.weight_scheme`` may be."""

_ID = {"gpu": "gpu_id", "npu": "npu_id"}
ANSWERS = {
    "gpu": ("utilization", "memory_usage", "temperature", "ecc_errors", "power_draw"),
    "npu": ("utilization", "npu_util", "memory_usage", "temperature", "health_status", "power_draw", "card_drop"),
}
"""Readings that only a card which answers can give. ``npu_num 0`` is none (observe.md 10.1 #12)."""

COUNTS = {"gpu": ("device_count",), "npu": ("device_count", "npu_num")}
"""Readings that count cards or chips, whether or not they answer."""

_CHIPS_A_CARD = 2
"""Two chips share a card where the reference counts chips only."""


class FleetState(NamedTuple):
    """Accelerator cards of one kind."""

    answered: frozenset[str]
    """Ids of the cards that answer now."""
    lost: frozenset[str]
    """Ids of cards that answered before, do not while others do, and have no ``card_state`` that says more."""
    cards: int
    """Cards this node has: the most that ever answered, else what the PCI bus shows."""

    @property
    def present(self) -> bool:
        """Whether the node has such cards."""
        return self.cards > 0


class Fleet:
    """The cards of a node, remembered: a card that falls silent does not make the node one without cards."""

    def __init__(self) -> None:
        self._known: dict[str, frozenset[str]] = dict.fromkeys(ACCELERATORS, frozenset())

    def look(self, readings: Readings) -> dict[str, FleetState]:
        """What is there now, by kind."""
        return {kind: self._look(kind, readings) for kind in ACCELERATORS}

    def _look(self, kind: str, readings: Readings) -> FleetState:
        answered: set[str] = set()
        nameless = False
        for name in ANSWERS[kind]:
            for metric in readings.metrics(kind, name):
                card = (metric.labels or {}).get(_ID[kind])
                if card is None:
                    nameless = True
                else:
                    answered.add(card)
        judged = {(metric.labels or {}).get(_ID[kind]) for metric in readings.metrics(kind, "card_state")}
        known = self._known[kind] = self._known[kind] | answered
        lost = known - answered - judged if answered else frozenset()
        cards = max(len(known), _expected(kind, readings)) or _counted(kind, readings, answers=nameless)
        return FleetState(frozenset(answered), lost, cards)


def _expected(kind: str, readings: Readings) -> int:
    """Cards that should be there, where a collector tells: one lost before the first look makes the node no smaller."""
    told = readings.metrics(kind, "cards")
    return int(sum(metric.value for metric in told if (metric.labels or {}).get("state") == "expected"))


def _counted(kind: str, readings: Readings, *, answers: bool) -> int:
    """Cards by the counts that are given; at least one when something answers without saying which card it is."""
    chips = _count(kind, "npu_num", readings) if kind == "npu" else 0
    cards = -(-chips // _CHIPS_A_CARD) or _count(kind, "device_count", readings)
    return max(cards, int(answers))


def _count(kind: str, name: str, readings: Readings) -> int:
    return int(sum(metric.value for metric in readings.metrics(kind, name)))


def choose(ruleset: str, weight_scheme: str, fleet: Mapping[str, FleetState]) -> str:
    """Name of the scheme: the one that was asked for, or with ``auto`` the one for the number of cards."""
    if weight_scheme != "auto":
        return weight_scheme
    cards = sum(state.cards for state in fleet.values())
    if not cards:
        return _NO_CARDS
    if ruleset == "0.3.3":
        return "accelerated_8card"
    if cards <= 2:
        return "accelerated_2card"
    return "accelerated_4card" if cards <= 4 else "accelerated_8card"
