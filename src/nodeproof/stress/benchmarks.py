"""What the items of stress jobs are, as benchmarks of the executor.

The entry points of ``nodeproof.benchmarks`` name :data:`BUILT_IN_DESCRIPTORS`: run by themselves they use the built-in workloads.
The manager puts the adapter that the configuration asks for in their place.
"""

from collections.abc import Callable

from nodeproof.host.machine import Machine
from nodeproof.model.hardware import Sensitivity
from nodeproof.runs.benchmark import Benchmark, Descriptor
from nodeproof.stress.adapters.builtin import BuiltinAdapter
from nodeproof.stress.item import Confinement, ItemBenchmark
from nodeproof.stress.settings import BUILT_IN, DEFAULT_TIMEOUT_S
from nodeproof.stress.sizing import Plan

__all__ = ["BUILT_IN_DESCRIPTORS", "descriptor_of"]

_UPDATED = "2026-11-30"
_ABOUT = {
    "stream": ("STREAM", "Memory bandwidth of four kernels", "Copy, Scale, Add and Triad over arrays past the caches.", 15),
    "hpl": ("HPL", "Dense linear algebra with its residual checked", "LU with partial pivoting of a random system.", 40),
    "hpcg": ("HPCG", "Conjugate gradients with their checks", "27-point problem, multigrid, symmetric Gauss-Seidel.", 90),
    "npu_burn": ("NPU Burn", "Ascend accelerators under load", "Operators with known results on every device.", 600),
    "cpu_sdc": ("CPU SDC", "Known answers, core by core", "Integer, floating point, vector, hash and compression.", 60),
    "gpu_burn": ("GPU burn", "Every GPU under load", "Matrix multiply in each number format, verified, then memory.", 75),
    "memory_pattern": ("Memory patterns", "March and address tests", "Over most of the memory that is free.", 60),
}
_STABILITY = frozenset({"npu_burn", "cpu_sdc", "gpu_burn", "memory_pattern"})


def descriptor_of(benchmark: str, build: Callable[[], Benchmark], plan: Plan = Plan.STANDARD) -> Descriptor:
    """The descriptor of an item whose runs ``build`` makes."""
    name, summary, detail, seconds = _ABOUT[benchmark]
    stability = benchmark in _STABILITY or plan is Plan.SOAK
    return Descriptor(
        id=benchmark.replace("_", "-"),
        name=name,
        summary=summary,
        detail=f"{detail} Loads every {'GPU' if benchmark == 'gpu_burn' else 'core'} that this process may use.",
        duration_hint=f"about {seconds} s with plan quick",
        expected_secs=seconds,
        updated=_UPDATED,
        sensitivity=Sensitivity.STABILITY if stability else Sensitivity.SPEED,
        build=build,
    )


def _built_in(benchmark: str) -> Descriptor:
    def build() -> Benchmark:
        return ItemBenchmark(lambda: descriptor, benchmark, BuiltinAdapter(Machine.here()), Confinement(), DEFAULT_TIMEOUT_S)

    descriptor = descriptor_of(benchmark, build)
    return descriptor


BUILT_IN_DESCRIPTORS = tuple(_built_in(benchmark) for benchmark in BUILT_IN)
