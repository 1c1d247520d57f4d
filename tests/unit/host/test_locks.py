import fcntl
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodeproof.errors import SnapshotError
from nodeproof.host import locks

HOLD = """
import sys
sys.path[:0] = {path!r}
from nodeproof.host.locks import DirectoryLock
DirectoryLock({directory!r}).acquire()
print("held", flush=True)
sys.stdin.read()
"""


def holder(directory: Path) -> "subprocess.Popen[str]":
    code = HOLD.format(path=sys.path, directory=str(directory))
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    return child


def end(child: "subprocess.Popen[str]") -> None:
    child.kill()
    child.communicate()


def test_a_second_daemon_is_told_who_has_the_directory_and_what_to_do(tmp_path: Path) -> None:
    child = holder(tmp_path)
    try:
        with pytest.raises(SnapshotError) as caught:
            locks.DirectoryLock(str(tmp_path), remedy="set snapshot.dir").acquire()
        assert f"process {child.pid}" in str(caught.value)
        assert str(tmp_path) in str(caught.value)
        assert "set snapshot.dir" in str(caught.value)
        assert locks.probe_lock(str(tmp_path)) == locks.LockState(
            held=True, pid=child.pid, detail=f"{tmp_path}/daemon.lock is held by process {child.pid}"
        )
    finally:
        end(child)


def test_the_kernel_frees_the_lock_of_a_killed_daemon(tmp_path: Path) -> None:
    end(holder(tmp_path))
    assert locks.probe_lock(str(tmp_path)).held is False
    lock = locks.DirectoryLock(str(tmp_path))
    lock.acquire()
    assert (tmp_path / "daemon.lock").read_text() == f"{os.getpid()}\n"
    lock.release()


def test_taking_it_twice_is_taking_it_once(tmp_path: Path) -> None:
    lock = locks.DirectoryLock(str(tmp_path / "made"))
    lock.acquire()
    lock.acquire()
    assert locks.probe_lock(str(tmp_path / "made")).held is True
    lock.release()
    lock.release()
    assert locks.probe_lock(str(tmp_path / "made")).held is False


def test_a_reader_that_probes_does_not_turn_a_daemon_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The first tries meet the shared lock of a reader, which then goes.
    (tmp_path / "daemon.lock").write_text("")
    with (tmp_path / "daemon.lock").open() as reader:
        fcntl.flock(reader, fcntl.LOCK_SH)
        monkeypatch.setattr(time, "sleep", lambda _: fcntl.flock(reader, fcntl.LOCK_UN))
        lock = locks.DirectoryLock(str(tmp_path))
        lock.acquire()
        assert locks.probe_lock(str(tmp_path)).held is True
        lock.release()


def test_it_is_taken_anew_after_the_directory_was_removed(tmp_path: Path) -> None:
    folder = tmp_path / "snap"
    lock = locks.DirectoryLock(str(folder))
    lock.acquire()
    lock.renew()
    shutil.rmtree(folder)
    assert locks.probe_lock(str(folder)).held is False
    lock.renew()
    assert locks.probe_lock(str(folder)).held is True
    (folder / "daemon.lock").unlink()
    (folder / "daemon.lock").write_text("")
    lock.renew()
    assert locks.probe_lock(str(folder)).pid == os.getpid()
    lock.release()


def test_a_place_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SnapshotError, match="file"):
        locks.DirectoryLock(str(tmp_path / "file" / "snap")).acquire()
    (tmp_path / "daemon.lock").mkdir()
    with pytest.raises(SnapshotError, match=r"daemon\.lock"):
        locks.DirectoryLock(str(tmp_path)).acquire()


def test_a_link_in_the_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "daemon.lock").symlink_to(tmp_path / "precious")
    with pytest.raises(SnapshotError):
        locks.DirectoryLock(str(tmp_path)).acquire()
    assert (tmp_path / "precious").read_text() == "mine"


def test_probing_where_nothing_is_or_nothing_can_be_told(tmp_path: Path) -> None:
    assert locks.probe_lock(str(tmp_path)).held is False
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    state = locks.probe_lock(str(tmp_path), "loop")
    assert state.held is None
    assert "loop" in state.detail


def test_a_lock_that_the_file_system_cannot_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(_fd: int, _operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with pytest.raises(SnapshotError, match="No locks available"):
        locks.DirectoryLock(str(tmp_path)).acquire()
    state = locks.probe_lock(str(tmp_path))
    assert state.held is None
    assert "No locks available" in state.detail


def test_boot_id_is_the_kernels() -> None:
    assert locks.boot_id() == Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def test_state_of_processes() -> None:
    assert locks.process_state(os.getpid()) == "R"
    assert locks.process_state(2**22 + 1) == ""


def test_boot_id_that_cannot_be_read_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "no")

    monkeypatch.setattr("builtins.open", refused)
    assert locks.boot_id() == ""
