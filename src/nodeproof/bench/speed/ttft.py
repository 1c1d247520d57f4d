"""The benchmarks ``ttft-warm`` and ``ttft-cold``: time to the first token by length of the prompt, against a pinned reference.

Warm: each length has one prompt, which was asked before. Cold: each request has a prompt that the server has never seen. Each
length is a cell with a median and a p90 of its own, so that a regression at one cannot hide behind others (bench.md 5.3, L23).
"""

import time
from collections.abc import Sequence

import numpy as np

from nodeproof.bench.catalogue import TTFT_COLD, TTFT_WARM
from nodeproof.bench.guards import CacheState, GuardResult, GuardState, cache_agreement, concerns, guard_metrics
from nodeproof.bench.speed.cells import CellPlan, Shape, SpeedBenchmark, Taken, doubt, failed_how
from nodeproof.bench.speed.figures import known
from nodeproof.bench.speed.reference import Found, Reference, ReferenceStore
from nodeproof.bench.stats.quantiles import Values, minimum_samples, percentile_figure
from nodeproof.errors import ParamError, RunError
from nodeproof.model.run import Align, CellStyle, Column, Frame, ResultTable, Stat, Verdict, VerdictKind
from nodeproof.model.run import Cell as TableCell
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.params import Bool, Choice, Float, Int, IntList, ParamSpec, ParamValues

__all__ = ["CACHE_CONTROL", "NOISE_FLOOR_MS", "TTFT_PARAMETERS", "TtftCold", "TtftWarm", "rises"]

CACHE_CONTROL = ParamSpec(
    "cache_control",
    "Cache control",
    "required: where the server does not say what it had cached, nothing is judged; observed: it is judged all the same",
    Choice(("required", "observed")),
    "required",
)
TTFT_PARAMETERS = (
    ParamSpec("prompt_lengths", "Lengths", "Tokens of the prompts", IntList(16, 131072), (256, 1024, 4096)),
    ParamSpec("repeats", "Repeats", "Answers of each length that count; a p90 takes 64", Int(1, 1000), 64),
    ParamSpec("median_limit_pct", "Median limit", "Fails when a median rises by more", Float(0.0, 100.0), 3.0),
    ParamSpec("p90_limit_pct", "P90 limit", "Fails when a p90 rises by more", Float(0.0, 100.0), 5.0),
    ParamSpec("update_baseline", "Pin", "Make this run the reference of the ones to come", Bool(), default=False),
    CACHE_CONTROL,
    ParamSpec("request_timeout_s", "Request limit", "Seconds of a whole request", Int(10, 3600), 300),
)
NOISE_FLOOR_MS = 2.0
"""A rise that is smaller is none, whatever it is in percent (bench.md 10)."""
_REPLY_TOKENS = 8
_STATISTICS = (("median_ms", "median_limit_pct", 0.5), ("p90_ms", "p90_limit_pct", 0.9))


class _Ttft(SpeedBenchmark):
    """What both have in common."""

    def __init__(self, descriptor: Descriptor, description: str, expected: CacheState) -> None:
        super().__init__(descriptor, TTFT_PARAMETERS, description)
        self._expected = expected
        self._store: ReferenceStore | None = None

    def check(self, values: ParamValues) -> None:
        """Each length once."""
        lengths = values.int_list("prompt_lengths")
        if len(set(lengths)) != len(lengths):
            raise ParamError("prompt_lengths", "prompt_lengths: each length can be measured once")

    def arrange(self) -> list[CellPlan]:
        """A cell for each length; its first answer never counts."""
        self._store = ReferenceStore(self.handle.artifacts, self.target)
        prepared = self.asked({"temperature": 0})
        distinct = 1 if self._expected is CacheState.WARM else 0
        plans = []
        for length in self.values.int_list("prompt_lengths"):
            shape = Shape(length, _REPLY_TOKENS, counted=self.values.int("repeats"), warmup=1, distinct=distinct)
            plans.append(self.cell(f"isl{length}", prepared, self.true_length(prepared, shape), seed=length))
        return plans

    def look(self, taken: Taken) -> None:
        """A request that failed ends the run."""
        failed = failed_how(taken)
        if failed:
            raise RunError(f"{taken.cell.name}: {failed}")

    def judged(self) -> Frame:
        """Against the reference, length by length."""
        assert self._store is not None  # noqa: S101 - made before the first cell
        cells = self.taken
        guards = [self._guard(taken) for taken in cells]
        metrics = _metrics(cells) | guard_metrics(guards)
        found = self._store.read()
        verdict = self._verdict(guards, metrics, found)
        if self.values.bool("update_baseline"):
            verdict = self._pin(self._store, verdict, metrics, found)
        table = _table(cells, guards, metrics, found)
        return self.last_frame(verdict, metrics, table=table, summary=_tiles(cells, metrics))

    def _guard(self, taken: Taken) -> GuardResult:
        """A prompt that was never asked is cold even where the server does not say so; a warm one must be seen to be warm."""
        result = cache_agreement(taken.answers.prompts, self._expected)
        lenient = self._expected is CacheState.COLD or self.values.text("cache_control") == "observed"
        if result.state is GuardState.UNMEASURED and lenient and len(taken.answers):
            return GuardResult(result.guard, GuardState.OK, result.counts)
        return result

    def _verdict(self, guards: Sequence[GuardResult], metrics: dict[str, float], found: Found) -> Verdict:
        doubts = [f"{taken.cell.name}: {doubt(taken.cell)}" for taken in self.taken if doubt(taken.cell)]
        for taken, guard in zip(self.taken, guards, strict=True):
            doubts += [f"{taken.cell.name}: {concern}" for concern in concerns([guard])]
        lengths = self.values.int_list("prompt_lengths")
        doubts += [f"isl{length}: too few samples for a median" for length in lengths if f"isl{length}_median_ms" not in metrics]
        doubts += [found.problem] if found.problem else []
        if doubts:
            return Verdict(VerdictKind.INCONCLUSIVE, doubts[0])
        reference = found.reference
        if reference is None:
            text = "no reference is pinned for this endpoint and model; update_baseline=yes pins this run"
            return Verdict(VerdictKind.INFO, text)
        if reference.instrument != self.descriptor().updated:
            text = f"the reference was taken with the instrument of {reference.instrument}; pin a new one"
            return Verdict(VerdictKind.INFO, text)
        if any(f"isl{length}_median_ms" not in reference.metrics for length in lengths):
            return Verdict(VerdictKind.INFO, "the reference does not hold these lengths; update_baseline=yes pins this run")
        return _compared(self.values, lengths, metrics, reference)

    def _pin(self, store: ReferenceStore, verdict: Verdict, metrics: dict[str, float], found: Found) -> Verdict:
        """Only a run that may be believed, and is not worse, becomes the reference; who accepts a worse one removes the old."""
        if verdict.kind not in {VerdictKind.PASS, VerdictKind.INFO}:
            hint = f"; to accept a slower state, remove {store.path} first" if verdict.kind is VerdictKind.FAIL else ""
            self.handle.warn(f"this run was not pinned: it is {verdict.kind}{hint}")
            return verdict
        reference = Reference(
            benchmark_id=self.descriptor().id,
            instrument=self.descriptor().updated,
            recorded_at=time.time(),
            target=self.target.base_url,
            model=self.target.model,
            metrics={key: value for key, value in metrics.items() if key.startswith("isl")},
        )
        store.pin(reference, found.reference)
        if found.reference is not None:
            self.handle.warn(_moved(found.reference, reference))
        return Verdict(verdict.kind, f"{verdict.reason}; this run is the reference from now on")


class TtftWarm(_Ttft):
    """``ttft-warm``."""

    def __init__(self) -> None:
        super().__init__(TTFT_WARM, "Time to the first token of known prompts", CacheState.WARM)


class TtftCold(_Ttft):
    """``ttft-cold``."""

    def __init__(self) -> None:
        super().__init__(TTFT_COLD, "Time to the first token of new prompts", CacheState.COLD)


def rises(now_ms: float, then_ms: float, limit_pct: float) -> tuple[bool, float]:
    """Whether ``now_ms`` is worse than ``then_ms`` by more than the limit and by more than the noise; and by how many percent."""
    rise_pct = (now_ms - then_ms) / then_ms * 100 if then_ms > 0 else 0.0
    return rise_pct > limit_pct and now_ms - then_ms > NOISE_FLOOR_MS, rise_pct


def _metrics(cells: Sequence[Taken]) -> dict[str, float]:
    """Of each length, and of all together under the reference's names; a percentile without its samples is left out."""
    metrics: dict[str, float] = {"samples": float(sum(len(taken.answers) for taken in cells))}
    every = [known(taken.answers.ttft_ms) for taken in cells]
    for taken in cells:
        name, values = taken.cell.name, known(taken.answers.ttft_ms)
        metrics[f"{name}_samples"] = float(len(values))
        metrics |= _statistics(f"{name}_", values)
        cached = [one.cached_tokens for one in taken.answers.prompts if one.cached_tokens is not None]
        lengths = [one.prompt_tokens for one in taken.answers.prompts if one.prompt_tokens is not None]
        if cached:
            metrics[f"{name}_max_cached_tokens"] = float(max(cached))
        if lengths:
            metrics[f"{name}_prompt_tokens"] = sum(lengths) / len(lengths)
    return metrics | _statistics("", np.concatenate(every))


def _compared(values: ParamValues, lengths: Sequence[int], metrics: dict[str, float], reference: Reference) -> Verdict:
    worse: list[str] = []
    untold: list[str] = []
    held: list[str] = []
    for length in lengths:
        for name, limit_key, q in _STATISTICS:
            key = f"isl{length}_{name}"
            now_ms, then_ms = metrics.get(key), reference.metrics.get(key)
            if now_ms is None or then_ms is None:
                side = "this run" if now_ms is None else "the reference"
                untold.append(f"{key} of {side} has fewer than {minimum_samples(q)} samples; raise repeats")
                continue
            limit_pct = values.float(limit_key)
            rose, rise_pct = rises(now_ms, then_ms, limit_pct)
            text = f"{key} {now_ms:.4g} ms against {then_ms:.4g} ({rise_pct:+.2f} %, limit {limit_pct:g} %)"
            (worse if rose else held).append(text)
    if worse:
        return Verdict(VerdictKind.FAIL, "; ".join(worse))
    if untold:
        return Verdict(VerdictKind.INCONCLUSIVE, untold[0])
    return Verdict(VerdictKind.PASS, "; ".join(held))


def _moved(before: Reference, now: Reference) -> str:
    """How far the reference went with this step, and since the first."""
    first = before.earlier[0].metrics if before.earlier else before.metrics
    steps = []
    for key in sorted(now.metrics.keys() & before.metrics.keys() & first.keys()):
        if key.endswith("_median_ms") and before.metrics[key] > 0 and first[key] > 0:
            step_pct = (now.metrics[key] / before.metrics[key] - 1) * 100
            all_pct = (now.metrics[key] / first[key] - 1) * 100
            steps.append(f"{key} {step_pct:+.2f} % (since the first {all_pct:+.2f} %)")
    return f"the reference was moved: {', '.join(steps)}"


def _statistics(prefix: str, values: Values) -> dict[str, float]:
    found = {f"{prefix}{name}": percentile_figure(values, q).value for name, _, q in _STATISTICS}
    return {key: value for key, value in found.items() if value is not None}


def _tiles(cells: Sequence[Taken], metrics: dict[str, float]) -> tuple[Stat, ...]:
    keys = [(taken.cell.name, f"{taken.cell.name}_median_ms") for taken in cells]
    return tuple(Stat(f"TTFT p50 {name}", f"{metrics[key]:.4g}", "ms, client clock") for name, key in keys if key in metrics)


def _table(cells: Sequence[Taken], guards: Sequence[GuardResult], metrics: dict[str, float], found: Found) -> ResultTable:
    right = Align.RIGHT
    columns = (
        Column("Prompt"),
        Column("Median ms", right),
        Column("Reference", right),
        Column("P90 ms", right),
        Column("Reference", right),
        Column("Samples", right),
        Column("Cached at most", right),
        Column("Cache"),
    )
    then = found.reference.metrics if found.reference is not None else {}
    rows = []
    for taken, guard in zip(cells, guards, strict=True):
        name = taken.cell.name
        texts = [
            _number(metrics.get(f"{name}_median_ms")),
            _number(then.get(f"{name}_median_ms")),
            _number(metrics.get(f"{name}_p90_ms")),
            _number(then.get(f"{name}_p90_ms")),
            str(len(taken.answers)),
            _number(metrics.get(f"{name}_max_cached_tokens")),
        ]
        style = CellStyle.GOOD if guard.ok else CellStyle.BAD if guard.state is GuardState.VACUOUS else CellStyle.WARN
        rows.append((TableCell(name), *(TableCell(text) for text in texts), TableCell(str(guard.state), style)))
    return ResultTable("Time to the first token, client clock", columns, tuple(rows))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
