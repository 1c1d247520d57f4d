"""One cell of a sweep: its figures, what guards it, and whether it may be compared with others."""

import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from nodeproof.bench.guards import (
    CacheState,
    GuardResult,
    GuardState,
    budget_delivered,
    cache_agreement,
    concerns,
    majority_delivered,
)
from nodeproof.bench.guards.delivery import FLOOR
from nodeproof.bench.speed.cells import Taken, doubt, failed_how
from nodeproof.bench.speed.decode_floor import ACCEPT_FLOOR
from nodeproof.bench.speed.figures import accept_length, energy_metrics, gap_metrics, known, loop_interval, median_of
from nodeproof.bench.stats.quantiles import Figure, percentile_figure
from nodeproof.runs.params import ParamValues

__all__ = ["SweepCell", "evidence", "sweep_cell", "warm_capable"]

_LATENCIES = (
    ("ttft_p50_ms", 0.5),
    ("ttft_p90_ms", 0.9),
    ("ttft_p99_ms", 0.99),
    ("tpot_p50_ms", 0.5),
    ("tpot_p90_ms", 0.9),
    ("tpot_p99_ms", 0.99),
    ("server_tpot_p50_ms", 0.5),
    ("server_tpot_p90_ms", 0.9),
    ("e2e_p50_ms", 0.5),
)


class SweepCell(msgspec.Struct, kw_only=True):
    """One point of one curve."""

    name: str
    isl: int
    concurrency: int
    aggregate_tok_s: float | None
    interval: tuple[float, float] | None
    """95 % of the throughput."""
    latencies: dict[str, Figure]
    gaps: dict[str, float]
    energy: dict[str, float]
    answers: int
    failed: int
    guards: list[GuardResult]
    doubt: str
    """Why it proves nothing whatever was answered: damaged samples, a slow generator, a box that was not fit."""
    concerns: list[str]
    """All that speaks against it, in words."""
    min_completion_tokens: int | None
    min_cached_prompt_tokens: int | None
    min_cached_prompt_pct: float | None
    accept_len: float | None
    """The lowest of any answer; None = not told."""
    line: str
    """What it was judged by."""

    @property
    def vacuous(self) -> bool:
        """Its answers are too short to be a rate of what was asked for."""
        return any(one.state is GuardState.VACUOUS for one in self.guards if one.guard != "cache")

    @property
    def cache_uncontrolled(self) -> bool:
        """Its prompts met the cache in two ways, or it must be told and is not."""
        return any(not one.ok for one in self.guards if one.guard == "cache")

    @property
    def usable(self) -> bool:
        """It has figures that mean what they say; only the cache may be unknown."""
        return (
            not self.failed and not self.doubt and self.aggregate_tok_s is not None
            and not any(one.state is GuardState.VACUOUS for one in self.guards)
        )  # fmt: skip

    @property
    def comparable(self) -> bool:
        """It can be held against a floor: nothing at all speaks against it."""
        return self.usable and all(one.ok for one in self.guards)

    @property
    def rated(self) -> bool:
        """Whether there is a time a token in any of its answers."""
        return self.latencies["tpot_p50_ms"].samples > 0 or not self.answers


def sweep_cell(taken: Taken, isl: int, concurrency: int, values: ParamValues, *, warm_capable: bool) -> SweepCell:
    """Work a cell up."""
    answers, report = taken.answers, taken.cell.report
    osl = values.int("osl")
    tokens = answers.delivered(FLOOR * osl)
    guards = [budget_delivered(tokens, osl), majority_delivered(tokens, osl), _cache(taken, values, warm_capable=warm_capable)]
    throughput = report.figures["output_tok_s"]
    counted = [count for count in tokens if count is not None]
    cached = [one for one in answers.prompts if one.cached_tokens is not None and one.prompt_tokens]
    lengths = [one for one in accept_length(answers.tokens, answers.accepted) if one is not None]
    said = [doubt(taken.cell), failed_how(taken), throughput.reason if throughput.value is None else ""]
    return SweepCell(
        name=taken.cell.name,
        isl=isl,
        concurrency=concurrency,
        aggregate_tok_s=throughput.value,
        interval=loop_interval(throughput.value, answers),
        latencies=_latencies(taken),
        gaps=gap_metrics(answers),
        energy=energy_metrics(taken.cell.energy, answers.all_tokens),
        answers=len(answers),
        failed=answers.failed,
        guards=guards,
        doubt=said[0],
        concerns=[*(one for one in said if one), *concerns(guards)],
        min_completion_tokens=min(counted, default=None),
        min_cached_prompt_tokens=min((one.cached_tokens or 0 for one in cached), default=None),
        min_cached_prompt_pct=min(((one.cached_tokens or 0) / (one.prompt_tokens or 1) * 100 for one in cached), default=None),
        accept_len=min(lengths, default=None),
        line=_line(taken),
    )


def warm_capable(earlier: Sequence[int], concurrency: int, slots: int | None) -> bool:
    """Whether the server can hold all prompts of a cell: two slots each, two for each earlier cell that asked it, one a request.

    Unknown slots are enough. ``earlier``: concurrencies of the cells before it with the same prompts (bench.md 5.2).
    """
    if slots is None:
        return True
    need = sum(2 + 2 * sum(1 for before in earlier if before > place) for place in range(concurrency)) + concurrency
    return slots > need


def evidence(cell: SweepCell) -> str:
    """What the cell was judged by, in a line of the log."""
    return f"{cell.name}: {cell.line}"


def _cache(taken: Taken, values: ParamValues, *, warm_capable: bool) -> GuardResult:
    """Prompts that are asked again are all warm or all cold; those that are asked once cannot be warm."""
    prompts = taken.answers.prompts
    again = values.int("warmup") > 0
    result = cache_agreement(prompts, CacheState.ANY if again else CacheState.COLD)
    if not prompts or result.ok:
        return result
    excused = result.state is GuardState.UNMEASURED and (not again or values.text("cache_control") == "observed")
    if excused or (again and not warm_capable):
        return GuardResult(result.guard, GuardState.OK, result.counts)
    return result


def _latencies(taken: Taken) -> dict[str, Figure]:
    answers = taken.answers
    columns = {
        "ttft": answers.ttft_ms,
        "tpot": answers.client_tpot_ms,
        "server_tpot": answers.server_tpot_ms,
        "e2e": answers.e2e_ms,
    }
    return {key: percentile_figure(known(columns[key.rpartition("_p")[0]]), q) for key, q in _LATENCIES}


def _line(taken: Taken) -> str:
    """Tokens, cache, ends, and what the server says of its own times."""
    answers = taken.answers
    output = answers.output
    tokens = f"{output.min():.0f} to {output.max():.0f} tokens an answer" if len(output) else "no answer"
    cached = [one for one in answers.prompts if one.cached_tokens is not None]
    prompts = [one.prompt_tokens for one in answers.prompts if one.prompt_tokens is not None]
    parts = [f"{len(answers)} answers, {tokens}"]
    if prompts:
        parts.append(f"prompts of {statistics.median(prompts):g} tokens")
    if cached:
        low, high = min(one.cached_tokens or 0 for one in cached), max(one.cached_tokens or 0 for one in cached)
        parts.append(f"{low} to {high} of them cached")
    parts += [f"{count} {name}" for name, count in sorted(Counter(answers.outcomes).items())]
    for label, value in (("TTFT", median_of(answers.server_ttft_ms)), ("rate", median_of(answers.server_tok_s))):
        if value is not None:
            parts.append(f"server's {label} {value:.4g} {'ms' if label == 'TTFT' else 'tok/s'}")
    lengths = [one for one in accept_length(answers.tokens, answers.accepted) if one is not None]
    if lengths and min(lengths) < ACCEPT_FLOOR:
        parts.append(f"a decode step brought {min(lengths):.3g} tokens at least: no drafted decoding")
    return "; ".join(parts)
