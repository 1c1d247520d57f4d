"""The page in a real browser: what it shows, that it follows the daemon, and that nothing from outside becomes markup."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from nodeproof.model.metric import Metric
from nodeproof.web.server import WebServer
from support.web import HOSTILE, Written

OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(60)


def luminance(page: Page, selector: str) -> float:
    """Of the background, 0 to 1."""
    colour = page.eval_on_selector(selector, "element => getComputedStyle(element).backgroundColor")
    red, green, blue = (int(text) / 255 for text in re.findall(r"\d+", str(colour))[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_verdict_comes_first_with_its_reasons(open_page: OpenPage, written: Written) -> None:
    written.write(usage=97.0)
    page = open_page()
    verdict = page.locator(".verdict")
    expect(verdict.locator("h1")).to_have_text(re.compile("Excellent|Good|Warning|Unknown"))
    expect(verdict).to_contain_text("97.0 %")
    expect(verdict).to_contain_text("points")
    expect(page.locator(".card")).to_have_count(4)
    expect(page.locator(".dot")).to_have_text("live")
    expect(page.locator(".banner")).to_have_count(0)
    assert page.title().endswith("- nodeproof")


def test_numbers_follow_the_daemon_without_a_reload(open_page: OpenPage, written: Written) -> None:
    page = open_page()
    headline = page.locator(".card", has_text="CPU").locator(".headline .number")
    expect(headline).to_have_text("12.0")
    written.write(usage=43.5)
    expect(headline).to_have_text("43.5")


def test_every_number_shows_its_evidence_at_a_click(open_page: OpenPage) -> None:
    page = open_page()
    number = page.locator(".card", has_text="CPU").locator(".headline button.value")
    number.click()
    box = page.locator("dialog")
    expect(box).to_contain_text("cpu.usage")
    expect(box).to_contain_text("core=total")
    expect(box).to_contain_text("/proc/stat")
    expect(number).to_have_attribute("title", re.compile(r"Read [\d.]+ s ago from /proc/stat"))
    page.keyboard.press("Escape")
    expect(box).to_have_count(0)


def test_a_dead_daemon_is_told_with_its_age(open_page: OpenPage, written: Written) -> None:
    page = open_page()
    expect(page.locator(".dot")).to_have_text("live")
    written.close(handed_on=True)
    banner = page.locator(".banner")
    expect(banner).to_contain_text("The daemon is dead.")
    expect(banner).to_contain_text(re.compile(r"Everything below is \d+(\.\d)? s old"))
    expect(page.locator(".dot")).to_have_text("not live")
    expect(page.locator(".verdict")).to_have_class(re.compile("unknown"))
    expect(page.locator(".status.ok")).to_have_count(0)
    first = banner.inner_text()
    expect(banner).not_to_have_text(first)


def test_a_server_that_goes_is_told(open_page: OpenPage, server: WebServer) -> None:
    page = open_page(may_complain=True)
    expect(page.locator(".dot")).to_have_text("live")
    server.stop()
    expect(page.locator(".banner")).to_contain_text("No word from the server")


def test_hostile_names_and_labels_are_shown_as_text(open_page: OpenPage, written: Written) -> None:
    hostile = (
        Metric("disk", "space_usage", 99.0, "%", {"device": HOSTILE, "mount_point": f"/{HOSTILE}", "fstype": "ext4"}),
        Metric("disk", HOSTILE, 1.0, HOSTILE, {HOSTILE: "\"'><script>alert(1)</script>"}),
    )
    written.write(extra=hostile)
    page = open_page("#/disk")
    expect(page.locator("td", has_text=HOSTILE).first).to_be_visible()
    page.locator("td .value").last.click()
    expect(page.locator("dialog")).to_contain_text("<script>")
    page.goto(page.url.split("#")[0] + f"#/{HOSTILE}")
    expect(page.locator("h1")).to_have_text(HOSTILE)
    page.goto(page.url.split("#")[0] + "#/")
    expect(page.locator(".card", has_text="Disk")).to_contain_text(HOSTILE)
    assert page.locator("img:not(.brand img), main script").count() == 0


def test_a_component_page_has_trends_readings_and_absences(open_page: OpenPage, written: Written) -> None:
    written.write(usage=20.0)
    page = open_page("#/cpu")
    expect(page.locator(".trend canvas")).to_have_count(2)
    expect(page.locator(".trend").first).to_contain_text("now")
    expect(page.locator("tbody tr")).to_have_count(11)
    expect(page.locator("tbody tr").first).to_contain_text("/proc/stat")
    page.keyboard.press("/")
    page.keyboard.type("15m")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("load_average")
    expect(page.locator("main")).to_contain_text("there is no sensor")
    expect(page.locator("main")).to_contain_text("unsupported")


def test_a_gap_is_no_line(open_page: OpenPage, written: Written) -> None:
    for usage in (10.0, 20.0):
        written.write(usage=usage)
    page = open_page()
    path = page.evaluate(
        """async () => {
          const { sparkPath } = await import("/static/js/spark.js");
          return sparkPath([[0, 1], [1, 2], [2, null], [3, 4], [4, 4]], "");
        }"""
    )
    assert str(path).count("M") == 2
    assert str(path).count("L") == 2


def test_dark_follows_the_system_and_the_key(open_page: OpenPage) -> None:
    page = open_page(color_scheme="dark")
    expect(page.locator(".card").first).to_be_visible()
    assert luminance(page, "body") < 0.1
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert luminance(page, "body") > 0.8
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_chinese_by_the_browser_and_by_the_key(open_page: OpenPage) -> None:
    page = open_page(locale="zh-CN")
    expect(page.locator(".why h2")).to_have_text("依据")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.keyboard.press("l")
    expect(page.locator(".why h2")).to_have_text("Why")


def test_the_keys(open_page: OpenPage) -> None:
    page = open_page()
    expect(page.locator(".card").first).to_be_visible()
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_contain_text("filter readings")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("1")
    expect(page.locator("h1")).to_have_text("CPU")
    page.keyboard.press("o")
    expect(page.locator(".verdict")).to_be_visible()


@pytest.mark.parametrize("path", ["", "#/cpu", "#/disk", "#/stress"])
@pytest.mark.parametrize("width", [360, 3840])
def test_no_width_makes_the_page_scroll_sideways(open_page: OpenPage, path: str, width: int) -> None:
    page = open_page(path, width=width, height=800)
    expect(page.locator("main .panel").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("path", ["#/%zz", "#/__proto__", "#/constructor", "#/snapshot", "#/no/such"])
def test_an_address_that_leads_nowhere_says_so(open_page: OpenPage, path: str) -> None:
    expect(open_page(path).locator("main")).to_contain_text("There is no component of this name here.")


def test_the_stress_page_has_its_own_path(open_page: OpenPage) -> None:
    page = open_page("stress/")
    expect(page.locator("h1")).to_have_text("Stress jobs")
    page.keyboard.press("o")
    expect(page.locator(".verdict")).to_be_visible()


def test_without_a_daemon_the_page_waits_and_says_for_what(open_page: OpenPage, written: Written) -> None:
    for file in written.folder.glob("snapshot*.json"):
        file.unlink()
    page = open_page()
    expect(page.locator(".empty h1")).to_have_text("Waiting for the first verdict")
    written.write()
    expect(page.locator(".verdict")).to_be_visible()


def test_a_file_that_cannot_be_used_is_named(open_page: OpenPage, written: Written) -> None:
    (written.folder / "snapshot_gpu.json").write_bytes(b'{"schema":9}')
    page = open_page()
    expect(page.locator("main")).to_contain_text("it is of schema 9, and this program knows 1")
