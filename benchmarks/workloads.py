"""The built-in workloads beside the programs they stand for, in interleaved pairs on one machine.

Builds STREAM, HPL 2.3 and HPCG 3.1 from sources given by path, finds xhpl's best block, grid and BLAS kernel at the order
measured, then runs pair after pair (the order within a pair alternates) until there are enough pairs and the 95 % interval of
the median ratio is no wider than +-3 %, or the time is up. The interval is that of the median by order statistics. A target is
met when the interval's upper end reaches it. Sources are never copied; their digests are in the table.

    apt-get install gcc g++ libopenmpi-dev openmpi-bin libopenblas-dev
    python benchmarks/workloads.py --stream-src STREAM/stream.c --hpl-src hpl-2.3/ --hpcg-src hpcg/ --max-minutes 40
"""

import argparse
import hashlib
import itertools
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "GOMP_CPU_AFFINITY")
CPUS = len(os.sched_getaffinity(0))
HALF_WIDTH = 0.03
QUIET_SHARE = 0.05
HPCG_SHARED = "default(none) shared(local_residual, v1v, v2v)"
TRIAL_BLOCKS = (128, 192, 256)
TRIAL_KERNELS = ("", "Haswell", "SkylakeX")
"""Of Debian's OpenBLAS; empty = its own choice."""


class Side(NamedTuple):
    """One way to a figure."""

    name: str
    measure: Callable[[], float]


class Comparison(NamedTuple):
    """Ours against a peer."""

    title: str
    unit: str
    target: float
    ours: Side
    peer: Side
    remark: str


def environment(**changes: str) -> dict[str, str]:
    """Of every program measured: no setting that picks another processor's code or another number of threads."""
    return {**{name: value for name, value in os.environ.items() if name not in UNSET}, **changes}


def run(command: list[str], cwd: Path | None = None, **changes: str) -> str:
    """A program's standard output. Raises CalledProcessError with its errors shown."""
    done = subprocess.run(command, cwd=cwd, env=environment(**changes), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stdout[-2000:] + done.stderr[-2000:])
        done.check_returncode()
    return done.stdout


def digest(source: Path) -> str:
    """SHA-256 of a file, or of all files of a folder with their names, shortened."""
    total = hashlib.sha256()
    files = [source] if source.is_file() else sorted(path for path in source.rglob("*.[ch]*") if path.is_file())
    for path in files:
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:16]


def ours(name: str, *arguments: str) -> dict[str, object]:
    """The result of a built-in workload."""
    output = run([sys.executable, "-m", f"nodeproof.stress.workloads.{name}", "--json", *arguments])
    fields = json.loads(output.rpartition("nodeproof-result ")[2])
    if not fields["passed"]:
        raise SystemExit(f"{name} did not pass its own validation: {fields['failures']}")
    return dict(fields)


def figure(fields: dict[str, object], name: str) -> float:
    """A number of a result."""
    value = fields[name]
    assert isinstance(value, float)
    return value


def stream(source: Path, build: Path, elements: int) -> Iterator[Comparison]:
    """Triad on arrays of the same size, with the stores of the C program and with those that are the default here."""
    binary = build / "stream"
    flags = ["-O3", "-march=native", "-fopenmp"]
    run(["gcc", *flags, f"-DSTREAM_ARRAY_SIZE={elements}", "-DNTIMES=10", "-o", str(binary), str(source)])

    def peer() -> float:
        output = run([str(binary)], OMP_NUM_THREADS=str(CPUS), OMP_PROC_BIND="close", OMP_PLACES="cores")
        found = re.search(r"^Triad:\s+([\d.]+)", output, re.MULTILINE)
        if not found or "Solution Validates" not in output:
            raise SystemExit(output)
        return float(found[1])

    def triad(arguments: tuple[str, ...]) -> float:
        return figure(ours("stream", *arguments), "triad_mb_s")

    remark = f"stream.c {digest(source)}, gcc {' '.join(flags)}, {elements} elements, NTIMES 10"
    for stores in ("regular", "streaming"):
        arguments = ("--elements", str(elements), "--ntimes", "10", "--stores", stores)
        side = Side("built in", partial(triad, arguments))
        yield Comparison(f"STREAM Triad, {stores} stores", "MB/s", 0.98, side, Side("C STREAM", peer), remark)


def build_hpl(source: Path, build: Path) -> Path:
    """Make xhpl with Debian's OpenBLAS and Open MPI."""
    folder = build / "hpl"
    folder.mkdir(exist_ok=True)
    files = [str(path) for part in ("src", "testing") for path in sorted((source / part).rglob("*.c"))]
    flags = [
        "-O3",
        "-march=native",
        f"-I{source / 'include'}",
        "-DHPL_CALL_CBLAS",
        "-DAdd_",
        "-DF77_INTEGER=int",
        "-DStringSunStyle",
    ]
    run(["mpicc", *flags, "-o", "xhpl", *files, "-lopenblas", "-lm"], cwd=folder)
    return folder


def run_xhpl(folder: Path, order: int, block: int, grid: tuple[int, int], kernel: str) -> float:
    """GFLOP/s of one system that passed its check."""
    problem = ["title", "title", "HPL.out", "6", "1", str(order), "1", str(block), "0", "1", str(grid[0]), str(grid[1]), "16.0"]
    algorithm = ["1", "2", "1", "4", "1", "2", "1", "1", "1", "0", "1", "1", "2", "64", "0", "0", "1", "8"]
    (folder / "HPL.dat").write_text("\n".join(problem + algorithm) + "\n", encoding="ascii")
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "core", "-np", str(grid[0] * grid[1]), "./xhpl"]
    changes = {"OPENBLAS_NUM_THREADS": "1"} | ({"OPENBLAS_CORETYPE": kernel} if kernel else {})
    output = run(mpirun, cwd=folder, **changes)
    row = re.search(r"^W\w+\s+\d+\s+\d+\s+\d+\s+\d+\s+[\d.]+\s+(\S+)", output, re.MULTILINE)
    if not row or "PASSED" not in output:
        raise SystemExit(output)
    return float(row[1])


def hpl(source: Path, build: Path, order: int) -> Iterator[Comparison]:
    """The same order, against the best that xhpl reached in a trial of blocks, grids and kernels."""
    folder = build_hpl(source, build)
    grids = [(rows, CPUS // rows) for rows in range(1, CPUS + 1) if CPUS % rows == 0]
    trials = {
        (block, grid, kernel): max(run_xhpl(folder, order, block, grid, kernel) for _ in range(2))
        for block, grid, kernel in itertools.product(TRIAL_BLOCKS, grids, TRIAL_KERNELS)
    }
    block, grid, kernel = max(trials, key=lambda key: trials[key])
    remark = (
        f"HPL 2.3 {digest(source)}, mpicc -O3 -march=native, Debian OpenBLAS and Open MPI, N={order}, best of "
        f"{len(trials)} trials: NB={block}, {grid[0]}x{grid[1]}, kernel {kernel or 'own choice'}"
    )
    side = Side("built in", lambda: figure(ours("hpl", "--order", str(order), "--tests", "1"), "gflops"))
    yield Comparison("HPL", "GFLOP/s", 1.0, side, Side("xhpl", lambda: run_xhpl(folder, order, block, grid, kernel)), remark)


def hpcg(source: Path, build: Path, points: int, seconds: int) -> Iterator[Comparison]:
    """The same local grid and rated time; the rating as each program prints it."""
    folder = build / "hpcg"
    folder.mkdir(exist_ok=True)
    flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-DHPCG_NO_MPI"]
    files = [mended(path, folder) for path in sorted((source / "src").glob("*.cpp"))]
    run(["g++", *flags, f"-I{source / 'src'}", "-o", "xhpcg", *map(str, files)], cwd=folder)
    size = [f"--n{axis}={points}" for axis in "xyz"]

    def peer() -> float:
        for old in folder.glob("*.txt"):
            old.unlink()
        run(
            ["./xhpcg", *size, f"--rt={seconds}"],
            cwd=folder,
            OMP_NUM_THREADS=str(CPUS),
            OMP_PROC_BIND="close",
            OMP_PLACES="cores",
        )
        (report,) = folder.glob("HPCG-Benchmark*.txt")
        found = re.search(r"VALID with a GFLOP/s rating of=(\S+)", report.read_text(encoding="ascii"))
        if not found:
            raise SystemExit(report.read_text(encoding="ascii"))
        return float(found[1])

    remark = f"HPCG 3.1 {digest(source)}, g++ {' '.join(flags)}, {points}^3, {CPUS} threads, rated {seconds} s"
    side = Side("built in", lambda: figure(ours("hpcg", *size, "--seconds", str(seconds)), "gflops"))
    yield Comparison("HPCG", "GFLOP/s", 1.0, side, Side("reference", peer), remark)


def mended(file: Path, build: Path) -> Path:
    """``file``; a copy of it where HPCG 3.1 shares too few variables among threads for compilers since OpenMP 4."""
    text = file.read_text(encoding="utf-8", errors="replace")
    if HPCG_SHARED not in text:
        return file
    copy = build / file.name
    copy.write_text(text.replace(HPCG_SHARED, HPCG_SHARED[:-1] + ", n)"), encoding="utf-8")
    return copy


def median_interval(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median by order statistics; the whole range where there are too few values."""
    ordered, count = sorted(values), len(values)
    tail, below = 0.0, 0
    while True:
        tail += math.comb(count, below) / 2.0**count
        if tail > 0.025 or below >= count // 2:
            break
        below += 1
    below = max(below, 1)
    return ordered[below - 1], ordered[count - below]


def wait_for_quiet(seconds: float) -> None:
    """Wait until other programs leave the CPUs alone for a second, at most so long: a pair taken beside others compares those."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = cpu_ticks()
        time.sleep(1.0)
        busy, idle = (now - then for now, then in zip(cpu_ticks(), before, strict=True))
        if busy < QUIET_SHARE * (busy + idle):
            return


def cpu_ticks() -> tuple[int, int]:
    """Busy and idle time of all CPUs since boot."""
    fields = [int(field) for field in Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]
    return sum(fields) - idle, idle


def compare(comparison: Comparison, least: int, minutes: float, quiet_s: float) -> tuple[str, bool]:
    """Run the pairs; the rows of the table and whether the target is met."""
    ours_figures, peer_figures = list[float](), list[float]()
    comparison.ours.measure()
    comparison.peer.measure()
    deadline = time.monotonic() + 60.0 * minutes
    while True:
        wait_for_quiet(quiet_s)
        for side, figures in ((comparison.ours, ours_figures), (comparison.peer, peer_figures))[
            :: -1 if len(ours_figures) % 2 else 1
        ]:
            figures.append(side.measure())
        ratios = [one / other for one, other in zip(ours_figures, peer_figures, strict=True)]
        middle, (low, high) = statistics.median(ratios), median_interval(ratios)
        last = f"{ours_figures[-1]:.1f} / {peer_figures[-1]:.1f}"
        print(f"{comparison.title}: pair {len(ratios)}: {last}, median ratio {middle:.3f}", file=sys.stderr)
        narrow = high - low <= 2 * HALF_WIDTH * middle
        if len(ratios) >= least and (narrow or time.monotonic() > deadline):
            break
    met = high >= comparison.target
    verdict = ("met" if met else "not met") + ("" if narrow else "; interval wider than +-3 %")
    peer = f"{comparison.peer.name} {statistics.median(peer_figures):.1f}"
    ratio = f"{middle:.3f} ({low:.3f} to {high:.3f})"
    cells = [comparison.title, f"{statistics.median(ours_figures):.1f}", peer, comparison.unit, str(len(ratios)), ratio]
    row = f"| {' | '.join([*cells, f'{comparison.target:.2f}', verdict, comparison.remark])} |"
    return row, met


def arguments() -> argparse.Namespace:
    """What is measured, against which sources."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stream-src", type=Path, help="stream.c of STREAM")
    parser.add_argument("--hpl-src", type=Path, help="folder of HPL 2.3")
    parser.add_argument("--hpcg-src", type=Path, help="folder of HPCG 3.1")
    parser.add_argument("--min-pairs", type=int, default=15)
    parser.add_argument("--max-minutes", type=float, default=40.0, help="for all comparisons, beyond the least pairs")
    parser.add_argument(
        "--quiet-wait", type=float, default=60.0, help="wait at most so long before each pair for a quiet machine"
    )
    parser.add_argument("--elements", type=int, default=20_000_256, help="of a STREAM array; a multiple of 512")
    parser.add_argument("--order", type=int, default=8000, help="N of HPL")
    parser.add_argument("--points", type=int, default=64, help="of HPCG's grid along each axis")
    parser.add_argument("--rated-seconds", type=int, default=5, help="of HPCG")
    return parser.parse_args()


def main() -> int:
    """Print the table; 1 when a target is not met."""
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        build = Path(folder)
        comparisons: list[Comparison] = []
        if options.stream_src:
            comparisons += stream(options.stream_src.resolve(), build, options.elements)
        if options.hpl_src:
            comparisons += hpl(options.hpl_src.resolve(), build, options.order)
        if options.hpcg_src:
            comparisons += hpcg(options.hpcg_src.resolve(), build, options.points, options.rated_seconds)
        if not comparisons:
            raise SystemExit("name at least one of --stream-src, --hpl-src, --hpcg-src")
        rows = [
            compare(comparison, options.min_pairs, options.max_minutes / len(comparisons), options.quiet_wait)
            for comparison in comparisons
        ]
    versions = {name: __import__(name).__version__ for name in ("numpy", "scipy", "numba")}
    libraries = ", ".join(f"{name} {version}" for name, version in versions.items())
    print(f"{CPUS} CPUs; {libraries}; {run(['gcc', '--version']).splitlines()[0]}")
    print("| what | built in | peer | unit | pairs | median ratio (95 %) | target | | how |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row, _ in rows:
        print(row)
    return 0 if all(met for _, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
