"""Entries of the log of faults, for pages that show them."""

from typing import Any

import msgspec

from nodeproof.faults.views import ActiveFault
from nodeproof.model.event import Severity
from nodeproof.model.fault import Change, FaultClass, FaultEvent, Origin

__all__ = ["fault_event", "standing_fault"]


def fault_event(number: int, kind: str, component: str, severity: Severity, at: str, **more: Any) -> FaultEvent:
    """An entry of the log, with what the page does not show filled in."""
    return FaultEvent(
        event_id=str(number),
        type=kind,
        component=component,
        npu_id=more.pop("npu_id", ""),
        severity=severity,
        detail=more.pop("detail", {}),
        timestamp=at,
        recovered=more.pop("recovered", False),
        sequence=number,
        change=more.pop("change", Change.SET),
        fault_class=FaultClass.DEVICE,
        rule="npu.lost",
        device="",
        message="",
        boot_id="",
        **more,
    )


def standing_fault(one: FaultEvent) -> ActiveFault:
    """The fault that ``one`` set."""
    return ActiveFault(**msgspec.structs.asdict(one), origin=Origin.READING, clears_when="it answers again")
