"""What a cycle costs, and how that grows with the host: made-up hosts of 2 to 256 processors, 1 to 64 disks and network ports.

    python benchmarks/growth.py            # the table, and whether growth is linear
    python benchmarks/growth.py --detail   # and what each part of the largest host costs

All figures are CPU time. The collectors run on recorded files, so what the kernel spends on making the content of ``/proc`` and
``/sys`` is not in them (``observe.py`` measures that on a real host); everything that the daemon itself does is.

* *cycle*: a second of the daemon at default cadences, as the mean of ten in a row, so that every cadence has its share in it:
  collectors, sinks, health. ``min`` is the cheapest ten seconds, ``median`` the ordinary ones; slow groups (those that the
  catalogue gives a period) come in some of them. ``worst`` is the dearest single second.
* *all*: the mean of all seconds, slow sources on threads of their own included: what the daemon costs.
* *at once*: every collector and a judgement in one second, though they are never all due together.
* *page*: one exposition after a cycle.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.cycle_cost import YARDSTICK_S, Costs, Daemon, total, windows, yardstick  # noqa: E402 - from a checkout, installed or not
from support.hosts_grown import Size  # noqa: E402

LIMIT_MS = 12.0
"""Of a cycle of the largest host."""
BEATS = 30
STEEPER = 1.5
"""Growth counts as linear while the last stretch of a line is at most so much steeper than the first,"""
NOISE_MS = 0.5
"""and the last point lies more than this above the line through the first two."""
SMALLEST = Size(2, 1, 1)
LARGEST = Size(256, 64, 64)
LINES = {
    "processor": (SMALLEST, Size(64, 1, 1), Size(256, 1, 1)),
    "disk": (SMALLEST, Size(2, 16, 1), Size(2, 64, 1)),
    "network port": (SMALLEST, Size(2, 1, 16), Size(2, 1, 64)),
}
SIZES = tuple(dict.fromkeys([size for line in LINES.values() for size in line] + [Size(64, 16, 16), LARGEST]))


class Figures:
    """Of one host; seconds of CPU time."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.seconds: list[Costs] = []
        self.cycles: list[float] = []
        self.at_once: list[float] = []
        self.pages: list[float] = []
        self.spent_s = 0.0
        self.yardsticks: list[float] = []

    def go_on(self, beats: int) -> None:
        """Measure so many seconds more."""
        began_s, stepped_s = time.process_time(), self.daemon.stepping_s
        seconds: list[Costs] = []
        yardsticks: list[float] = []
        for _ in range(beats):
            seconds.append(self.daemon.beat(everything=False))
            yardsticks.append(yardstick())
        self.spent_s += time.process_time() - began_s - (self.daemon.stepping_s - stepped_s) - sum(yardsticks)
        self.yardsticks += yardsticks
        self.seconds += seconds
        self.cycles += windows(list(map(total, seconds)))
        for _ in range(beats // 6):
            self.at_once.append(total(self.daemon.beat(everything=True)))
            self.pages.append(self.daemon.page())

    @property
    def cycle_ms(self) -> float:
        """The cheapest cycle."""
        return 1000 * min(self.cycles)


def measure(rounds: int, folder: str, *, by_group: bool) -> dict[Size, Figures]:
    """Run all hosts in turn, so that each meets the same neighbours on the machine that measures."""
    figures: dict[Size, Figures] = {}
    try:
        for number, size in enumerate(SIZES):
            place = Path(folder) / str(number)
            place.mkdir()
            figures[size] = Figures(Daemon(place, size, by_group=by_group and size == LARGEST))
            figures[size].daemon.warm_up()
        for _ in range(rounds):
            for one in figures.values():
                one.go_on(BEATS)
        for size, one in figures.items():
            if one.daemon.trouble():
                raise SystemExit(f"{size}: not the figures of a daemon that works: {one.daemon.trouble()}")
    finally:
        for one in figures.values():
            one.daemon.close()
    return figures


def print_table(figures: dict[Size, Figures]) -> None:
    """One line a host."""
    print("  cpus disks ports  series | cycle: min  median   worst |     all | at once |    page   (ms of CPU)")
    for size, one in figures.items():
        print(
            f"{size.cpus:>6}{size.disks:>6}{size.nics:>6}{one.daemon.series:>8} |{one.cycle_ms:>11.2f}"
            f"{1000 * statistics.median(one.cycles):>8.2f}{1000 * max(map(total, one.seconds)):>8.2f} |"
            f"{1000 * one.spent_s / len(one.seconds):>8.2f} |{1000 * min(one.at_once):>8.2f} |{1000 * min(one.pages):>8.2f}"
        )


def judge(figures: dict[Size, Figures]) -> bool:
    """Say whether growth is linear and the largest host within its limit."""
    good = True
    steps = []
    print()
    for thing, line in LINES.items():
        counts = [max(a - b for a, b in zip(size, SMALLEST, strict=True)) for size in line]
        costs = [figures[size].cycle_ms for size in line]
        first = (costs[1] - costs[0]) / (counts[1] - counts[0])
        last = (costs[2] - costs[1]) / (counts[2] - counts[1])
        slope = statistics.linear_regression(counts, costs).slope
        above = costs[2] - costs[1] - first * (counts[2] - counts[1])
        linear = last <= STEEPER * first or above <= NOISE_MS
        good &= linear
        steps.append(slope)
        print(
            f"each {thing:<13}{1000 * slope:>7.1f} us a cycle ({1000 * first:.1f} at first, {1000 * last:.1f} at last):"
            f" {'linear' if linear else 'STEEPER THAN LINEAR'}"
        )
    reckoned = figures[SMALLEST].cycle_ms + sum(
        slope * (most - least) for slope, most, least in zip(steps, LARGEST, SMALLEST, strict=True)
    )
    largest = figures[LARGEST].cycle_ms
    print(f"largest host: {largest:.2f} ms a cycle; the sum of its parts would be {reckoned:.2f} ms")
    slower = max(1.0, statistics.median([cost for one in figures.values() for cost in one.yardsticks]) / YARDSTICK_S)
    held = largest / slower < LIMIT_MS
    print(f"this machine, as busy as it is, takes {slower:.2f} times as long as the one that the limit is meant for")
    print(f"limit {LIMIT_MS:g} ms a cycle: {largest / slower:.2f} ms there, {'held' if held else 'BROKEN'}")
    return good and held and largest <= STEEPER * reckoned


def print_detail(one: Figures) -> None:
    """What each part costs, the dearest first."""
    print("\npart of the largest host, ms a second                    mean  median   worst  seconds with it")
    parts = {part: [1000 * costs.get(part, 0.0) for costs in one.seconds] for part in sorted({p for c in one.seconds for p in c})}
    for part, costs in sorted(parts.items(), key=lambda item: (item[0][0] == "group", -sum(item[1]))):
        ran = sum(cost > 0 for cost in costs)
        print(
            f"{part[0]:<9}{part[1]:<44}{statistics.fmean(costs):>8.3f}{statistics.median(costs):>8.3f}{max(costs):>8.3f}{ran:>17}"
        )


def main() -> int:
    """Measure and report; 1 when growth is steeper than linear or the limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=6, help=f"rounds of {BEATS} seconds on each host (default: 6)")
    parser.add_argument("--detail", action="store_true", help="print what each part of the largest host costs")
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    parser.add_argument("--folder", default=memory, help="where hosts and files are made (default: in memory)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        figures = measure(options.rounds, folder, by_group=options.detail)
    print_table(figures)
    good = judge(figures)
    if options.detail:
        print_detail(figures[LARGEST])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
