"""What a service manager hears."""

import os
import socket
import time
from pathlib import Path

import pytest

from nodeproof.host.notify import Notifier


def listener(address: str) -> socket.socket:
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind(address)
    receiver.settimeout(2)
    return receiver


@pytest.mark.parametrize("abstract", [False, True])
def test_states_reach_the_socket(tmp_path: Path, *, abstract: bool) -> None:
    name = f"nodeproof-test-{os.getpid()}"
    path = str(tmp_path / "notify")
    with listener("\0" + name if abstract else path) as receiver:
        notifier = Notifier({"NOTIFY_SOCKET": "@" + name if abstract else path, "WATCHDOG_USEC": "3000000"})
        assert notifier.active
        assert notifier.watchdog_s == 3.0
        assert notifier.send("READY=1", "STATUS=well")
        assert receiver.recv(100) == b"READY=1\nSTATUS=well"


def test_reloading_says_since_when_on_the_clock_of_systemd(tmp_path: Path) -> None:
    """Not CLOCK_BOOTTIME, which runs ahead of it by the time the machine was suspended."""
    path = str(tmp_path / "notify")
    with listener(path) as receiver:
        before = time.monotonic_ns() // 1000
        assert Notifier({"NOTIFY_SOCKET": path}).reloading()
        first, second = receiver.recv(100).decode().split("\n")
    assert first == "RELOADING=1"
    assert before <= int(second.removeprefix("MONOTONIC_USEC=")) <= time.monotonic_ns() // 1000


def test_without_a_manager_nothing_is_sent() -> None:
    notifier = Notifier({})
    assert not notifier.active
    assert notifier.watchdog_s is None
    assert not notifier.send("READY=1")


def test_a_dead_socket_is_no_error(tmp_path: Path) -> None:
    assert not Notifier({"NOTIFY_SOCKET": str(tmp_path / "gone")}).send("WATCHDOG=1")


def test_watchdog_of_another_process_is_not_ours() -> None:
    assert Notifier({"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}).watchdog_s is None
    assert Notifier({"WATCHDOG_USEC": "1000", "WATCHDOG_PID": str(os.getpid())}).watchdog_s == 0.001
    assert Notifier({"WATCHDOG_USEC": "soon"}).watchdog_s is None


def test_children_do_not_inherit_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/run/x")
    monkeypatch.setenv("WATCHDOG_USEC", "5")
    Notifier()
    assert "NOTIFY_SOCKET" not in os.environ
    assert "WATCHDOG_USEC" not in os.environ


def test_a_manager_that_does_not_read_keeps_nobody_waiting(tmp_path: Path) -> None:
    """Ten datagrams fill its queue; the eleventh would wait for ever."""
    path = str(tmp_path / "notify")
    with listener(path) as receiver:
        notifier = Notifier({"NOTIFY_SOCKET": path})
        began = time.monotonic()
        sent = [notifier.alive("well") for _ in range(100)]
        assert time.monotonic() - began < 2.0
        assert sent[0]
        assert not sent[-1]
        assert receiver.recv(100) == b"WATCHDOG=1\nSTATUS=well"
        assert notifier.alive("well")
