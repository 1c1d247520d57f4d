"""Faults that rest on no rule of health, as findings: what the kernel log proved, and drills. Pure."""

from collections.abc import Iterable

import msgspec

from nodeproof.clock import Instant, rfc3339_parse
from nodeproof.model.fault import Fault, Origin
from nodeproof.model.health import Finding, Reading, Severity

__all__ = ["findings_of"]


def findings_of(faults: Iterable[Fault], at: Instant) -> list[Finding]:
    """The findings, in the order of the faults."""
    return [_finding(fault, at) for fault in faults if fault.origin is not Origin.READING]


def _finding(fault: Fault, at: Instant) -> Finding:
    age_s = max(0.0, at.wall_s - rfc3339_parse(fault.last or fault.since))
    where = f" ({fault.device})" if fault.device and not fault.drill else ""
    return Finding(
        fault.rule,
        Severity(fault.severity.value),
        fault.component,
        fault.message + where,
        Reading(fault.component, fault.type, float(fault.count), "count", {"device": fault.device, "fault": fault.fault_id}),
        f"a drill by {fault.detail.get('injected_by', '')}" if fault.drill else "/dev/kmsg",
        round(age_s, 3),
        "an event",
        "an operator's word" if fault.held else fault.clears_when,
        fault.since,
        0.0,
        fault.over,
        drill=fault.drill or msgspec.UNSET,
    )
