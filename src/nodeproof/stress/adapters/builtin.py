"""The workloads that come with nodeproof, started as child programs (``nodeproof.stress.workloads``)."""

import importlib.util
import os
import sys
from importlib import metadata

from nodeproof import __version__
from nodeproof.errors import NoData, ParseError
from nodeproof.host.machine import Machine
from nodeproof.model.job import (
    AssetCheck,
    CheckStatus,
    ExecutionProfile,
    MPICheck,
    ProfileParameter,
    ResourceProfile,
)
from nodeproof.model.run import Provenance
from nodeproof.stress import preflight, workloads
from nodeproof.stress.adapters.base import DescribeError, ItemRequest, Launch
from nodeproof.stress.facts import busy_cpus, free_bytes, look_at_box
from nodeproof.stress.judging import judge_output
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.parsers.stream import CACHE_FACTOR
from nodeproof.stress.preflight import Finding
from nodeproof.stress.profile import sha256_of_file
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.sizing import BoxFacts, Plan

__all__ = ["NO_MPI", "BuiltinAdapter"]

_LIBRARIES = ("numpy", "scipy", "numba")
_PACKAGE = "nodeproof.stress.workloads"
_EXTRA = "pip install 'nodeproof[stress]'"
_STREAM_LEAST_ELEMENTS = 10_000_000
_STREAM_PIECE = 512
_OUTPUT_BYTES = 128 * 1024 * 1024
_WATCH = WatchPolicy(heartbeats=True, silent_after_s=30.0, hung_after_s=120.0)

NO_MPI = MPICheck(required=False, implementation="none", executable_abi="none", status=CheckStatus.PASS, message="no MPI is used")


class BuiltinAdapter:
    """Needs nothing but the extra ``nodeproof[stress]``."""

    kind = "builtin"

    def __init__(self, machine: Machine, state_root: str = "") -> None:
        self._machine = machine
        self._state_root = state_root

    def stamp(self, request: ItemRequest) -> object:
        """The sources of the workloads do not change while we run."""
        return request

    def describe(self, request: ItemRequest) -> ExecutionProfile:
        """Sizes for this box, with all checks. Raises DescribeError."""
        try:
            facts = look_at_box(self._machine)
        except (NoData, ParseError) as error:
            raise DescribeError(f"the memory of this box cannot be read: {error}") from None
        assets = [_program(request.benchmark), *_libraries(), *_sources(request.benchmark)]
        findings = [*_asset_findings(assets), *self._findings(request, facts)]
        return ExecutionProfile(
            protocol_version=1,
            benchmark=request.benchmark,
            executor=self.kind,
            parameters=_parameters(request, facts),
            resources=ResourceProfile(
                mpi_processes=0,
                threads_per_process=facts.allowed_cpus,
                total_workers=facts.allowed_cpus,
                runtime_seconds=request.seconds,
                problem_size=_problem_size(request, facts),
            ),
            assets=assets,
            mpi=NO_MPI,
            preflight=preflight.roll_up(findings),
        )

    def launch(self, request: ItemRequest) -> Launch:
        """The child program, with the sizes that :meth:`describe` told. Raises LaunchError."""
        argv = [sys.executable, "-P", "-m", f"{_PACKAGE}.{request.benchmark}", "--plan", str(request.plan)]
        if request.seconds:
            argv += ["--seconds", str(request.seconds)]
        llc = None
        try:
            facts = look_at_box(self._machine)
        except (NoData, ParseError):
            facts = None
        if facts is not None:
            llc = facts.llc_bytes
            if request.benchmark == "stream":
                argv += ["--elements", str(_stream_elements(facts))]
        return Launch(
            argv=tuple(argv),
            cwd="",
            environment={"PYTHONPATH": _source_root(), "PYTHONDONTWRITEBYTECODE": "1"},
            watch=_WATCH,
            provenance=_provenance(request.benchmark),
            llc_bytes=llc,
        )

    def judge(self, request: ItemRequest, launch: Launch, output: bytes) -> Judgement:
        """By the official lines that the workload prints."""
        return judge_output(request.benchmark, output, llc_bytes=launch.llc_bytes)

    def _findings(self, request: ItemRequest, facts: BoxFacts) -> list[Finding]:
        findings = []
        if request.benchmark == "stream":
            findings += preflight.check_stream_array(8 * _stream_elements(facts), facts)
        load = busy_cpus(self._machine)
        if load is not None:
            findings.append(preflight.check_load(load, facts))
        free = free_bytes(self._state_root) if self._state_root else None
        if free is not None:
            findings.append(preflight.check_disk(free, _OUTPUT_BYTES, self._state_root))
        return findings


def _parameters(request: ItemRequest, facts: BoxFacts) -> list[ProfileParameter]:
    rows = [
        ProfileParameter("implementation", "Implementation", "nodeproof built-in"),
        ProfileParameter("nodeproof_version", "Version", __version__),
        ProfileParameter("plan", "Plan", str(request.plan)),
        ProfileParameter("threads", "Threads", str(facts.allowed_cpus)),
        ProfileParameter("numa_policy", "Memory placement", "first_touch"),
    ]
    if request.benchmark == "stream":
        rows.append(ProfileParameter("array_elements", "Elements an array", str(_stream_elements(facts))))
    if request.seconds:
        rows.append(ProfileParameter("target_runtime", "Target time", str(request.seconds), "s"))
    return rows


def _problem_size(request: ItemRequest, facts: BoxFacts) -> str:
    if request.benchmark == "stream":
        return str(_stream_elements(facts))
    return "" if request.plan is Plan.SOAK else f"by plan {request.plan}"


def _stream_elements(facts: BoxFacts) -> int:
    """Four times the last-level caches, at least 10 million, in whole pages."""
    wanted = max(_STREAM_LEAST_ELEMENTS, CACHE_FACTOR * (facts.llc_bytes or 0) // 8)
    return -(-wanted // _STREAM_PIECE) * _STREAM_PIECE


def _program(benchmark: str) -> AssetCheck:
    if importlib.util.find_spec(f"{_PACKAGE}.{benchmark}") is None:
        message = "this version of nodeproof has no such workload built in"
        return AssetCheck(
            "workload", f"{_PACKAGE}.{benchmark}", "module", required=True, status=CheckStatus.FAIL, message=message
        )
    return AssetCheck(
        "interpreter",
        sys.executable,
        "executable",
        required=True,
        status=CheckStatus.PASS,
        message=f"Python {sys.version.split()[0]}",
        sha256=sha256_of_file(sys.executable),
    )


def _libraries() -> list[AssetCheck]:
    found = []
    for name in _LIBRARIES:
        if importlib.util.find_spec(name) is None:
            status, message = CheckStatus.FAIL, f"not installed ({_EXTRA})"
        else:
            status, message = CheckStatus.PASS, metadata.version(name)
        found.append(AssetCheck(name, name, "library", required=True, status=status, message=message))
    return found


def _sources(benchmark: str) -> list[AssetCheck]:
    folder = os.path.dirname(os.path.abspath(workloads.__file__))
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    found = []
    for name in names:
        stem = name.removesuffix(".py")
        if stem == benchmark or stem.startswith(f"{benchmark}_") or stem in _SHARED.get(benchmark, ()):
            path = os.path.join(folder, name)
            found.append(
                AssetCheck(
                    f"source_{stem}",
                    path,
                    "file",
                    required=True,
                    status=CheckStatus.PASS,
                    message="ok",
                    sha256=sha256_of_file(path),
                )
            )
    return found


_SHARED = {
    "stream": ("triad", "native", "team"),
    "hpl": ("lu", "native", "team"),
    "hpcg": ("native", "team"),
    "cpu_sdc": ("sdc_answers", "sdc_kernels", "native", "team"),
    "memory_pattern": ("pattern_kernels", "native", "team"),
}


def _asset_findings(assets: list[AssetCheck]) -> list[Finding]:
    bad = [asset for asset in assets if asset.status is CheckStatus.FAIL]
    return [
        Finding(check="asset", status=CheckStatus.FAIL, message=f"{asset.name} ({asset.path}): {asset.message}", fix=_EXTRA)
        for asset in bad
    ]


def _provenance(benchmark: str) -> tuple[Provenance, ...]:
    entries = [Provenance("python", sys.version.split()[0], sha256_of_file(sys.executable), sys.executable)]
    entries += [Provenance(asset.name, sha256=asset.sha256, path=asset.path) for asset in _sources(benchmark)]
    entries += [Provenance(asset.name, asset.message) for asset in _libraries() if asset.status is CheckStatus.PASS]
    return tuple(entries)


def _source_root() -> str:
    folder = os.path.abspath(workloads.__file__)
    for _ in range(4):
        folder = os.path.dirname(folder)
    return folder
