"""One headless Chromium for the tests of this folder; where there is none, that is listed at the end of the run."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from nodeproof.stress.manager import Manager
from nodeproof.web.backstage import Makers
from nodeproof.web.server import WebServer
from support.page_documents import Answers, doctor_output
from support.stress import make_manager, make_settings, write_dispatcher
from support.web import Written, serving

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium of this machine; gone with its event loop before other tests look at their processes or run loops of their own."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        # The sandbox needs user namespaces, which containers and root often lack; only our own page is opened.
        found = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture(autouse=True)
def _tell_when_there_is_none(absent_here: list[str]) -> None:
    if not any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
        absent_here.append(
            "chromium is not installed (Debian: apt-get install chromium): the page was not looked at in a browser"
        )


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    """A snapshot directory with a living owner."""
    found = Written(tmp_path / "snapshot")
    found.write()
    yield found
    found.close()


@pytest.fixture
def manager(tmp_path: Path) -> Manager:
    """Stress jobs through a dispatcher that answers at once."""
    return make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "benchmark_check.sh")))


@pytest.fixture
def server(written: Written, manager: Manager) -> Iterator[WebServer]:
    """The page over it."""
    with serving(written.folder, makers=Makers(manager=lambda: manager, doctor=doctor_output)) as found:
        yield found


@pytest.fixture
def open_page(browser: Browser, server: WebServer) -> Iterator[OpenPage]:
    """Opens a page of the server; no page may say anything on its console, unless the test says that it may."""
    said: list[str] = []
    contexts = []

    def go(
        path: str = "",
        *,
        width: int = 1280,
        height: int = 900,
        may_complain: bool = False,
        but: str = "",
        answers: Answers | None = None,
        **options: str,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            **{"locale": "en-US", **options},  # type: ignore[arg-type]  # handed on
        )
        contexts.append(context)
        page = context.new_page()
        if not may_complain:
            page.on(
                "console", lambda message: None if but and but in message.text else said.append(f"{message.type}: {message.text}")
            )
        page.on("pageerror", lambda error: said.append(str(error)))
        page.set_default_timeout(8000)
        if answers is not None:
            answers.install(page)
        page.goto(server.url + path)
        return page

    yield go
    for context in contexts:
        context.close()
    assert said == []
