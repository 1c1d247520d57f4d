"""Directories of a running daemon that vanish, become read-only or full: it goes on, says so once, and heals by itself."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.model.snapshot import DaemonVerdict
from support.daemon import Daemon, until
from support.strict_reader import read_directory


class Disk:
    """A small file system of its own."""

    def __init__(self, path: Path, size: str) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self._run("/bin/mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))

    def cover(self) -> None:
        """Lay a read-only file system over it: one with files open for writing cannot be made read-only."""
        self._run("/bin/mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(self.path))

    def uncover(self) -> None:
        self._run("/bin/umount", str(self.path))

    def fill(self) -> Path:
        """Leave no byte free; the file that takes it all."""
        filler = self.path / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                return filler

    def unmount(self) -> None:
        self._run("/bin/umount", "-l", str(self.path))

    @staticmethod
    def _run(*argv: str) -> None:
        done = subprocess.run(argv, capture_output=True, check=False)
        if done.returncode:
            raise OSError(done.stderr.decode("utf-8", "replace").strip())


@pytest.fixture
def disk(request: pytest.FixtureRequest, daemon: Daemon, absent_here: list[str]) -> Iterator[Disk]:
    """A disk under one directory of the daemon, as the test's parameter says: name and size."""
    name, size = request.param
    try:
        made = Disk(getattr(daemon, name), size)
    except OSError as error:
        absent_here.append(f"full and read-only file systems: this user may not mount one ({error})")
        pytest.skip("needs the right to mount")
    yield made
    daemon.clean_up()
    made.unmount()


def goes_on(daemon: Daemon) -> None:
    """The rest of the daemon is not touched by the trouble."""
    assert daemon.process is not None
    assert daemon.process.poll() is None
    assert daemon.answers()
    assert "Traceback" not in daemon.log()


def told_once(daemon: Daemon, text: str) -> None:
    """The problem of each file stands in the log once, though each cycle meets it."""
    lines = [line.split(maxsplit=2)[2] for line in daemon.log().splitlines() if text in line]
    assert lines
    assert len(lines) == len(set(lines)), lines


def test_the_snapshot_directory_is_removed(daemon: Daemon) -> None:
    daemon.start()
    shutil.rmtree(daemon.snapshots)
    until(lambda: daemon.state().verdict is DaemonVerdict.RUNNING, "it is there again, with its lock")
    until((daemon.snapshots / "snapshot_disk.json").exists, "every component's file too")
    assert daemon.state().evidence.lock_pid == daemon.pid
    read_directory(daemon.snapshots, also={"system", "daemon"})
    goes_on(daemon)
    assert daemon.stop() == 0
    assert daemon.whole().stopped


def test_the_snapshot_directory_is_replaced_by_a_file(daemon: Daemon) -> None:
    daemon.start()
    moved = daemon.folder / "moved"
    while not daemon.snapshots.is_file():
        if daemon.snapshots.exists():
            os.rename(daemon.snapshots, moved / "again" if moved.exists() else moved)
        try:
            with open(daemon.snapshots, "x", encoding="utf-8"):
                pass
        except FileExistsError:
            time.sleep(0.001)
    daemon.until_logged("Not a directory")
    goes_on(daemon)
    daemon.snapshots.unlink()
    until(lambda: daemon.state().verdict is DaemonVerdict.RUNNING, "it is there again")
    daemon.until_logged("works again")
    told_once(daemon, "Not a directory")


@pytest.mark.parametrize("disk", [("snapshots", "1m")], indirect=True)
def test_the_snapshot_directory_becomes_read_only(daemon: Daemon, disk: Disk) -> None:
    daemon.start()
    disk.cover()
    daemon.until_logged("snapshot_cpu.json: Read-only file system; mount it for writing, or name another directory")
    daemon.until_check(3)
    goes_on(daemon)
    assert b'nodeproof_sink_errors_total{sink="snapshot"} 0' not in daemon.scrape().body
    disk.uncover()
    daemon.until_running()
    daemon.until_logged("snapshot.json: works again")
    daemon.until_logged("snapshot cpu: works again")
    told_once(daemon, "Read-only file system")


@pytest.mark.parametrize("disk", [("snapshots", "1m")], indirect=True)
def test_the_snapshot_directory_is_full(daemon: Daemon, disk: Disk) -> None:
    daemon.start()
    readable = daemon.part("cpu").sequence
    filler = disk.fill()
    daemon.until_logged("No space left on device; free some space there")
    for _ in range(20):
        # Whatever can no longer be written stays whole.
        read_directory(daemon.snapshots, also={"system", "daemon"})
    goes_on(daemon)
    filler.unlink()
    until(lambda: daemon.part("cpu").sequence > readable + 3, "it is written again")
    daemon.until_running()
    told_once(daemon, "No space left")


def data_lines(daemon: Daemon) -> int:
    """Lines in the data files, 0 when there are none."""
    return sum(len(path.read_bytes().splitlines()) for path in daemon.data.glob("*.jsonl"))


def test_the_data_directory_is_removed(daemon: Daemon) -> None:
    daemon.start()
    until(lambda: data_lines(daemon), "data files")
    shutil.rmtree(daemon.data)
    until(lambda: data_lines(daemon), "data files again")
    goes_on(daemon)


@pytest.mark.parametrize("disk", [("data", "200m")], indirect=True)
def test_the_data_directory_becomes_read_only(daemon: Daemon, disk: Disk) -> None:
    daemon.start()
    until(lambda: data_lines(daemon), "data files")
    before = data_lines(daemon)
    disk.cover()
    daemon.until_logged("Read-only file system")
    goes_on(daemon)
    disk.uncover()
    until(lambda: data_lines(daemon) > before, "lines again", 20.0)
    daemon.until_logged("works again")
    told_once(daemon, "Read-only file system")
    goes_on(daemon)


@pytest.mark.parametrize("disk", [("data", "1m")], indirect=True)
def test_a_data_directory_without_room_costs_only_the_data(daemon: Daemon, disk: Disk) -> None:
    assert disk.path == daemon.data
    daemon.start()
    daemon.until_logged("nothing is kept while the file system has less than 128 MiB free; free some space there")
    until(lambda: daemon.part("cpu").sequence > 5, "snapshots go on")
    goes_on(daemon)
    told_once(daemon, "128 MiB")
    assert data_lines(daemon) == 0
