"""Identities of the benchmarks of this room: what lists and records say, without loading what runs them."""

from collections.abc import Callable
from importlib import import_module

from nodeproof.errors import RunError
from nodeproof.model.hardware import Sensitivity
from nodeproof.runs.benchmark import Benchmark, Descriptor

__all__ = ["GOODPUT_SEARCH", "LOAD", "lazily"]


def lazily(module: str, name: str) -> Callable[[], Benchmark]:
    """A factory that loads ``nodeproof.bench.<module>`` when a benchmark is built; RunError when a library is missing."""

    def build() -> Benchmark:
        try:
            made: Benchmark = getattr(import_module(f"nodeproof.bench.{module}"), name)()
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("nodeproof"):
                raise
            raise RunError(f"{error.name} is not installed; benchmarks need the extra: pip install 'nodeproof[bench]'") from None
        return made

    return build


LOAD = Descriptor(
    id="load",
    name="Load",
    summary="Closed or open load on an endpoint, measured from the intended start",
    detail=(
        "Sends synthesised or recorded requests to an OpenAI-compatible endpoint, at a fixed concurrency or rate, and reports "
        "TTFT, TPOT, ITL, E2E, throughput and goodput with intervals. Its own delay is measured and judged. Costs the endpoint "
        "the load that is asked for."
    ),
    duration_hint="duration_s plus a few seconds for each repeat",
    expected_secs=40,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("load.benchmark", "LoadBenchmark"),
    needs_endpoint=True,
)

GOODPUT_SEARCH = Descriptor(
    id="goodput-search",
    name="Goodput search",
    summary="Highest rate of requests at which an endpoint keeps its SLO",
    detail=(
        "Open-loop probes of growing rate, then bisection, until the highest rate is known within the tolerance. An SLO must be "
        "given (slo_ttft_ms, slo_tpot_ms, slo_e2e_ms). Drives the endpoint beyond what it can do, on purpose."
    ),
    duration_hint="about 12 probes of duration_s, 3 to 5 minutes",
    expected_secs=240,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("load.search", "GoodputSearch"),
    needs_endpoint=True,
)
