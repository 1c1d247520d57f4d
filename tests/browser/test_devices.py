"""Devices as rows: cards, their processes, and which of them is the worst."""

from collections.abc import Callable

import msgspec
import pytest
from playwright.sync_api import Page, expect

from nodeproof.model.health import Finding, Reading, Severity
from nodeproof.model.metric import Metric
from nodeproof.model.snapshot import GlobalSnapshot
from support.web import Written

OpenPage = Callable[..., Page]

pytestmark = pytest.mark.timeout(60)


def test_cards_are_rows_with_their_processes(open_page: OpenPage, written: Written) -> None:
    cards = tuple(
        Metric("gpu", name, value + card, unit, {"gpu_id": str(card)})
        for card in range(8)
        for name, value, unit in (("utilization", 80.0, "%"), ("temperature", 60.0, "°C"), ("card_state", 0.0, ""))
    )
    detail = Metric("gpu", "memory_detail", 1024.0, "MB", {"gpu_id": "3", "field": "used"})
    process = Metric("gpu", "process_memory", 512.0, "MB", {"gpu_id": "3", "pid": "4711", "process": "python"})
    written.write(extra=(*cards, detail, process), components=("cpu", "memory", "disk", "network", "gpu"))
    page = open_page("#/gpu")
    table = page.locator("section", has=page.get_by_role("heading", name="Devices 8"))
    expect(table.locator("tbody tr")).to_have_count(8)
    expect(table.locator("thead th")).to_have_text(["gpu_id", "Findings", "card_state", "utilization", "temperature"])
    expect(table.locator("tbody tr").nth(7)).to_contain_text("67")
    table.locator("tbody tr").nth(7).locator("button").last.click()
    expect(page.locator("dialog")).to_contain_text("gpu_id=7")
    page.keyboard.press("Escape")
    processes = page.locator("section", has=page.get_by_role("heading", name="Processes"))
    expect(processes.locator("tbody tr")).to_contain_text("4711")
    expect(processes.locator("tbody tr")).to_contain_text("512 MiB")


def test_the_worst_device_is_named_and_comes_first(open_page: OpenPage, written: Written) -> None:
    disks = tuple(Metric("disk", "io_wait", 1.0, "%", {"device": device}) for device in ("sda", "sdb"))
    written.write(extra=disks)
    whole = msgspec.json.decode((written.folder / "snapshot.json").read_bytes(), type=GlobalSnapshot)
    finding = Finding(
        rule="disk.smart",
        severity=Severity.CRITICAL,
        component="disk",
        message="the disk says that it fails",
        reading=Reading("disk", "smart_status", 0.0, "", {"device": "sdb"}),
        source="smartctl",
        age_s=1.0,
        threshold="= 0",
        clears_when="= 1",
        since="2026-11-30T10:00:00Z",
    )
    health = msgspec.structs.replace(whole.health, findings=[finding])
    (written.folder / "snapshot.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(whole, health=health)))
    page = open_page("#/disk")
    table = page.locator("section", has=page.get_by_role("heading", name="Devices"))
    expect(table.locator("tbody tr th").first).to_have_text("sdb")
    expect(table.locator("tbody tr").first).to_contain_text("critical")
    expect(table.locator(".note")).to_have_text("Worst: sdb. the disk says that it fails")
