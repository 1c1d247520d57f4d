"""What is exported is read back by other people's readers, whatever the texts hold; only what is proven looks like it."""

import csv
import html.parser
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from nodeproof.bench.export.curves import Plot, Series, plots_of
from nodeproof.bench.export.junit import render_gate, render_junit
from nodeproof.bench.export.markdown import render_markdown
from nodeproof.bench.export.page import render_page
from nodeproof.bench.export.plain import clean
from nodeproof.bench.export.sheet import Distribution, Sheet, sheet_of, when
from nodeproof.bench.export.svg import draw, ticks
from nodeproof.bench.export.tabular import render_csv, render_json, render_openmetrics
from nodeproof.bench.gate.judgement import GateReport, Judgement, Standing
from nodeproof.model.hardware import Validity
from nodeproof.model.run import Align, Cell, Column, Provenance, ResultTable, RunRecord
from support.gate import NOW, Site, record

HOSTILE = "<script>alert(1)</script>\"'&]]>|`x`\n# =cmd() \x1b[31m\u202e\x00 ![a](http://evil.example/x) é中"
RENDER: dict[str, Callable[[Sequence[Sheet]], str]] = {
    "json": render_json,
    "csv": render_csv,
    "junit": render_junit,
    "openmetrics": render_openmetrics,
    "md": render_markdown,
    "html": render_page,
}


def sheet(made: RunRecord | None = None, *problems: str, run_id: str = "run-1", **changes: Any) -> Sheet:
    found = msgspec.structs.replace(made or record(**changes), run_id=run_id)
    return Sheet(found, problems, "" if problems else "ab12", (), ())


def hostile() -> Sheet:
    """Every text of a record says something evil."""
    made = record(metrics={"rate": 1.5, "c1_tok_s": 2.0, "c4_tok_s": 3.0, f"k{HOSTILE}": 4.0}, dataset=HOSTILE, box=HOSTILE)
    table = ResultTable(HOSTILE, (Column(HOSTILE), Column("n", Align.RIGHT)), ((Cell(HOSTILE), Cell("1")), (Cell(HOSTILE),)))
    frame = msgspec.structs.replace(
        made.frame, table=table, hardware_state={"perf_class": HOSTILE, "postcheck": {"validity": HOSTILE, "concerns": [HOSTILE]}}
    )
    made = msgspec.structs.replace(
        made,
        frame=frame,
        benchmark_name=HOSTILE,
        target_model=f"={HOSTILE}",
        target_url=HOSTILE,
        params={HOSTILE: HOSTILE},
        serve_overrides={HOSTILE: HOSTILE},
        warnings=(HOSTILE,),
        nodeproof_version=HOSTILE,
        provenance=(Provenance(HOSTILE, HOSTILE, HOSTILE, HOSTILE),),
        verdict=msgspec.structs.replace(made.verdict, reason=HOSTILE),
    )
    return sheet(made, HOSTILE)._replace(
        distributions=(Distribution(cell=HOSTILE, samples={"ttft": 2}, quantiles_ms={"ttft": [1.0, 2.0]}),)
    )


def xml(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own


class Reader(html.parser.HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_page_needs_nothing_else_and_renders_no_text_of_a_record() -> None:
    page = Reader()
    text = render_page([hostile(), sheet()])
    page.feed(text)
    assert set(page.tags) <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "section", "p", "span", "table", "thead", "tbody",
        "tr", "th", "td", "div", "ul", "li", "a", "figure", "figcaption", "svg", "line", "text", "polyline", "circle",
    }  # fmt: skip
    names = {name for name, _ in page.attributes}
    assert not {name for name in names if name.startswith("on")} | ({"src", "srcset", "action", "data"} & names)
    assert {value for name, value in page.attributes if name == "href"} == {"#run0", "#run1"}
    assert "url(" not in text
    assert "@import" not in text
    assert "default-src 'none'" in text
    assert "<script>alert(1)</script>" in page.text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_a_page_shows_everything_of_a_record() -> None:
    page = Reader()
    metrics = {
        f"c{load}_{key}": float(load) for load in (1, 4, 16) for key in ("aggregate_tok_s", "ttft_p50_ms", "slo_attainment_pct")
    }
    page.feed(render_page([sheet(kind="pass", metrics=metrics, serve_overrides={"quant": "fp8"})]))
    assert page.tags.count("svg") == 3
    for word in ("Toy", "run-1", "2027-01-15T07:59:00Z", "valid, h200@here", "ab12", "c16_ttft_p50_ms", "server quant", "fp8"):
        assert word in page.text, word
    assert ("class", "ok") in page.attributes


@pytest.mark.parametrize(
    "made",
    [
        sheet(kind="pass", validity=Validity.UNKNOWN),
        sheet(kind="pass", validity=Validity.INVALID),
        sheet(None, "record.json was changed", kind="pass"),
        sheet(kind="inconclusive"),
        sheet(kind="fail"),
        sheet(kind="info"),
        sheet(kind="pass", status="crashed"),
    ],
)
def test_what_is_not_proven_is_never_green(made: Sheet) -> None:
    assert 'class="ok"' not in render_page([made])
    case = xml(render_junit([made])).find(".//testcase")
    assert case is not None
    assert [child.tag for child in case if child.tag in {"failure", "error", "skipped"}] != []
    proven = [line for line in render_openmetrics([made]).splitlines() if line.startswith("nodeproof_bench_proven{")]
    assert [line.rpartition(" ")[2] for line in proven] == ["0.0"]


def test_junit_says_each_outcome() -> None:
    sheets = [
        sheet(kind="pass", run_id="run-1"),
        sheet(kind="fail", run_id="run-2"),
        sheet(kind="inconclusive", run_id="run-3"),
        sheet(kind="info", run_id="run-4"),
        sheet(record("other", kind="pass"), run_id="run-5"),
        hostile(),
    ]
    root = xml(render_junit(sheets))
    assert root.attrib["tests"] == "6"
    assert (root.attrib["failures"], root.attrib["errors"], root.attrib["skipped"]) == ("1", "2", "1")
    assert [suite.attrib["name"] for suite in root] == ["toy", "other"]
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.attrib["message"] == "fail, for a test"
    assert [case.attrib["name"] for case in root[1]] == ["m run-5"]
    assert [len(case) for case in root[1]] == [1]


def test_a_gate_as_junit() -> None:
    judgements = [
        Judgement(place=f"benchmarks[{n}]", id="toy", title="toy", required=required, standing=standing, reasons=["why <&>"])
        for n, (standing, required) in enumerate(
            [
                (Standing.PASS, True),
                (Standing.FAIL, True),
                (Standing.REFUSED, True),
                (Standing.MISSING, True),
                (Standing.FAIL, False),
            ]
        )
    ]
    report = GateReport(
        source="bench.toml", sha256="0", judged_at="t", passed=False, exit_code=2, trusted=[], judgements=judgements
    )
    root = xml(render_gate(report))
    found = [[child.tag for child in case if child.tag != "system-out"] for case in root[0]]
    assert found == [[], ["failure"], ["error"], ["error"], ["skipped"]]


def test_openmetrics_is_read_back_by_another_reader() -> None:
    old = sheet(metrics={"rate": 1.0}, recorded_at=NOW - 500, run_id="run-0")
    text = render_openmetrics([sheet(kind="pass", metrics={"rate": 25.5, "odd": math.inf}), old, hostile()])
    families = {family.name: family.samples for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]  # has no types
    values = [one for one in families["nodeproof_bench_value"] if one.labels["model"] == "m"]
    assert [(one.labels["metric"], one.value, one.labels["run"]) for one in values] == [("rate", 25.5, "run-1")]
    proven = {one.labels["model"]: one.value for one in families["nodeproof_bench_proven"]}
    assert proven["m"] == 1.0
    verdicts = {one.labels["verdict"]: one.value for one in families["nodeproof_bench_verdict"] if one.labels["model"] == "m"}
    assert verdicts == {"pass": 1.0, "fail": 0.0, "inconclusive": 0.0, "info": 0.0}
    assert text.endswith("# EOF\n")


def test_csv_is_read_back_and_holds_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(render_csv([sheet(metrics={"b": 0.1, "a": -2.0}), hostile(), sheet(metrics={})]))))
    assert [(row["metric"], row["value"]) for row in rows[:2]] == [("a", "-2.0"), ("b", "0.1")]
    assert (rows[0]["run_id"], rows[0]["box"], rows[0]["unchanged"], rows[0]["signed_by"]) == ("run-1", "valid", "yes", "ab12")
    assert (rows[-1]["metric"], rows[-1]["value"]) == ("", "")
    for row in rows:
        for name, cell in row.items():
            assert name == "value" or not cell.startswith(("=", "+", "-", "@")), (name, cell)
    assert {row["unchanged"] for row in rows[2:-1]} == {"no"}


def test_json_holds_the_whole_record() -> None:
    found = json.loads(render_json([sheet(), hostile()]))
    assert found["schema"] == "nodeproof.export/1"
    assert msgspec.convert(found["runs"][0]["record"], RunRecord) == sheet().record
    assert (found["runs"][0]["unchanged"], found["runs"][0]["signed_by"]) == (True, "ab12")
    assert (found["runs"][1]["unchanged"], found["runs"][1]["signed_by"]) == (False, None)


def test_markdown_renders_no_text_of_a_record() -> None:
    text = render_markdown([hostile()])
    for line in text.splitlines():
        bare = re.sub(r"\\.", "", line)
        assert not re.search(r"[<>`]|!\[|\]\(", bare), line
        if line.startswith("|"):
            assert bare.count("|") in {3, 4}, line
    assert render_markdown([sheet()]).startswith("## Toy: info\n")
    assert "| rate | 25 |" in render_markdown([sheet()])


@pytest.mark.parametrize("name", RENDER)
def test_every_form_takes_none_and_many(name: str) -> None:
    assert RENDER[name]([])
    assert RENDER[name]([sheet(), hostile(), sheet(metrics={})])


@given(st.text())
def test_clean_text_has_one_line_and_nothing_that_steers(text: str) -> None:
    assert clean(text).isprintable()


_NUMBER = st.floats() | st.sampled_from([0.0, -0.0, 1e308, 5e-324, 1e-9, -1.0])


@given(st.lists(st.lists(st.tuples(_NUMBER, _NUMBER), max_size=6), max_size=3), st.text(max_size=5))
def test_any_points_are_drawn_or_left_out(series: list[list[tuple[float, float]]], name: str) -> None:
    found = draw(Plot(name, name, name, tuple(Series(name, tuple(points)) for points in series)))
    assert "nan" not in found
    assert "inf" not in re.sub(r"<text.*?</text>|<title>.*?</title>|aria-label=\"[^\"]*\"|<p.*", "", found)
    if found:
        root = xml(found[: found.index("</svg>")] + "</svg>")
        for line in root.iter("polyline"):
            for pair in line.attrib["points"].split():
                x, y = (float(part) for part in pair.split(","))
                assert -1 <= x <= 561
                assert -1 <= y <= 301


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (0, 1280, [0, 500, 1000, 1500]),
        (3.2, 4.1, [3.2, 3.4, 3.6, 3.8, 4.0, 4.2]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks_are_round(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_what_can_be_plotted() -> None:
    metrics = {"c1_tok_s": 1.0, "c2_tok_s": 2.0, "c1_ttft_p50_ms": 3.0, "ttft_p50_ms": 1.0, "ttft_p99_ms": 2.0, "r2.5_tok_s": 1.0}
    found = plots_of(sheet(metrics=metrics))
    assert [(plot.title, plot.x_name) for plot in found] == [
        ("Throughput", "concurrency"),
        ("Percentiles of latency", "percentile"),
    ]
    assert found[0].series == (Series("tok_s", ((1.0, 1.0), (2.0, 2.0))),)
    assert found[1].series == (Series("ttft", ((50.0, 1.0), (99.0, 2.0))),)
    one = Distribution(cell="c8", samples={}, quantiles_ms={"ttft": [1.0, 2.0, 4.0], "odd": [1.0, 2.0]})
    with_samples = plots_of(sheet(metrics=metrics)._replace(distributions=(one,)))
    assert with_samples[1].title == "Latency of c8"
    assert with_samples[1].series == (Series("ttft", ((1.0, 0.0), (2.0, 50.0), (4.0, 100.0))),)


def test_a_sheet_of_a_stored_run(tmp_path: Path) -> None:
    site = Site(tmp_path)
    run = site.store.claim(record())
    good = Distribution(cell="cell0", samples={"ttft": 2}, quantiles_ms={"ttft": [1.0, 2.0]})
    Path(run.file_path("cell0-distribution.json")).write_bytes(msgspec.json.encode(good))
    Path(run.file_path("cell1-distribution.json")).write_bytes(b"{")
    run.publish(msgspec.structs.replace(record(), run_id=run.run_id))
    stored = site.store.inspect(run.run_id)
    found = sheet_of(stored, [], "ab")
    assert found.distributions == (good,)
    assert [file.name for file in found.files] == ["cell0-distribution.json", "cell1-distribution.json"]
    (Path(stored.path) / "manifest.json").chmod(0o640)
    (Path(stored.path) / "manifest.json").write_bytes(b"{")
    assert sheet_of(stored, ["changed"], "").files == ()


def test_a_time_of_no_world() -> None:
    assert when(record(recorded_at=1e300)) == "at no time of this world"
