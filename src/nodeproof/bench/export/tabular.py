"""Runs as JSON, CSV and OpenMetrics: for programs and spreadsheets."""

import csv
import io
import math
from collections.abc import Iterator, Sequence

import msgspec

from nodeproof.bench.export.plain import clean
from nodeproof.bench.export.sheet import Sheet, validity_of, when
from nodeproof.model.run import RunStatus, VerdictKind

__all__ = ["render_csv", "render_json", "render_openmetrics"]

_SCHEMA = "nodeproof.export/1"
_COLUMNS = (
    "run_id", "benchmark_id", "model", "target_url", "ended", "status", "verdict", "box", "signed_by", "unchanged", "fingerprint",
    "metric", "value",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render_json(sheets: Sequence[Sheet]) -> str:
    """Whole records, each with what is known of its bytes."""
    runs = [
        {
            "record": sheet.record,
            "unchanged": not sheet.problems,
            "problems": sheet.problems,
            "signed_by": sheet.signed_by or None,
        }
        for sheet in sheets
    ]
    return msgspec.json.format(msgspec.json.encode({"schema": _SCHEMA, "runs": runs}), indent=2).decode() + "\n"


def render_csv(sheets: Sequence[Sheet]) -> str:
    """One line a metric; a run without metrics has one line, without a value."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    for sheet in sheets:
        record = sheet.record
        head = (
            record.run_id,
            record.benchmark_id,
            record.target_model,
            record.target_url,
            when(record),
            str(record.status),
            str(record.verdict.kind),
            validity_of(record),
            sheet.signed_by,
            "no" if sheet.problems else "yes",
            record.fingerprint,
        )
        cells = [_cell(text) for text in head]
        metrics = sorted(record.frame.metrics.items()) or [("", math.nan)]
        for key, value in metrics:
            writer.writerow([*cells, _cell(key), repr(value) if math.isfinite(value) else ""])
    return out.getvalue()


def _cell(text: str) -> str:
    """A spreadsheet takes a text that begins like a formula for one, and runs it; an apostrophe in front makes it text."""
    safe = clean(text)
    return f"'{safe}" if safe.startswith(_FORMULA) or text.startswith(_FORMULA) else safe


def render_openmetrics(sheets: Sequence[Sheet]) -> str:
    """The newest run of each instrument and model, as gauges."""
    newest: dict[tuple[str, str, str], Sheet] = {}
    for sheet in sorted(sheets, key=lambda one: (one.record.recorded_at, one.record.run_id)):
        newest[sheet.record.benchmark_id, sheet.record.target_model, sheet.record.fingerprint] = sheet
    chosen = list(newest.values())
    lines = [*_family("nodeproof_bench_value", "Metric of the newest run, in the unit that its key ends with.")]
    for sheet in chosen:
        for key, value in sorted(sheet.record.frame.metrics.items()):
            if math.isfinite(value):
                lines.append(_sample("nodeproof_bench_value", sheet, value, metric=key))
    lines += _family("nodeproof_bench_proven", "1 when the newest run passed, unchanged, on a box that was fit; else 0.")
    lines += [_sample("nodeproof_bench_proven", sheet, float(sheet.proven)) for sheet in chosen]
    lines += _family("nodeproof_bench_verdict", "1 for the verdict of the newest run, 0 for the others.")
    for sheet in chosen:
        for kind in VerdictKind:
            lines.append(_sample("nodeproof_bench_verdict", sheet, float(sheet.record.verdict.kind is kind), verdict=str(kind)))
    lines += _family("nodeproof_bench_completed", "1 when the newest run came to its end.")
    lines += [_sample("nodeproof_bench_completed", sheet, float(sheet.record.status is RunStatus.COMPLETED)) for sheet in chosen]
    lines += _family("nodeproof_bench_recorded_timestamp_seconds", "When the newest run ended.", unit="seconds")
    lines += [_sample("nodeproof_bench_recorded_timestamp_seconds", sheet, sheet.record.recorded_at) for sheet in chosen]
    return "\n".join([*lines, "# EOF", ""])


def _family(name: str, text: str, unit: str = "") -> Iterator[str]:
    yield f"# TYPE {name} gauge"
    if unit:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {text}"


def _sample(name: str, sheet: Sheet, value: float, **labels: str) -> str:
    record = sheet.record
    every = {
        "benchmark": record.benchmark_id,
        "model": record.target_model,
        "instrument": record.fingerprint[:12],
        "run": record.run_id,
        **labels,
    }
    inside = ",".join(f'{key}="{_label(text)}"' for key, text in every.items())
    return f"{name}{{{inside}}} {value!r}"


def _label(text: str) -> str:
    return clean(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
