"""Hold each room to its share of lines and branches that the tests run, from the report of one run of them.

    python tools/check_coverage.py build/coverage.json            # says nothing when every room holds its limit
    python tools/check_coverage.py build/coverage.json --table    # and one line a room

Parsers, contracts and rules must be run whole: nothing stands between a wrong line there and a wrong number.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["SHORT_SO_FAR", "WHOLE", "Room", "broken", "rooms"]

PACKAGE = "src/nodeproof/"
WHOLE = ("sources", "model", "health", "stress/parsers")
"""Rooms that are run whole."""
ELSEWHERE_PERCENT = 95.0
SHORT_SO_FAR = {
    "bench": 1.5,
    "cli": 0.5,
    "stress": 0.5,
}
"""Points by which a room may still miss its limit: what has just been built, and processes whose tracer a kill takes along.
Only ever to be lowered."""
_NAMED = 12


class Room(NamedTuple):
    """Lines and branches of one room."""

    name: str
    limit_percent: float
    reached: int
    all: int
    gaps: dict[str, list[str]]
    """What is not run, by file: line numbers, and ``12->15`` for a branch that is never taken."""

    @property
    def percent(self) -> float:
        """Share that is run; a room without code is whole."""
        return 100.0 * self.reached / self.all if self.all else 100.0

    @property
    def holds(self) -> bool:
        """Whether the limit is held."""
        return self.percent >= self.limit_percent


def rooms(report: Mapping[str, Any]) -> list[Room]:
    """The rooms of a JSON report of coverage.py, by name. Raises ValueError for one without branches, or without our package."""
    if not report["meta"]["branch_coverage"]:
        raise ValueError("the report was made without branches; run pytest with --cov and branch = true")
    found: dict[str, Room] = {}
    for path, file in report["files"].items():
        if not path.startswith(PACKAGE):
            continue
        name = room_of(path)
        room = found.get(name) or Room(name, 100.0 if name in WHOLE else ELSEWHERE_PERCENT, 0, 0, {})
        summary = file["summary"]
        gaps = [str(line) for line in file["missing_lines"]]
        gaps += [f"{start}->{end if end > 0 else 'end'}" for start, end in file["missing_branches"]]
        found[name] = room._replace(
            reached=room.reached + summary["covered_lines"] + summary["covered_branches"],
            all=room.all + summary["num_statements"] + summary["num_branches"],
            gaps=room.gaps | ({path: gaps} if gaps else {}),
        )
    if not found:
        raise ValueError(f"the report holds nothing of {PACKAGE}")
    return [found[name] for name in sorted(found)]


def room_of(path: str) -> str:
    """``sources`` for ``src/nodeproof/sources/proc_stat.py``; modules beside the rooms are called ``base``."""
    inside = path.removeprefix(PACKAGE)
    for name in WHOLE:
        if inside.startswith(f"{name}/"):
            return name
    room, slash, _ = inside.partition("/")
    return room if slash else "base"


def broken(found: Sequence[Room], short: Mapping[str, float] | None = None) -> list[str]:
    """One line for each room that misses its limit by more than ``short`` allows, and the places of what is missing."""
    lines = []
    for room in found:
        if room.holds or room.percent >= room.limit_percent - (short or {}).get(room.name, 0.0):
            continue
        lines.append(f"{room.name}: {room.percent:.2f} % of lines and branches are run, {room.limit_percent:g} % must be")
        for path, gaps in room.gaps.items():
            more = f" and {len(gaps) - _NAMED} more" if len(gaps) > _NAMED else ""
            lines.append(f"  {path}: {', '.join(gaps[:_NAMED])}{more}")
    return lines


def main() -> int:
    """Judge a report; 0 when every room holds its limit, 2 when the report is of no use."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, help="JSON report of coverage.py")
    parser.add_argument("--table", action="store_true", help="print a line for each room")
    options = parser.parse_args()
    try:
        found = rooms(json.loads(options.report.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"{options.report}: no report to judge: {error}", file=sys.stderr)
        return 2
    if options.table:
        for room in found:
            print(f"{room.name:<16}{room.percent:>8.2f} % of {room.all:>6}, at least {room.limit_percent:g} %")
    lines = broken(found, SHORT_SO_FAR)
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
