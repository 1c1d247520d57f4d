"""What containment costs, and how quickly a tree is gone.

Starts programs that are hard to end (those of ``tests/support/patients.py``) as a job would be, cancels each as soon as it is in
its worst state, and prints how long the start took, and from the cancel to the proof that nothing is left. Then it leaves trees
of several sizes alone and prints what their keeper uses.

    nice -n 10 python benchmarks/containment.py --runs 40

The grace is the one that jobs have by default: a program that ignores TERM takes that long, whatever it is.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from nodeproof.host.containment import Contained, Containment
from nodeproof.model.process import Limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.patients import PATIENTS, PRINT_NOTHING, patient
from support.survivors import bearers

THREADS = """
import threading, time
for _ in range(255):
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""
TREES = {
    "1 process": ["/bin/sh", "-c", "echo ready; exec sleep 600"],
    "64 processes": ["/bin/sh", "-c", "for i in $(seq 63); do sleep 600 & done; echo ready; wait"],
    "256 threads": [sys.executable, "-S", "-E", "-c", THREADS],
}


def main() -> int:
    """Print the tables; 1 when anything survived or the limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="cancels of each program, each way")
    parser.add_argument("--seconds", type=float, default=10.0, help="how long each keeper is watched")
    parser.add_argument("--limit", type=float, default=2.0, help="seconds from cancel to empty, at the 99th percentile")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ends, survivors = cancels(Path(folder), options.runs)
        keepers(Path(folder), options.seconds)
    worst = percentile(ends, 0.99)
    print(f"\ncancel to empty, {len(ends)} cancels: p50 {percentile(ends, 0.5):.3f} s, p99 {worst:.3f} s, max {max(ends):.3f} s")
    print(f"survivors: {survivors}")
    return 1 if survivors or worst > options.limit else 0


def cancels(folder: Path, runs: int) -> tuple[list[float], int]:
    """Seconds from each cancel to the proof, and how many processes were still there."""
    everything: list[float] = []
    survivors = 0
    print(f"{'program':<16}{'way':<11}{'start p50':>10}{'p99':>8}{'empty p50':>11}{'p99':>8}{'call p99':>10}  ms")
    for name in PATIENTS:
        for way in ("cgroup", "subreaper"):
            starts, ends, calls = [], [], []
            for run in range(runs):
                begun = time.perf_counter()
                job = start(patient(name), folder / f"{name}-{way}-{run}", use_cgroup=way == "cgroup")
                starts.append(time.perf_counter() - begun)
                if name not in PRINT_NOTHING:
                    await_ready(job)
                begun = time.perf_counter()
                ended = job.cancel()
                calls.append(time.perf_counter() - begun)
                ends.append(ended.ending_s)
                survivors += len(ended.survivors) + (not ended.empty) + len(bearers(job.token, Path(job.record_path)))
                job.close()
            everything += ends
            figures = (percentile(starts, 0.5), percentile(starts, 0.99), percentile(ends, 0.5), percentile(ends, 0.99))
            cells = "".join(f"{1000 * value:>{width}.0f}" for value, width in zip(figures, (10, 8, 11, 8), strict=True))
            print(f"{name:<16}{way:<11}{cells}{1000 * percentile(calls, 0.99):>10.0f}", flush=True)
    return everything, survivors


def keepers(folder: Path, seconds: float) -> None:
    """Print what a keeper uses while its tree does nothing."""
    print(f"\n{'tree':<16}{'CPU, % of a core':>18}{'resident MiB':>14}{'private MiB':>13}")
    for name, argv in TREES.items():
        job = start(argv, folder / name.replace(" ", "-"), use_cgroup=True)
        await_ready(job)
        time.sleep(1.0)
        before = cpu_s(job.keeper_pid)
        time.sleep(seconds)
        used = cpu_s(job.keeper_pid) - before
        resident, private = memory_mib(job.keeper_pid)
        job.close()
        print(f"{name:<16}{100 * used / seconds:>18.2f}{resident:>14.1f}{private:>13.1f}", flush=True)


def start(argv: list[str], output: Path, *, use_cgroup: bool) -> Contained:
    """Start one job."""
    return Containment(use_cgroup=use_cgroup).start(argv, cwd="/", output_path=str(output), limits=Limits(output_bytes=1_000_000))


def await_ready(job: Contained) -> None:
    """Until the program says so."""
    while b"ready" not in job.tail():
        time.sleep(0.002)


def cpu_s(pid: int) -> float:
    """Time of one process with one thread on a processor, to the nanosecond."""
    return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[0]) / 1e9


def memory_mib(pid: int) -> tuple[float, float]:
    """Resident memory of one process, and what of it is shared with none."""
    kib = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        key, value = line.split(":")
        kib[key] = int(value.split()[0])
    return kib["Rss"] / 1024, (kib["Private_Clean"] + kib["Private_Dirty"]) / 1024


def percentile(values: list[float], share: float) -> float:
    """The smallest value that so large a share does not exceed."""
    ordered = sorted(values)
    return statistics.median(ordered) if share == 0.5 else ordered[min(len(ordered) - 1, int(share * len(ordered)))]


if __name__ == "__main__":
    sys.exit(main())
