"""The workloads that come with nodeproof, started as child programs (``nodeproof.stress.workloads``)."""

import importlib.util
import os
import sys
from importlib import metadata

from nodeproof import __version__
from nodeproof.collectors.services.pci_accelerators import PciAccelerators
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
from nodeproof.stress.expected import fastest_rate
from nodeproof.stress.facts import free_bytes, load_average, look_at_box
from nodeproof.stress.judging import judge_output
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.parsers.stream import CACHE_FACTOR
from nodeproof.stress.preflight import Finding
from nodeproof.stress.profile import SIZE_NOW, sha256_of_file
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.sizing import BoxFacts, HplSize, Plan, size_hpl

__all__ = ["NO_MPI", "OUTPUT_BYTES", "BuiltinAdapter"]

_LIBRARIES = ("numpy", "scipy", "numba")
_GPU_LIBRARIES = ("torch",)
_PACKAGE = "nodeproof.stress.workloads"
_EXTRA = "pip install 'nodeproof[stress]'"
_GPU_EXTRA = "pip install 'nodeproof[gpu]', or torch as the maker of the GPU offers it"
_STREAM_LEAST_ELEMENTS = 10_000_000
_STREAM_PIECE = 512
OUTPUT_BYTES = 128 * 1024 * 1024
"""Room for outputs and records that a job should find."""
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
        assets = [_program(request.benchmark), *_libraries(request.benchmark), *_sources(request.benchmark)]
        findings = [*_asset_findings(assets, _extra(request.benchmark)), *self._findings(request, facts)]
        return ExecutionProfile(
            protocol_version=1,
            benchmark=request.benchmark,
            executor=self.kind,
            parameters=self._parameters(request, facts),
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
        if request.benchmark == "hpl" and request.plan is Plan.STANDARD:
            size = self._hpl_size(request, facts)
            findings.append(preflight.check_hpl_memory(size.n, facts))
            if request.limit_s:
                findings.append(preflight.check_duration(size.least_seconds, request.limit_s))
        if request.benchmark == "gpu_burn":
            findings += self._gpu_findings()
        load = load_average(self._machine)
        if load is not None:
            findings.append(preflight.check_load(load, facts))
        free = free_bytes(self._state_root) if self._state_root else None
        if free is not None:
            findings.append(preflight.check_disk(free, OUTPUT_BYTES, self._state_root))
        return findings

    def _hpl_size(self, request: ItemRequest, facts: BoxFacts) -> HplSize:
        return size_hpl(facts, request.plan, fastest_flops=fastest_rate(self._machine, facts))

    def _parameters(self, request: ItemRequest, facts: BoxFacts) -> list[ProfileParameter]:
        rows = _parameters(request, facts)
        if request.benchmark == "hpl" and request.plan is Plan.STANDARD:
            rows.append(ProfileParameter(SIZE_NOW, "N in the memory free now", str(self._hpl_size(request, facts).n)))
        return rows

    def _gpu_findings(self) -> list[Finding]:
        """Whether there is a GPU at all: the bus is looked at, no device is touched."""
        try:
            cards = [card for component in ("gpu", "npu") for card in self._machine.shared(PciAccelerators).cards(component)]
        except NoData as absence:
            message = f"the PCI bus cannot be looked through: {absence.reason}"
            return [Finding(check="gpu", status=CheckStatus.WARN, message=message, fix="let this user read /sys/bus/pci")]
        if not cards:
            message = "there is no accelerator on the PCI bus"
            return [Finding(check="gpu", status=CheckStatus.UNSUPPORTED, message=message, fix="run it on a machine with GPUs")]
        return [Finding(check="gpu", status=CheckStatus.PASS, message=f"{len(cards)} accelerators on the PCI bus", fix="")]


def _parameters(request: ItemRequest, facts: BoxFacts) -> list[ProfileParameter]:
    rows = [
        ProfileParameter("implementation", "Implementation", "nodeproof built-in"),
        ProfileParameter("nodeproof_version", "Version", __version__),
        ProfileParameter("plan", "Plan", str(request.plan)),
    ]
    if request.benchmark != "gpu_burn":  # which has a process for each device
        rows.append(ProfileParameter("threads", "Threads", str(facts.allowed_cpus)))
        rows.append(ProfileParameter("numa_policy", "Memory placement", "first_touch"))
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


def _extra(benchmark: str) -> str:
    return _GPU_EXTRA if benchmark == "gpu_burn" else _EXTRA


def _libraries(benchmark: str) -> list[AssetCheck]:
    found = []
    for name in _GPU_LIBRARIES if benchmark == "gpu_burn" else _LIBRARIES:
        if importlib.util.find_spec(name) is None:
            status, message = CheckStatus.FAIL, "not installed"
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
    "gpu_burn": ("burn_device", "burn_plan", "burn_torch", "burn_watch", "burn_worker"),
    "memory_pattern": ("pattern_kernels", "native", "team"),
}


def _asset_findings(assets: list[AssetCheck], fix: str) -> list[Finding]:
    bad = [asset for asset in assets if asset.status is CheckStatus.FAIL]
    return [
        Finding(check="asset", status=CheckStatus.FAIL, message=f"{asset.name} ({asset.path}): {asset.message}", fix=fix)
        for asset in bad
    ]


def _provenance(benchmark: str) -> tuple[Provenance, ...]:
    entries = [Provenance("python", sys.version.split()[0], sha256_of_file(sys.executable), sys.executable)]
    entries += [Provenance(asset.name, sha256=asset.sha256, path=asset.path) for asset in _sources(benchmark)]
    entries += [Provenance(asset.name, asset.message) for asset in _libraries(benchmark) if asset.status is CheckStatus.PASS]
    return tuple(entries)


def _source_root() -> str:
    folder = os.path.abspath(workloads.__file__)
    for _ in range(4):
        folder = os.path.dirname(folder)
    return folder
