"""Processes told apart for good."""

import os
import subprocess
import sys

import pytest

from nodeproof.host.owner import ProcessOwner, this_process
from nodeproof.host.process_tree import ProcessTree


def test_this_process_lives() -> None:
    ours = this_process()
    assert ours.pid == os.getpid()
    assert ours.lives() is True


def test_a_child_that_ended_does_not_even_before_it_is_waited_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
        stat = ProcessTree().stat(child.pid)
        assert stat is not None
        theirs = this_process()._replace(pid=child.pid, start_ticks=stat.start_ticks)
        assert theirs.lives() is True
        assert child.stdin is not None
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert theirs.lives() is False
    assert theirs.lives() is False


def test_number_start_boot_and_namespace_count() -> None:
    ours = this_process()
    assert ours._replace(start_ticks=ours.start_ticks + 1).lives() is False
    assert ours._replace(boot_id="another").lives() is False
    assert ours._replace(pid_namespace="pid:[1]").lives() is None
    assert ProcessOwner(2**22 + 1, 1, ours.boot_id, ours.pid_namespace).lives() is False


def test_a_namespace_that_cannot_be_told_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> str:
        raise PermissionError(path)

    monkeypatch.setattr(os, "readlink", refuse)
    assert this_process().pid_namespace == ""
