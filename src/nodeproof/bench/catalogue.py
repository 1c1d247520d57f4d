"""Identities of the benchmarks of this room: what lists and records say, without loading what runs them."""

from collections.abc import Callable
from importlib import import_module

from nodeproof.errors import RunError
from nodeproof.model.hardware import Sensitivity
from nodeproof.runs.benchmark import Benchmark, Descriptor
from nodeproof.runs.benchmark_ids import aliases_of
from nodeproof.runs.endpoint import ModelExpectation

__all__ = [
    "CONCURRENCY_SWEEP",
    "CONCURRENCY_SWEEP_DFLASH2",
    "CONCURRENCY_SWEEP_MOE",
    "DECODE_FLOOR",
    "GOODPUT_SEARCH",
    "LOAD",
    "QUICK_SPEED",
    "TTFT_COLD",
    "TTFT_WARM",
    "lazily",
]


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

QUICK_SPEED = Descriptor(
    id="quick-speed",
    name="Quick speed",
    summary="Speed of single answers, one after the other, on a warm cache",
    detail=(
        "Asks one prompt a few times and gives the means: decode rate, time to the first token and a token, whole answers, each "
        "with the clock that it was taken with. Judges nothing. Costs the endpoint a handful of short answers."
    ),
    duration_hint="a minute or two",
    expected_secs=150,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("speed.quick", "QuickSpeed"),
    aliases=aliases_of("quick-speed"),
    needs_endpoint=True,
)

_SWEEP_DETAIL = (
    "Holds so many requests at once for each length of the prompt, in a closed loop, and takes throughput and latencies from its "
    "steady state. The knee of each curve is named. Cells whose answers are too short, or whose prompts met the cache in two "
    "ways, are left out and told of; a floor (min_c1 and so on, min_peak) makes it pass or fail. "
)
_FLOORS = tuple((f"min_c{c}", f"c{c}_aggregate_tok_s") for c in (1, 2, 4, 8, 16, 32, 64, 128))

CONCURRENCY_SWEEP = Descriptor(
    id="concurrency-sweep",
    name="Concurrency sweep",
    summary="Throughput and latencies over concurrency and length of the prompt, and where the knee is",
    detail=_SWEEP_DETAIL + "Costs the endpoint 24 cells of full load.",
    duration_hint="half an hour for 24 cells",
    expected_secs=1560,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("speed.sweep", "sweep"),
    threshold_params=(*_FLOORS, ("min_peak", "peak_aggregate_tok_s")),
    needs_endpoint=True,
)

CONCURRENCY_SWEEP_DFLASH2 = Descriptor(
    id="concurrency-sweep-dflash2",
    name="Concurrency sweep, speculative drafter",
    summary="The concurrency sweep against a server that drafts tokens",
    detail=_SWEEP_DETAIL
    + "The same sweep under an id of its own: its floors are those of a server whose drafter is switched on.",
    duration_hint="half an hour for 24 cells",
    expected_secs=1560,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("speed.sweep", "dflash2"),
    intended_for=ModelExpectation(("qwen3.8-27b",), "the floors of this variant are those of a dense model with a drafter"),
    threshold_params=(*_FLOORS, ("min_peak", "peak_aggregate_tok_s")),
    needs_endpoint=True,
)

CONCURRENCY_SWEEP_MOE = Descriptor(
    id="concurrency-sweep-moe",
    name="Concurrency sweep, mixture of experts",
    summary="The concurrency sweep with long essays, against a mixture of experts",
    detail=_SWEEP_DETAIL + "Essays of 1,024 tokens behind 128, up to 16 at once: experts are told apart by what is written.",
    duration_hint="ten minutes for 5 cells",
    expected_secs=600,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("speed.sweep", "moe"),
    intended_for=ModelExpectation(("qwen3.6-35b-a3b",), "the floors of this variant are those of a mixture of experts"),
    threshold_params=(*_FLOORS, ("min_peak", "peak_aggregate_tok_s")),
    needs_endpoint=True,
)

_TTFT_DETAIL = (
    "The time to the first token at each length has a median and a p90 of its own and is held against a pinned reference, which "
    "moves only when update_baseline=yes says so. "
)

TTFT_WARM = Descriptor(
    id="ttft-warm",
    name="TTFT, warm",
    summary="Time to the first token of prompts that the server knows, against a pinned reference",
    detail=_TTFT_DETAIL + "Each prompt was asked before; the server must say that it had it cached.",
    duration_hint="two to five minutes",
    expected_secs=160,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("speed.ttft", "TtftWarm"),
    aliases=aliases_of("ttft-warm"),
    needs_endpoint=True,
)

TTFT_COLD = Descriptor(
    id="ttft-cold",
    name="TTFT, cold",
    summary="Time to the first token of prompts that the server has never seen, against a pinned reference",
    detail=_TTFT_DETAIL + "No prompt is asked twice.",
    duration_hint="two to five minutes",
    expected_secs=240,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("speed.ttft", "TtftCold"),
    aliases=aliases_of("ttft-cold"),
    needs_endpoint=True,
)

DECODE_FLOOR = Descriptor(
    id="decode-floor",
    name="Decode floor",
    summary="Rate at which one long answer is written, against a floor",
    detail=(
        "Three answers of 1,500 tokens to one prompt, one after the other; the median rate is held against min_tok_s. Where the "
        "server drafts tokens, the drafts must have been accepted. Says whose clock the rate is of."
    ),
    duration_hint="three minutes at 25 tok/s",
    expected_secs=180,
    updated="2026-12-01",
    sensitivity=Sensitivity.SPEED,
    build=lazily("speed.decode_floor", "DecodeFloor"),
    threshold_params=(("min_tok_s", "server_decode_tok_s"),),
    needs_endpoint=True,
)
