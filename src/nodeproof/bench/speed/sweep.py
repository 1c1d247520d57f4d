"""The benchmark ``concurrency-sweep`` and its variants: throughput and latencies over concurrency, for each length of the prompt.

A cell is a closed loop in its steady state: as many prompts as there are requests at once, each asked in the warm-up and then
again and again; what counts begins when the whole warm-up has ended, and ends when the last request begins (bench.md 5.2; L18).
"""

from nodeproof.bench.catalogue import CONCURRENCY_SWEEP, CONCURRENCY_SWEEP_DFLASH2, CONCURRENCY_SWEEP_MOE
from nodeproof.bench.speed.cells import CellPlan, Shape, SpeedBenchmark, Taken
from nodeproof.bench.speed.sweep_cells import SweepCell, evidence, sweep_cell, warm_capable
from nodeproof.bench.speed.sweep_frame import FLOORS, find_knees, sweep_metrics, sweep_table, sweep_tiles, sweep_verdict
from nodeproof.bench.speed.tasks import TASKS
from nodeproof.bench.speed.ttft import CACHE_CONTROL
from nodeproof.errors import ParamError
from nodeproof.model.run import Frame
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.params import Choice, Float, Int, IntList, ParamSpec, ParamValue, ParamValues

__all__ = ["SWEEP_PARAMETERS", "ConcurrencySweep", "dflash2", "moe", "sweep"]

_SLOTS = "ssm_cache_slots"
_EXTRA = {"temperature": 0, "seed": 0, "reasoning_effort": "none"}
_NO_PENALTY = {"presence_penalty": 0, "frequency_penalty": 0}

SWEEP_PARAMETERS = (
    ParamSpec("concurrencies", "Concurrencies", "Requests at once, one cell each", IntList(1, 256), (1, 2, 4, 8, 16, 32)),
    ParamSpec("isls", "Inputs", "Tokens of the prompts, a curve each", IntList(16, 131072), (128, 512, 1024, 2048)),
    ParamSpec("osl", "Output", "Tokens of each answer", Int(1, 8192), 128),
    ParamSpec("warmup", "Warm-up", "Rounds over every prompt that do not count; 0 = each prompt is asked once", Int(0, 8), 1),
    ParamSpec("rounds", "Rounds", "Requests that count, as a multiple of the concurrency", Int(1, 1000), 3),
    ParamSpec("min_requests", "Least requests", "A cell counts no fewer; a median takes 11, a p90 64", Int(1, 100_000), 12),
    ParamSpec("prompt_mode", "Task", "What is asked for behind the filler", Choice(tuple(TASKS)), "natural"),
    ParamSpec("ignore_eos", "Full length", "Ask for answers of full length: auto = where the server does it",
              Choice(("auto", "yes", "no")), "auto"),
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(10, 3600), 600),
    CACHE_CONTROL,
    *(ParamSpec(f"min_c{c}", f"Floor at {c}", f"Fails below so many tok/s with {c} at once; 0 = not judged",
                Float(0.0, 100_000.0), 0.0) for c in FLOORS),
    ParamSpec("min_peak", "Floor of the peak", "Fails when the best cell is below; 0 = not judged", Float(0.0, 100_000.0), 0.0),
)  # fmt: skip


class ConcurrencySweep(SpeedBenchmark):
    """One run of the sweep or of a variant."""

    def __init__(self, descriptor: Descriptor, parameters: tuple[ParamSpec, ...]) -> None:
        super().__init__(descriptor, parameters, "Throughput over concurrency")
        self._cells: list[SweepCell] = []
        self._slots: int | None = None
        """Prompts that the server can keep, as the caller says."""

    def check(self, values: ParamValues) -> None:
        """No cell twice, and no floor that nothing can reach."""
        for key in ("concurrencies", "isls"):
            entries = values.int_list(key)
            if len(set(entries)) != len(entries):
                raise ParamError(key, f"{key}: each value can be measured once")
        concurrencies = values.int_list("concurrencies")
        for concurrency in FLOORS:
            if values.float(f"min_c{concurrency}") > 0 and concurrency not in concurrencies:
                raise ParamError(f"min_c{concurrency}", f"min_c{concurrency}: concurrencies does not hold {concurrency}")
        self._cells = []

    def arrange(self) -> list[CellPlan]:
        """A whole curve at one length, then the next."""
        values = self.values
        self._slots = self.target.override_count(_SLOTS)
        mode = values.text("prompt_mode")
        extra = {**_EXTRA, **(_NO_PENALTY if mode == "essay" else {})}
        prepared = self.asked(extra, TASKS[mode], ignore_eos=values.text("ignore_eos"))
        plans = []
        for isl in values.int_list("isls"):
            words = self.true_length(prepared, _shape(values, isl, 1)).words
            for concurrency in values.int_list("concurrencies"):
                shape = _shape(values, isl, concurrency)._replace(words=words)
                plans.append(self.cell(f"isl{isl}-c{concurrency}", prepared, shape, seed=isl))
        return plans

    def look(self, taken: Taken) -> None:
        """What the cell shows, with its guards, into the log."""
        concurrencies = self.values.int_list("concurrencies")
        curve, place = divmod(len(self._cells), len(concurrencies))
        isl, concurrency = self.values.int_list("isls")[curve], concurrencies[place]
        capable = warm_capable(concurrencies[:place], concurrency, self._slots)
        if not capable:
            self.handle.info(f"{taken.cell.name}: the server's pool cannot hold all prompts; they need not be warm")
        cell = sweep_cell(taken, isl, concurrency, self.values, warm_capable=capable)
        self._cells.append(cell)
        self.handle.info(evidence(cell))
        for concern in cell.concerns:
            self.handle.warn(f"{cell.name}: {concern}")

    def judged(self) -> Frame:
        """All cells together."""
        knees = find_knees(self._cells)
        for isl, knee in knees.items():
            self.handle.info(f"isl {isl}: {knee.text}")
        whole = sum(1 for cell in self._cells if not cell.rated)
        if whole:
            self.handle.warn(f"{whole} cells have no time a token: whole answers came in one piece")
        metrics = sweep_metrics(self._cells, knees)
        return self.last_frame(
            sweep_verdict(self._cells, self.values, metrics),
            metrics,
            table=sweep_table(self._cells, knees),
            summary=sweep_tiles(self._cells, metrics, knees),
        )


def _shape(values: ParamValues, isl: int, concurrency: int) -> Shape:
    """One round more than what is to count: it keeps all slots busy until the last of that has ended."""
    counted = max(values.int("rounds") * concurrency, values.int("min_requests"))
    rounds = values.int("warmup")
    return Shape(
        isl,
        values.int("osl"),
        concurrency,
        counted=counted + concurrency,
        warmup=rounds * concurrency if rounds else concurrency,
        distinct=concurrency if rounds else 0,
        task=TASKS[values.text("prompt_mode")],
    )


def _with_defaults(**changed: ParamValue) -> tuple[ParamSpec, ...]:
    return tuple(
        ParamSpec(spec.key, spec.label, spec.help, spec.kind, changed.get(spec.key, spec.default)) for spec in SWEEP_PARAMETERS
    )


def sweep() -> ConcurrencySweep:
    """``concurrency-sweep``."""
    return ConcurrencySweep(CONCURRENCY_SWEEP, SWEEP_PARAMETERS)


def dflash2() -> ConcurrencySweep:
    """``concurrency-sweep-dflash2``: the same against a server with a speculative drafter."""
    return ConcurrencySweep(CONCURRENCY_SWEEP_DFLASH2, SWEEP_PARAMETERS)


def moe() -> ConcurrencySweep:
    """``concurrency-sweep-moe``: essays of 1,024 tokens against a mixture of experts, up to 16 at once."""
    changed = _with_defaults(concurrencies=(1, 2, 4, 8, 16), isls=(128,), osl=1024, prompt_mode="essay")
    return ConcurrencySweep(CONCURRENCY_SWEEP_MOE, changed)
