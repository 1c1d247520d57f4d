"""The energy view: values by the daemon's interval, places and sizes kept per browser, and every choice by keyboard, too."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect

from nodeproof.model.metric import Metric
from support.web import Written

OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(60)

SECOND_CARD = tuple(
    Metric("network", "throughput", 100.0, "bytes/s", {"interface": "eth1", "direction": direction}) for direction in ("rx", "tx")
)


def order(page: Page, section: str) -> list[str]:
    return [str(card.get_attribute("data-chart")) for card in page.locator(f"[data-chart^={section}_]").all()]


def test_the_view_shows_time_shares_and_bytes_of_an_interval(open_page: OpenPage, written: Written) -> None:
    written.write(usage=20.0)
    page = open_page("#/energy")
    cpu = page.locator("[data-chart=cpu_utilization]")
    expect(cpu.locator("canvas")).to_have_count(1)
    expect(cpu).to_contain_text("user 7.5 %")
    expect(cpu.locator(".status")).to_have_text("collecting")
    # 500 bytes/s over the daemon's interval of 2 s, however often and by however many it is read.
    expect(page.locator("[data-chart=network_rx]")).to_contain_text("eth0 1,000 B")
    written.write(usage=30.0)
    expect(cpu.locator(".status")).to_have_text("7 series")
    expect(page.locator("main")).to_contain_text("Nothing to draw: AI core frequency")
    cpu.get_by_role("button", name="user 7.5 %").click()
    expect(page.locator("dialog")).to_contain_text("1000 ms by the daemon")


def test_charts_move_by_key_and_by_dragging_and_stay_there(open_page: OpenPage) -> None:
    page = open_page("#/energy")
    expect(page.locator("[data-chart=cpu_load]")).to_be_visible()
    assert order(page, "cpu") == ["cpu_utilization", "cpu_load"]
    page.locator("[data-chart=cpu_load] .grip").focus()
    page.keyboard.press("ArrowLeft")
    assert order(page, "cpu") == ["cpu_load", "cpu_utilization"]
    expect(page.locator("[data-chart=cpu_load] .grip")).to_be_focused()
    page.reload()
    expect(page.locator("[data-chart=cpu_load]")).to_be_visible()
    assert order(page, "cpu") == ["cpu_load", "cpu_utilization"]
    page.locator("[data-chart=cpu_load] .grip").drag_to(page.locator("[data-chart=cpu_utilization]"))
    assert order(page, "cpu") == ["cpu_utilization", "cpu_load"]


def test_charts_are_sized_by_key_and_by_dragging(open_page: OpenPage) -> None:
    page = open_page("#/energy", width=1500)
    card = page.locator("[data-chart=cpu_load]")
    expect(card.locator(".plot")).to_have_class("plot h180")
    card.locator(".grip").focus()
    page.keyboard.press("ArrowDown")
    expect(card.locator(".plot")).to_have_class("plot h260")
    page.keyboard.press("+")
    expect(card).to_have_class("card chart span2 ")
    page.keyboard.press("-")
    box = card.locator(".handle").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 5, box["y"] + 130, steps=4)
    page.mouse.up()
    expect(card.locator(".plot")).to_have_class("plot h380")
    page.get_by_role("button", name="Reset places and sizes").click()
    expect(card.locator(".plot")).to_have_class("plot h180")


def test_devices_can_be_left_out(open_page: OpenPage, written: Written) -> None:
    written.write(extra=SECOND_CARD)
    page = open_page("#/energy")
    received = page.locator("[data-chart=network_rx]")
    expect(received).to_contain_text("eth1")
    page.locator(".choices").get_by_label("eth1").uncheck()
    expect(received).not_to_contain_text("eth1")
    page.reload()
    expect(received).to_contain_text("eth0")
    expect(received).not_to_contain_text("eth1")


def test_points_outlive_a_reload_and_end_with_their_daemon(open_page: OpenPage, written: Written) -> None:
    page = open_page("#/energy")
    card = page.locator("[data-chart=cpu_load]")
    expect(card.locator(".status")).to_have_text("collecting")
    written.write()
    expect(card.locator(".status")).to_have_text("3 series")
    page.reload()
    expect(card.locator(".status")).to_have_text("3 series")

    def of_another_daemon(route: Route) -> None:
        found = route.fetch()
        route.fulfill(response=found, json=found.json() | {"session_id": "another"})

    page.route("**/api/dfee", of_another_daemon)
    page.reload()
    expect(card.locator(".status")).to_have_text("collecting")
