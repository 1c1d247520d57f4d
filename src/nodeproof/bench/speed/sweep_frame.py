"""The last frame of a sweep: metrics by concurrency, the knee of each curve, the table and the verdict."""

from collections.abc import Sequence

from nodeproof.bench.guards import GuardState, guard_metrics
from nodeproof.bench.speed.decode_floor import ACCEPT_FLOOR
from nodeproof.bench.speed.knee import Knee, Point, find_knee
from nodeproof.bench.speed.sweep_cells import SweepCell
from nodeproof.model.run import (
    Align,
    Cell,
    CellStyle,
    Column,
    ResultTable,
    Stat,
    Verdict,
    VerdictKind,
)
from nodeproof.runs.params import ParamValues

__all__ = ["FLOORS", "find_knees", "sweep_metrics", "sweep_table", "sweep_tiles", "sweep_verdict"]

FLOORS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Concurrencies whose throughput may have a floor."""
_OF_A_CELL = (
    "ttft_p50_ms",
    "ttft_p90_ms",
    "tpot_p50_ms",
    "tpot_p90_ms",
    "server_tpot_p50_ms",
    "server_tpot_p90_ms",
    "e2e_p50_ms",
)


def find_knees(cells: Sequence[SweepCell]) -> dict[int, Knee]:
    """The knee of each curve, by the length of its prompts."""
    lengths = dict.fromkeys(cell.isl for cell in cells)
    return {isl: find_knee([_point(cell) for cell in cells if cell.isl == isl and cell.usable]) for isl in lengths}


def sweep_metrics(cells: Sequence[SweepCell], knees: dict[int, Knee]) -> dict[str, float]:
    """Of the best cell at each concurrency, of every cell, and of the whole run; what was not measured has no key."""
    metrics: dict[str, float] = {}
    usable = [cell for cell in cells if cell.usable]
    for concurrency in dict.fromkeys(cell.concurrency for cell in cells):
        best = max((cell for cell in usable if cell.concurrency == concurrency), key=_tok_s, default=None)
        if best is not None:
            metrics |= {f"c{concurrency}_{key}": value for key, value in _of_cell(best).items()}
            metrics |= {f"c{concurrency}_{key}": value for key, value in (best.gaps | best.energy).items()}
    for cell in usable:
        metrics |= {f"isl{cell.isl}_c{cell.concurrency}_{key}": value for key, value in _of_cell(cell).items()}
    peak = max(usable, key=_tok_s, default=None)
    if peak is not None:
        metrics["peak_aggregate_tok_s"], metrics["peak_concurrency"] = _tok_s(peak), float(peak.concurrency)
        knee = knees[peak.isl].concurrency
        metrics |= {} if knee is None else {"knee_concurrency": float(knee)}
    metrics |= {f"isl{isl}_knee_concurrency": float(knee.concurrency) for isl, knee in knees.items() if knee.concurrency}
    for key in ("min_completion_tokens", "min_cached_prompt_tokens", "min_cached_prompt_pct"):
        told = [getattr(cell, key) for cell in usable if getattr(cell, key) is not None]
        metrics |= {key: float(min(told))} if told else {}
    metrics |= {
        "cells": float(len(cells)),
        "vacuous_cells": float(sum(cell.vacuous for cell in cells)),
        "cache_uncontrolled_cells": float(sum(cell.cache_uncontrolled for cell in cells)),
        "doubted_cells": float(sum(bool(cell.doubt) for cell in cells)),
        "non_mtp_arm_cells": float(sum(cell.accept_len is not None and cell.accept_len < ACCEPT_FLOOR for cell in cells)),
        "requests_failed": float(sum(cell.failed for cell in cells)),
    }
    return metrics | guard_metrics([result for cell in cells for result in cell.guards])


def sweep_verdict(cells: Sequence[SweepCell], values: ParamValues, metrics: dict[str, float]) -> Verdict:
    """What failed, then what cannot be told, then the floors. Without a floor there is nothing to pass."""
    failed = [cell for cell in cells if cell.failed]
    if failed:
        total = sum(cell.failed for cell in failed)
        said = next((one for one in failed[0].concerns if "requests failed" in one), "")
        return Verdict(VerdictKind.FAIL, f"{total} requests failed in {len(failed)} cells; {failed[0].name}: {said}")
    floors = {c: floor for c in FLOORS if (floor := values.float(f"min_c{c}"))}
    peak_floor = values.float("min_peak")
    excluded = [cell for cell in cells if not cell.comparable]
    if not floors and not peak_floor:
        return _nothing_asked(cells, excluded)
    if excluded:
        worst = min(excluded, key=lambda cell: not cell.vacuous)
        text = f"{len(excluded)} of {len(cells)} cells prove nothing; {worst.name}: {worst.concerns[0]}"
        return Verdict(VerdictKind.INCONCLUSIVE, text)
    pairs = [(f"c{c}_aggregate_tok_s", floor) for c, floor in floors.items()]
    pairs += [("peak_aggregate_tok_s", peak_floor)] if peak_floor else []
    texts = [f"{key} {metrics[key]:.4g} of {floor:g}" for key, floor in pairs]
    missed = [text for text, (key, floor) in zip(texts, pairs, strict=True) if metrics[key] < floor]
    if missed:
        return Verdict(VerdictKind.FAIL, f"below the floor: {'; '.join(missed)}")
    return Verdict(VerdictKind.PASS, "; ".join(texts))


def _nothing_asked(cells: Sequence[SweepCell], excluded: Sequence[SweepCell]) -> Verdict:
    """Numbers without a floor; none at all when no cell can be used."""
    if not any(cell.usable for cell in cells):
        return Verdict(
            VerdictKind.INCONCLUSIVE, f"no cell of {len(cells)} can be used; {excluded[0].name}: {excluded[0].concerns[0]}"
        )
    text = f"{len(cells)} cells were measured; no floor is set"
    if excluded:
        text += f"; {len(excluded)} prove less than they seem to: {', '.join(cell.name for cell in excluded[:8])}"
    return Verdict(VerdictKind.INFO, text)


def _of_cell(cell: SweepCell) -> dict[str, float]:
    metrics = {"aggregate_tok_s": _tok_s(cell)}
    if cell.interval is not None:
        metrics["aggregate_tok_s_low"], metrics["aggregate_tok_s_high"] = cell.interval
    if cell.accept_len is not None:
        metrics["accept_len"] = cell.accept_len
    for key in _OF_A_CELL:
        value = cell.latencies[key].value
        metrics |= {} if value is None else {key: value}
    return metrics


def _tok_s(cell: SweepCell) -> float:
    return cell.aggregate_tok_s or 0.0


def _point(cell: SweepCell) -> Point:
    return Point(cell.concurrency, _tok_s(cell))


def sweep_tiles(cells: Sequence[SweepCell], metrics: dict[str, float], knees: dict[int, Knee]) -> tuple[Stat, ...]:
    """Peak, knees, and how many cells may be compared."""
    tiles = []
    if "peak_aggregate_tok_s" in metrics:
        tiles.append(Stat("Peak", f"{metrics['peak_aggregate_tok_s']:.4g}", f"tok/s at {metrics['peak_concurrency']:g} at once"))
    for isl, knee in knees.items():
        found = ("none found", "") if knee.concurrency is None else (str(knee.concurrency), "at once")
        tiles.append(Stat(f"Knee, isl {isl}", *found))
    excluded = sum(not cell.comparable for cell in cells)
    tiles.append(
        Stat(
            "Cells", f"{len(cells) - excluded} of {len(cells)}", "may be compared", CellStyle.WARN if excluded else CellStyle.GOOD
        )
    )
    return tuple(tiles)


def sweep_table(cells: Sequence[SweepCell], knees: dict[int, Knee]) -> ResultTable:
    """A row for each cell."""
    right = Align.RIGHT
    titles = ("tok/s", "95 % interval", "TTFT p50 ms", "TTFT p90 ms", "TPOT p50 ms", "E2E p50 ms", "Answers", "Failed")
    columns = (Column("Input", right), Column("At once", right), *(Column(title, right) for title in titles), Column("Guards"))
    return ResultTable("Concurrency sweep, client clock", columns, tuple(_row(cell, knees[cell.isl]) for cell in cells))


def _row(cell: SweepCell, knee: Knee) -> tuple[Cell, ...]:
    """A cell that may not be compared keeps its number, with a star."""
    rate = "-" if cell.aggregate_tok_s is None else f"{cell.aggregate_tok_s:.4g}"
    at_once = f"{cell.concurrency} knee" if knee.concurrency == cell.concurrency else str(cell.concurrency)
    texts = [_text(cell.latencies[key].value) for key in ("ttft_p50_ms", "ttft_p90_ms", "tpot_p50_ms", "e2e_p50_ms")]
    between = "" if cell.interval is None else f"{cell.interval[0]:.4g} to {cell.interval[1]:.4g}"
    bad = [result for result in cell.guards if not result.ok]
    named = ", ".join(f"{result.guard} {result.state}" for result in bad) or ("ok" if not cell.doubt else "doubted")
    style = CellStyle.GOOD if cell.comparable else CellStyle.BAD
    if (
        not cell.comparable
        and all(result.state is not GuardState.VACUOUS for result in bad)
        and not cell.doubt
        and not cell.failed
    ):
        style = CellStyle.WARN
    return (
        Cell(str(cell.isl)),
        Cell(at_once),
        Cell(rate if cell.comparable else f"{rate}*", CellStyle.NEUTRAL if cell.comparable else style),
        Cell(between),
        *(Cell(text) for text in texts),
        Cell(str(cell.answers)),
        Cell(str(cell.failed), CellStyle.BAD if cell.failed else CellStyle.NEUTRAL),
        Cell(named, style),
    )


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
