"""One item by the variables of a dispatcher script (stress.md 1.3): what the generated ``benchmark_check.sh`` hands over to.

The script holds the settings of the node and nothing else; what is checked, described and started is the same as without it. Here
nothing is looked for and nothing is chosen: a variable that is missing or no number is a failed check.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping

import msgspec

from nodeproof.host.handed_on import run_handing_on
from nodeproof.host.job_environment import allowed_environment
from nodeproof.host.machine import Machine
from nodeproof.model.job import REFERENCE_BENCHMARKS, CheckStatus, ExecutionProfile, PreflightResult, ProfileParameter
from nodeproof.stress.adapters.base import Adapter, ItemRequest, Launch, LaunchError
from nodeproof.stress.adapters.native import NativeAdapter
from nodeproof.stress.adapters.npu_burn import NpuBurnAdapter
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.settings import ItemSettings, StressSettings, native_programs

__all__ = ["BENCHMARKS", "PROFILES", "Dispatcher", "variable_faults"]

BENCHMARKS = REFERENCE_BENCHMARKS
PROFILES = ("host_local", "container_runner")
"""Words of ``CPU_EXECUTION_PROFILE``; for people."""
_PATHS = {
    "stream": ("STREAM_EXECUTABLE",),
    "hpl": ("HPL_EXECUTABLE", "HPL_MPI_LAUNCHER", "HPL_WORKDIR"),
    "hpcg": ("HPCG_EXECUTABLE", "HPCG_MPI_LAUNCHER", "HPCG_WORKDIR"),
}
_OPTIONAL_PATHS = {"stream": ("STREAM_NUMACTL",), "hpl": ("HPL_LIBRARY_DIR",)}
_COUNTS = {
    "hpl": ("HPL_MPI_PROCESSES", "HPL_THREADS_PER_PROCESS"),
    "hpcg": ("HPCG_MPI_PROCESSES", "HPCG_THREADS_PER_PROCESS"),
}
_COUNTS_WITH_DEFAULT = {"hpcg": ("HPCG_NX", "HPCG_NY", "HPCG_NZ", "HPCG_RUNTIME_SECONDS")}
_GRID_DEFAULTS = {"HPCG_NX": "32", "HPCG_NY": "32", "HPCG_NZ": "32", "HPCG_RUNTIME_SECONDS": "60"}
_MOST_DIGITS = 9
_SUMMARY = (
    "CATMONITOR_NPU_BURN_SUMMARY devices={devices} cases={cases} passed={passed} failed={failed} errors={errors}"
    " case_time_seconds={case_time_seconds:.6f}"
)
_KEPT_BYTES = 16 * 1024 * 1024
_FAILED = 1


class Dispatcher:
    """One item of a dispatcher script."""

    def __init__(self, name: str, environ: Mapping[str, str], machine: Machine) -> None:
        self._name = name
        self._environ = {**_GRID_DEFAULTS, **{key: value for key, value in environ.items() if value.strip()}}
        self._request = ItemRequest(name)
        settings = StressSettings(
            enabled=True,
            web_enabled=False,
            state_root="/nonexistent",  # nothing is kept here: whoever runs the script keeps reports
            default_benchmarks=(),
            benchmarks={name: ItemSettings(enabled=True, adapter="native", native=native_programs(name, self._environ))},
        )
        kind = NpuBurnAdapter if name == "npu_burn" else NativeAdapter
        self._adapter: Adapter = kind(settings, self._environ, machine)

    def describe(self) -> ExecutionProfile:
        """What a run would be. Starts nothing. Raises DescribeError."""
        profile = self._adapter.describe(self._request)
        faults = list(variable_faults(self._name, self._environ))
        preflight = profile.preflight
        if faults:
            said = [preflight.message] if preflight.status is CheckStatus.FAIL else []
            preflight = PreflightResult(CheckStatus.FAIL, "; ".join([*faults, *said]))
        return msgspec.structs.replace(profile, executor="", parameters=self._parameters(profile), preflight=preflight)

    def run(self) -> int:
        """Run it with our standard output; its exit status. Programs of the CPU take the place of this process.

        Raises LaunchError.
        """
        fault = next(variable_faults(self._name, self._environ), "")
        if fault:
            raise LaunchError(fault)
        launch = self._adapter.launch(self._request)
        if self._name == "npu_burn":  # a client of the engine: where that listens is said by variables of its own
            return self._burn(launch, {**self._environ, **launch.environment})
        environment = {**allowed_environment(self._environ), **launch.environment}
        try:
            if launch.cwd:
                os.chdir(launch.cwd)
            os.execve(launch.argv[0], launch.argv, environment)  # noqa: S606 - no shell: a fixed argv
        except OSError as error:
            raise LaunchError(f"{launch.argv[0]}: {os.strerror(error.errno or 0)}") from None

    def _burn(self, launch: Launch, environment: Mapping[str, str]) -> int:
        """NPU Burn, and what its files prove as the one line that is read of it; 1 unless every case passed."""
        with tempfile.TemporaryDirectory(prefix="nodeproof-burn-") as folder:
            status, output = run_handing_on(launch.argv, environment, cwd=folder, keep_bytes=_KEPT_BYTES)
        judged = self._adapter.judge(self._request, launch, output)
        if judged.values:
            print(_SUMMARY.format_map(judged.values), flush=True)  # noqa: T201 - it is the protocol
        if status:
            return status if status > 0 else _FAILED
        return 0 if _passed(judged) else _FAILED

    def _parameters(self, profile: ExecutionProfile) -> list[ProfileParameter]:
        if self._name == "npu_burn" or any(entry.key == "execution_backend" for entry in profile.parameters):
            return profile.parameters
        told = self._environ.get("CPU_EXECUTION_PROFILE", PROFILES[0])
        return [*profile.parameters, ProfileParameter("execution_backend", "Where it runs", told)]


def variable_faults(name: str, environ: Mapping[str, str]) -> Iterator[str]:
    """What is wrong with the variables of a CPU item; NPU Burn's are judged by its own adapter."""
    for key in _PATHS.get(name, ()):
        if not os.path.isabs(environ.get(key, "")):
            yield f"{key} is {environ.get(key, '')[:120]!r}: expected an absolute path"
    for key in _OPTIONAL_PATHS.get(name, ()):
        if environ.get(key) and not os.path.isabs(environ[key]):
            yield f"{key} is {environ[key][:120]!r}: expected an absolute path, or nothing"
    for key in (*_COUNTS.get(name, ()), *_COUNTS_WITH_DEFAULT.get(name, ())):
        if not _is_count(environ.get(key, ""), least=1):
            yield f"{key} is {environ.get(key, '')[:40]!r}: expected a whole number from 1"
    if name == "stream" and not _is_count(environ.get("STREAM_THREADS", "0"), least=0):
        yield f"STREAM_THREADS is {environ['STREAM_THREADS'][:40]!r}: expected a whole number, 0 for every processor"


def _is_count(text: str, *, least: int) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS and int(text) >= least


def _passed(judged: Judgement) -> bool:
    """Whether the counts alone say so; the rest of the proof is whoever reads the output's."""
    values = judged.values
    return bool(values) and not judged.crashed and values["passed"] == values["cases"] > 0 and not values["errors"]
