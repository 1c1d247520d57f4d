"""DESIGN 5, on real daemons: memory, CPU share and bytes a day of an ordinary one; nothing that grows beside tools that hang.

Both daemons run side by side for a minute, so that the suite waits for it once.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.compiled import compiled_environment
from support.daemon import Daemon
from support.data_size import on_disk_a_day
from support.hosts import write_host
from support.http_client import Client
from support.tree import write

RESIDENT_LIMIT = 25 * 1024 * 1024
RESIDENT_CEILING = 26 * 1024 * 1024
CPU_LIMIT = 0.005
CPU_CEILING = 0.01
BYTES_A_DAY_LIMIT = 30_000_000
WINDOW_S = 20
WINDOWS = 3
MORE_S = 20

pytestmark = pytest.mark.timeout(240)

_HANGS = """#!/bin/sh
echo $$ >> "$CALLS"
trap '' TERM HUP INT
sleep 600 &
while :; do sleep 1; done
"""


class Sample(NamedTuple):
    """What the kernel says of both daemons at one moment."""

    at_s: float
    ordinary: dict[str, int]
    cpu_s: float
    data: dict[str, int]
    """Bytes by data file."""
    beset: dict[str, int]


class Watched(NamedTuple):
    """A minute of both."""

    ordinary: Daemon
    beset: Daemon
    samples: list[Sample]
    calls: Path


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory, in_memory: str | None) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("budgets")
    env = compiled_environment(folder / "compiled")
    ordinary = _ordinary(folder / "ordinary", env)
    beset = _beset(folder / "beset", env)
    over = threading.Event()
    scraping = threading.Thread(target=_scrape, args=(ordinary, over))
    try:
        # The first run compiles what the commands have not imported; the second is the one that is measured.
        ordinary.start().stop()
        ordinary.start()
        beset.start()
        scraping.start()
        samples = [_sample(ordinary, beset)]
        for _ in range(WINDOWS * WINDOW_S + 2):
            time.sleep(1.0)
            samples.append(_sample(ordinary, beset))
        yield Watched(ordinary, beset, samples, folder / "beset" / "calls")
    finally:
        over.set()
        if scraping.is_alive():
            scraping.join()
        ordinary.clean_up()
        beset.clean_up()


def _ordinary(folder: Path, env: dict[str, str]) -> Daemon:
    """Everything by default; the port alone is another one."""
    daemon = Daemon(folder)
    daemon.env = env | {"NODEPROOF_DATA_DIR": str(daemon.data), "NODEPROOF_TEST_MARK": daemon.mark}
    daemon.snapshots = daemon.data / "snapshot"
    daemon.config.write_text(f'exporter: {{address: "127.0.0.1:{daemon.port}"}}\n')
    return daemon


def _beset(folder: Path, env: dict[str, str]) -> Daemon:
    """On a large bare-metal host whose smartctl and ipmitool neither answer nor end, and leave children behind."""
    daemon = Daemon(folder)
    tools = folder / "bin"
    tools.mkdir()
    for name in ("smartctl", "ipmitool"):
        (tools / name).write_text(_HANGS)
        (tools / name).chmod(0o755)
    root = write_host("bare-x86-256cpu", str(folder / "root"))
    write(root, "/dev/ipmi0", "")
    daemon.env = env | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "CALLS": str(folder / "calls"),
        "NODEPROOF_TEST_MARK": daemon.mark,
    }
    daemon.configure(collection={"interval_from": "features"}, storage={"interval": "60s"})
    start = daemon.start
    daemon.start = lambda *argv, **options: start("--root", root, *argv, **options)  # type: ignore[method-assign]  # always there
    return daemon


def _scrape(daemon: Daemon, over: threading.Event) -> None:
    """As Prometheus does: one connection, a page a second."""
    client = Client(("127.0.0.1", daemon.port))
    with contextlib.suppress(OSError, EOFError):
        while not over.wait(1.0):
            client.get("/metrics", "Accept-Encoding: gzip")
    client.close()


def _sample(ordinary: Daemon, beset: Daemon) -> Sample:
    data = {path.name: path.stat().st_size for path in ordinary.data.glob("*.jsonl")}
    return Sample(time.monotonic(), ordinary.figures(), ordinary.own_cpu_s(), data, beset.figures())


def _shares(samples: list[Sample]) -> list[float]:
    """Share of a core in every window of twenty seconds."""
    ends = zip(samples, samples[WINDOW_S:], strict=False)
    return [(last.cpu_s - first.cpu_s) / (last.at_s - first.at_s) for first, last in ends]


def test_resident_memory(watched: Watched, absent_here: list[str]) -> None:
    resident = watched.samples[-1].ordinary["resident"]
    if resident > RESIDENT_LIMIT:
        absent_here.append(
            f"memory budget of the daemon: {resident / 2**20:.1f} MiB here, over its {RESIDENT_LIMIT / 2**20:g} MiB"
        )
    assert resident <= RESIDENT_CEILING, f"{resident / 2**20:.1f} MiB"


def test_cpu_share(watched: Watched, absent_here: list[str]) -> None:
    """The cheapest twenty seconds: what neighbours on the machine add is not ours, and a busy one gets more tries.

    The budget was measured where it was set; a virtual processor with cold caches takes up to twice the time for the same work.
    So a machine on which it is not met says so at the end of the run, and only what no machine explains fails.
    """
    samples = watched.samples[2:]
    for _ in range(MORE_S):
        if min(_shares(samples)) <= CPU_LIMIT:
            break
        time.sleep(1.0)
        samples.append(_sample(watched.ordinary, watched.beset))
    best = min(_shares(samples))
    if best > CPU_LIMIT:
        absent_here.append(f"CPU budget of the daemon: {100 * best:.2f} % of a core here, over its {100 * CPU_LIMIT:g} %")
    assert best <= CPU_CEILING, f"{100 * best:.2f} % of a core"


def test_bytes_a_day(watched: Watched) -> None:
    """A full set of readings is written once a minute, and every change of a state at once."""
    early, late = watched.samples[2], watched.samples[-1]
    minutes = (late.at_s - early.at_s) / 60
    grown = {name: size - early.data.get(name, 0) for name, size in late.data.items()}
    assert len(grown) >= 6
    written = {name: (watched.ordinary.data / name).read_bytes()[-size:] for name, size in grown.items() if size}
    a_day = sum(on_disk_a_day(lines, minutes) for lines in written.values())
    assert a_day <= BYTES_A_DAY_LIMIT, f"{a_day / 1e6:.1f} MB a day"


@pytest.mark.parametrize("what", ["descriptors", "threads", "children"])
def test_nothing_grows_in_an_ordinary_daemon(watched: Watched, what: str) -> None:
    counts = [sample.ordinary[what] for sample in watched.samples[5:]]
    assert max(counts[len(counts) // 2 :]) <= max(counts[: len(counts) // 2]), counts


def test_the_tools_were_called_and_hung(watched: Watched) -> None:
    assert len(watched.calls.read_text().split()) >= 2
    assert watched.beset.log().count("Traceback") == 0


@pytest.mark.parametrize("what", ["descriptors", "threads", "children"])
def test_nothing_grows_beside_tools_that_hang(watched: Watched, what: str) -> None:
    """Never more than one call in flight a tool: its shell, the child it left and the sleep it waits for."""
    counts = [sample.beset[what] for sample in watched.samples[5:]]
    assert max(counts[len(counts) // 2 :]) <= max(counts[: len(counts) // 2]) + (3 if what == "children" else 0), counts
    if what == "children":
        assert max(counts) <= 6, counts


def test_memory_beside_tools_that_hang(watched: Watched) -> None:
    resident = [sample.beset["resident"] for sample in watched.samples[5:]]
    assert max(resident[len(resident) // 2 :]) <= 1.05 * max(resident[: len(resident) // 2]), resident


def test_no_cycle_of_the_rest_was_lost(watched: Watched) -> None:
    """Collectors beside the hung tools kept their cadence all the time."""
    cycles = watched.beset.own("collector_cycles_total", "cpu") or 0.0
    skipped = watched.beset.own("collector_skipped_total", "cpu") or 0.0
    assert cycles >= 50
    assert skipped <= 0.1 * cycles


def test_both_end_in_good_order_and_leave_nothing(watched: Watched) -> None:
    for daemon in (watched.ordinary, watched.beset):
        assert daemon.stop(signal.SIGTERM) == 0
        deadline = time.monotonic() + 5
        while daemon.family() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert daemon.family() == []
