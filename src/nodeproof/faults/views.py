"""Faults as others see them: the reference's event, its map of cards, and what we add. Pure."""

from collections.abc import Iterable

from nodeproof.faults.identity import card_id
from nodeproof.faults.kernel_rules import KERNEL_RULES, UNVERIFIED
from nodeproof.faults.vocabulary import NAMINGS, REFERENCE_TYPES
from nodeproof.model.event import Severity
from nodeproof.model.fault import Acknowledgement, Change, Fault, FaultEvent, Origin

__all__ = ["ActiveFault", "active_fault", "by_card", "known_types", "place_name"]

_RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.CRITICAL: 2}


class ActiveFault(FaultEvent, frozen=True, omit_defaults=True, kw_only=True):
    """A fault that stands, in the form of the event that set it, and how it stands."""

    origin: Origin
    clears_when: str
    last: str = ""
    acknowledged: Acknowledgement | None = None
    held: bool = False
    over: bool = False
    unseen: bool = False


def active_fault(fault: Fault) -> ActiveFault:
    """``fault`` as it stands; its time is that of its beginning."""
    card = card_id(fault.component, fault.labels)
    return ActiveFault(
        event_id=fault.event_id,
        type=fault.type,
        component=fault.component,
        npu_id=card if fault.component == "npu" else "",
        gpu_id=card if fault.component == "gpu" else "",
        severity=fault.severity,
        detail=fault.detail,
        timestamp=fault.since,
        recovered=False,
        sequence=int(fault.fault_id[1:]),
        change=Change.SET,
        fault_class=fault.fault_class,
        rule=fault.rule,
        device=fault.device,
        message=fault.message,
        boot_id=fault.boot_id,
        labels=fault.labels,
        fault_id=fault.fault_id,
        action=fault.action,
        count=fault.count,
        drill=fault.drill,
        since=fault.since,
        origin=fault.origin,
        clears_when=fault.clears_when,
        last=fault.last,
        acknowledged=fault.acknowledged,
        held=fault.held,
        over=fault.over,
        unseen=fault.unseen,
    )


def place_name(fault: ActiveFault) -> str:
    """The key of the reference's map: the id of an NPU; what is none says so (``gpu-0``, ``disk-sda``)."""
    if fault.npu_id:
        return fault.npu_id
    return f"{fault.component}-{fault.gpu_id or fault.device}"


def by_card(faults: Iterable[Fault]) -> dict[str, ActiveFault]:
    """The gravest fault of each thing, of equally grave ones the newest."""
    gravest: dict[str, ActiveFault] = {}
    for fault in map(active_fault, faults):
        place = place_name(fault)
        other = gravest.get(place)
        if other is None or (_RANK[fault.severity], fault.sequence) > (_RANK[other.severity], other.sequence):
            gravest[place] = fault
    return gravest


def known_types() -> list[str]:
    """Every type that rules make, the reference's first."""
    kernel = [rule.type for rule in KERNEL_RULES.values()]
    own = {*(naming.type for naming in NAMINGS.values()), *kernel, UNVERIFIED.type, *_OF_XIDS} - set(REFERENCE_TYPES)
    return [*REFERENCE_TYPES, *sorted(own)]


_OF_XIDS = ("xid", "sxid", "device", "driver", "driver_hung", "ecc_corrected", "ecc_uncorrected", "link_degraded", "link_down")
"""Types of Xids and SXids: a test holds them against the catalogue, which is not loaded for this."""
