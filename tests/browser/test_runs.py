"""The runs page: real records of the store, two against each other, and plots of a benchmark's numbers."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Page, expect

from nodeproof.model.run import RunSource, RunStatus, VerdictKind
from nodeproof.runs.index import RunSummary
from nodeproof.stress.manager import Manager
from nodeproof.web.run_wire import RunList, RunView
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
