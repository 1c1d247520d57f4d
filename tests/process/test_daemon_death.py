"""Whatever happens to a daemon, a reader of its directory can tell; real processes, real signals."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.clock import SystemClock
from nodeproof.errors import SnapshotError
from nodeproof.host.recorded import ManualClock
from nodeproof.model.snapshot import DaemonState, DaemonVerdict
from nodeproof.sinks.snapshot import SnapshotDirectory
from nodeproof.sinks.snapshot_reader import read_state

TESTS = Path(__file__).parents[1]


@pytest.fixture
def daemon(tmp_path: Path) -> "Iterator[subprocess.Popen[str]]":
    child = start(tmp_path)
    yield child
    if child.poll() is None:
        child.kill()
    child.communicate()


def start(folder: Path) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])}
    child = subprocess.Popen(
        [sys.executable, str(TESTS / "support" / "snapshot_daemon.py"), str(folder), "0.2"],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    return child


def later(seconds: float, wall_shift_s: float = 0.0) -> ManualClock:
    """What the clocks will say in so many seconds."""
    now = SystemClock().now()
    return ManualClock(wall_s=now.wall_s + seconds + wall_shift_s, mono_s=now.mono_s + seconds)


def wait_for(folder: Path, verdict: DaemonVerdict) -> DaemonState:
    for _ in range(200):
        state = read_state(str(folder))
        if state.verdict is verdict:
            return state
        time.sleep(0.02)
    raise AssertionError(f"still {state.verdict}: {state.reason}")


def test_running(daemon: "subprocess.Popen[str]", tmp_path: Path) -> None:
    state = wait_for(tmp_path, DaemonVerdict.RUNNING)
    assert state.evidence.lock_pid == state.evidence.snapshot_pid == daemon.pid
    assert state.components["cpu"].fresh


def test_stopped(daemon: "subprocess.Popen[str]", tmp_path: Path) -> None:
    daemon.send_signal(signal.SIGTERM)
    daemon.wait(5)
    state = read_state(str(tmp_path))
    assert state.verdict is DaemonVerdict.STOPPED
    assert state.evidence.lock_held is False


def test_killed_is_known_at_once(daemon: "subprocess.Popen[str]", tmp_path: Path) -> None:
    daemon.kill()
    daemon.wait(5)
    state = read_state(str(tmp_path))
    assert state.verdict is DaemonVerdict.DEAD
    assert f"process {daemon.pid} is gone" in state.reason
    assert state.evidence.age_s is not None
    assert state.evidence.age_s < 5.0


def test_frozen(daemon: "subprocess.Popen[str]", tmp_path: Path) -> None:
    daemon.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, daemon.pid, os.WSTOPPED)
    state = read_state(str(tmp_path), later(6.0))
    assert state.verdict is DaemonVerdict.FROZEN
    assert state.evidence.process_state == "T"
    assert "SIGCONT" in state.reason
    assert not state.components["cpu"].fresh
    daemon.send_signal(signal.SIGCONT)
    wait_for(tmp_path, DaemonVerdict.RUNNING)


@pytest.mark.parametrize("wall_shift_s", [-(10**8), 10**8])
def test_the_wall_clock_moved(daemon: "subprocess.Popen[str]", tmp_path: Path, wall_shift_s: float) -> None:
    assert read_state(str(tmp_path), later(0.0, wall_shift_s)).verdict is DaemonVerdict.RUNNING
    daemon.kill()
    daemon.wait(5)
    assert read_state(str(tmp_path), later(0.0, wall_shift_s)).verdict is DaemonVerdict.DEAD


def test_after_another_boot(daemon: "subprocess.Popen[str]", tmp_path: Path) -> None:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    daemon.kill()
    daemon.wait(5)
    for path in tmp_path.glob("*.json"):
        path.write_text(path.read_text().replace(boot, "00000000-0000-0000-0000-000000000000"))
    state = read_state(str(tmp_path))
    assert state.verdict is DaemonVerdict.DEAD
    assert state.evidence.same_boot is False


def test_a_second_daemon_is_refused_and_a_successor_is_not(daemon: "subprocess.Popen[str]", tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=f"process {daemon.pid}"):
        SnapshotDirectory(str(tmp_path)).open({"cpu"})
    daemon.kill()
    daemon.wait(5)
    successor = start(tmp_path)
    try:
        state = wait_for(tmp_path, DaemonVerdict.RUNNING)
        assert state.evidence.snapshot_pid == successor.pid
    finally:
        successor.terminate()
        successor.communicate()


def test_no_reader_ever_sees_half_a_file(daemon: "subprocess.Popen[str]", tmp_path: Path) -> None:
    for _ in range(300):
        assert read_state(str(tmp_path)).verdict is DaemonVerdict.RUNNING
    assert daemon.poll() is None
