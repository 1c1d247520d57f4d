import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from nodeproof.errors import WriteError
from nodeproof.host import atomic
from support.disks import read_only, tiny_disk, writable_again


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("write", [atomic.replace_file, atomic.store_file])
class TestWriting:
    def test_new_content_takes_the_place_of_the_old(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        target = tmp_path / "a.json"
        write(str(target), b"old")
        write(str(target), b"new")
        assert target.read_bytes() == b"new"
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]

    def test_defect_21_group_may_read_whatever_the_umask(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        before = os.umask(0o077)
        try:
            write(str(tmp_path / "made" / "deep" / "a.json"), b"x")
        finally:
            os.umask(before)
        assert mode_of(tmp_path / "made" / "deep" / "a.json") == 0o640
        assert mode_of(tmp_path / "made" / "deep") == 0o750
        assert mode_of(tmp_path / "made") == 0o750

    def test_an_open_umask_gives_others_nothing(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        before = os.umask(0)
        try:
            write(str(tmp_path / "a.json"), b"x")
        finally:
            os.umask(before)
        assert mode_of(tmp_path / "a.json") == 0o640

    def test_full_disk_leaves_the_old_file_and_nothing_else(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        with tiny_disk(tmp_path, 64):
            target = tmp_path / "a.json"
            write(str(target), b"old")
            with pytest.raises(WriteError) as caught:
                write(str(target), b"x" * 200_000)
            assert caught.value.code in {errno.ENOSPC, errno.EFBIG}
            assert str(target) in str(caught.value)
            assert caught.value.remedy
            assert target.read_bytes() == b"old"
            assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]

    def test_read_only_place_says_so_and_heals(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        with tiny_disk(tmp_path, 64):
            target = tmp_path / "a.json"
            write(str(target), b"old")
            read_only(tmp_path)
            with pytest.raises(WriteError) as caught:
                write(str(target), b"new")
            assert caught.value.code in {errno.EROFS, errno.EACCES}
            writable_again(tmp_path)
            assert target.read_bytes() == b"old"
            write(str(target), b"new")
            assert target.read_bytes() == b"new"

    def test_directory_in_the_way(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        (tmp_path / "a.json").mkdir()
        with pytest.raises(WriteError, match="move the directory") as caught:
            write(str(tmp_path / "a.json"), b"x")
        assert caught.value.code == errno.EISDIR
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]

    def test_file_in_the_way_of_the_directory(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        (tmp_path / "snap").write_bytes(b"")
        with pytest.raises(WriteError, match="move the file") as caught:
            write(str(tmp_path / "snap" / "a.json"), b"x")
        assert caught.value.code == errno.ENOTDIR

    def test_a_link_is_replaced_and_its_target_left_alone(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        precious = tmp_path / "precious"
        precious.write_bytes(b"mine")
        (tmp_path / "a.json").symlink_to(precious)
        write(str(tmp_path / "a.json"), b"x")
        assert precious.read_bytes() == b"mine"
        assert not (tmp_path / "a.json").is_symlink()

    def test_long_names_of_many_bytes(self, write: object, tmp_path: Path) -> None:
        assert callable(write)
        name = "ü" * 120
        write(str(tmp_path / name), b"x")
        assert (tmp_path / name).read_bytes() == b"x"


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:3]))
    atomic.replace_file(str(tmp_path / "a"), b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_store_file_syncs_content_before_the_name_and_the_directory_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    real_sync, real_rename = os.fsync, os.rename

    def fsync(fd: int) -> None:
        order.append("directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        real_sync(fd)

    def rename(source: str, target: str) -> None:
        order.append("rename")
        real_rename(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    atomic.store_file(str(tmp_path / "record"), b"x")
    assert order == ["file", "rename", "directory"]
    order.clear()
    atomic.replace_file(str(tmp_path / "snapshot"), b"x")
    assert order == ["rename"]


def test_a_failing_sync_is_an_error_and_keeps_the_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "record"
    atomic.store_file(str(target), b"old")

    def broken(_fd: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(WriteError, match="Input/output error"):
        atomic.store_file(str(target), b"new")
    assert target.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["record"]


def test_a_directory_that_vanishes_is_made_again(tmp_path: Path) -> None:
    target = tmp_path / "snap" / "a.json"
    atomic.replace_file(str(target), b"1")
    target.unlink()
    target.parent.rmdir()
    atomic.replace_file(str(target), b"2")
    assert target.read_bytes() == b"2"


def test_a_leftover_with_the_very_name_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_counter", iter([7]))
    stale = tmp_path / f".a.{os.getpid()}-7.np-tmp"
    stale.write_bytes(b"torn")
    atomic.replace_file(str(tmp_path / "a"), b"whole")
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert not stale.exists()


class TestLeftovers:
    def test_defect_21_those_of_dead_processes_go_and_foreign_files_stay(self, tmp_path: Path) -> None:
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        dead = tmp_path / f".a.json.{child.pid}-3.np-tmp"
        own = tmp_path / f".b.json.{os.getpid()}-1.np-tmp"
        foreign = [tmp_path / name for name in (".snap-1.tmp", "a.json", ".a.json.swp", ".x.12-3.np-tmp.bak")]
        for path in (dead, own, *foreign):
            path.write_bytes(b"x")
        assert sorted(atomic.remove_leftovers(str(tmp_path))) == sorted([dead.name, own.name])
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in foreign)

    def test_those_of_the_living_stay_while_they_are_young(self, tmp_path: Path) -> None:
        path = tmp_path / f".a.json.{os.getppid()}-1.np-tmp"
        path.write_bytes(b"x")
        assert atomic.remove_leftovers(str(tmp_path)) == []
        os.utime(path, (0, 0))
        assert atomic.remove_leftovers(str(tmp_path)) == [path.name]

    def test_one_that_is_being_written_here_stays(self, tmp_path: Path) -> None:
        with atomic.temporary_beside(str(tmp_path / "a")) as temporary:
            Path(temporary).write_bytes(b"x")
            assert atomic.remove_leftovers(str(tmp_path)) == []
        assert atomic.remove_leftovers(str(tmp_path)) == [os.path.basename(temporary)]

    def test_no_directory_is_no_trouble(self, tmp_path: Path) -> None:
        assert atomic.remove_leftovers(str(tmp_path / "nowhere")) == []


def test_make_directory_keeps_the_mode_of_what_is_there(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    atomic.make_directory(str(tmp_path / "x"))
    assert mode_of(tmp_path) == 0o711
    assert mode_of(tmp_path / "x") == 0o750
