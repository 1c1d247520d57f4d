"""The stress page: what could run and why not, a job that runs, how one ended, and what stands behind each number."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from nodeproof.web.stress_wire import Now
from support import page_documents as documents
from support.page_documents import JOB, Answers

OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(60)


def test_an_item_that_cannot_run_says_why_on_its_card(open_page: OpenPage) -> None:
    page = open_page("stress/", answers=documents.stress_answers())
    card = page.locator(".item", has_text="NPU burn")
    expect(card.locator(".reason")).to_have_text("no Ascend device answers: npu-smi is not installed")
    expect(card.locator("input")).to_be_disabled()
    expect(page.locator(".item", has_text="STREAM").locator("input")).to_be_checked()
    expect(page.locator(".item input:checked")).to_have_count(1)
    page.locator(".item", has_text="STREAM").locator("summary").click()
    expect(page.locator(".item", has_text="STREAM")).to_contain_text("80000000")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"feature_enabled": False}, "stress.enabled"),
        ({"web_enabled": False}, "stress.web_enabled"),
        ({"loopback": False}, "operator's token"),
        ({"shared_report": False}, "stress.report_path"),
        ({"platform": "darwin"}, "darwin"),
    ],
)
def test_a_page_that_may_not_start_says_which_setting_forbids_it(
    open_page: OpenPage, change: dict[str, object], words: str
) -> None:
    answers = documents.stress_answers({"/api/stress/config": documents.config(enabled=False, **change)})
    page = open_page("stress/", answers=answers)
    expect(page.locator(".note.warn")).to_contain_text(words)
    expect(page.locator(".go")).to_be_disabled()


def test_a_start_asks_once_more_and_sends_what_was_chosen(open_page: OpenPage) -> None:
    answers = documents.stress_answers({"POST /api/stress/runs": documents.running()})
    page = open_page("stress/", answers=answers)
    page.locator(".item", has_text="HPL").locator("input").check()
    page.get_by_label("Limit of each item").fill("601")
    expect(page.locator(".go")).to_be_disabled()
    expect(page.get_by_role("alert")).to_contain_text("from 1 to 600")
    page.get_by_label("Limit of each item").fill("90")
    page.locator(".go").click()
    box = page.locator("dialog")
    expect(box).to_contain_text("64 workers · limit 90 s · configuration 5f5f5f5f5f5f")
    assert answers.asked == []
    answers.bodies["/api/stress/live"] = Now(report=documents.running(), live=documents.live())
    box.locator(".go").click()
    expect(page.locator(".running h2")).to_have_text("STREAM · item 1 of 2")
    ((_, path, (headers, body)),) = answers.asked
    assert path == "/api/stress/runs"
    assert headers["content-type"] == "application/json"
    assert headers["x-nodeproof-action"] == "stress"
    assert body == {"benchmarks": ["hpl", "stream"], "timeout_seconds": 90, "plan": "quick"}


def test_a_running_job_shows_progress_and_the_box(open_page: OpenPage) -> None:
    page = open_page("stress/", answers=documents.stress_answers(report=documents.running(), now=documents.live()))
    panel = page.locator(".running")
    expect(panel.locator("progress")).to_have_attribute("value", "30")
    expect(panel.locator("progress")).to_have_attribute("max", "120")
    expect(panel).to_contain_text("30 s of at most 10 min · about 90 s to go")
    cells = {cell.locator("p").first.inner_text(): cell.locator("p").nth(1).inner_text() for cell in panel.locator(".cell").all()}
    assert cells["Rate"] == "929 GB/s"
    assert cells["CPU temperature"] == "89 °C"
    assert cells["Frequency"] == "3,100 MHz"
    assert cells["Throttled"] == "0 %"
    assert cells["Memory stall"] == "1.20 %"
    assert cells["CPU busy"] == "not readable here"
    expect(panel.locator("tr", has_text="gpu1")).to_contain_text("hw_thermal")
    panel.locator(".cell", has_text="CPU temperature").locator("button").click()
    expect(page.locator("dialog")).to_contain_text("The hottest processor sensor.")
    page.keyboard.press("Escape")
    expect(page.locator(".item, .go")).to_have_count(0)


def test_a_box_with_others_on_it_is_marked(open_page: OpenPage) -> None:
    told = documents.live(foreign_share=0.4, foreign_top=["4711 python 40.0 %"])
    page = open_page("stress/", answers=documents.stress_answers(report=documents.running(), now=told))
    expect(page.locator(".running .note.warn")).to_contain_text("4711 python 40.0 %")
    expect(page.locator(".cell.warn")).to_contain_text("Others")


def test_a_cancel_asks_once_more(open_page: OpenPage) -> None:
    answers = documents.stress_answers(
        {f"POST /api/stress/runs/{JOB}/cancel": {"ok": True}}, report=documents.running(), now=documents.live()
    )
    page = open_page("stress/", answers=answers)
    page.locator(".running .danger").click()
    page.locator("dialog .actions button").first.click()
    expect(page.locator("dialog")).to_have_count(0)
    assert answers.asked == []
    page.locator(".running .danger").click()
    page.locator("dialog .danger").click()
    expect(page.locator(".running .danger")).to_have_text("Cancelling …")
    assert [path for _, path, _ in answers.asked] == [f"/api/stress/runs/{JOB}/cancel"]


def test_a_job_of_somebody_else_is_shown_without_a_way_to_cancel(open_page: OpenPage) -> None:
    page = open_page(
        "stress/", answers=documents.stress_answers(report=documents.running(cancellable=False), now=documents.live())
    )
    expect(page.locator(".running")).to_contain_text("This job cannot be cancelled from here.")
    expect(page.locator(".danger")).to_have_count(0)


def test_each_benchmark_is_shown_in_its_own_unit_with_its_evidence(open_page: OpenPage) -> None:
    page = open_page("stress/", answers=documents.stress_answers())
    stream = page.locator(".result", has_text="STREAM")
    expect(stream.locator("rect")).to_have_count(4)
    widths = [float(str(rect.get_attribute("width"))) for rect in stream.locator("rect").all()]
    assert widths == [100.0, 47.2, 48.6, 50.0]
    expect(stream.locator(".past")).to_contain_text("3 comparable runs, median 180,001 MB/s")
    expect(page.locator(".result", has_text="HPL").locator(".big")).to_have_text("1,017 GFLOP/s")
    expect(page.locator(".result", has_text="NPU burn").locator(".big")).to_contain_text("7 passed")
    expect(page.locator(".result", has_text="NPU burn").locator(".big .bad")).to_contain_text("1 failed")
    stream.locator(".bars button").last.click()
    box = page.locator("dialog")
    for text in ("180000.5 MB/s", "all three arrays validate", "stdout:29  Triad:", "5f" * 32, "ab" * 32, JOB):
        expect(box).to_contain_text(text)
    expect(box.locator("a")).to_have_attribute("href", "#/runs/run-1796091746780972971")


def test_past_jobs_are_a_click_away(open_page: OpenPage) -> None:
    answers = documents.stress_answers({"/api/stress/history": documents.history(100)})
    page = open_page("stress/", answers=answers)
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(100)
    rows.nth(2).locator("a").click()
    expect(page.locator("#report")).to_have_text(f"Job {2:016x}")
    expect(page.locator("tr.shown")).to_have_count(1)
    page.get_by_text("Back to the newest job").click()
    expect(page.locator("#report")).to_have_text(f"Job {JOB}")


def test_too_many_starts_are_counted_down(open_page: OpenPage) -> None:
    answers = documents.stress_answers({"POST /api/stress/runs": {"error": "too many starts"}})
    answers.statuses["POST /api/stress/runs"] = (429, {"Retry-After": "2"})
    page = open_page("stress/", answers=answers, may_complain=True)
    page.locator(".go").click()
    page.locator("dialog .go").click()
    expect(page.locator(".note.bad")).to_have_text(re.compile(r"Too many starts\. The next is possible in [12] s\."))
    expect(page.locator(".go")).to_be_disabled()
    expect(page.locator(".go")).to_be_enabled()


def test_a_start_that_somebody_was_quicker_with_shows_their_job(open_page: OpenPage) -> None:
    answers = documents.stress_answers({"POST /api/stress/runs": documents.running()})
    answers.statuses["POST /api/stress/runs"] = (409, {})
    page = open_page("stress/", answers=answers, may_complain=True)
    page.locator(".go").click()
    answers.bodies["/api/stress/live"] = Now(report=documents.running(), live=documents.live())
    page.locator("dialog .go").click()
    expect(page.locator(".running")).to_be_visible()


def test_without_any_job_the_page_offers_to_start(open_page: OpenPage) -> None:
    answers = Answers(
        documents.stress_answers().bodies
        | {"/api/stress/live": Now(report=None, live=None), "/api/stress/history": [], "/api/stress/trends": []}
    )
    page = open_page("stress/", answers=answers)
    expect(page.locator("h1 + .status")).to_have_text("never run here")
    expect(page.locator("main")).to_contain_text("No job has ended here yet.")
    expect(page.locator(".go")).to_have_text("Start 1 …")
