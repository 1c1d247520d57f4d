"""What systemd hears of a real daemon, over a real datagram socket."""

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import Daemon, until

HANGS = "class Theirs(Frame):\n    def readings(self, cycle):\n        while True: time.sleep(60)\n"
WELL = "class Theirs(Frame):\n    def readings(self, cycle):\n        return [reading(1.0)]\n"
BUILT_IN = ("chassis", "cpu", "disk", "gpu", "memory", "network", "npu", "system")


class Manager:
    """The receiving end of NOTIFY_SOCKET."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.heard: list[dict[str, str]] = []
        self.asked = 0
        """How many of them :meth:`until` has passed."""

    def listen(self, seconds: float) -> list[dict[str, str]]:
        """Every message that comes within so many seconds."""
        deadline = time.monotonic() + seconds
        fresh = []
        while (left := deadline - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                data = self.socket.recv(4096)
            except TimeoutError:
                break
            fresh.append(dict(line.split("=", 1) for line in data.decode().split("\n")))
        self.heard += fresh
        return fresh

    def until(self, key: str, limit_s: float = 10.0) -> dict[str, str]:
        """The next message that has ``key``."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            self.listen(0.05)
            while self.asked < len(self.heard):
                self.asked += 1
                if key in self.heard[self.asked - 1]:
                    return self.heard[self.asked - 1]
        raise AssertionError(f"no {key} within {limit_s} s; heard {self.heard}")


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    made = Manager(tmp_path / "notify")
    yield made
    made.socket.close()


@pytest.fixture
def managed(daemon: Daemon, manager: Manager) -> Daemon:
    daemon.env |= {"NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "3000000"}
    return daemon


def test_ready_reloading_alive_and_stopping(managed: Daemon, manager: Manager) -> None:
    managed.start(ready=False)
    ready = manager.until("READY")
    assert ready["READY"] == "1"
    assert ready["MAINPID"] == str(managed.pid)
    assert manager.until("WATCHDOG")["STATUS"].endswith("of 100")
    before = time.monotonic_ns() // 1000
    managed.send(signal.SIGHUP)
    reloading = manager.until("RELOADING")
    assert before <= int(reloading["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000
    assert manager.until("READY")["STATUS"] == "observing"
    managed.config.write_text("nonsense: 1\n")
    managed.send(signal.SIGHUP)
    manager.until("RELOADING")
    assert manager.until("READY")["STATUS"] == "not reloaded: the new configuration is bad"
    managed.send(signal.SIGTERM)
    manager.until("STOPPING")
    assert managed.wait() == 0


def test_a_manager_that_does_not_read_stops_nothing(managed: Daemon) -> None:
    """Its queue is full within two seconds; the daemon goes on all the same, and ends when it is told to."""
    managed.start()
    sequence = managed.whole().sequence
    until(lambda: managed.whole().sequence > sequence + 20, "it goes on", 15.0)
    assert managed.stop() == 0


def test_nothing_is_ready_that_could_not_start(managed: Daemon, manager: Manager) -> None:
    managed.snapshots.write_text("a file stands where the directory should be")
    managed.start(ready=False)
    assert managed.wait() == 1
    assert manager.listen(0.1) == []


def test_the_watchdog_is_petted_while_one_collector_hangs_and_others_work(managed: Daemon, manager: Manager) -> None:
    managed.install("stuck", HANGS)
    managed.start()
    manager.listen(0.5)
    assert sum("WATCHDOG" in message for message in manager.listen(1.0)) >= 3


def test_the_watchdog_is_not_petted_when_every_collector_hangs(managed: Daemon, manager: Manager) -> None:
    """The daemon's look at itself goes on, and is no sign of life of what it is for."""
    managed.install("stuck", HANGS)
    off = {name: {"enabled": False} for name in BUILT_IN}
    managed.configure(collectors={**off, "stuck": {"interval": "200ms", "deadline": "500ms"}})
    managed.start(ready=False)
    manager.until("READY")
    until(lambda: managed.own("collector_hung", "stuck"), "the daemon's look at itself says so", 12.0)
    assert (managed.own("collector_cycles_total", "daemon") or 0) >= 1
    assert not any("WATCHDOG" in message for message in (manager.heard + manager.listen(1.0)))
    assert "collector stuck hangs" in managed.log()


def test_a_collector_that_only_fails_is_no_sign_of_life(managed: Daemon, manager: Manager) -> None:
    managed.install("fans", "class Theirs(Frame):\n    def readings(self, cycle):\n        raise OSError('gone')\n")
    managed.configure(collectors={**{name: {"enabled": False} for name in BUILT_IN}, "fans": {"interval": "200ms"}})
    managed.start()
    manager.listen(0.3)
    assert not any("WATCHDOG" in message for message in (manager.heard + manager.listen(1.0)))


def test_no_child_can_speak_in_our_name(managed: Daemon, manager: Manager) -> None:
    """Neither a tool that a collector runs, nor what a plug-in starts by itself."""
    seen = managed.folder / "seen"
    body = f"""
class Theirs(Frame):
    def readings(self, cycle):
        import subprocess
        subprocess.run(["sh", "-c", "env | grep -E 'NOTIFY|WATCHDOG' >> {seen}; echo ran >> {seen}"])
        return [reading(1.0)]
"""
    managed.install("speaks", body)
    managed.start()
    until(lambda: seen.exists() and "ran" in seen.read_text(), "the child ran")
    assert set(seen.read_text().split()) == {"ran"}


def test_a_watchdog_too_quick_for_the_cadence_is_told_of(managed: Daemon) -> None:
    managed.env["WATCHDOG_USEC"] = "300000"
    managed.start()
    managed.until_logged("systemd wants a sign of life every 0.3 s")
