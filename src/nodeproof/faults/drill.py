"""What a drill of a rule pretends. Pure."""

from collections.abc import Mapping
from types import MappingProxyType

from nodeproof.faults.engine import DrillRule
from nodeproof.faults.kernel_rules import KERNEL_RULES, KernelRule
from nodeproof.faults.meaning import xid_rule
from nodeproof.faults.vocabulary import NAMINGS, Naming
from nodeproof.model.event import Severity
from nodeproof.sources import xid_catalogue

__all__ = ["drill_rule", "drill_rules", "event_rule"]


def drill_rules() -> list[str]:
    """Every rule that makes a fault."""
    kernel = [rule.name for rule in KERNEL_RULES.values() if rule.stands]
    xids = [f"xid.{number}" for number, entry in xid_catalogue.XIDS.items() if entry.stands]
    sxids = [f"sxid.{number}" for number, entry in xid_catalogue.SXIDS.items() if entry.stands]
    return [*NAMINGS, *kernel, *xids, *sxids]


def drill_rule(rule: str, severities: Mapping[str, Severity] = MappingProxyType({})) -> DrillRule | None:
    """The rule as a drill pretends it; None when no fault is made by that name.

    ``severities``: of the rules of health, which have the last word on theirs.
    """
    naming = NAMINGS.get(rule)
    if naming is not None:
        named = naming._replace(severity=naming.severity or severities.get(rule, Severity.WARNING))
        what = str(naming.fault_class).replace("_", " ")
        return DrillRule(rule, named, rule.partition(".")[0], f"{rule} ({what})", "Nothing: this is a drill.")
    kernel = event_rule(rule)
    if kernel is None or not kernel.stands:
        return None
    named = Naming(kernel.type, kernel.fault_class, kernel.severity)
    return DrillRule(rule, named, kernel.component, kernel.meaning, "Nothing: this is a drill.")


def event_rule(rule: str) -> KernelRule | None:
    """The rule on the kernel log by its id; of Xids any number that the catalogue has."""
    return next((one for one in KERNEL_RULES.values() if one.name == rule), None) or _xid(rule)


def _xid(rule: str) -> KernelRule | None:
    family, _, number = rule.partition(".")
    table = {"xid": xid_catalogue.XIDS, "sxid": xid_catalogue.SXIDS}.get(family, {})
    entry = table.get(int(number)) if number.isascii() and number.isdecimal() else None
    return None if entry is None else xid_rule(rule, entry)
