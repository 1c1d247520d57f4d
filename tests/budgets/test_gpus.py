"""Eight GPUs behind a stand-in for NVML, looked at every five seconds by a real daemon with everything on: what it all costs."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.errors import SnapshotError
from nodeproof.sinks.snapshot_reader import read_comp
from support.compiled import untraced
from support.daemon import Daemon, until
from support.gpu import write_gpu
from support.hosts import write_host
from support.nvml import StubNvml, build_stub

pytestmark = pytest.mark.timeout(120)

_CARDS = 8
_RESIDENT_LIMIT = 60 * 1024 * 1024
_CPU_LIMIT = 0.02
_WINDOW_S = 11.0
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class _Watched:
    """The daemon, its helper, and what they used."""

    def __init__(self, daemon: Daemon, stub: StubNvml, log: Path) -> None:
        self.daemon = daemon
        self.stub = stub
        self.started = log

    def processes(self) -> list[int]:
        """The daemon and all that it started."""
        return sorted({self.daemon.pid, *self.daemon.family()})

    def cpu_s(self) -> float:
        """Of all of them, dead children included."""
        return sum(_stat(pid)[0] for pid in self.processes())

    def resident(self) -> int:
        """Of all of them: what they share is counted twice."""
        return sum(_stat(pid)[1] for pid in self.processes())


def _stat(pid: int) -> tuple[float, int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS, int(fields[21]) * _PAGE


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_stub(tmp_path_factory.mktemp("nvml")) if shutil.which("gcc") else Path()


@pytest.fixture(scope="module")
def running(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Watched | None]:
    if not shutil.which("gcc"):
        yield None
        return
    folder = tmp_path_factory.mktemp("gpus")
    stub = StubNvml(built, folder, _CARDS)
    root = write_host("vm-2cpu", str(folder / "root"))
    for address in stub.addresses:
        write_gpu(root, address, driver="nvidia")
    tools = folder / "bin"
    tools.mkdir()
    log = folder / "started"
    (tools / "nvidia-smi").write_text(f"#!/bin/sh\necho called >> {log}\n")
    (tools / "nvidia-smi").chmod(0o755)
    daemon = Daemon(folder / "daemon", env=stub.environment)
    daemon.env = untraced(daemon.env) | {"PATH": f"{tools}:{os.environ['PATH']}"}
    daemon.configure(collection={"interval_from": "collectors"}, storage={"interval": "60s"})
    daemon.configure(collectors={name: {"interval": "5s"} for name in ("cpu", "memory", "network", "system", "disk", "gpu")})
    try:
        daemon.start("--root", root)
        watched = _Watched(daemon, stub, log)
        until(lambda: _answering(daemon) == _CARDS, "all cards answer", 20.0)
        yield watched
    finally:
        daemon.clean_up()


def _answering(daemon: Daemon) -> float:
    try:
        batch = read_comp(str(daemon.snapshots / "snapshot_gpu.json"))
    except SnapshotError:
        return 0.0
    return next((one.value for one in batch.metrics if one.name == "cards" and "answering" in (one.labels or {}).values()), 0.0)


@pytest.fixture
def watched(running: _Watched | None, absent_here: list[str]) -> _Watched:
    if running is None:
        absent_here.append("gcc (Debian packages gcc, libc6-dev): what eight GPUs cost the daemon was not measured")
        pytest.skip("no gcc")
    return running


def test_cpu_share_and_memory_of_daemon_and_helper(watched: _Watched) -> None:
    time.sleep(4.0)  # past the first looks, which ask for everything
    before_s, began_s = watched.cpu_s(), time.monotonic()
    time.sleep(_WINDOW_S)
    share = (watched.cpu_s() - before_s) / (time.monotonic() - began_s)
    assert share <= _CPU_LIMIT, f"{100 * share:.2f} % of a core"
    assert len(watched.processes()) == 2
    assert watched.resident() <= _RESIDENT_LIMIT, f"{watched.resident() / 2**20:.1f} MiB"


def test_no_program_was_started_and_no_call_was_wrong(watched: _Watched) -> None:
    assert not watched.started.exists(), "nvidia-smi is not asked while NVML answers"
    assert watched.stub.wrong_calls() == ""
