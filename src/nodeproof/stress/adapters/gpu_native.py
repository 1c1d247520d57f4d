"""GPU burn by what the administrator has: ``dcgmi diag`` with its JSON, or the program ``gpu_burn``.

``dcgmi`` is preferred where both are found; the configuration or ``GPU_BURN_EXECUTABLE`` names either.
"""

import contextlib
import os

from nodeproof.host.machine import Machine
from nodeproof.model.job import AssetCheck, CheckStatus, ExecutionProfile, ProfileParameter, ResourceProfile
from nodeproof.model.run import Provenance
from nodeproof.stress import preflight
from nodeproof.stress.adapters.base import ItemRequest, Launch, LaunchError
from nodeproof.stress.adapters.builtin import NO_MPI
from nodeproof.stress.parsers import dcgm_diag, gpu_burn
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.preflight import Finding
from nodeproof.stress.profile import sha256_of_file
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.settings import StressSettings
from nodeproof.stress.sizing import Plan

__all__ = ["GpuNativeAdapter"]

_DCGMI, _BURN = "dcgmi", ("gpu_burn", "gpu-burn")
_LEVELS = {Plan.QUICK: "2", Plan.STANDARD: "3", Plan.SOAK: "4"}
"""Of ``dcgmi diag -r``: 2 takes about two minutes, 3 half an hour, 4 some hours."""
_SECONDS = {Plan.QUICK: 60, Plan.STANDARD: 600, Plan.SOAK: 3600}
_FIX = "install dcgmi (datacenter-gpu-manager) or gpu_burn, or name one by benchmarks.gpu_burn.native.executable"
_WATCH = WatchPolicy(silent_after_s=120.0, hung_after_s=1800.0)
"""dcgmi prints nothing until its end."""


class GpuNativeAdapter:
    """Runs what lies on this machine."""

    kind = "native"

    def __init__(self, settings: StressSettings, machine: Machine) -> None:
        item = settings.benchmarks.get("gpu_burn")
        self._native = item.native if item is not None else None
        self._machine = machine

    def stamp(self, request: ItemRequest) -> object:  # noqa: ARG002 - it is the same program for each plan
        """Time of change of the program."""
        path = self._executable()
        with contextlib.suppress(OSError):
            facts = os.stat(path)
            return (path, facts.st_mtime_ns, facts.st_size)
        return path

    def describe(self, request: ItemRequest) -> ExecutionProfile:
        """The program and how it would be called."""
        path = self._executable()
        asset = _asset(path)
        findings = []
        if asset.status is CheckStatus.FAIL:
            findings.append(Finding(check="asset", status=CheckStatus.FAIL, message=f"{asset.name}: {asset.message}", fix=_FIX))
        rows = [ProfileParameter("implementation", "Implementation", os.path.basename(path) or "none")]
        if path:
            rows.append(ProfileParameter("command", "Command", " ".join(self._argv(path, request))))
        return ExecutionProfile(
            protocol_version=1,
            benchmark=request.benchmark,
            executor=self.kind,
            parameters=rows,
            resources=ResourceProfile(
                mpi_processes=0, threads_per_process=0, total_workers=0, runtime_seconds=request.seconds, problem_size=""
            ),
            assets=[asset],
            mpi=NO_MPI,
            preflight=preflight.roll_up(findings),
        )

    def launch(self, request: ItemRequest) -> Launch:
        """The program. Raises LaunchError."""
        path = self._executable()
        if not path:
            raise LaunchError(f"neither dcgmi nor gpu_burn was found; {_FIX}")
        # gpu_burn looks for its kernels (compare.ptx) in the current directory.
        cwd = "" if _is_dcgmi(path) else (self._native.workdir if self._native is not None else "") or os.path.dirname(path)
        provenance = (Provenance(os.path.basename(path), sha256=sha256_of_file(path), path=path),)
        return Launch(argv=self._argv(path, request), cwd=cwd, watch=_WATCH, provenance=provenance)

    def judge(self, request: ItemRequest, launch: Launch, output: bytes) -> Judgement:  # noqa: ARG002 - the program decides
        """By the program's own verdicts; its exit status proves nothing."""
        if _is_dcgmi(launch.argv[0]):
            return dcgm_diag.judge(dcgm_diag.parse(output), output)
        return gpu_burn.judge(gpu_burn.parse(output), output)

    def _executable(self) -> str:
        named = self._native.executable if self._native is not None else ""
        if named:
            return named
        return next((path for name in (_DCGMI, *_BURN) if (path := self._machine.commands.find(name))), "")

    def _argv(self, path: str, request: ItemRequest) -> tuple[str, ...]:
        more = self._native.arguments if self._native is not None else ()
        if _is_dcgmi(path):
            return (path, "diag", "-r", _LEVELS[request.plan], "-j", *more)
        return (path, *more, str(request.seconds or _SECONDS[request.plan]))


def _is_dcgmi(path: str) -> bool:
    return os.path.basename(path) == _DCGMI


def _asset(path: str) -> AssetCheck:
    if not path or not os.access(path, os.X_OK):
        message = "neither dcgmi nor gpu_burn was found" if not path else "cannot be executed"
        return AssetCheck("program", path or _DCGMI, "executable", required=True, status=CheckStatus.FAIL, message=message)
    digest = sha256_of_file(path)
    return AssetCheck("program", path, "executable", required=True, status=CheckStatus.PASS, message="ok", sha256=digest)
