"""The figures of a load run, computed from its raw samples and its plan, and from nothing else."""

from collections import Counter
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodeproof.bench.load.plan import LoadPlan
from nodeproof.bench.load.samples import COUNTED, OUTCOMES, STREAMED, TICK_S, Block, changed_rows, read_blocks
from nodeproof.bench.stats.gaps import GapCounts
from nodeproof.bench.stats.quantiles import Figure, mean_figure, percentile_figure, quantile_grid, ratio_interval

__all__ = ["QUANTILES", "Column", "LoadReport", "report"]

QUANTILES = (0.5, 0.9, 0.95, 0.99)
_OK = np.array([outcome.ok for outcome in OUTCOMES])
_LATE_S = 0.01
_LAG_S = 0.005
_CPU_SHARE = 0.9
_COLUMNS = (
    "scheduled_s",
    "started_s",
    "sent_s",
    "first_byte_s",
    "first_token_s",
    "last_token_s",
    "end_s",
    "completion_tokens",
    "prompt_tokens",
    "cached_tokens",
    "input_target",
    "max_tokens",
    "chunks",
    "outcome",
    "flags",
    "server_ttft_ms",
    "server_decode_ms",
)

Column = NDArray[np.float64]


class LoadReport(msgspec.Struct, kw_only=True):
    """What a run shows. Keys of :attr:`figures` end with their unit."""

    figures: dict[str, Figure]
    counts: dict[str, int]
    outcomes: dict[str, int]
    window_s: tuple[float, float]
    """Part of the run that the figures are of, seconds after its epoch."""
    clocks: dict[str, str]
    """Whose clock each family of figures was taken with."""
    tokens_by: str
    """Who counted tokens: the server (``usage``), we by chunks, or both in one run."""
    limited: list[str]
    """Why the generator and not the server was the limit; empty = it was not."""
    problems: list[str]
    """What is wrong with the samples."""
    notes: list[str]
    """The first few failures in words."""
    quantiles_ms: dict[str, list[float]] = {}
    """Each latency at 0, 1, 2 ... 100 % of its samples, for plots. Those at the ends say nothing about the server."""

    def metrics(self) -> dict[str, float]:
        """Everything that has a value, by key."""
        values = {key: figure.value for key, figure in self.figures.items() if figure.value is not None}
        return {**values, **{key: float(count) for key, count in self.counts.items()}}


def report(paths: Sequence[str], plan: LoadPlan) -> LoadReport:
    """The figures of the samples in ``paths``."""
    return _Builder(plan).build(paths)


class _Builder:
    def __init__(self, plan: LoadPlan) -> None:
        self._plan = plan
        self._columns: dict[str, list[Column]] = {name: [] for name in _COLUMNS}
        self._notes: list[str] = []
        self._problems: list[str] = []
        self._pulses: list[NDArray[np.void]] = []
        self._itl, self._chunk_gaps = GapCounts(), GapCounts()
        self._quantiles_ms: dict[str, list[float]] = {}
        self._seen = 0
        self._path = ""
        self._begin_s, self._end_s = plan.warmup_s, plan.duration_s

    def build(self, paths: Sequence[str]) -> LoadReport:
        if self._plan.warmup_requests:
            self._begin_s = max(self._begin_s, _warm_end_s(paths, self._plan.warmup_requests))
        for path in paths:
            self._path = path
            for block in read_blocks(path):
                self._block(block)
        table = {name: np.concatenate(parts) if parts else np.zeros(0) for name, parts in self._columns.items()}
        return self._finish(table)

    def _block(self, block: Block) -> None:
        if block.problem:
            self._problems.append(block.problem)
            numbers = changed_rows(block)
            if numbers:
                self._problems.append(f"changed: request {', '.join(str(number) for number in numbers[:20])}")
            return
        if block.kind == "instrument":
            self._pulses.append(block.pulses())
            return
        rows, gaps = block.samples()
        numbers = changed_rows(block)
        if numbers:
            named = ", ".join(str(number) for number in numbers[:20])
            self._problems.append(f"{self._path}: block {block.number}: request {named} is not what was written")
        self._notes += [f"request {number}: {text}" for number, text in block.notes]
        for name in _COLUMNS:
            self._columns[name].append(rows[name].copy())
        self._count_gaps(rows, gaps)
        self._seen += len(rows)

    def _count_gaps(self, rows: NDArray[np.void], gaps: NDArray[np.uint32]) -> None:
        """Gaps of whole answers that were sent within the window: between tokens, or else between chunks."""
        each = np.maximum(rows["chunks"].astype(np.int64) - 1, 0)
        inside = _OK[rows["outcome"]] & (rows["scheduled_s"] >= self._begin_s) & (rows["scheduled_s"] <= self._end_s)
        single = inside & (rows["flags"] & COUNTED > 0) & (rows["completion_tokens"] == rows["chunks"])
        owners = np.repeat(np.arange(len(rows)), each)
        values = gaps.astype(np.float64) * (TICK_S * 1e6)
        for counts, wanted in ((self._itl, single), (self._chunk_gaps, inside)):
            chosen = wanted[owners]
            counts.add(values[chosen], owners[chosen] + self._seen)

    def _finish(self, table: dict[str, Column]) -> LoadReport:
        ok = _OK[table["outcome"].astype(np.int64)] if self._seen else np.zeros(0, dtype=bool)
        started = (table["scheduled_s"] >= self._begin_s) & (table["scheduled_s"] <= self._end_s)
        good = ok & started
        names = Counter(OUTCOMES[int(code)] for code in table["outcome"][started])
        figures: dict[str, Figure] = {}
        self._latencies(figures, table, good)
        self._gap_figures(figures, int(good.sum()))
        self._rates(figures, table, ok, started)
        self._slos(figures, table, good, started)
        counts = {
            "requests": int(started.sum()),
            "requests_ok": int(good.sum()),
            "requests_failed": int((started & ~ok).sum()),
            "warmup_requests": int((table["scheduled_s"] < self._begin_s).sum()),
        }
        return LoadReport(
            figures=figures,
            counts=counts,
            outcomes={str(name): count for name, count in sorted(names.items())},
            window_s=(self._begin_s, self._end_s),
            clocks=_CLOCKS,
            tokens_by=_counted_by(table["flags"][good].astype(np.int64)),
            limited=self._limits(figures),
            problems=self._problems,
            notes=self._notes[:20],
            quantiles_ms=self._quantiles_ms,
        )

    def _latencies(self, figures: dict[str, Figure], table: dict[str, Column], good: NDArray[np.bool_]) -> None:
        sent, scheduled, first = table["sent_s"][good], table["scheduled_s"][good], table["first_token_s"][good]
        tokens = table["completion_tokens"][good].astype(np.float64)
        streamed = np.isfinite(first)
        several = streamed & (tokens >= 2) & (table["chunks"][good] >= 2)
        tpot = (table["last_token_s"][good] - first)[several] / (tokens[several] - 1)
        families = {
            "ttft": (first - sent)[streamed] * 1e3,
            "ttft_scheduled": (first - scheduled)[streamed] * 1e3,
            "tpot": tpot * 1e3,
            "e2e": (table["end_s"][good] - sent) * 1e3,
            "e2e_scheduled": (table["end_s"][good] - scheduled) * 1e3,
            "queue": (sent - scheduled) * 1e3,
            "first_byte": (table["first_byte_s"][good] - sent) * 1e3,
        }
        for name, values in families.items():
            ordered = np.sort(values[np.isfinite(values)])
            self._quantiles_ms[name] = quantile_grid(ordered)
            for q in QUANTILES:
                figures[f"{name}_p{q * 100:g}_ms"] = percentile_figure(ordered, q, ordered=True)
            figures[f"{name}_mean_ms"] = mean_figure(ordered)
        for name, column in (("server_ttft", "server_ttft_ms"), ("server_decode", "server_decode_ms")):
            said = table[column][good].astype(np.float64)
            said = said[np.isfinite(said)]
            if len(said):
                figures[f"{name}_p50_ms"] = percentile_figure(said, 0.5)
                figures[f"{name}_mean_ms"] = mean_figure(said)

    def _gap_figures(self, figures: dict[str, Figure], requests: int) -> None:
        for name, counts in (("itl", self._itl), ("chunk_gap", self._chunk_gaps)):
            for q in QUANTILES:
                figure = counts.percentile(q, requests=requests)
                figures[f"{name}_p{q * 100:g}_ms"] = figure._replace(
                    value=_ms(figure.value), low=_ms(figure.low), high=_ms(figure.high)
                )
            figures[f"{name}_mean_ms"] = Figure(_ms(counts.mean_us()), counts.count)
            self._quantiles_ms[name] = [value / 1e3 for value in counts.grid()]

    def _rates(
        self, figures: dict[str, Figure], table: dict[str, Column], ok: NDArray[np.bool_], started: NDArray[np.bool_]
    ) -> None:
        """Rates within the window: each answer counts with the part of it that came in the window."""
        begin, end = self._begin_s, self._real_end(table, ok, started)
        length = end - begin
        if length <= 0 or not ok.any():
            reason = "no answer came to its end within the window"
            for name in ("requests_per_s", "output_tok_s", "input_tok_s", "concurrency_mean"):
                figures[name] = Figure(None, 0, reason=reason)
            return
        sent, last = table["sent_s"][ok], table["end_s"][ok]
        first = np.where(np.isfinite(table["first_token_s"][ok]), table["first_token_s"][ok], last)
        tokens = table["completion_tokens"][ok].astype(np.float64)
        figures["requests_per_s"] = _flow(_overlap(sent, last, begin, end), length)
        figures["output_tok_s"] = _flow(_overlap(first, last, begin, end) * tokens, length)
        prompts = np.maximum(table["prompt_tokens"][ok].astype(np.float64), 0)
        figures["input_tok_s"] = _flow(_overlap(sent, first, begin, end) * prompts, length)
        busy = np.clip(np.minimum(last, end) - np.maximum(sent, begin), 0, None)
        figures["concurrency_mean"] = Figure(float(busy.sum()) / length, len(busy))
        if self._plan.arrival is not None:
            figures["offered_per_s"] = Figure(float(started.sum()) / length, int(started.sum()))

    def _real_end(self, table: dict[str, Column], ok: NDArray[np.bool_], started: NDArray[np.bool_]) -> float:
        """The window ends with the plan, or earlier when the requests were used up."""
        if not len(ok):
            return self._begin_s
        begun = float(np.nanmax(table["scheduled_s"]))
        if self._plan.requests and begun < self._plan.duration_s * 0.99:
            steady = self._plan.arrival is None and int(started.sum()) > self._plan.concurrency
            # After the last one of a closed loop has begun, slots run empty: what follows is no steady state. Where all were
            # asked at once, what counts is when the last answer came.
            self._end_s = float(np.nanmax(table["end_s"][ok])) if ok.any() and not steady else begun
        return self._end_s

    def _slos(
        self, figures: dict[str, Figure], table: dict[str, Column], good: NDArray[np.bool_], started: NDArray[np.bool_]
    ) -> None:
        slo = self._plan.slo
        length = self._end_s - self._begin_s
        if not slo.stated or length <= 0 or not started.any():
            return
        kept = good.copy()
        tokens = table["completion_tokens"].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            ttft = (table["first_token_s"] - table["scheduled_s"]) * 1e3
            tpot = (table["last_token_s"] - table["first_token_s"]) / (tokens - 1) * 1e3
            e2e = (table["end_s"] - table["scheduled_s"]) * 1e3
            if slo.ttft_ms:
                kept &= ttft <= slo.ttft_ms
            if slo.tpot_ms:
                kept &= (tpot <= slo.tpot_ms) | (tokens < 2)
            if slo.e2e_ms:
                kept &= e2e <= slo.e2e_ms
        shares = kept[started].astype(np.float64)
        attained = mean_figure(shares * 100)
        figures["slo_attainment_pct"] = attained
        figures["goodput_per_s"] = _rate(shares, length)
        figures["goodput_tok_s"] = _rate(kept[started] * tokens[started], length)

    def _limits(self, figures: dict[str, Figure]) -> list[str]:
        """Why the generator was the limit."""
        limited = []
        if self._pulses:
            pulses = np.concatenate(self._pulses)
            inside = pulses[(pulses["at_s"] >= self._begin_s) & (pulses["at_s"] <= self._plan.duration_s)]
            if len(inside):
                lag_s, share = (np.sort(inside[name].astype(np.float64)) for name in ("lag_s", "cpu_share"))
                worst = int(0.99 * (len(inside) - 1))
                figures["instrument_lag_p99_ms"] = Figure(float(lag_s[worst]) * 1e3, len(inside))
                figures["instrument_lag_p50_ms"] = Figure(float(lag_s[len(lag_s) // 2]) * 1e3, len(inside))
                figures["instrument_cpu_share"] = Figure(float(share[int(0.9 * (len(share) - 1))]), len(inside))
                if share[int(0.9 * (len(share) - 1))] > _CPU_SHARE:
                    limited.append(f"a worker used {share[int(0.9 * (len(share) - 1))]:.0%} of its core (limit {_CPU_SHARE:.0%})")
                if lag_s[int(0.9 * (len(lag_s) - 1))] > _LAG_S:
                    late_ms = lag_s[int(0.9 * (len(lag_s) - 1))] * 1e3
                    limited.append(
                        f"the loop of a worker was {late_ms:.1f} ms late in a tenth of its looks (limit {_LAG_S * 1e3:g} ms)"
                    )
        queue = figures["queue_p99_ms"] if figures["queue_p99_ms"].value is not None else figures["queue_p90_ms"]
        if (
            self._plan.arrival is not None
            and not self._plan.concurrency
            and queue.value is not None
            and queue.value > _LATE_S * 1e3
        ):
            limited.append(f"requests were sent {queue.value:.1f} ms after they were due (limit {_LATE_S * 1e3:g} ms)")
        return limited


_CLOCKS = {
    "ttft": "client",
    "ttft_scheduled": "client",
    "tpot": "client",
    "itl": "client",
    "chunk_gap": "client",
    "e2e": "client",
    "e2e_scheduled": "client",
    "queue": "client",
    "first_byte": "client",
    "server_ttft": "server",
    "server_decode": "server",
}


def _warm_end_s(paths: Sequence[str], requests: int) -> float:
    """When the last of the first ``requests`` had ended; 0 when none of them is there."""
    ends = [0.0]
    for path in paths:
        for block in read_blocks(path):
            if block.kind == "requests" and not block.problem:
                rows = block.samples().rows
                ends += rows["end_s"][(rows["number"] < requests) & np.isfinite(rows["end_s"])].tolist()
    return max(ends)


def _overlap(begin: Column, end: Column, low: float, high: float) -> Column:
    """Share of each interval that lies between the limits; one without length counts where it is."""
    length = end - begin
    inside = np.clip(np.minimum(end, high) - np.maximum(begin, low), 0.0, None)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(length > 0, inside / length, ((begin >= low) & (begin <= high)).astype(np.float64))


def _flow(amounts: Column, length_s: float) -> Figure:
    """Rate of what came within the window; answers that lie outside it have no part in its spread."""
    return _rate(amounts[amounts > 0], length_s)


def _rate(shares: Column, length_s: float) -> Figure:
    value = float(shares.sum()) / length_s
    ends = ratio_interval(shares)
    count = int(np.count_nonzero(shares))
    return Figure(value, count) if ends is None else Figure(value, count, value * ends[0], value * ends[1])


def _ms(us: float | None) -> float | None:
    return None if us is None else us / 1e3


def _counted_by(flags: NDArray[np.int64]) -> str:
    counted = flags & COUNTED > 0
    if not len(flags):
        return "nobody"
    if counted.all():
        return "usage"
    if counted.any():
        return "usage, and chunks where there was none"
    return "chunks" if (flags & STREAMED > 0).any() else "nobody"
