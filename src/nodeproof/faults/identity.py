"""Which thing labels speak of, by a name that stays when others are lost and indexes move up. Pure."""

from collections.abc import Collection, Mapping

from nodeproof.model.metric import Labels

__all__ = ["card_at", "card_id", "device_of", "known_labels", "naming_labels"]

_Cards = Mapping[tuple[str, str], Labels]

_STABLE = ("uuid", "serial", "wwn", "pci_bus_id", "pci", "bus_id")
"""Labels whose value belongs to the thing itself, the best first."""
_INDEXES = frozenset({"gpu_id", "npu_id", "card", "index", "minor", "device_id", "logic_id"})
"""Labels that count: they mean another thing once one is lost."""
_LONGEST = 160


def naming_labels(labels: Mapping[str, str], entity: Collection[str]) -> dict[str, str]:
    """The labels that name the thing: those the rule goes by, and those that are its own."""
    return {key: value for key, value in labels.items() if key in entity or key in _STABLE}


def device_of(component: str, labels: Mapping[str, str], entity: Collection[str]) -> str:
    """The name of the thing: ``GPU-5a1e...``, ``sda``, ``device=mlx5_0 port=1``; the component where labels name nothing."""
    stable = next((labels[key] for key in _STABLE if labels.get(key)), "")
    named = sorted(key for key in entity if labels.get(key))
    if stable:
        further = [f"{key}={labels[key]}" for key in named if key not in _STABLE and key not in _INDEXES]
        return " ".join([stable, *further])[:_LONGEST]
    if len(named) == 1 and named[0] not in _INDEXES:
        return labels[named[0]][:_LONGEST]
    return " ".join(f"{key}={labels[key]}" for key in named)[:_LONGEST] or component


def card_id(component: str, labels: Mapping[str, str]) -> str:
    """The id that the card has in readings now: ``npu_id`` or ``gpu_id``, or the ``card`` that stands for it."""
    return labels.get(f"{component}_id", "") or labels.get("card", "")


def known_labels(component: str, labels: Labels, cards: _Cards) -> Labels:
    """``labels`` with what is known of the card that they name by its id of now."""
    known = cards.get((component, card_id(component, labels)))
    return labels if known is None else {**known, **labels}


def card_at(component: str, address: str, cards: _Cards) -> Labels:
    """Labels of the card at a PCI address as the kernel writes it; of one that is not known, the address itself."""
    if component not in {"gpu", "npu"} or not address:
        return {}
    key, equals, number = address.partition("=")
    if equals:
        return known_labels(component, {key: number}, cards)
    wanted = _bus(address)
    for (owner, _), labels in cards.items():
        if owner == component and any(_bus(labels.get(key, "")) == wanted for key in ("pci_bus_id", "bus_id", "pci")):
            return labels
    return {"pci": address}


def _bus(address: str) -> str:
    """Domain, bus and device of a PCI address, however wide its domain is written and whether or not it names a function."""
    domain, _, rest = address.lower().partition(":")
    return f"{domain.lstrip('0') or '0'}:{rest.partition('.')[0]}"
