"""``nodeproof faults ack|hold|release|clear``: an operator's word on a fault."""

import argparse

from nodeproof.cli.fault_orders import caller, give_order
from nodeproof.cli.options import load_config
from nodeproof.cli.table import printable
from nodeproof.model.fault import Order, OrderKind

__all__ = ["run"]

_KINDS = {
    "ack": (OrderKind.ACKNOWLEDGE, "acknowledged"),
    "hold": (OrderKind.HOLD, "held until it is released or cleared"),
    "release": (OrderKind.RELEASE, "released"),
    "clear": (OrderKind.CLEAR, "cleared"),
}


def run(options: argparse.Namespace) -> int:
    """Have the daemon do it. Raises UsageError with what it says against it."""
    kind, done = _KINDS[options.action]
    fault = give_order(load_config(options), Order(kind, options.fault, caller(), options.note))
    print(printable(f"{options.fault} ({fault.rule}, {fault.device}): {done}"))
    return 0
