"""Signals go to the process that was meant, or to none."""

import errno
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from nodeproof.host.pidfd import Sent, open_process, send_signal
from nodeproof.host.process_tree import Identity, ProcessTree

TREE = ProcessTree()


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(["/bin/sleep", "60"])
    yield child
    child.kill()
    child.wait()


def identity(pid: int) -> Identity:
    stat = TREE.stat(pid)
    assert stat is not None
    return stat.identity


def refuse(code: int) -> None:
    raise OSError(code, os.strerror(code))


def test_to_the_one_that_was_meant(sleeper: "subprocess.Popen[bytes]") -> None:
    assert send_signal(identity(sleeper.pid), signal.SIGTERM, TREE) is Sent.SENT
    assert sleeper.wait() == -signal.SIGTERM


@pytest.mark.parametrize("code", [0, errno.ENOSYS, errno.EPERM])
def test_number_that_another_process_has_now(
    sleeper: "subprocess.Popen[bytes]", code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if code:
        monkeypatch.setattr(os, "pidfd_open", lambda _: refuse(code))
    former = Identity(sleeper.pid, identity(sleeper.pid).start_ticks - 1)
    assert send_signal(former, signal.SIGKILL, TREE) is Sent.GONE
    assert sleeper.poll() is None


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM])
def test_kernel_without_the_call(sleeper: "subprocess.Popen[bytes]", code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux before 5.3, or a sandbox that refuses what it does not know."""
    monkeypatch.setattr(os, "pidfd_open", lambda _: refuse(code))
    assert open_process(sleeper.pid) == -1
    assert send_signal(identity(sleeper.pid), signal.SIGTERM, TREE) is Sent.SENT
    assert sleeper.wait() == -signal.SIGTERM


def test_gone(sleeper: "subprocess.Popen[bytes]") -> None:
    former = identity(sleeper.pid)
    sleeper.kill()
    sleeper.wait()
    assert send_signal(former, signal.SIGTERM, TREE) is Sent.GONE
    with pytest.raises(ProcessLookupError):
        open_process(sleeper.pid)


@pytest.mark.parametrize(("error", "sent"), [(PermissionError, Sent.DENIED), (ProcessLookupError, Sent.GONE)])
def test_answers_of_the_kernel(
    sleeper: "subprocess.Popen[bytes]", error: type[OSError], sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object) -> None:
        raise error

    monkeypatch.setattr(signal, "pidfd_send_signal", answer)
    fds = len(os.listdir("/proc/self/fd"))
    assert send_signal(identity(sleeper.pid), signal.SIGTERM, TREE) is sent
    assert len(os.listdir("/proc/self/fd")) == fds
