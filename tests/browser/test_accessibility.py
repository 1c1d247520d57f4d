"""axe-core on every page in every state, in both themes and languages; 256 processors and a dead daemon among the states."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from nodeproof.model.event import Severity
from nodeproof.model.fault import Change
from nodeproof.model.metric import Metric
from nodeproof.web.faults_wire import ActiveFaults, FaultHistory
from support import page_documents as documents
from support.fault_documents import fault_event, standing_fault
from support.page_documents import Answers
from support.web import Written

OpenPage = Callable[..., Page]

AXE = Path(__file__).parents[2] / "tools" / "node" / "node_modules" / "axe-core" / "axe.min.js"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(autouse=True)
def _tell_when_there_is_no_axe(absent_here: list[str]) -> None:
    if not AXE.exists():
        absent_here.append("axe-core is not installed (npm ci --prefix tools/node): accessibility of the page was not checked")
        pytest.skip("axe-core is not installed")


def violations(page: Page) -> list[str]:
    """What axe finds, each with its first place."""
    # The page's own policy lets no script in; the debugger's interface does.
    if not page.evaluate("() => 'axe' in globalThis"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    return [f"{one['id']}: {one['help']} ({len(one['nodes'])}): {one['nodes'][0]['html'][:200]}" for one in found["violations"]]


def seen_in_every_way(page: Page) -> list[str]:
    """Violations in each theme with each language."""
    found = []
    for key, theme, language in (("", "light", "en"), ("t", "dark", "en"), ("l", "dark", "zh-CN"), ("t", "light", "zh-CN")):
        if key:
            page.keyboard.press(key)
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            expect(page.locator("html")).to_have_attribute("lang", language)
        found += [f"{theme}, {language}: {text}" for text in violations(page)]
    return found


LOST = fault_event(1, "lost", "npu", Severity.CRITICAL, "2026-11-30T10:00:00Z", npu_id="5", drill=True)
GONE = fault_event(0, "hot", "npu", Severity.WARNING, "2026-11-30T09:00:00Z", recovered=True, change=Change.CLEARED)
FORBIDDEN: dict[str, object] = {"/api/stress/config": documents.config(enabled=False, web_enabled=False)}
FAULTS = Answers(
    {
        "/api/faults/active": ActiveFaults(available=True, reason="", timestamp="", faults=[standing_fault(LOST)]),
        "/api/faults/history": FaultHistory(available=True, reason="", events=[LOST, GONE]),
    }
)
BOX = {"throttle_share": 0.3, "foreign_share": 0.5, "foreign_top": ["1 x"]}
STATES: dict[str, tuple[str, Callable[[], Answers | None]]] = {
    "overview": ("", lambda: None),
    "component": ("#/cpu", lambda: None),
    "nowhere": ("#/no-such", lambda: None),
    "energy": ("#/energy", lambda: None),
    "doctor": ("#/doctor", lambda: None),
    "faults": ("#/faults", lambda: FAULTS),
    "faults empty": ("#/faults", lambda: None),
    "runs empty": ("#/runs", lambda: None),
    "stress empty": ("stress/", lambda: None),
    "stress ended": ("stress/", documents.stress_answers),
    "stress running": ("stress/", lambda: documents.stress_answers(report=documents.running(), now=documents.live(**BOX))),
    "stress forbidden": ("stress/", lambda: documents.stress_answers(FORBIDDEN)),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing(open_page: OpenPage, state: str) -> None:
    path, answers = STATES[state]
    page = open_page(path, answers=answers())
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert seen_in_every_way(page) == []


def test_axe_finds_nothing_in_dialogs(open_page: OpenPage) -> None:
    page = open_page("stress/", answers=documents.stress_answers())
    page.locator(".go").click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.locator(".bars button").first.click()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert violations(page) == []


def test_axe_finds_nothing_when_the_daemon_is_dead(open_page: OpenPage, written: Written) -> None:
    page = open_page()
    expect(page.locator(".dot")).to_have_text("live")
    written.close(handed_on=True)
    expect(page.locator(".banner")).to_be_visible()
    assert seen_in_every_way(page) == []
    page.goto(f"{page.url.split('#')[0]}#/cpu")
    expect(page.locator(".trend canvas").first).to_be_visible()
    assert violations(page) == []


def test_axe_finds_nothing_before_there_is_a_verdict(open_page: OpenPage, written: Written) -> None:
    for file in written.folder.glob("snapshot*.json"):
        file.unlink()
    page = open_page()
    expect(page.locator(".empty h1")).to_be_visible()
    assert seen_in_every_way(page) == []


@pytest.mark.parametrize("path", ["", "#/cpu"])
def test_axe_finds_nothing_on_a_node_of_256_processors(open_page: OpenPage, written: Written, path: str) -> None:
    many = tuple(
        Metric("cpu", name, float(number % 100), "%", {"core": str(number)})
        for number in range(256)
        for name in ("usage", "user_util", "system_util", "idle_util")
    )
    written.write(usage=97.0, extra=many)
    page = open_page(path)
    expect(page.locator("main section").first).to_be_visible()
    if path:
        expect(page.get_by_role("button", name="Show all 1035")).to_be_visible()
    assert seen_in_every_way(page) == []
