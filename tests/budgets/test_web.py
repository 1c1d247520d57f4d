"""DESIGN 5 and the issue of the page: memory of a daemon with the page in its process, and what twenty readers cost a server."""

import contextlib
import http.client
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.compiled import compiled_environment, untraced
from support.daemon import Daemon, environment, free_port, until

RESIDENT_LIMIT = 40 * 1024 * 1024
READERS = 20
READERS_LIMIT = 0.01
"""Of a core."""
WINDOW_S = 4.0
WINDOWS = 3
"""The best of so many: what a neighbour on a busy machine costs is not ours."""

pytestmark = pytest.mark.timeout(90)


@contextlib.contextmanager
def started(command: str, config: Path, port: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command with the page, from when it answers until the end of the block."""
    argv = [sys.executable, "-m", "nodeproof", command, "-c", str(config), *more]
    env = compiled_environment(config.parent / "compiled")
    # The first start compiles what a server loads only when it runs.
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: fetch(port, "/api/snapshot") == 200, f"{command} answers")
        finally:
            process.terminate()
    with subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: fetch(port, "/api/snapshot") == 200, f"{command} answers")
            yield process
        finally:
            process.terminate()


def fetch(port: int, path: str) -> int:
    """Status of the answer to one request; 0 when there is none."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        with connection.getresponse() as answer:
            answer.read()
            return answer.status
    except OSError:
        return 0
    finally:
        connection.close()


def read_events(port: int, stop: threading.Event) -> None:
    """Read the event stream until told to stop."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/api/events")
    with connection.getresponse() as answer:
        while not stop.is_set():
            answer.read1(1 << 16)
    connection.close()


@contextlib.contextmanager
def readers(port: int, count: int) -> Iterator[None]:
    """So many readers."""
    stop = threading.Event()
    threads = [threading.Thread(target=read_events, args=(port, stop)) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def cpu_s(pid: int) -> float:
    """CPU seconds of a process (MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED), linux/posix-timers.h)."""
    return time.clock_gettime(~pid << 3 | 2)


def resident_bytes(pid: int) -> int:
    """Resident memory."""
    return int(Path("/proc", str(pid), "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with the cadence of the defaults, not started."""
    found = Daemon(tmp_path / "daemon")
    found.configure(collection={"interval_from": "features"}, web={"address": f"127.0.0.1:{free_port()}"})
    yield found
    found.clean_up()


def port_of(daemon: Daemon) -> int:
    """Where its page is."""
    return int(daemon.config.read_text("utf-8").split("127.0.0.1:")[-1].split()[0].strip("'"))


def test_resident_memory_with_the_page(daemon: Daemon) -> None:
    port = port_of(daemon)
    with started("up", daemon.config, port) as process, readers(port, 2):
        for path in (
            "/",
            "/static/js/main.js",
            "/static/vendor/uplot.js",
            "/api/snapshot",
            "/api/dfee",
            "/api/stress/live",
            "/api/faults/active",
        ):
            assert fetch(port, path) == 200
        time.sleep(1.0)
        resident = resident_bytes(process.pid)
    assert resident <= RESIDENT_LIMIT, f"{resident / 2**20:.1f} MiB"


def test_cpu_time_of_twenty_readers(daemon: Daemon) -> None:
    daemon.start()
    port = port_of(daemon)
    with started("web", daemon.config, port) as process, readers(port, READERS):
        time.sleep(0.5)
        shares = []
        for _ in range(WINDOWS):
            before, began = cpu_s(process.pid), time.monotonic()
            time.sleep(WINDOW_S)
            shares.append((cpu_s(process.pid) - before) / (time.monotonic() - began))
    assert min(shares) <= READERS_LIMIT, shares


def test_a_daemon_alone_loads_nothing_of_the_page() -> None:
    code = "import sys, nodeproof.cli.commands.observe; print(sorted({'asyncio', 'h11', 'ssl'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], env=untraced(environment()), capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
