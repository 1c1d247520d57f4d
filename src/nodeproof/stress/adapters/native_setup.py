"""Which native program runs with which sizes: what was configured, completed by what suits this box."""

import os
import shlex
from typing import NamedTuple

from nodeproof.errors import ParseError
from nodeproof.host.machine import Machine
from nodeproof.stress import sizing
from nodeproof.stress.adapters.base import ItemRequest
from nodeproof.stress.expected import fastest_rate
from nodeproof.stress.parsers import hpl_dat
from nodeproof.stress.settings import ItemSettings, NativePrograms, StressSettings
from nodeproof.stress.sizing import BoxFacts

__all__ = ["PROGRAMS", "NativeSetup", "find_setup"]

PROGRAMS = {"stream": ("stream_omp", "stream"), "hpl": ("xhpl",), "hpcg": ("xhpcg",)}
"""Names by which a program is looked for."""
_LAUNCHERS = ("mpirun", "mpiexec")


class NativeSetup(NamedTuple):
    """Everything that a native run needs; what was not found is empty."""

    benchmark: str
    wanted: str
    """Name of the program, for messages."""
    executable: str
    launcher: str
    numactl: str
    workdir: str
    """The administrator's; empty = one is made for the run."""
    input_file: str
    proposed_dat: str
    """``HPL.dat`` or ``hpcg.dat`` written for the run where there is none."""
    library_dir: str
    processes: int
    threads: int
    grid: tuple[int, int, int]
    runtime_s: int
    problem_size: str
    environment: dict[str, str]
    argv: tuple[str, ...]
    shown: tuple[tuple[str, str, str, str], ...]
    """Key, label, value and unit of what else people want to see."""

    @property
    def needs_mpi(self) -> bool:
        """Whether it runs under a launcher."""
        return self.benchmark in {"hpl", "hpcg"}


def find_setup(settings: StressSettings, request: ItemRequest, machine: Machine, facts: BoxFacts | None = None) -> NativeSetup:
    """Look for everything. Changes nothing; never raises."""
    item = settings.benchmarks.get(request.benchmark, ItemSettings(enabled=False))
    programs = item.native
    names = PROGRAMS.get(request.benchmark, (request.benchmark,))
    executable = programs.executable or _found(machine, names)
    match request.benchmark:
        case "hpl":
            return _hpl(programs, request, machine, facts, executable)
        case "hpcg":
            return _hpcg(programs, request, machine, facts, executable)
        case _:
            return _stream(programs, request, facts, executable, names[0])


def _stream(programs: NativePrograms, request: ItemRequest, facts: BoxFacts | None, executable: str, wanted: str) -> NativeSetup:
    threads = programs.threads or (facts.allowed_cpus if facts is not None else 1)
    numactl = programs.numactl
    prefix = (numactl, "--interleave=all") if numactl else ()
    return _setup(
        request.benchmark,
        wanted,
        programs,
        executable=executable,
        numactl=numactl,
        threads=threads,
        environment={"OMP_NUM_THREADS": str(threads)},
        argv=(*prefix, executable, *programs.arguments),
        shown=_told(programs),
    )


def _hpl(
    programs: NativePrograms, request: ItemRequest, machine: Machine, facts: BoxFacts | None, executable: str
) -> NativeSetup:
    launcher = programs.launcher or _found(machine, _LAUNCHERS)
    workdir = programs.workdir
    input_file = os.path.join(workdir, "HPL.dat") if workdir else ""
    processes, threads, dat, size = programs.processes, programs.threads, "", "unknown"
    shown: tuple[tuple[str, str, str, str], ...] = ()
    if facts is not None:
        processes = processes or facts.allowed_cpus
        threads = threads or max(1, facts.allowed_cpus // processes)
        if not workdir:
            proposal = sizing.size_hpl(facts, request.plan, processes=processes, fastest_flops=fastest_rate(machine, facts))
            dat = sizing.hpl_dat(proposal)
        n, nb, grid = _dat_facts(dat, input_file)
        size = n
        shown = (("n", "N", n, ""), ("nb", "NB", nb, ""), ("process_grid", "Process grid", grid, ""))
    return _setup(
        "hpl",
        "xhpl",
        programs,
        executable=executable,
        launcher=launcher,
        workdir=workdir,
        input_file=input_file,
        proposed_dat=dat,
        processes=processes,
        threads=threads,
        problem_size=size,
        environment={"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)},
        argv=(*_launched(launcher, processes, programs), executable, *programs.arguments),
        shown=(*shown, *_told(programs)),
    )


def _hpcg(
    programs: NativePrograms, request: ItemRequest, machine: Machine, facts: BoxFacts | None, executable: str
) -> NativeSetup:
    launcher = programs.launcher or _found(machine, _LAUNCHERS)
    processes, threads, grid, seconds, dat = programs.processes, programs.threads, programs.grid, programs.runtime_s, ""
    if facts is not None:
        processes = processes or facts.allowed_cpus
        threads = threads or max(1, facts.allowed_cpus // processes)
        proposal = sizing.size_hpcg(facts, request.plan, processes=processes)
        grid = (grid[0] or proposal.nx, grid[1] or proposal.ny, grid[2] or proposal.nz)
        seconds = request.seconds or seconds or proposal.runtime_seconds
        dat = sizing.hpcg_dat(proposal)
    edges = "x".join(map(str, grid))
    sizes = tuple(f"--n{axis}={edge}" for axis, edge in zip("xyz", grid, strict=True))
    return _setup(
        "hpcg",
        "xhpcg",
        programs,
        executable=executable,
        launcher=launcher,
        workdir=programs.workdir,
        proposed_dat=dat,
        processes=processes,
        threads=threads,
        grid=grid,
        runtime_s=seconds,
        problem_size=edges,
        environment={"OMP_NUM_THREADS": str(threads), "OMP_DYNAMIC": "FALSE"},
        argv=(*_launched(launcher, processes, programs), executable, *sizes, f"--rt={seconds}", *programs.arguments),
        shown=(
            ("local_grid", "Local grid", edges, ""),
            ("target_runtime", "Target time", str(seconds), "s"),
            *_told(programs),
        ),
    )


def _launched(launcher: str, processes: int, programs: NativePrograms) -> tuple[str, ...]:
    return (launcher, "-np", str(processes), *programs.launcher_arguments)


def _told(programs: NativePrograms) -> tuple[tuple[str, str, str, str], ...]:
    """What the administrator adds to a command line: it is part of what was run."""
    rows = (
        ("launcher_arguments", "Arguments of the launcher", programs.launcher_arguments),
        ("arguments", "Arguments of the program", programs.arguments),
    )
    return tuple((key, label, shlex.join(words), "") for key, label, words in rows if words)


def _setup(benchmark: str, wanted: str, programs: NativePrograms, **told: object) -> NativeSetup:
    plain: dict[str, object] = {
        "benchmark": benchmark,
        "wanted": wanted,
        "executable": "",
        "launcher": "",
        "numactl": "",
        "workdir": "",
        "input_file": "",
        "proposed_dat": "",
        "library_dir": programs.library_dir,
        "processes": 1,
        "threads": 1,
        "grid": (0, 0, 0),
        "runtime_s": 0,
        "problem_size": "",
        "environment": {},
        "argv": (),
        "shown": (),
    }
    return NativeSetup(**{**plain, **told})  # type: ignore[arg-type]  # the keys are the fields


def _dat_facts(proposed: str, input_file: str) -> tuple[str, str, str]:
    """N, NB and grid of what HPL will read; unknown where it cannot be read."""
    try:
        if proposed:
            dat = hpl_dat.parse(proposed.encode())
        else:
            with open(input_file, "rb") as file:
                dat = hpl_dat.parse(file.read(65536), input_file)
    except (OSError, ParseError):
        return "unknown", "unknown", "unknown"
    p, q = dat.grids[0]
    return str(max(dat.sizes)), str(dat.blocks[0]), f"{p}x{q}"


def _found(machine: Machine, names: tuple[str, ...]) -> str:
    return next((path for name in names if (path := machine.commands.find(name))), "")
