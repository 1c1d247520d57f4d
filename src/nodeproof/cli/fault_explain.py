"""``nodeproof explain`` of a rule on the kernel log: what it means, what to do, and what stands because of it."""

import argparse

from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.table import printable
from nodeproof.errors import RecordError, UsageError
from nodeproof.faults.drill import event_rule
from nodeproof.faults.kernel_rules import KernelRule
from nodeproof.faults.records import read_events, read_state
from nodeproof.model.fault import Fault, FaultEvent

__all__ = ["explain_fault", "is_event_rule"]

_NEWEST = 5
_LINE_LIMIT = 1000


def is_event_rule(rule: str) -> bool:
    """Whether ``rule`` is one on the kernel log, by the first part of its id."""
    return rule.partition(".")[0] in {"kernel", "xid", "sxid"}


def explain_fault(options: argparse.Namespace) -> int:
    """Print it. Raises UsageError for a rule that does not exist."""
    rule = event_rule(options.rule)
    if rule is None:
        raise UsageError(f"no rule {options.rule!r}; docs/faults.md and nodeproof faults list name those that there are")
    directory = load_config(options).faultsub.dir
    try:
        state = read_state(directory)
    except RecordError as error:
        raise UsageError(str(error)) from None
    standing = [fault for fault in state.faults if fault.rule == rule.name] if state is not None else []
    events = read_events(directory, limit=_NEWEST, wanted=lambda event: event.rule == rule.name)
    if options.output == "json":
        told: dict[str, object] = {**rule._asdict(), "ends": _ends(rule)}
        print_json({"rule": told, "standing": standing, "events": events}, indent=2)
    else:
        _print(rule, standing, events)
    return 0


def _ends(rule: KernelRule) -> str:
    if not rule.stands:
        return "it is an event, and stands for nothing that could end"
    return (
        f"no other one for {rule.quiet_s:g} s, or an operator's word" if rule.quiet_s else "the next boot, or an operator's word"
    )


def _print(rule: KernelRule, standing: list[Fault], events: list[FaultEvent]) -> None:
    print(f"{rule.name} ({rule.component}): {'triggered' if standing else 'clear'}\n")
    print(f"  Type:     {rule.type}, class {rule.fault_class}, severity {rule.severity}")
    print(f"  Meaning:  {rule.meaning}")
    print(f"  Remedy:   {rule.action}")
    print("  Source:   /dev/kmsg")
    print(f"  Ends:     {_ends(rule)}")
    for fault in standing:
        print(printable(f"  Stands:   {fault.fault_id} {fault.device} since {fault.since}, {fault.count} times", _LINE_LIMIT))
    for event in events:
        print(
            printable(f"  Event:    {event.timestamp} {event.change} {event.device}: {event.detail.get('line', '')}", _LINE_LIMIT)
        )
