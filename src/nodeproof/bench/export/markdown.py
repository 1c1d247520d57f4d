"""Runs as Markdown, for tickets and pull requests. Whatever a text holds, it is shown and never rendered."""

import re
from collections.abc import Iterator, Sequence

from nodeproof.bench.export.plain import clean
from nodeproof.bench.export.sheet import Sheet, validity_of, when

__all__ = ["render_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~&:@])")


def render_markdown(sheets: Sequence[Sheet]) -> str:
    """A section a run."""
    return "\n".join(line for sheet in sheets for line in _section(sheet)).rstrip("\n") + "\n"


def _section(sheet: Sheet) -> Iterator[str]:
    record = sheet.record
    yield f"## {_text(record.benchmark_name or record.benchmark_id)}: {_text(str(record.verdict.kind))}"
    yield ""
    yield _text(record.verdict.reason)
    yield ""
    yield from _table(("", ""), [(name, text) for name, text in _facts(sheet) if text])
    for problem in sheet.problems:
        yield f"**Changed:** {_text(problem)}"
        yield ""
    for warning in dict.fromkeys(record.warnings):
        yield f"- warning: {_text(warning)}"
    if record.warnings:
        yield ""
    table = record.frame.table
    if table is not None:
        yield from _table([column.title for column in table.columns], [[cell.text for cell in row] for row in table.rows])
    if record.frame.metrics:
        yield from _table(("Metric", "Value"), [(key, f"{value:.6g}") for key, value in sorted(record.frame.metrics.items())])
    if record.params:
        yield from _table(("Parameter", "Value"), sorted(record.params.items()))


def _facts(sheet: Sheet) -> Iterator[tuple[str, str]]:
    record = sheet.record
    yield "Run", record.run_id
    yield "Ended", when(record)
    yield "Status", str(record.status)
    yield "Model", record.target_model
    yield "Endpoint", record.target_url
    yield "Box", validity_of(record)
    yield "Signed by", sheet.signed_by or "nobody"
    yield "Instrument", record.fingerprint


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(_text(cell) for cell in head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        cells = [*row, *[""] * len(head)][: len(head)]
        yield f"| {' | '.join(_text(cell) for cell in cells)} |"
    yield ""


def _text(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", clean(text))
