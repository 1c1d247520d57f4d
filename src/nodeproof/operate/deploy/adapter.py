"""The adapter script of a node: settings as shell assignments above, and what hands over to nodeproof below."""

import shlex
from collections.abc import Iterator

from nodeproof.operate.assets.manifest import Manifest
from nodeproof.operate.deploy.chosen import ChosenSizes
from nodeproof.operate.deploy.inputs import Inputs
from nodeproof.operate.deploy.templates import template

__all__ = ["RUNNER_SOCKET", "render_adapter"]

RUNNER_SOCKET = "/run/nodeproof-runner/runner.sock"
"""Of the CPU runner, inside every container that may ask it."""
_Lines = Iterator[tuple[str, object]]


def render_adapter(inputs: Inputs, assets: Manifest | None, sizes: ChosenSizes | None, hpcg_workdir: str) -> str:
    """The script. Every value has been judged by :func:`nodeproof.operate.deploy.inputs.check`."""
    parts = [
        _section("What this script hands over to", _program(inputs)),
        _section("CPU items", _backend(inputs)),
    ]
    if assets is not None and sizes is not None:
        parts += [_section(*part) for part in _cpu(inputs, assets, sizes, hpcg_workdir)]
    if inputs.npu.is_given:
        parts.append(_section("NPU Burn. Another NPU_BURN_DEVICE needs no other container", _npu(inputs)))
    return template("benchmark_check.sh").replace("@SETTINGS@\n", "\n".join(parts))


def _section(title: str, lines: _Lines) -> str:
    return f"# {title}\n" + "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in lines)


def _program(inputs: Inputs) -> _Lines:
    yield "NODEPROOF", inputs.program


def _backend(inputs: Inputs) -> _Lines:
    if not inputs.has_cpu:
        yield "CPU_EXECUTION_BACKEND", "none"
    elif inputs.backend == "unix":
        yield "CPU_EXECUTION_BACKEND", "unix"
        yield "CPU_RUNNER_CLIENT", inputs.program
        yield "CPU_RUNNER_SOCKET", RUNNER_SOCKET
    else:
        yield "CPU_EXECUTION_BACKEND", "local"
        yield "CPU_EXECUTION_PROFILE", "host_local"


def _cpu(inputs: Inputs, assets: Manifest, sizes: ChosenSizes, hpcg_workdir: str) -> Iterator[tuple[str, _Lines]]:
    cpu = inputs.cpu
    if "stream" in assets.benchmarks:
        item = assets.benchmarks["stream"]
        lines = {
            "STREAM_EXECUTABLE": item.binary.path,
            "STREAM_NUMACTL": cpu.numactl,
            "STREAM_THREADS": cpu.stream_threads,
        }
        yield "STREAM; 0 threads = one a processor, no numactl = memory where it is first touched", iter(lines.items())
    if "hpl" in assets.benchmarks:
        item = assets.benchmarks["hpl"]
        lines = {
            "HPL_EXECUTABLE": item.binary.path,
            "HPL_WORKDIR": item.binary.path.rpartition("/")[0],
            "HPL_MPI_LAUNCHER": cpu.mpi_launcher,
            "HPL_MPI_PROCESSES": sizes.hpl_processes,
            "HPL_THREADS_PER_PROCESS": sizes.hpl_threads,
            "HPL_LIBRARY_DIR": cpu.hpl_library_dir,
        }
        yield "HPL; the processes are those of a grid in HPL.dat, which is read from the working directory", iter(lines.items())
    if "hpcg" in assets.benchmarks:
        item = assets.benchmarks["hpcg"]
        lines = {
            "HPCG_EXECUTABLE": item.binary.path,
            "HPCG_WORKDIR": hpcg_workdir,
            "HPCG_MPI_LAUNCHER": cpu.mpi_launcher,
            "HPCG_MPI_PROCESSES": sizes.hpcg_processes,
            "HPCG_THREADS_PER_PROCESS": sizes.hpcg_threads,
            "HPCG_NX": cpu.hpcg_nx,
            "HPCG_NY": cpu.hpcg_ny,
            "HPCG_NZ": cpu.hpcg_nz,
            "HPCG_RUNTIME_SECONDS": cpu.hpcg_runtime_s,
        }
        yield "HPCG; its result file is left in the working directory", iter(lines.items())


def _npu(inputs: Inputs) -> _Lines:
    npu = inputs.npu
    yield "NPU_BURN_BACKEND", "docker_exec"
    yield "NPU_BURN_CONTAINER_RUNTIME", npu.runtime
    yield "NPU_BURN_CONTAINER_NAME", npu.container
    yield "NPU_BURN_CONTAINER_IMAGE", npu.image
    yield "NPU_BURN_EXECUTABLE", npu.executable
    yield "NPU_BURN_OUTPUT_DIR", npu.output_dir
    yield "NPU_BURN_DEVICE", npu.device
    yield "NPU_BURN_RUN_CASE", npu.run_case
    yield "NPU_BURN_GROUP", npu.group
    yield "NPU_BURN_CHIP_GENERATION", npu.generation
    yield "NPU_BURN_INTERNAL_TIMEOUT_SECONDS", npu.internal_timeout_s
    yield "NPU_BURN_RUNTIME_CANN", npu.cann
    yield "NPU_BURN_RUNTIME_TORCH_NPU", npu.torch_npu
    yield "NPU_BURN_SOC_MODEL", npu.soc
