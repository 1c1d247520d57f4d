"""The runs page: real records of the store, two against each other, and plots of a benchmark's numbers."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Page, expect

from nodeproof.bench.compare.box import BoxDifference
from nodeproof.bench.compare.conditions import Difference
from nodeproof.bench.compare.pair import MetricPair, RunComparison, Word
from nodeproof.model.hardware import DeviceState, LiveSample
from nodeproof.model.live_job import LivePoint
from nodeproof.model.live_run import LiveRun
from nodeproof.model.run import RunSource, RunStatus, Stage, VerdictKind
from nodeproof.runs.index import RunSummary
from nodeproof.stress.manager import Manager
from nodeproof.web.run_wire import RunFile, RunList, RunView
from support.page_documents import Answers
from support.stress import run_job

OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(60)


def test_a_record_has_its_numbers_files_and_log(open_page: OpenPage, manager: Manager, tmp_path: Path) -> None:
    run_id = run_job(manager, "stream").benchmarks[0].run_id
    page = open_page("#/runs")
    page.locator("tbody a").click()
    expect(page.locator("h1")).to_have_text("STREAM")
    expect(page.locator("h1 + .status")).to_have_text("pass")
    expect(page.locator(".verdict_of")).to_contain_text("Box: unknown")
    expect(page.locator(".verdict_of")).to_have_class(re.compile(r"\bwarn\b"))
    number = page.locator(".facts div", has_text="triad_mb_s").locator("button")
    expect(number).to_have_text("10,000 MB/s")
    number.click()
    expect(page.locator("dialog")).to_contain_text(run_id)
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    with page.expect_download() as download:
        page.get_by_role("link", name="output.log").click()
    assert b"Triad:          10000.0" in Path(str(download.value.path())).read_bytes()
    page.get_by_text("Log", exact=True).click()
    expect(page.locator(".log .stage")).to_have_count(8)
    page.get_by_text("All runs").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def test_two_runs_are_held_against_each_other(open_page: OpenPage, manager: Manager) -> None:
    first, second = (run_job(manager, "stream").benchmarks[0].run_id for _ in range(2))
    page = open_page("#/runs")
    boxes = page.locator("tbody input")
    boxes.nth(0).check()
    expect(page.get_by_text("Choose two to compare them")).to_be_visible()
    boxes.nth(1).check()
    page.get_by_role("link", name="Compare the two").click()
    expect(page.locator("h1 + .status")).to_have_text("not comparable")
    expect(page.locator(".head .rows .warn").first).to_contain_text("the box was not seen to be fit")
    expect(page.locator("main")).to_contain_text("Everything that decides a number was the same.")
    expect(page.locator("tr", has_text="triad_mb_s")).to_have_text(re.compile(r"10,000\s*10,000\s*\+0\.00 %"))
    assert page.url.endswith(f"#/runs/compare/{first}/{second}")


def test_a_run_that_is_not_there_says_so(open_page: OpenPage) -> None:
    page = open_page("#/runs/run-1", may_complain=True)
    expect(page.locator("h1")).to_have_text("No such run")


def test_without_records_the_page_says_how_to_get_some(open_page: OpenPage) -> None:
    expect(open_page("#/runs").locator(".empty")).to_contain_text("nodeproof stress --plan quick")


@pytest.fixture
def sweep(manager: Manager) -> RunView:
    """The record of a sweep over concurrency: a real one with the numbers of another."""
    stored = manager.runs.inspect(run_job(manager, "stream").benchmarks[0].run_id)
    metrics = {
        f"c{load}_{key}": value * load for load in (1, 4, 16) for key, value in (("aggregate_tok_s", 80.0), ("ttft_p50_ms", 9.5))
    }
    metrics |= {
        "ttft_p50_ms": 20.0,
        "ttft_p90_ms": 40.0,
        "ttft_p99_ms": 95.5,
        "c1_slo_attainment": 1.0,
        "c16_slo_attainment": 0.5,
    }
    frame = msgspec.structs.replace(stored.record.frame, metrics=metrics)
    record = msgspec.structs.replace(
        stored.record, benchmark_id="concurrency-sweep", benchmark_name="Concurrency sweep", frame=frame
    )
    return RunView(
        run_id=record.run_id,
        going_on=False,
        record=record,
        files=[],
        problems=["output.log was changed: its SHA-256 is not the stored one"],
    )


def test_numbers_by_load_are_plotted(open_page: OpenPage, sweep: RunView) -> None:
    page = open_page(f"#/runs/{sweep.run_id}", answers=Answers({f"/api/runs/{sweep.run_id}": sweep}))
    expect(page.locator("[role=alert]")).to_have_text("output.log was changed: its SHA-256 is not the stored one")
    plots = page.locator(".trend")
    expect(plots.locator("canvas")).to_have_count(4)
    titles = [plot.locator("strong").inner_text() for plot in plots.all()]
    assert sorted(titles) == ["Distribution of ttft", "Latency", "SLO attainment", "Throughput"]
    throughput = plots.nth(titles.index("Throughput"))
    throughput.locator("summary").click()
    expect(throughput.locator("tbody tr")).to_have_text([re.compile("1.*80"), re.compile("4.*320"), re.compile("16.*1,280")])


LIVE = LiveRun(
    run_id="run-1",
    at=1796091000.0,
    elapsed_s=75.0,
    stage=Stage.RUN,
    status="c16: 120 answers, 16 under way",
    done=3,
    total=8,
    box=LiveSample(
        at=1796091000.0, mono_s=10.0, busy_share=0.5, cpu_temp_c=61.0, throttle_share=0.2,
        devices=[DeviceState(device="gpu0", name="H200", temp_c=70.0, clock_mhz=1980.0)],
    ),
    strip=[LivePoint(at=1796090999.0 + n, busy_share=0.4 + n / 10, cpu_temp_c=60.0) for n in range(2)],
)  # fmt: skip


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_a_benchmark_that_goes_on_is_shown_with_its_box(open_page: OpenPage, sweep: RunView, locale: str) -> None:
    going_on = msgspec.structs.replace(sweep, run_id="run-1", going_on=True, problems=[], live=LIVE)
    messages = {"run_id": "run-1", "going_on": True, "messages": [], "next": 0}
    page = open_page(
        "#/runs/run-1", locale=locale, answers=Answers({"/api/runs/run-1": going_on, "/api/runs/run-1/messages": messages})
    )
    strip = page.locator(".running")
    expect(strip.locator(".cell")).to_have_count(8)
    expect(strip.locator("progress")).to_have_attribute("value", "3")
    expect(strip).to_contain_text("c16: 120 answers, 16 under way")
    expect(strip).to_contain_text("1.98 GHz")
    expect(strip.locator(".cell.warn")).to_have_count(1)
    expect(strip).to_contain_text("so far" if locale == "en-US" else "已进行")


def test_a_benchmark_whose_owner_tells_nothing_says_so(open_page: OpenPage, sweep: RunView) -> None:
    going_on = msgspec.structs.replace(sweep, run_id="run-1", going_on=True, problems=[])
    messages = {"run_id": "run-1", "going_on": True, "messages": [], "next": 0}
    page = open_page("#/runs/run-1", answers=Answers({"/api/runs/run-1": going_on, "/api/runs/run-1/messages": messages}))
    expect(page.locator(".running")).to_be_visible()
    expect(page.locator(".running .cell")).to_have_count(0)


def test_the_distribution_of_each_cell_is_plotted_from_its_file(open_page: OpenPage, sweep: RunView) -> None:
    file = {
        "cell": "cell0",
        "samples": {"requests": 9},
        "quantiles_ms": {"ttft": [1.0, 2.0, 9.0], "e2e": [10.0, 20.0, 90.0], "odd": "x"},
    }
    view = msgspec.structs.replace(sweep, files=[RunFile("cell0-distribution.json", 90, "ab" * 32)])
    path = f"/api/runs/{sweep.run_id}"
    page = open_page(f"#/runs/{sweep.run_id}", answers=Answers({path: view, f"{path}/files/cell0-distribution.json": file}))
    plot = page.locator(".trend", has_text="Latency of cell0")
    expect(plot.locator("canvas")).to_have_count(1)
    plot.locator("summary").click()
    expect(plot.locator("thead")).to_have_text(re.compile("ttft.*e2e"))
    expect(plot.locator("tbody tr").nth(1)).to_have_text(re.compile("50.*2.*20"))
    expect(page.locator(".trend", has_text="Distribution of")).to_have_count(0)


def test_a_comparison_says_what_each_difference_means(open_page: OpenPage) -> None:
    found = RunComparison(
        first="run-1",
        second="run-2",
        comparable=True,
        refused=False,
        reasons=[],
        conditions=[Difference("nodeproof", "1", "2")],
        box=[BoxDifference("memory, kB", "1", "2")],
        metrics=[
            MetricPair(key="ttft_p50_ms", first=10.0, second=12.0, change=0.2, noise=0.01, noise_runs=5, word=Word.WORSE),
            MetricPair(key="samples", first=1.0, second=2.0, change=1.0, word=Word.UNKNOWN, reason="no scatter"),
        ],
    )
    page = open_page("#/runs/compare/run-1/run-2", answers=Answers({"/api/runs/compare": found}))
    row = page.locator("tr", has_text="ttft_p50_ms")
    expect(row.locator(".status.bad")).to_have_text("worse")
    expect(row).to_contain_text("± 1.00 %")
    expect(page.locator("tr", has_text="samples")).to_contain_text("no scatter")
    expect(page.get_by_role("heading", name="Boxes that differ")).to_be_visible()
    refused = msgspec.structs.replace(found, comparable=False, refused=True, metrics=[], box=[], reasons=["not the same was run"])
    page = open_page("#/runs/compare/run-1/run-2", locale="zh-CN", answers=Answers({"/api/runs/compare": refused}))
    expect(page.locator("main")).to_contain_text("没有可对照的数值")


def test_a_thousand_records_can_be_filtered(open_page: OpenPage) -> None:
    runs = [
        RunSummary(
            run_id=f"run-{number}", benchmark_id="stream" if number % 2 else "quick-speed", recorded_at=1796091000.0 + number,
            status=RunStatus.COMPLETED, verdict=VerdictKind.PASS if number % 3 else VerdictKind.INCONCLUSIVE, exit_code=0,
            source=RunSource.CLI, target_model="", fingerprint="ab" * 32, bytes=1000,
        )
        for number in range(1000)
    ]  # fmt: skip
    page = open_page("#/runs", answers=Answers({"/api/runs": json.loads(msgspec.json.encode(RunList(going_on=[], runs=runs)))}))
    expect(page.locator("tbody tr")).to_have_count(1000)
    page.keyboard.press("/")
    page.keyboard.type("inconclusive")
    expect(page.locator("tbody tr")).to_have_count(334)
    expect(page.locator("tbody .status.ok")).to_have_count(0)
