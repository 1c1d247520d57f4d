"""What a cycle costs, and how that grows with the host: made-up hosts of 2 to 256 processors, 1 to 64 disks and network ports.

    python benchmarks/growth.py            # the table, and whether growth is linear
    python benchmarks/growth.py --detail   # and what each part of the largest host costs

All figures are CPU time. The collectors run on recorded files, so what the kernel spends on making the content of ``/proc`` and
``/sys`` is not in them (``observe.py`` measures that on a real host); everything that the daemon itself does is.

* *cycle*: every collector, the sinks and a judgement of health in one go, though they are not all due at once; ``min`` is the
  cycle without slow groups (those that the catalogue gives a period), ``median`` has some.
* *second*: what is due at default cadences, slow groups and slow sources on their own threads included; ``mean`` is what the
  daemon costs, ``median`` and ``worst`` tell how evenly that is spread.
* *page*: one exposition after a cycle.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.cycle_cost import Costs, Daemon, total  # noqa: E402 - from a checkout, installed or not
from support.hosts_grown import Size  # noqa: E402

LIMIT_MS = 12.0
"""Of a cycle of the largest host."""
STEEPER = 1.5
"""Growth counts as linear while the last stretch of a line is at most so much steeper than the first."""
SMALLEST = Size(2, 1, 1)
LARGEST = Size(256, 64, 64)
LINES = {
    "processor": (SMALLEST, Size(64, 1, 1), Size(256, 1, 1)),
    "disk": (SMALLEST, Size(2, 16, 1), Size(2, 64, 1)),
    "network port": (SMALLEST, Size(2, 1, 16), Size(2, 1, 64)),
}
SIZES = tuple(dict.fromkeys([size for line in LINES.values() for size in line] + [Size(64, 16, 16), LARGEST]))


class Figures(NamedTuple):
    """Of one host; milliseconds."""

    series: int
    cycle_min: float
    cycle_median: float
    second_mean: float
    second_median: float
    second_worst: float
    page: float
    cycles: list[Costs]
    seconds: list[Costs]


def measure(size: Size, beats: int, folder: str | None, *, by_group: bool) -> Figures:
    """Run one host."""
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        daemon = Daemon(Path(scratch), size, by_group=by_group)
        try:
            daemon.warm_up()
            cycles = [daemon.beat(everything=True) for _ in range(beats)]
            pages = [daemon.page() for _ in range(5)]
            began_s, stepped_s = time.process_time(), daemon.stepping_s
            seconds = [daemon.beat(everything=False) for _ in range(2 * beats)]
            spent_s = time.process_time() - began_s - (daemon.stepping_s - stepped_s)
            if daemon.trouble():
                raise SystemExit(f"not the figures of a daemon that works: {daemon.trouble()}")
            cycle_ms, second_ms = [1000 * total(one) for one in cycles], [1000 * total(one) for one in seconds]
            return Figures(
                daemon.series,
                min(cycle_ms),
                statistics.median(cycle_ms),
                1000 * spent_s / len(seconds),
                statistics.median(second_ms),
                max(second_ms),
                1000 * min(pages),
                cycles,
                seconds,
            )
        finally:
            daemon.close()


def print_table(figures: dict[Size, Figures]) -> None:
    """One line a host."""
    print("  cpus disks ports  series | cycle: min  median | second: mean  median   worst |    page   (ms of CPU)")
    for size, one in figures.items():
        print(
            f"{size.cpus:>6}{size.disks:>6}{size.nics:>6}{one.series:>8} |{one.cycle_min:>11.2f}{one.cycle_median:>8.2f} |"
            f"{one.second_mean:>13.2f}{one.second_median:>8.2f}{one.second_worst:>8.2f} |{one.page:>8.2f}"
        )


def judge(figures: dict[Size, Figures]) -> bool:
    """Say whether growth is linear and the largest host within its limit."""
    good = True
    steps = []
    print()
    for thing, line in LINES.items():
        counts = [max(a - b for a, b in zip(size, SMALLEST, strict=True)) for size in line]
        costs = [figures[size].cycle_min for size in line]
        first = (costs[1] - costs[0]) / (counts[1] - counts[0])
        last = (costs[2] - costs[1]) / (counts[2] - counts[1])
        slope = statistics.linear_regression(counts, costs).slope
        linear = last <= STEEPER * first
        good &= linear
        steps.append(slope)
        print(
            f"each {thing:<13}{1000 * slope:>7.1f} us a cycle ({1000 * first:.1f} at first, {1000 * last:.1f} at last):"
            f" {'linear' if linear else 'STEEPER THAN LINEAR'}"
        )
    reckoned = figures[SMALLEST].cycle_min + sum(
        slope * (most - least) for slope, most, least in zip(steps, LARGEST, SMALLEST, strict=True)
    )
    largest = figures[LARGEST].cycle_min
    print(f"largest host: {largest:.2f} ms a cycle; the sum of its parts would be {reckoned:.2f} ms")
    print(f"limit {LIMIT_MS:g} ms a cycle: {'held' if largest < LIMIT_MS else 'BROKEN'}")
    return good and largest < LIMIT_MS and largest <= STEEPER * reckoned


def print_detail(one: Figures) -> None:
    """What each part costs, the dearest first."""
    print("\npart of the largest host, ms                           cycle: min  median | second: mean   worst")
    parts = sorted({part for costs in (*one.cycles, *one.seconds) for part in costs})
    means = {part: statistics.fmean(1000 * costs.get(part, 0.0) for costs in one.seconds) for part in parts}
    for part in sorted(parts, key=lambda part: (part[0] == "group", -means[part])):
        cycles = [1000 * costs.get(part, 0.0) for costs in one.cycles]
        worst = max(1000 * costs.get(part, 0.0) for costs in one.seconds)
        print(
            f"{part[0]:<9}{part[1]:<44}{min(cycles):>11.3f}{statistics.median(cycles):>8.3f} |{means[part]:>13.3f}{worst:>8.3f}"
        )


def main() -> int:
    """Measure and report; 1 when growth is steeper than linear or the limit is broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beats", type=int, default=60, help="cycles measured of each host (default: 60)")
    parser.add_argument("--detail", action="store_true", help="print what each part of the largest host costs")
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    parser.add_argument("--folder", default=memory, help="where hosts and files are made (default: in memory)")
    options = parser.parse_args()
    figures = {size: measure(size, options.beats, options.folder, by_group=options.detail and size == LARGEST) for size in SIZES}
    print_table(figures)
    good = judge(figures)
    if options.detail:
        print_detail(figures[LARGEST])
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
