"""Programs that the administrator built: ``stream``, ``xhpl`` and ``xhpcg``, the latter two under ``mpirun -np``.

They are found on the search path, or named in the configuration or by the variables of the reference's dispatcher (stress.md
1.3). Nothing is chosen for the administrator but sizes: without an ``HPL.dat`` of their own, one for this box is written into the
directory of the run.
"""

import contextlib
import os
from collections.abc import Mapping

from nodeproof.errors import NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.job import AssetCheck, CheckStatus, ExecutionProfile, MPICheck, ProfileParameter, ResourceProfile
from nodeproof.model.run import Provenance
from nodeproof.stress import preflight
from nodeproof.stress.adapters.base import DescribeError, ItemRequest, Launch, LaunchError
from nodeproof.stress.adapters.builtin import NO_MPI, OUTPUT_BYTES
from nodeproof.stress.adapters.mpi import check_mpi
from nodeproof.stress.adapters.native_setup import NativeSetup, find_setup
from nodeproof.stress.facts import free_bytes, load_average, look_at_box
from nodeproof.stress.judging import judge_hpcg_files, judge_output, result_files
from nodeproof.stress.parsers import hpl_dat
from nodeproof.stress.parsers.hpl_dat import HplDat
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.preflight import Finding
from nodeproof.stress.profile import sha256_of_file
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.settings import StressSettings
from nodeproof.stress.sizing import BoxFacts

__all__ = ["NativeAdapter"]

_WATCH = WatchPolicy(silent_after_s=60.0, hung_after_s=180.0)
"""HPL prints nothing until its end unless built to tell its progress: CPU time keeps it from counting as hung."""


class NativeAdapter:
    """Runs what lies on this machine."""

    kind = "native"

    def __init__(self, settings: StressSettings, environ: Mapping[str, str], machine: Machine) -> None:
        self._settings = settings
        self._environ = dict(environ)
        self._machine = machine

    def stamp(self, request: ItemRequest) -> object:
        """Time of change of program and input."""
        stamps = []
        setup = find_setup(self._settings, request, self._machine)
        for path in (setup.executable, setup.launcher, os.path.join(setup.workdir, "HPL.dat") if setup.workdir else ""):
            with contextlib.suppress(OSError):
                facts = os.stat(path)
                stamps.append((path, facts.st_mtime_ns, facts.st_size))
        return tuple(stamps)

    def describe(self, request: ItemRequest) -> ExecutionProfile:
        """Programs, sizes and all checks. Raises DescribeError."""
        try:
            facts = look_at_box(self._machine)
        except (NoData, ParseError) as error:
            raise DescribeError(f"the memory of this box cannot be read: {error}") from None
        setup = find_setup(self._settings, request, self._machine, facts)
        assets = _assets(setup)
        mpi = NO_MPI
        if setup.needs_mpi:
            mpi = self._mpi(setup)
        findings = [*_asset_findings(assets), *_mpi_findings(mpi), *_findings(setup, facts), *self._room()]
        load = load_average(self._machine)
        if load is not None:
            findings.append(preflight.check_load(load, facts))
        return ExecutionProfile(
            protocol_version=1,
            benchmark=request.benchmark,
            executor=self.kind,
            parameters=[*_parameters(setup), *self._backend()],
            resources=ResourceProfile(
                mpi_processes=setup.processes if setup.needs_mpi else 0,
                threads_per_process=setup.threads,
                total_workers=setup.threads * max(1, setup.processes if setup.needs_mpi else 1),
                runtime_seconds=setup.runtime_s,
                problem_size=setup.problem_size,
            ),
            assets=assets,
            mpi=mpi,
            preflight=preflight.roll_up(findings),
        )

    def launch(self, request: ItemRequest) -> Launch:
        """The program with its launcher. Raises LaunchError."""
        try:
            facts = look_at_box(self._machine)
        except (NoData, ParseError) as error:
            raise LaunchError(f"the memory of this box cannot be read: {error}") from None
        setup = find_setup(self._settings, request, self._machine, facts)
        if not setup.executable:
            raise LaunchError(f"no program for {request.benchmark} was found")
        workdir = setup.workdir
        files: dict[str, str] = {}
        if request.benchmark == "hpl" and setup.proposed_dat:
            files["HPL.dat"] = setup.proposed_dat
        if request.benchmark == "hpcg" and not workdir:
            files["hpcg.dat"] = setup.proposed_dat
        environment = {**setup.environment}
        if setup.library_dir:
            former = self._environ.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = setup.library_dir + (f":{former}" if former else "")
        before = {}
        if request.benchmark == "hpcg" and workdir:
            try:
                before = result_files(workdir)
            except OSError as error:
                raise LaunchError(f"{workdir}: {os.strerror(error.errno or 0)}") from None
        return Launch(
            argv=setup.argv,
            cwd=workdir if not files else "",
            environment=environment,
            watch=_WATCH,
            result_dir=workdir,
            before=before,
            provenance=_provenance(setup),
            llc_bytes=facts.llc_bytes,
            files=files,
        )

    def judge(self, request: ItemRequest, launch: Launch, output: bytes) -> Judgement:
        """By the output; HPCG by the file that it leaves."""
        if request.benchmark == "hpcg":
            return judge_hpcg_files(launch.result_dir, launch.before, output)
        return judge_output(request.benchmark, output, llc_bytes=launch.llc_bytes)

    def _backend(self) -> list[ProfileParameter]:
        """Where it runs, for people, as the variable of the reference's dispatcher says it."""
        told = self._environ.get("CPU_EXECUTION_PROFILE", "")
        return [ProfileParameter("execution_backend", "Where it runs", told)] if told else []

    def _room(self) -> list[Finding]:
        free = free_bytes(self._settings.state_root)
        return [preflight.check_disk(free, OUTPUT_BYTES, self._settings.state_root)] if free is not None else []

    def _mpi(self, setup: NativeSetup) -> MPICheck:
        if not setup.launcher or not setup.executable:
            missing = "the launcher (mpirun)" if not setup.launcher else "the program"
            return MPICheck(
                required=True,
                launcher=setup.launcher,
                implementation="unknown",
                executable_abi="unknown",
                status=CheckStatus.FAIL,
                message=f"{missing} was not found",
            )
        return check_mpi(self._machine, setup.launcher, setup.executable, setup.processes)


def _parameters(setup: NativeSetup) -> list[ProfileParameter]:
    rows = [ProfileParameter("executable", "Program", setup.executable or "not found")]
    if setup.needs_mpi:
        rows.append(ProfileParameter("mpi_processes", "MPI processes", str(setup.processes)))
        rows.append(ProfileParameter("threads_per_process", "Threads a process", str(setup.threads)))
    else:
        rows.append(ProfileParameter("threads", "Threads", str(setup.threads)))
        rows.append(ProfileParameter("numa_policy", "Memory placement", "interleave_all" if setup.numactl else "first_touch"))
    rows += [ProfileParameter(key, label, value, unit) for key, label, value, unit in setup.shown]
    return rows


def _assets(setup: NativeSetup) -> list[AssetCheck]:
    assets = [_executable("executable", setup.executable, setup.wanted)]
    if setup.needs_mpi:
        assets.append(_executable("mpi_launcher", setup.launcher, "mpirun"))
    if setup.numactl:
        assets.append(_executable("numa_launcher", setup.numactl, "numactl"))
    if setup.workdir:
        is_there = os.path.isdir(setup.workdir)
        status, message = (CheckStatus.PASS, "ok") if is_there else (CheckStatus.FAIL, "is no directory")
        assets.append(AssetCheck("working_directory", setup.workdir, "directory", required=True, status=status, message=message))
    if setup.input_file:
        assets.append(_file("input_file", setup.input_file))
    if setup.library_dir:
        is_there = os.path.isdir(setup.library_dir)
        status, message = (CheckStatus.PASS, "ok") if is_there else (CheckStatus.FAIL, "is no directory")
        assets.append(
            AssetCheck("library_directory", setup.library_dir, "directory", required=True, status=status, message=message)
        )
    return assets


def _executable(name: str, path: str, wanted: str) -> AssetCheck:
    if not path:
        message = f"no {wanted} was found; install it, or name it by its variable"
        return AssetCheck(name, wanted, "executable", required=True, status=CheckStatus.FAIL, message=message)
    if not (os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK)):
        message = "is no program at an absolute path"
        return AssetCheck(name, path, "executable", required=True, status=CheckStatus.FAIL, message=message)
    return _hashed(name, path, "executable")


def _file(name: str, path: str) -> AssetCheck:
    if not os.path.isfile(path):
        return AssetCheck(name, path, "file", required=True, status=CheckStatus.FAIL, message="is no file")
    return _hashed(name, path, "file")


def _hashed(name: str, path: str, kind: str) -> AssetCheck:
    try:
        digest = sha256_of_file(path)
    except OSError as error:
        text = os.strerror(error.errno or 0)
        return AssetCheck(name, path, kind, required=True, status=CheckStatus.FAIL, message=text)
    return AssetCheck(name, path, kind, required=True, status=CheckStatus.PASS, message="ok", sha256=digest)


def _asset_findings(assets: list[AssetCheck]) -> list[Finding]:
    return [
        Finding(
            check="asset", status=asset.status, message=f"{asset.name} ({asset.path}): {asset.message}", fix="see its message"
        )
        for asset in assets
        if asset.status is CheckStatus.FAIL
    ]


def _mpi_findings(mpi: MPICheck) -> list[Finding]:
    if mpi.status is CheckStatus.PASS:
        return []
    return [Finding(check="mpi", status=mpi.status, message=mpi.message, fix="use launcher and program of one MPI")]


def _findings(setup: NativeSetup, facts: BoxFacts) -> list[Finding]:
    """What the sizes mean on this box."""
    found = [preflight.check_workers(max(1, setup.processes), setup.threads, facts)]
    if setup.benchmark == "hpl":
        dat = _dat(setup)
        if isinstance(dat, str):
            found.append(Finding(check="hpl_input", status=CheckStatus.FAIL, message=dat, fix="nodeproof stress size hpl"))
        elif dat is not None:
            found.append(preflight.check_hpl_input(dat))
            found.append(preflight.check_process_grid(dat.grids, setup.processes))
            found.append(preflight.check_hpl_memory(max(dat.sizes), facts))
    if setup.benchmark == "hpcg":
        found += preflight.check_hpcg_grid(*setup.grid, setup.processes, facts)
    return found


def _dat(setup: NativeSetup) -> HplDat | str | None:
    """The input of HPL; in words what is wrong with it."""
    try:
        if setup.proposed_dat:
            return hpl_dat.parse(setup.proposed_dat.encode())
        with open(setup.input_file, "rb") as file:
            return hpl_dat.parse(file.read(65536), setup.input_file)
    except OSError as error:
        return f"{setup.input_file}: {os.strerror(error.errno or 0)}"
    except ParseError as error:
        return str(error)


def _provenance(setup: NativeSetup) -> tuple[Provenance, ...]:
    found = []
    for name, path in (("executable", setup.executable), ("mpi_launcher", setup.launcher), ("input_file", setup.input_file)):
        with contextlib.suppress(OSError):
            if path:
                found.append(Provenance(name, sha256=sha256_of_file(path), path=path))
    return tuple(found)
