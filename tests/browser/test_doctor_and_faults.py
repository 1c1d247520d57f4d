"""The doctor's page and the timeline of faults."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from nodeproof.model.event import Severity
from nodeproof.model.fault import Change
from nodeproof.web.faults_wire import ActiveFaults, FaultHistory
from support.fault_documents import fault_event, standing_fault
from support.page_documents import Answers

OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(60)


LOST = fault_event(
    7, "npu_lost", "npu", Severity.CRITICAL, "2026-11-30T10:00:00+00:00", npu_id="5", detail={"message": "5 fell off the bus"}
)
DRILL = fault_event(
    8, "link_down", "network", Severity.WARNING, "2026-11-29T09:00:00+00:00", detail={"interface": "eth9"}, drill=True
)
CLEARED = fault_event(
    6, "npu_hot", "npu", Severity.WARNING, "2026-11-29T08:00:00+00:00", npu_id="2", recovered=True, change=Change.CLEARED
)


def test_the_doctor_names_cause_cost_and_remedy(open_page: OpenPage) -> None:
    page = open_page("#/doctor")
    expect(page.locator("h1 + .status")).to_have_text("not everything can be read")
    expect(page.locator(".strip")).to_contain_text("91.5 %")
    cause = page.locator("li", has_text="/dev/kmsg may not be read by nodeproof")
    expect(cause).to_contain_text("8.5 points hang on it")
    expect(cause).to_contain_text("Remedy: add CAP_SYSLOG to the service")
    expect(cause).not_to_contain_text("memory.event_8")
    cause.get_by_role("button", name="3 more").click()
    expect(cause).to_contain_text("memory.event_8")
    expect(page.locator("tr", has_text="kernel log")).to_contain_text("not working")
    expect(page.locator("main")).to_contain_text("there is no NVIDIA or AMD GPU on the PCI bus")


def test_where_nobody_looks_for_faults_nothing_is_green(open_page: OpenPage) -> None:
    unwatched = ActiveFaults(available=False, reason="faultsub is not among the features", timestamp="", faults=[])
    past = FaultHistory(available=False, reason=unwatched.reason, events=[])
    page = open_page("#/faults", answers=Answers({"/api/faults/active": unwatched, "/api/faults/history": past}))
    expect(page.locator("h1 + .status")).to_have_text("nobody watches")
    expect(page.locator("main")).to_contain_text("faultsub is not among the features")
    expect(page.locator("main .status.ok")).to_have_count(0)


def test_faults_have_a_timeline_and_drills_are_marked(open_page: OpenPage) -> None:
    active = ActiveFaults(
        available=True, reason="", timestamp=LOST.timestamp, faults=[standing_fault(LOST), standing_fault(DRILL)]
    )
    past = FaultHistory(available=True, reason="", events=[LOST, DRILL, CLEARED])
    page = open_page("#/faults", answers=Answers({"/api/faults/active": active, "/api/faults/history": past}))
    expect(page.locator("h1 + .status")).to_have_text("2 standing")
    expect(page.locator(".note.drill")).to_contain_text("1 of these are drills")
    expect(page.locator(".day h3")).to_have_text(["2026-11-30", "2026-11-29"])
    expect(page.locator(".day li", has_text="link_down").locator(".status.drill")).to_have_text("drill")
    expect(page.locator(".day li", has_text="npu_hot").locator(".status")).to_have_text("cleared")
    page.keyboard.press("/")
    page.keyboard.type("fell off")
    expect(page.locator(".day li")).to_have_count(1)
    page.locator(".day li button").click()
    expect(page.locator("dialog")).to_contain_text("5 fell off the bus")
    expect(page.locator("dialog")).to_contain_text("NPU 5")
