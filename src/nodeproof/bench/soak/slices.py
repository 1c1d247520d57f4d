"""A load cut into equal pieces of time, each with its own figures, from the raw samples."""

import itertools
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from nodeproof.bench.load.plan import LoadPlan
from nodeproof.bench.load.samples import OUTCOMES, read_blocks
from nodeproof.bench.stats.quantiles import minimum_samples

__all__ = ["MOST_SLICES", "Slice", "cut"]

MOST_SLICES = 24
_OK = np.array([outcome.ok for outcome in OUTCOMES])
_COLUMNS = ("sent_s", "first_token_s", "last_token_s", "end_s", "completion_tokens", "chunks", "outcome")
_Column = NDArray[np.float64]


class Slice(msgspec.Struct, frozen=True, kw_only=True):
    """One piece. Latencies are those of answers that were sent within it, rates of those that ended in it. None = not told."""

    begin_s: float
    """Seconds after the load began."""
    end_s: float
    answers: int
    failed: int
    requests_per_s: float
    output_tok_s: float
    ttft_p50_ms: float | None
    tpot_p50_ms: float | None
    e2e_p50_ms: float | None

    @property
    def middle_s(self) -> float:
        """Moment that stands for it."""
        return (self.begin_s + self.end_s) / 2


def cut(paths: Sequence[str], plan: LoadPlan) -> list[Slice]:
    """At most :data:`MOST_SLICES` pieces of the time after the warm-up, as many as have answers enough for a median each."""
    table = _read(paths)
    ok = _OK[table["outcome"].astype(np.int64)]
    begin, end = plan.warmup_s, plan.duration_s
    inside = ok & (table["end_s"] >= begin) & (table["end_s"] <= end)
    count = min(MOST_SLICES, int(inside.sum()) // (2 * minimum_samples(0.5)))
    edges = np.linspace(begin, end, count + 1)
    return [_slice(table, ok, float(low), float(high)) for low, high in itertools.pairwise(edges)]


def _read(paths: Sequence[str]) -> dict[str, _Column]:
    parts: dict[str, list[_Column]] = {name: [] for name in _COLUMNS}
    for path in paths:
        for block in read_blocks(path):
            if block.kind == "requests" and not block.problem:
                rows = block.samples().rows
                for name in _COLUMNS:
                    parts[name].append(rows[name].astype(np.float64))
    return {name: np.concatenate(found) if found else np.zeros(0) for name, found in parts.items()}


def _slice(table: dict[str, _Column], ok: NDArray[np.bool_], begin_s: float, end_s: float) -> Slice:
    ended = (table["end_s"] >= begin_s) & (table["end_s"] < end_s)
    sent = ok & (table["sent_s"] >= begin_s) & (table["sent_s"] < end_s)
    first, tokens = table["first_token_s"][sent], table["completion_tokens"][sent]
    length_s = end_s - begin_s
    several = (tokens >= 2) & (table["chunks"][sent] >= 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        tpot = ((table["last_token_s"][sent] - first) / (tokens - 1))[several]
    return Slice(
        begin_s=begin_s,
        end_s=end_s,
        answers=int((ended & ok).sum()),
        failed=int((ended & ~ok).sum()),
        requests_per_s=float((ended & ok).sum()) / length_s,
        output_tok_s=float(table["completion_tokens"][ended & ok].sum()) / length_s,
        ttft_p50_ms=_median_ms(first - table["sent_s"][sent]),
        tpot_p50_ms=_median_ms(tpot),
        e2e_p50_ms=_median_ms(table["end_s"][sent] - table["sent_s"][sent]),
    )


def _median_ms(seconds: _Column) -> float | None:
    known = seconds[np.isfinite(seconds)]
    return float(np.median(known)) * 1e3 if len(known) >= minimum_samples(0.5) else None
