"""``nodeproof faults active``: what is broken now."""

import argparse

from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable
from nodeproof.errors import RecordError
from nodeproof.faults.records import read_state
from nodeproof.model.event import Severity
from nodeproof.model.fault import Fault
from nodeproof.sinks.snapshot_reader import read_state as read_daemon

__all__ = ["run", "standing"]

_UNKNOWN = 3


def run(options: argparse.Namespace) -> int:
    """Print what stands; exit 0 nothing, 1 warnings, 2 critical ones, 3 when it cannot be told."""
    config = load_config(options)
    daemon = read_daemon(config.snapshot.dir)
    problem = "" if daemon.fresh else f"daemon {daemon.verdict}: {daemon.reason}"
    try:
        state = read_state(config.faultsub.dir)
    except RecordError as error:
        state, problem = None, str(error)
    faults = [] if state is None else state.faults
    if options.output == "json":
        print_json({"fresh": not problem, "problem": problem, "faults": faults}, indent=2)
    else:
        _print(faults, problem, "" if state is None else state.timestamp)
    if problem:
        return _UNKNOWN
    severities = {fault.severity for fault in faults}
    return 2 if Severity.CRITICAL in severities else int(Severity.WARNING in severities)


def _print(faults: list[Fault], problem: str, timestamp: str) -> None:
    if problem:
        print(printable(f"Not the present: {problem}. What stood last, at {timestamp or 'no time at all'}:", 1000))
    if not faults:
        print("No fault.")
        return
    print_table(
        ("Id", "Severity", "Type", "Component", "Device", "Since", "State", "What"),
        [
            (
                fault.fault_id,
                str(fault.severity),
                fault.type,
                fault.component,
                fault.device,
                fault.since,
                standing(fault),
                fault.message,
            )
            for fault in faults
        ],
    )


def standing(fault: Fault) -> str:
    """What else is known of a fault, in a few words."""
    words = ["DRILL"] if fault.drill else []
    words += ["acknowledged"] if fault.acknowledged is not None else []
    words += ["held"] if fault.held else []
    words += ["over"] if fault.over else []
    words += ["not read now"] if fault.unseen else []
    return ", ".join(words) or "-"
