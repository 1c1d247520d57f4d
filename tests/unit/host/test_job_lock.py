"""One job at a time, and who has the right to it."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeproof.errors import WriteError
from nodeproof.host.job_lock import HolderState, JobLock, probe_job_lock
from nodeproof.host.owner import this_process


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "stress-latest.json.lock")


@pytest.fixture
def other(path: str) -> Iterator[Callable[[], "subprocess.Popen[str]"]]:
    """Another process that takes the lock and dies without letting go."""
    script = (
        "import sys; from nodeproof.host.job_lock import JobLock; lock = JobLock(sys.argv[1])\n"
        "lock.acquire('theirs', '/run/r'); print(1, flush=True); input()"
    )
    children = []

    def start() -> "subprocess.Popen[str]":
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        child = subprocess.Popen(
            [sys.executable, "-c", script, path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


def test_taken_named_and_let_go(path: str) -> None:
    lock = JobLock(path)
    assert lock.fd == -1
    former = lock.acquire("tok", "/run/r")
    assert (former.state, former.held, former.owner) == (HolderState.FREE, False, None)
    assert Path(path).stat().st_mode & 0o777 == 0o640
    holder = probe_job_lock(path)
    assert (holder.state, holder.held, holder.owner, holder.token, holder.record) == (
        HolderState.LIVE,
        True,
        this_process(),
        "tok",
        "/run/r",
    )
    lock.name("next", "/run/n")
    assert (probe_job_lock(path).token, probe_job_lock(path).record) == ("next", "/run/n")
    with pytest.raises(RuntimeError, match="already"):
        lock.acquire()
    lock.release()
    lock.release()
    assert probe_job_lock(path).state is HolderState.FREE
    assert Path(path).read_bytes() == b""
    assert lock.acquire().state is HolderState.FREE
    lock.release()


def test_held_by_another(path: str, other: Callable[[], "subprocess.Popen[str]"]) -> None:
    child = other()
    former = JobLock(path).acquire("ours")
    assert (former.state, former.held, former.token) == (HolderState.LIVE, True, "theirs")
    assert former.detail == f"{path} is held by process {child.pid}"
    assert probe_job_lock(path) == former


def test_holder_that_died_is_told_to_the_next(path: str, other: Callable[[], "subprocess.Popen[str]"]) -> None:
    child = other()
    child.kill()
    child.wait()
    seen = probe_job_lock(path)
    assert (seen.state, seen.held, seen.token, seen.record) == (HolderState.DEAD, False, "theirs", "/run/r")
    lock = JobLock(path)
    assert lock.acquire("ours") == seen
    assert seen.detail == f"process {child.pid} held {path} and died with its job unfinished"
    assert (probe_job_lock(path).token, probe_job_lock(path).state) == ("ours", HolderState.LIVE)
    lock.release()


def test_copy_of_the_descriptor_keeps_it(path: str, other: Callable[[], "subprocess.Popen[str]"]) -> None:
    """As the keeper's: here this process holds a copy that it opened from the dying one."""
    child = other()
    fd = os.open(f"/proc/{child.pid}/fd/{_lock_fd(child.pid, path)}", os.O_RDWR)
    child.kill()
    child.wait()
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    holder = probe_job_lock(path)
    assert (holder.state, holder.held) == (HolderState.ENDING, True)
    os.close(fd)
    assert probe_job_lock(path).state is HolderState.DEAD


def _lock_fd(pid: int, path: str) -> str:
    return next(fd for fd in os.listdir(f"/proc/{pid}/fd") if os.readlink(f"/proc/{pid}/fd/{fd}") == path)


@pytest.mark.parametrize("content", [b"", b"812\n", b"{}", b"\xff\xfe"])
def test_foreign_program_that_keeps_the_same_lock(content: bytes, path: str) -> None:
    """The reference writes nothing into it."""
    os.makedirs(os.path.dirname(path))
    Path(path).write_bytes(content)
    fd = os.open(path, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    holder = probe_job_lock(path)
    assert (holder.state, holder.held) == (HolderState.FOREIGN, True)
    assert JobLock(path).acquire() == holder
    os.close(fd)
    assert probe_job_lock(path).state is HolderState.FREE


@pytest.mark.parametrize("key", ["boot_id", "pid_namespace"])
def test_holder_of_another_machine_or_container(key: str, path: str) -> None:
    lock = JobLock(path)
    lock.acquire("tok")
    content = json.loads(Path(path).read_bytes())
    Path(path).write_bytes(json.dumps({**content, key: "another"}).encode())
    assert probe_job_lock(path).state is HolderState.FOREIGN
    lock.release()


def test_number_that_another_process_has_now(path: str) -> None:
    lock = JobLock(path)
    lock.acquire("tok")
    content = json.loads(Path(path).read_bytes())
    Path(path).write_bytes(json.dumps({**content, "start_ticks": content["start_ticks"] - 1}).encode())
    assert probe_job_lock(path).state is HolderState.ENDING
    lock.release()


def test_looking_turns_no_job_away(path: str) -> None:
    """A reader holds a shared lock for a moment."""
    os.makedirs(os.path.dirname(path))
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.flock(fd, fcntl.LOCK_SH)
    looking = threading.Timer(0.03, lambda: fcntl.flock(fd, fcntl.LOCK_UN))
    looking.start()
    lock = JobLock(path)
    assert lock.acquire().state is HolderState.FREE
    looking.join()
    lock.release()
    os.close(fd)


def test_places_where_no_lock_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(WriteError, match="is no directory"):
        JobLock(str(tmp_path / "file" / "lock")).acquire()
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(WriteError, match="symbolic links"):
        JobLock(str(tmp_path / "link")).acquire()
    assert probe_job_lock(str(tmp_path / "absent")).state is HolderState.FREE
    assert probe_job_lock(str(tmp_path / "file" / "lock")).state is HolderState.UNKNOWN
    assert probe_job_lock(str(tmp_path / "file" / "lock")).held

    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    lock = JobLock(str(tmp_path / "lock"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        with pytest.raises(WriteError, match="No space left"):
            lock.acquire()
    assert lock.fd == -1
    lock.acquire()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        with pytest.raises(WriteError, match="No space left"):
            lock.name("t", "r")
    lock.release()


def test_file_system_without_locks(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(37, "No locks available")

    JobLock(path).acquire()
    monkeypatch.setattr(fcntl, "flock", refuse)
    assert probe_job_lock(path).state is HolderState.UNKNOWN
    with pytest.raises(WriteError, match="No locks available"):
        JobLock(path).acquire()
