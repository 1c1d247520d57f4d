"""A hostile text in every string field of every document, made of the schemas: it is shown as text, and nobody runs it."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Page, expect

from nodeproof.model.snapshot import CompSnapshot, GlobalSnapshot
from nodeproof.web.openapi import document
from support.hostile import Hostile
from support.page_documents import Answers
from support.web import HOSTILE, Written

OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(60)

TEXT = f"\"'><script>alert(1)</script>{HOSTILE}</title></style>${{alert(1)}}{{{{x}}}}\u202e"


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    found: dict[str, Any] = document()["components"]["schemas"]
    return found


def nothing_became_markup(page: Page) -> None:
    """Neither elements nor running code."""
    assert page.locator("img:not(.brand img), main script, main style, main iframe").count() == 0
    handlers = (
        "[...document.querySelectorAll('*')].flatMap((one) => one.getAttributeNames()).filter((name) => name.startsWith('on'))"
    )
    assert page.evaluate(handlers) == []


def press_everything(page: Page) -> None:
    """Open what can be opened, and the evidence behind the first numbers."""
    page.evaluate("() => document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    for number in page.locator("main button.value").all()[:4]:
        number.evaluate("one => one.click()")
        nothing_became_markup(page)
        page.keyboard.press("Escape")


PAGES = {
    "stress": ("stress/", {"/api/stress/config": "ConfigView", "/api/stress/live": "Now"}),
    "job": (
        "#/stress/0123456789abcdef",
        {"/api/stress/config": "ConfigView", "/api/stress/live": "Now", "/api/stress/runs/0123456789abcdef": "Report"},
    ),
    "runs": ("#/runs", {"/api/runs": "RunList"}),
    "record": ("#/runs/run-1", {"/api/runs/run-1": "RunView", "/api/runs/run-1/messages": "RunMessages"}),
    "comparison": ("#/runs/compare/run-1/run-2", {"/api/runs/compare": "RunComparison"}),
    "faults": ("#/faults", {"/api/faults/active": "ActiveFaults", "/api/faults/history": "FaultHistory"}),
    "doctor": ("#/doctor", {"/api/doctor": "DoctorReport"}),
    "energy": ("#/energy", {"/api/dfee": "Energy"}),
    "session": ("stress/", {"/api/session": "Session", "/api/stress/live": "Now"}),
}


@pytest.mark.parametrize("everywhere", [False, True], ids=["words kept", "words too"])
@pytest.mark.parametrize("name", PAGES)
def test_a_hostile_text_is_only_text(open_page: OpenPage, schemas: dict[str, Any], name: str, *, everywhere: bool) -> None:
    path, types = PAGES[name]
    make = Hostile(schemas, TEXT, everywhere=everywhere)
    bodies = {address: make.of(kind) for address, kind in types.items()}
    for address, kind in (("/api/stress/history", "Report"), ("/api/stress/trends", "Trend")):
        bodies[address] = [make.of(kind)]
    # A job of such an id is not there: that the browser says so of its request is no word of the page.
    page = open_page(path, answers=Answers(bodies), but="404")
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.wait_for_timeout(300)
    press_everything(page)
    nothing_became_markup(page)


@pytest.mark.parametrize("path", ["", "#/cpu", "#/energy"])
def test_hostile_files_of_the_daemon_are_only_text(open_page: OpenPage, written: Written, path: str) -> None:
    for kind, file in ((GlobalSnapshot, "snapshot.json"), (CompSnapshot, "snapshot_cpu.json")):
        schema = msgspec.json.schema(kind)
        content = Hostile(schema["$defs"], TEXT, everywhere=False).of(kind.__name__)
        known = msgspec.to_builtins(msgspec.json.decode((written.folder / file).read_bytes()))
        kept = ("component", "schema", "boot_id", "pid", "monotonic_s", "stale_after_ms", "stopped", "session_id", "timestamp")
        content |= {key: known[key] for key in kept if key in known}
        (written.folder / file).write_bytes(msgspec.json.encode(content))
    page = open_page(path)
    expect(page.locator("main h1")).to_be_visible()
    page.wait_for_timeout(500)
    if path != "#/energy":
        expect(page.locator("main")).to_contain_text(HOSTILE)
    press_everything(page)
    nothing_became_markup(page)
