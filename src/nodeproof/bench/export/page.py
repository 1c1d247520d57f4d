"""Runs as one HTML page that needs nothing else: no script, no request, its plots inside. Every text is escaped."""

from collections.abc import Iterator, Sequence
from html import escape

from nodeproof.bench.export.curves import plots_of
from nodeproof.bench.export.plain import clean
from nodeproof.bench.export.sheet import Sheet, validity_of, when
from nodeproof.bench.export.svg import draw
from nodeproof.model.hardware import Validity
from nodeproof.model.run import Align, RunRecord, VerdictKind

__all__ = ["render_page"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_STYLE = """
:root{color-scheme:light dark;--back:light-dark(#fff,#14171a);--text:light-dark(#1b1f23,#e4e7ea);
--dim:light-dark(#57606a,#9aa4ae);--line:light-dark(#d0d7de,#30363d);
--ok:light-dark(#1a7f37,#57c77a);--bad:light-dark(#b42318,#ff8a80);--warn:light-dark(#8a5a00,#e3b341)}
body{background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.5rem}h2{font-size:1.25rem;margin-top:2.5rem;border-top:1px solid var(--line);padding-top:1.5rem}h3{font-size:1rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{border-bottom:1px solid var(--line);padding:.2rem .8rem .2rem 0;text-align:left;vertical-align:top}
.right{text-align:right}.dim{color:var(--dim)}.ok{color:var(--ok)}.bad{color:var(--bad)}
.warn{color:var(--warn)}.hash{font-family:ui-monospace,monospace;font-size:.8rem;overflow-wrap:anywhere}
.scroll{overflow-x:auto}.plots{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0;flex:1 1 26rem;max-width:40rem}
figcaption{font-weight:600}svg{width:100%;height:auto}svg text{font-size:12px;fill:var(--dim)}
.grid{stroke:var(--line);stroke-width:1}
polyline{fill:none;stroke-width:2}.legend{margin:0}.legend span{margin-right:1rem}.legend span::before{content:"\\25A0 "}
@media print{figure{break-inside:avoid}}
"""
_COLOURS = ("#0969da,#58a6ff", "#bc4c00,#f0883e", "#1a7f37,#57c77a", "#8250df,#bc8cff", "#bf3989,#f778ba", "#6e7781,#8b949e",
            "#9a6700,#e3b341", "#0a7ea4,#39c5cf")  # fmt: skip
_TONES = {VerdictKind.PASS: "ok", VerdictKind.FAIL: "bad", VerdictKind.INCONCLUSIVE: "warn", VerdictKind.INFO: "dim"}


def render_page(sheets: Sequence[Sheet]) -> str:
    """A section a run, and a list of them where there are several."""
    title = "Benchmarks" if len(sheets) != 1 else sheets[0].record.benchmark_name or sheets[0].record.benchmark_id
    sections = "".join(part for number, sheet in enumerate(sheets) for part in _section(number, sheet))
    colours = "".join(
        f"polyline.s{number},circle.s{number}{{stroke:light-dark({pair})}}circle.s{number}{{fill:light-dark({pair})}}"
        f".legend .s{number}::before{{color:light-dark({pair})}}"
        for number, pair in enumerate(_COLOURS, 1)
    )
    contents = _contents(sheets) if len(sheets) > 1 else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="referrer" content="no-referrer">'
        f"<title>{_text(title)}</title><style>{_STYLE}{colours}</style></head>"
        f"<body><h1>{_text(title)}</h1>{contents}{sections}</body></html>\n"
    )


def _contents(sheets: Sequence[Sheet]) -> str:
    rows = [
        f'<tr><td><a href="#run{number}">{_text(one.record.benchmark_name or one.record.benchmark_id)}</a></td>'
        f"<td>{_text(one.record.target_model)}</td><td>{_text(when(one.record))}</td><td>{_verdict(one)}</td></tr>"
        for number, one in enumerate(sheets)
    ]
    return _table_html(("Benchmark", "Model", "Ended", "Verdict"), "".join(rows))


def _section(number: int, sheet: Sheet) -> Iterator[str]:
    record = sheet.record
    yield f'<section id="run{number}"><h2>{_text(record.benchmark_name or record.benchmark_id)}: {_verdict(sheet)}</h2>'
    yield f"<p>{_text(record.verdict.reason)}</p>"
    yield from (f'<p class="bad">Changed: {_text(problem)}</p>' for problem in sheet.problems)
    yield _facts(sheet)
    yield from (f'<p class="warn">{_text(warning)}</p>' for warning in dict.fromkeys(record.warnings))
    yield _plots(sheet)
    yield _result(record)
    yield _pairs("Numbers", "Metric", [(key, f"{value:.6g}") for key, value in sorted(record.frame.metrics.items())])
    yield _pairs("What was asked", "Parameter", [*sorted(record.params.items()), *_settings(record)])
    yield _box(record)
    yield _hashes(sheet)
    yield "</section>"


def _verdict(sheet: Sheet) -> str:
    """A pass on a box that was not seen to be fit, or of changed bytes, is not green."""
    kind = sheet.record.verdict.kind
    tone = _TONES[kind] if kind is not VerdictKind.PASS or sheet.proven else "warn"
    return f'<span class="{tone}">{_text(str(kind))}</span>'


def _facts(sheet: Sheet) -> str:
    record = sheet.record
    validity = validity_of(record)
    facts = (
        ("Run", record.run_id),
        ("Ended", when(record)),
        ("Status", str(record.status)),
        ("Model", record.target_model),
        ("Endpoint", record.target_url),
        ("Box", f"{validity}, {(record.frame.hardware_state or {}).get('perf_class', '') or 'unknown'}"),
        ("Signed by", sheet.signed_by or "nobody"),
        ("Instrument", record.fingerprint),
        ("nodeproof", record.nodeproof_version),
    )
    rows = "".join(f"<tr><th>{name}</th><td>{_text(text)}</td></tr>" for name, text in facts if text)
    return f"<table>{rows}</table>"


def _plots(sheet: Sheet) -> str:
    drawn = [(plot.title, draw(plot)) for plot in plots_of(sheet)]
    figures = "".join(f"<figure><figcaption>{_text(title)}</figcaption>{svg}</figure>" for title, svg in drawn if svg)
    return f'<div class="plots">{figures}</div>' if figures else ""


def _result(record: RunRecord) -> str:
    table = record.frame.table
    if table is None:
        return ""
    sides = ["right" if column.align is Align.RIGHT else "" for column in table.columns]
    sides += [""] * max((len(row) - len(sides) for row in table.rows), default=0)
    rows = "".join(
        f"<tr>{''.join(_cell(cell.text, side) for cell, side in zip(row, sides, strict=False))}</tr>" for row in table.rows
    )
    return f"<h3>{_text(table.title)}</h3>{_table_html([column.title for column in table.columns], rows, sides)}"


def _settings(record: RunRecord) -> list[tuple[str, str]]:
    return [(f"server {key}", text) for key, text in sorted(record.serve_overrides.items())]


def _pairs(title: str, head: str, rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    body = "".join(f'<tr><td>{_text(key)}</td><td class="right">{_text(value)}</td></tr>' for key, value in rows)
    return f"<h3>{title}</h3>{_table_html((head, 'Value'), body, ('', 'right'))}"


def _box(record: RunRecord) -> str:
    state = record.frame.hardware_state or {}
    lines = []
    for name in ("precheck", "postcheck"):
        check = state.get(name)
        concerns = check.get("concerns") if isinstance(check, dict) else None
        lines += [f"<li>{_text(str(concern))}</li>" for concern in concerns] if isinstance(concerns, list) else []
    if validity_of(record) == Validity.UNKNOWN and not lines:
        lines = ["<li>nothing is known of the box during this run</li>"]
    return f"<h3>The box</h3><ul>{''.join(lines)}</ul>" if lines else ""


def _hashes(sheet: Sheet) -> str:
    record = sheet.record
    rows = "".join(
        f'<tr><td>{_text(one.name)}</td><td>{_text(one.version)}</td><td class="hash">{_text(one.sha256)}</td></tr>'
        for one in record.provenance
    )
    rows += "".join(
        f'<tr><td>{_text(file.name)}</td><td>{file.bytes} bytes</td><td class="hash">{_text(file.sha256)}</td></tr>'
        for file in sheet.files
    )
    return f"<h3>What ran, and what it left</h3>{_table_html(('Name', '', 'SHA-256'), rows)}" if rows else ""


def _table_html(head: Sequence[str], rows: str, sides: Sequence[str] = ()) -> str:
    cells = "".join(
        f'<th scope="col"{_class(sides[place] if place < len(sides) else "")}>{_text(name)}</th>'
        for place, name in enumerate(head)
    )
    return f'<div class="scroll"><table><thead><tr>{cells}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(text: str, side: str) -> str:
    return f"<td{_class(side)}>{_text(text)}</td>"


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _text(text: str) -> str:
    return escape(clean(text), quote=True)
