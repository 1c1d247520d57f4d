"""What a stress job costs beside its workload: describe, start, cancel, and watching the box.

    nice -n 10 python benchmarks/stress.py --runs 100

Starts jobs of a dispatcher whose program works, double-forks, leads sessions of its own or ignores SIGTERM, in turn, cancels each
as soon as it runs, and looks in ``/proc`` until no process bears the job's mark: program, children and keeper. Then it lets a
program work for ``--watch`` seconds under the sampler and prints the sampler's own CPU time as a share of the allowed processors.
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import SamplerReport, Sensitivity
from nodeproof.runs.ports import Switches
from support.patients import patient
from support.stress import make_manager, make_settings, write_dispatcher
from support.survivors import bearers

KINDS = ("worker", "double_fork", "setsid", "ignores_term")
CANCEL_LIMIT_S = 2.0
SAMPLER_LIMIT = 0.005


def one_job(home: Path, kind: str) -> dict[str, float]:
    """Seconds that each step of a job took."""
    command = shlex.join(patient(kind, 600.0))
    manager = make_manager(make_settings(home, write_dispatcher(home / "check.sh", run=f"exec {command}")))
    began = time.perf_counter()
    manager.describe("stream")
    described = time.perf_counter()
    report = manager.start(["stream"])
    while not any(b"ready" in path.read_bytes() for path in home.glob("state/runs/.open/*/files/output.log")):
        time.sleep(0.001)
    started = time.perf_counter()
    manager.cancel(report.job_id)
    while bearers(report.job_id):
        time.sleep(0.001)
    empty = time.perf_counter()
    done = manager.wait(report.job_id, 60.0)
    ended = time.perf_counter()
    if done is None or done.benchmarks[0].details["process_tree"]["empty"] is not True:
        raise SystemExit(f"{kind}: it is not proven that nothing is left")
    return {
        "describe": described - began,
        "start to a working program": started - described,
        f"cancel to empty tree, {kind}": empty - started,
        "cancel to empty tree": empty - started,
        "cancel to last report": ended - started,
    }


def watch(seconds: float) -> SamplerReport:
    """The sampler's account of itself beside programs that keep every processor busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in os.sched_getaffinity(0)]
    try:
        probe = HardwareProbe(Machine.here(), Settings(devices=()))
        probe.open(Sensitivity.SPEED, Switches())
        probe.sample()
        time.sleep(seconds)
        sampler = probe.close().sampler
    finally:
        for program in busy:
            program.kill()
            program.wait()
    assert sampler is not None
    return sampler


def main() -> int:
    """Print the table; 1 when a limit is not held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100, help="jobs")
    parser.add_argument("--watch", type=float, default=30.0, help="seconds under the sampler")
    options = parser.parse_args()
    steps: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.runs):
            home = Path(folder) / str(number)
            home.mkdir()
            for name, seconds in one_job(home, KINDS[number % len(KINDS)]).items():
                steps.setdefault(name, []).append(seconds)
    print(f"{'step':34} {'jobs':>5} {'median':>9} {'p99':>9} {'max':>9}")
    for name, values in steps.items():
        print(f"{name:34} {len(values):5} {statistics.median(values):8.3f}s {percentile(values):8.3f}s {max(values):8.3f}s")
    sampler = watch(options.watch)
    print(f"sampler: {sampler.samples} looks, {sampler.cpu_share:.3%} of the allowed processors' time, {sampler.late} late")
    held = percentile(steps["cancel to empty tree"]) < CANCEL_LIMIT_S and sampler.cpu_share < SAMPLER_LIMIT
    print("held" if held else "NOT held", f"(p99 of cancel to empty tree < {CANCEL_LIMIT_S:g} s, sampler < {SAMPLER_LIMIT:.1%})")
    return 0 if held else 1


def percentile(values: list[float]) -> float:
    """The 99th, by nearest rank."""
    return sorted(values)[min(len(values) - 1, int(0.99 * len(values)))]


if __name__ == "__main__":
    sys.exit(main())
