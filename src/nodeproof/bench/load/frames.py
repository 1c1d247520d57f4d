"""The last frame of a load run: tiles, a table, metrics and the verdict."""

import statistics
from collections.abc import Sequence

from nodeproof.bench.load.measure import Cell as LoadCell
from nodeproof.bench.load.parameters import LoadSettings
from nodeproof.bench.stats.quantiles import Figure
from nodeproof.bench.stats.report import LoadReport
from nodeproof.model.run import Align, Cell, CellStyle, Column, Elapsed, Frame, ResultTable, RunStatus, Stat, Verdict, VerdictKind

__all__ = ["aa_difference_pct", "load_frame", "report_table"]

_TABLE_KEYS = (
    "ttft_p50_ms",
    "ttft_p90_ms",
    "ttft_p99_ms",
    "tpot_p50_ms",
    "tpot_p90_ms",
    "itl_p50_ms",
    "itl_p99_ms",
    "e2e_p50_ms",
    "e2e_p99_ms",
    "queue_p99_ms",
    "requests_per_s",
    "output_tok_s",
    "goodput_per_s",
    "slo_attainment_pct",
)
_TILES = (
    ("TTFT p50", "ttft_p50_ms", "ms, client clock"),
    ("TPOT p50", "tpot_p50_ms", "ms, client clock"),
    ("ITL p99", "itl_p99_ms", "ms, client clock"),
    ("Requests", "requests_per_s", "1/s"),
    ("Output", "output_tok_s", "tok/s"),
    ("Goodput", "goodput_per_s", "1/s"),
)


def load_frame(cells: Sequence[LoadCell], settings: LoadSettings, elapsed_s: float) -> Frame:
    """The terminal frame of all repeats: medians over them, and how far they lie apart."""
    reports = [cell.report for cell in cells]
    metrics = _median_metrics(reports)
    for key in ("output_tok_s", "ttft_p50_ms"):
        spread = aa_difference_pct([one.figures[key].value for one in reports if key in one.figures])
        if spread is not None:
            metrics[f"aa_{key.rpartition('_')[0]}_difference_pct"] = spread
    metrics["client_limited"] = float(any(one.limited for one in reports))
    metrics["tokens_counted_by_server"] = float(all(one.tokens_by == "usage" for one in reports))
    return Frame(
        status=RunStatus.COMPLETED,
        phase="done",
        elapsed=Elapsed.of(elapsed_s),
        progress=(len(cells), len(cells)),
        summary=tuple(_tiles(reports[-1], metrics)),
        table=report_table(reports[-1]),
        verdict=_verdict(cells, settings),
        metrics=metrics,
    )


def report_table(report: LoadReport) -> ResultTable:
    """Figures with interval and samples."""
    columns = (
        Column("Figure"),
        Column("Value", Align.RIGHT),
        Column("95 % interval", Align.RIGHT),
        Column("Samples", Align.RIGHT),
        Column("Clock"),
    )
    rows = [_row(key, report.figures[key], report) for key in _TABLE_KEYS if key in report.figures]
    return ResultTable("Load", columns, tuple(rows))


def aa_difference_pct(values: Sequence[float | None]) -> float | None:
    """How far equal measurements lie apart: largest less smallest, in percent of their median. None below two."""
    numbers = [value for value in values if value is not None]
    if len(numbers) < 2 or statistics.median(numbers) <= 0:
        return None
    return (max(numbers) - min(numbers)) / statistics.median(numbers) * 100


def _median_metrics(reports: Sequence[LoadReport]) -> dict[str, float]:
    every = [one.metrics() for one in reports]
    keys = set.intersection(*(set(one) for one in every))
    return {key: statistics.median(one[key] for one in every) for key in sorted(keys)}


def _tiles(report: LoadReport, metrics: dict[str, float]) -> list[Stat]:
    tiles = [Stat(label, f"{metrics[key]:.4g}", unit) for label, key, unit in _TILES if key in metrics]
    failed = report.counts["requests_failed"]
    tiles.append(Stat("Failed", str(failed), "requests", CellStyle.BAD if failed else CellStyle.GOOD))
    return tiles


def _row(key: str, figure: Figure, report: LoadReport) -> tuple[Cell, ...]:
    family = key.partition("_p")[0]
    clock = report.clocks.get(family, "client")
    if figure.value is None:
        return (Cell(key), Cell("-", CellStyle.DIM), Cell(figure.reason, CellStyle.DIM), Cell(str(figure.samples)), Cell(clock))
    between = "" if figure.low is None or figure.high is None else f"{figure.low:.4g} to {figure.high:.4g}"
    return (Cell(key), Cell(f"{figure.value:.4g}"), Cell(between), Cell(str(figure.samples)), Cell(clock))


def _verdict(cells: Sequence[LoadCell], settings: LoadSettings) -> Verdict:
    """First what makes the numbers worthless, then what was asked for."""
    values = settings.values
    for cell in cells:
        worthless = _worthless(cell)
        if worthless:
            return Verdict(VerdictKind.INCONCLUSIVE, f"{cell.name}: {worthless}")
    limit_pct = values.float("max_error_pct")
    for cell in cells:
        failed_pct = cell.report.counts["requests_failed"] / cell.report.counts["requests"] * 100
        if failed_pct > limit_pct:
            text = f"{failed_pct:.3g} % of requests failed, limit {limit_pct:g} % ({_outcomes(cell.report)})"
            return Verdict(VerdictKind.FAIL, f"{cell.name}: {text}")
    floor = values.float("min_attainment_pct")
    if floor:
        worst = min(cell.report.figures["slo_attainment_pct"].value or 0.0 for cell in cells)
        kind = VerdictKind.PASS if worst >= floor else VerdictKind.FAIL
        return Verdict(kind, f"{worst:.4g} % of requests keep the SLO, at least {floor:g} % must")
    return Verdict(VerdictKind.INFO, f"{cells[-1].report.counts['requests_ok']} requests were answered; no limit was stated")


def _worthless(cell: LoadCell) -> str:
    """Why the figures of a cell prove nothing; empty when they do."""
    one = cell.report
    if one.problems:
        return one.problems[0]
    if not one.counts["requests_ok"]:
        return f"no request of {one.counts['requests']} was answered: {_outcomes(one) or 'none was sent within the window'}"
    if one.limited:
        return f"the generator was the limit: {'; '.join(one.limited)}"
    return "the box was not fit while it was measured" if cell.validity == "invalid" else ""


def _outcomes(one: LoadReport) -> str:
    return ", ".join(f"{count} {name}" for name, count in one.outcomes.items())
