"""What the page costs the browser: first verdict, own script at one update a second with ten charts, and memory over time.

Starts a server over a snapshot directory that this program writes, opens Chromium with nothing in its cache, on the overview and
then on the energy view with its ten and more charts, and reads the numbers through the debugger's interface.

    python benchmarks/page.py --seconds 60
    python benchmarks/page.py --memory-updates 1800    # half an hour of updates, as fast as the page takes them

Memory is read after a forced collection. With ``--memory-updates`` the stream is accelerated: each update is a full cycle of the
daemon's files, ten a second, so 1800 of them are what half an hour at 1 Hz brings, in three minutes.
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import CDPSession, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from nodeproof.model.metric import Metric
from support.web import Written, serving

MIB = 1024 * 1024
CHARTS = 10
DISK = (
    ("throughput", "read"), ("throughput", "write"), ("iops", "write"), ("read_latency", ""), ("write_latency", "")
)  # fmt: skip


class Load(NamedTuple):
    """What a page fetched, and when its verdict was painted."""

    verdict_ms: float
    paint_ms: float
    kib: float
    requests: int


def cycle(written: Written, number: int) -> None:
    """One cycle of the daemon; every series moves."""
    at = float(number % 50)
    disks = tuple(
        Metric("disk", name, at + place, "MB/s", {"device": device, **({"direction": way} if way else {})})
        for device in ("vda", "vdb")
        for place, (name, way) in enumerate(DISK)
    )
    more = (
        Metric("cpu", "power", 90.0 + at, "W", {"socket": "0"}),
        Metric("memory", "swap_detail", at, "MB", {"field": "free"}),
        Metric("memory", "swap_detail", 100.0, "MB", {"field": "total"}),
    )
    written.write(usage=10.0 + at, extra=(*disks, *more))


def first_view(page: Page, url: str) -> Load:
    """Open the overview with nothing cached."""
    sizes: list[int] = []
    page.on("response", lambda answer: sizes.append(int(answer.headers.get("content-length", 0))))
    page.add_init_script(
        "new MutationObserver((_, self) => { if (document.querySelector('.verdict h1')) { self.disconnect();"
        " requestAnimationFrame(() => setTimeout(() => { window.verdictAt = performance.now(); })); } })"
        ".observe(document, { childList: true, subtree: true });"
    )
    page.goto(url)
    page.locator(".verdict h1").wait_for()
    page.wait_for_timeout(300)
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
    return Load(page.evaluate("window.verdictAt"), paint, sum(sizes) / 1024, len(sizes))


def metrics(cdp: CDPSession) -> dict[str, float]:
    """The debugger's counters, times in seconds."""
    return {one["name"]: one["value"] for one in cdp.send("Performance.getMetrics")["metrics"]}


def heap_mib(cdp: CDPSession) -> tuple[float, float]:
    """Used heap after a collection, and DOM nodes."""
    cdp.send("HeapProfiler.collectGarbage")
    found = metrics(cdp)
    return found["JSHeapUsedSize"] / MIB, found["Nodes"]


def paced(count: int, period_s: float, act: Callable[[int], None]) -> None:
    """``act`` so often, on a grid of the clock."""
    began = time.monotonic()
    for number in range(count):
        act(number)
        time.sleep(max(0.0, began + (number + 1) * period_s - time.monotonic()))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60, help="of updates at 1 Hz with ten charts")
    parser.add_argument("--loads", type=int, default=7, help="first views")
    parser.add_argument("--memory-updates", type=int, default=0, help="accelerated updates during which memory is followed")
    options = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        written = Written(Path(folder) / "snapshot")
        for number in range(30):
            cycle(written, number)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        with serving(written.folder) as server:
            report_loads([first_view(browser.new_context().new_page(), server.url) for _ in range(options.loads)])
            page = browser.new_context(viewport={"width": 1600, "height": 1000}).new_page()
            page.goto(f"{server.url}#/energy")
            page.locator("canvas").nth(CHARTS - 1).wait_for()
            cdp = page.context.new_cdp_session(page)
            cdp.send("Performance.enable", {"timeDomain": "threadTicks"})
            report_script(page, cdp, written, options.seconds)
            if options.memory_updates:
                report_memory(page, cdp, written, options.memory_updates)
        browser.close()
        written.close()


def report_loads(loads: list[Load]) -> None:
    """First views; the first of all also starts the browser's own caches of compiled code."""
    verdicts = [one.verdict_ms for one in loads]
    print(
        f"first verdict painted: median {statistics.median(verdicts):.0f} ms, worst {max(verdicts):.0f} ms of {len(loads)} views"
    )
    print(f"first contentful paint: median {statistics.median(one.paint_ms for one in loads):.0f} ms")
    print(f"fetched for it: {loads[0].kib:.1f} KiB gzipped in {loads[0].requests} answers (stream not counted)")


def report_script(page: Page, cdp: CDPSession, written: Written, seconds: int) -> None:
    """Own script and everything else of the page's thread at one update a second."""
    before: dict[str, Any] = metrics(cdp)
    began = time.monotonic()
    paced(seconds, 1.0, lambda number: cycle(written, number))
    page.evaluate("1")
    after, passed = metrics(cdp), time.monotonic() - began
    share = {name: 100 * (after[name] - before[name]) / passed for name in ("ScriptDuration", "LayoutDuration", "TaskDuration")}
    charts = page.locator("canvas").count()
    print(
        f"{charts} charts at 1 Hz over {passed:.0f} s: script {share['ScriptDuration']:.2f} % of a core, "
        f"layout {share['LayoutDuration']:.2f} %, whole thread {share['TaskDuration']:.2f} %"
    )


def report_memory(page: Page, cdp: CDPSession, written: Written, updates: int) -> None:
    """Used heap and nodes along the way."""
    marks = []
    for part in range(6):
        paced(updates // 6, 0.1, lambda number, part=part: cycle(written, number + part))  # type: ignore[misc]
        page.wait_for_timeout(300)
        marks.append(heap_mib(cdp))
    print(f"memory over {updates} updates, accelerated to 10 Hz (the stream brings the newest of them twice a second):")
    print("  heap MiB " + " ".join(f"{heap:.2f}" for heap, _ in marks))
    print("  nodes    " + " ".join(f"{nodes:.0f}" for _, nodes in marks))


if __name__ == "__main__":
    main()
