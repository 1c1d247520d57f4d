"""A state directory of one year: 100,000 runs and 30 GB of samples. Opening, listing, storing one more, and pruning.

    python benchmarks/year.py                      # makes it below a temporary folder, measures, removes it
    python benchmarks/year.py --runs 10000

The runs are real directories with records and manifests; the samples are sparse files, which have their size and take no room.
Times are of processes of their own, started anew for each figure, and of the wall; CPU time stands beside it.
"""

import argparse
import datetime as dt
import hashlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

import msgspec  # noqa: E402 - from a checkout, installed or not

from nodeproof.runs.index import RunIndex  # noqa: E402
from nodeproof.runs.manifest import FileEntry  # noqa: E402
from nodeproof.runs.open_run import encode_record  # noqa: E402
from nodeproof.runs.run_directory import files_manifest, index_row  # noqa: E402
from support.stored_runs import run_record  # noqa: E402

LIMIT_S = 1.0
DAYS = 365
STREAMS = ("chassis", "cpu", "disk", "gpu", "memory", "missing", "network", "system")
SAMPLE_BYTES = 30 << 30
PART_BYTES = 2_000_000
BENCHMARKS = ("stream", "hpl", "cpu_sdc", "memory_pattern")

ACTIONS = {
    "open (recover, reconcile)": "RunStore(home).recover()",
    "list the newest 20": "assert len(RunStore(home).history(limit=20)) == 20",
    "list the newest 20 of one benchmark": "assert len(RunStore(home).history('hpl', 20)) == 20",
    "list all": "RunStore(home).history(limit=None)",
    "find one run": "RunStore(home).load(RunStore(home).history(limit=1)[0].run_id)",
    "store one more, and prune": "stored_run(home, at=time.time())",
    "prune 100 in the background": "RunStore(home, StoreLimits(max_runs=1000)).prune(100)",
}


SETTING = (
    "import sys, time; home = sys.argv[1];"
    "from nodeproof.runs.store import RunStore, StoreLimits; from support.stored_runs import stored_run;"
)
DATA = (
    "import sys, time; from nodeproof.clock import Instant; from nodeproof.sinks.base import Trouble;"
    "from nodeproof.sinks.jsonl_files import DataFiles, Limits;"
    "files = DataFiles(sys.argv[1], Limits(), Trouble('data')); now = Instant(time.time(), 1e6);"
)


def make_runs(home: Path, count: int) -> None:
    """``count`` runs, as the store leaves them but for waiting for the disk."""
    index = RunIndex(str(home / "runs" / ".index.sqlite3"))
    rows = []
    began = time.time() - DAYS * 86400
    apart = DAYS * 86400 / count
    for number in range(count):
        at = began + number * apart
        benchmark = BENCHMARKS[number % len(BENCHMARKS)]
        record = msgspec.structs.replace(run_record(benchmark, at), run_id=f"run-{int(at * 1e9):019d}")
        folder = home / "runs" / benchmark / record.run_id
        folder.mkdir(parents=True)
        data = encode_record(record)
        (folder / "record.json").write_bytes(data)
        entry = FileEntry(hashlib.sha256(data).hexdigest(), len(data))
        manifest = files_manifest(record, {"record.json": entry})
        raw = msgspec.json.encode(manifest)
        (folder / "manifest.json").write_bytes(raw)
        rows.append(index_row(record, manifest, hashlib.sha256(raw).hexdigest()))
        if len(rows) == 5000 or number == count - 1:
            index.add(rows)
            rows.clear()


def make_samples(folder: Path) -> int:
    """A year of packed sample files, sparse; how many."""
    folder.mkdir(parents=True)
    parts = max(1, SAMPLE_BYTES // (DAYS * len(STREAMS) * PART_BYTES))
    count = 0
    today = dt.datetime.now(dt.UTC).date()
    for day in range(1, DAYS + 1):
        date = today - dt.timedelta(days=day)
        for stream in STREAMS:
            for part in range(1, parts + 1):
                with open(folder / f"{stream}_{date}.{part}.jsonl.gz", "wb") as file:
                    file.truncate(PART_BYTES)
                count += 1
    return count


def timed(code: str, place: Path) -> tuple[float, float]:
    """Seconds of the wall and of the processor that a new process takes for ``code``."""
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, str(place)], env=environment, check=True)
    wall_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print the figures; 1 when opening or listing takes longer than it may."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--keep", action="store_true", help="leave the directory where it is")
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="nodeproof-year-"))
    slow = []
    try:
        began = time.perf_counter()
        make_runs(home, options.runs)
        files = make_samples(home / "data")
        made_s = time.perf_counter() - began
        print(f"{home}: {options.runs} runs, {files} sample files of {SAMPLE_BYTES >> 30} GiB, made in {made_s:.0f} s")
        print(f"{'what':44} {'wall s':>8} {'CPU s':>8}")
        wall_s, cpu_s = timed(SETTING, home)
        print(f"{'a process that does nothing of it':44} {wall_s:8.2f} {cpu_s:8.2f}")
        for what, code in ACTIONS.items():
            wall_s, cpu_s = min(timed(SETTING + code, home) for _ in range(2))
            limited = what.startswith(("open", "list the", "find"))
            print(f"{what:44} {wall_s:8.2f} {cpu_s:8.2f}{'  over 1 s' if limited and wall_s > LIMIT_S else ''}")
            slow += [what] if limited and wall_s > LIMIT_S else []
        wall_s, cpu_s = timed(DATA + "files.look_after(now)", home / "data")
        left = len(os.listdir(home / "data"))
        print(f"{f'samples: one check, {files - left} files removed':44} {wall_s:8.2f} {cpu_s:8.2f}")
    finally:
        if not options.keep:
            shutil.rmtree(home, ignore_errors=True)
    print(f"over {LIMIT_S:g} s: {', '.join(slow) or 'nothing'}")
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
