"""The rule that an event of the kernel log stands for. Pure."""

from typing import TYPE_CHECKING

from nodeproof.faults.kernel_rules import KernelRule, kernel_rule
from nodeproof.model.event import EventKind, KernelEvent

if TYPE_CHECKING:
    from nodeproof.sources.xid_catalogue import XidEntry

__all__ = ["detail_of", "meaning_of", "xid_rule"]


def meaning_of(event: KernelEvent) -> KernelRule | None:
    """The rule for ``event``; None when it is no more than a number in a counter."""
    if event.kind not in {EventKind.XID, EventKind.SXID}:
        return kernel_rule(event.kind, event.code)
    from nodeproof.sources import xid_catalogue  # noqa: PLC0415 - most machines never write one

    if event.kind is EventKind.XID:
        return xid_rule(f"xid.{int(event.code)}", xid_catalogue.xid_entry(event.code, event.message))
    return xid_rule(f"sxid.{int(event.code)}", xid_catalogue.sxid_entry(event.code, event.message))


def detail_of(event: KernelEvent) -> dict[str, str]:
    """What the line itself tells beyond its kind and device, as evidence."""
    detail = {"line": event.message}
    if event.code:
        detail["code"] = event.code
    if event.kind is EventKind.XID:
        from nodeproof.sources.xid_catalogue import xid_detail  # noqa: PLC0415 - the same

        detail |= xid_detail(event.message).as_detail()
    return detail


def xid_rule(name: str, entry: "XidEntry") -> KernelRule:
    """A number of the catalogue as a rule; its type is that of other vendors' faults where there is such a one."""
    return KernelRule(
        name,
        _TYPES.get(entry.fault_class, str(entry.fault_class)) if entry.stands else name.partition(".")[0],
        entry.fault_class,
        "gpu",
        entry.severity,
        entry.meaning,
        entry.action,
        stands=entry.stands,
        quiet_s=entry.quiet_s,
    )


_TYPES = {"lost": "card_drop"}
"""Types of the reference, by class."""
