"""What a stress job costs beside its workload: describe, start, cancel.

Runs a dispatcher that only sleeps, cancels it as soon as it runs, and prints how long each step took.

    nice -n 10 python benchmarks/stress.py --runs 30
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.stress import make_manager, make_settings, write_dispatcher


def main() -> int:
    """Print the table; 1 when a cancel took too long or left something."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30, help="jobs")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds from cancel to the last report, at the 99th percentile")
    options = parser.parse_args()
    steps: dict[str, list[float]] = {"describe": [], "start": [], "cancel to empty tree": [], "cancel to last report": []}
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        for number in range(options.runs):
            mark = home / f"mark-{number}"
            manager = make_manager(
                make_settings(home, write_dispatcher(home / "check.sh", run=f"echo $$ > {mark}; exec sleep 600"))
            )
            began = time.perf_counter()
            manager.describe("stream")
            described = time.perf_counter()
            report = manager.start(["stream"])
            while not mark.exists() or not mark.read_text().strip():
                time.sleep(0.001)
            started = time.perf_counter()
            manager.cancel(report.job_id)
            pid = int(mark.read_text())
            while Path(f"/proc/{pid}").exists():
                time.sleep(0.001)
            empty = time.perf_counter()
            done = manager.wait(report.job_id, 60.0)
            ended = time.perf_counter()
            survivors += done is None or done.benchmarks[0].details["process_tree"]["empty"] is not True
            for name, seconds in zip(
                steps, (described - began, started - described, empty - started, ended - started), strict=True
            ):
                steps[name].append(seconds)
    print(f"{'step':24} {'median':>9} {'p99':>9} {'max':>9}")
    for name, values in steps.items():
        print(f"{name:24} {statistics.median(values):8.3f}s {percentile(values):8.3f}s {max(values):8.3f}s")
    print(f"jobs whose tree is not proven to be gone: {survivors}")
    return 1 if survivors or percentile(steps["cancel to empty tree"]) > options.limit else 0


def percentile(values: list[float]) -> float:
    """The 99th."""
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]


if __name__ == "__main__":
    sys.exit(main())
