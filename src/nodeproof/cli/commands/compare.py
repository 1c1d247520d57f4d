"""``nodeproof compare``: two nodes, or a node and its last green day, held against each other."""

import argparse
import sys

from nodeproof.cli.options import load_config
from nodeproof.cli.output import print_json
from nodeproof.cli.table import print_table, printable_lines
from nodeproof.clock import SystemClock
from nodeproof.errors import UsageError
from nodeproof.operate.compare.days import last_green_day
from nodeproof.operate.compare.differences import Comparison, Weight, compare
from nodeproof.operate.compare.side import Side, load_side
from nodeproof.sinks.jsonl_files import local_date

__all__ = ["run"]

_SHOWN = 12
_NOTHING_COMPARED = 3
_TITLES = {
    Weight.VERDICT: "What only one of them is found to have",
    Weight.MADE_OF: "What they are made of",
    Weight.STATE: "States",
    Weight.ERRORS: "Counters of errors",
    Weight.DEVICE: "What only one of them has",
    Weight.NUMBER: "Numbers far apart",
}


def run(options: argparse.Namespace) -> int:
    """Exit 0 when nothing differs, 1 when something does, 3 when there is nothing that both tell of."""
    left, right = _sides(options)
    found = compare(left, right)
    if options.output == "json":
        print_json({"left": left.name, "right": right.name, "comparison": found}, indent=2)
    else:
        _print(options, left, right, found)
    if not found.compared and not found.differences:
        print("nodeproof: no reading is known of both sides, so nothing was compared", file=sys.stderr)
        return _NOTHING_COMPARED
    return int(bool(found.differences))


def _sides(options: argparse.Namespace) -> tuple[Side, Side]:
    paths = options.sides
    if len(paths) > 2:
        raise UsageError(f"compare takes two sides at most; {len(paths)} were given")
    if len(paths) == 2:
        return load_side(paths[0]), load_side(paths[1])
    config = load_config(options)
    now = load_side(config.snapshot.dir)
    if paths:
        return load_side(paths[0]), now
    today = local_date(SystemClock().now().wall_s)
    day = last_green_day(
        config.storage.data_dir,
        config.faultsub.dir,
        before=today,
        ruleset=config.health.ruleset,
        scheme=config.health.weight_scheme,
    )
    return day.side, now


def _print(options: argparse.Namespace, left: Side, right: Side, found: Comparison) -> None:
    print(printable_lines(f"A: {left.name} ({left.when or 'time unknown'})\nB: {right.name} ({right.when or 'time unknown'})"))
    for caution in found.cautions:
        print(printable_lines(f"Caution: {caution}"))
    print(f"{found.compared} readings of both were compared; {len(found.differences)} differences.")
    for weight, title in _TITLES.items():
        rows = [(one.what, one.left, one.right) for one in found.differences if one.weight == weight]
        shown = rows if options.all else rows[:_SHOWN]
        if rows:
            print(f"\n{title}:\n")
            print_table(("what", "A", "B"), shown)
        if len(shown) < len(rows):
            print(f"and {len(rows) - len(shown)} more; --all shows them")
    if found.not_compared:
        print("\nCould not be compared:\n")
        rows = [(one.what, one.left or "known", one.right or "known") for one in found.not_compared]
        print_table(("what", "A", "B"), rows if options.all else rows[:_SHOWN])
        if len(rows) > _SHOWN and not options.all:
            print(f"and {len(rows) - _SHOWN} more; --all shows them")
