"""Real jobs from the page: start, progress, end, cancel, two tabs, a server that comes back."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from nodeproof.model.job import Status
from nodeproof.stress.manager import Manager
from nodeproof.web.backstage import Makers
from support.stress import STREAM_GOOD, make_manager, make_settings, write_dispatcher
from support.web import Written, address, serving

OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    """Jobs last until a file says that they may end."""
    script = write_dispatcher(
        tmp_path / "benchmark_check.sh",
        run=f"for i in {{1..200}}; do [ -e {tmp_path}/go ] && break; echo $i; sleep 0.1; done\ncat <<'END'\n{STREAM_GOOD}\nEND",
    )
    settings = msgspec.structs.replace(make_settings(tmp_path, script, timeout_s=60.0), web_enabled=True)
    found = make_manager(settings)
    yield found
    found.shutdown(10.0)


def start(page: Page) -> None:
    page.locator(".go").click()
    page.locator("dialog .go").click()


def test_a_job_from_start_to_history(open_page: OpenPage, tmp_path: Path, manager: Manager) -> None:
    page = open_page("stress/")
    expect(page.locator("h1 + .status")).to_have_text("never run here")
    start(page)
    expect(page.locator(".running h2")).to_have_text("STREAM · item 1 of 1")
    expect(page.locator(".running")).to_contain_text("from this page, since")
    (tmp_path / "go").touch()
    expect(page.locator(".result .big, .result .bars")).to_be_visible(timeout=15000)
    expect(page.locator("h1 + .status")).to_have_text("healthy")
    expect(page.locator("tbody tr")).to_have_count(1)
    report = manager.history(1)[0]
    assert (report.initiator, report.status) == ("web", Status.HEALTHY)
    page.locator(".bars button").last.click()
    expect(page.locator("dialog pre")).to_contain_text(re.compile(r"stdout:\d+\s+Triad:\s+10000\.0"))
    page.locator("dialog a").click()
    expect(page.locator("h1")).to_have_text("STREAM")


def test_a_cancel_ends_the_job(open_page: OpenPage, manager: Manager) -> None:
    page = open_page("stress/")
    start(page)
    page.locator(".running .danger").click()
    page.locator("dialog .danger").click()
    expect(page.locator("h1 + .status")).to_have_text("cancelled", timeout=15000)
    expect(page.locator(".running")).to_have_count(0)
    expect(page.locator(".result .axes")).to_contain_text(re.compile("cancelled from the page"))
    assert manager.history(1)[0].status is Status.CANCELLED


def test_two_tabs_see_one_job_and_either_may_end_it(open_page: OpenPage) -> None:
    first, second = open_page("stress/"), open_page("stress/", may_complain=True)
    expect(second.locator(".go")).to_be_enabled()
    second.locator(".go").click()
    start(first)
    second.locator("dialog .go").click()
    for page in (first, second):
        expect(page.locator(".running h2")).to_have_text("STREAM · item 1 of 1")
    expect(second.locator(".note.bad")).to_have_count(1)
    second.locator(".running .danger").click()
    second.locator("dialog .danger").click()
    for page in (first, second):
        expect(page.locator("h1 + .status")).to_have_text("cancelled", timeout=15000)


def test_a_server_that_comes_back_is_found_again(browser: Browser, written: Written, manager: Manager, tmp_path: Path) -> None:
    makers = Makers(manager=lambda: manager)
    page = browser.new_page(locale="en-US")
    with serving(written.folder, makers=makers) as server:
        port = address(server)[1]
        page.goto(f"{server.url}stress/")
        expect(page.locator(".dot")).to_have_text("live")
    expect(page.locator(".banner")).to_contain_text("No word from the server", timeout=10000)
    written.write()
    with serving(written.folder, makers=makers, port=port):
        expect(page.locator(".banner")).to_have_count(0, timeout=15000)
        expect(page.locator(".dot")).to_have_text("live")
        expect(page.locator(".note.bad")).to_have_count(0, timeout=10000)
    page.close()


def test_where_a_token_is_wanted_the_page_asks_for_it(
    browser: Browser, written: Written, manager: Manager, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"operator alice {'a1' * 16}\nviewer bob {'b2' * 16}\n", encoding="utf-8")
    tokens.chmod(0o600)
    page = browser.new_page(locale="en-US")
    with serving(written.folder, makers=Makers(manager=lambda: manager), token_file=str(tokens)) as server:
        page.goto(f"{server.url}stress/")
        expect(page.locator("h1")).to_have_text("A token is wanted here")
        page.get_by_label("Token").fill("wrong-0123456789abcdef")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("[role=alert]")).to_be_visible()
        page.get_by_label("Token").fill("b2" * 16)
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("h1")).to_have_text("Stress jobs")
        expect(page.locator(".note.warn")).to_contain_text("viewer")
        expect(page.locator(".go")).to_be_disabled()
        page.get_by_role("button", name="Sign out bob").click()
        expect(page.locator("h1")).to_have_text("A token is wanted here")
    page.close()
