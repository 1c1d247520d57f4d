"""Artifacts, the probe of their directory, and stamps (bench.md 1.8)."""

import errno
import os
from pathlib import Path

import pytest

from nodeproof.errors import RecordError, WriteError
from nodeproof.runs.artifacts import ArtifactStore, check_name


def test_making_one_touches_nothing_and_directories_come_on_demand(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path / "state"), "toy")
    assert not (tmp_path / "state").exists()
    assert store.directory("venv") == str(tmp_path / "state" / "artifacts" / "toy" / "venv")
    assert (tmp_path / "state" / "artifacts" / "toy" / "venv").is_dir()
    assert store.directory() == str(tmp_path / "state" / "artifacts" / "toy")


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../a", ".x", "a\0b", "a b", "x" * 129])
def test_only_plain_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(RecordError, match="no plain file name"):
        check_name(name)
    with pytest.raises(RecordError, match="no plain file name"):
        ArtifactStore(str(tmp_path), "toy").write_asset(name, b"")


def test_asset_is_written_only_when_it_differs(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), "toy")
    path = tmp_path / "artifacts" / "toy" / "run.sh"
    assert store.write_asset("run.sh", b"one")
    os.utime(path, (1000, 1000))
    assert not store.write_asset("run.sh", b"one")
    assert path.stat().st_mtime == 1000
    assert store.write_asset("run.sh", b"two")
    assert path.read_bytes() == b"two"
    assert store.write_asset("run.sh", b"three!")
    assert path.stat().st_mtime > 1000


def test_stamp_is_current_only_once_it_was_put_down(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), "toy")
    stamp = store.stamp("ready", " v1 \n")
    assert not stamp.is_current()
    stamp.commit()
    assert stamp.is_current()
    (tmp_path / "artifacts" / "toy" / "ready").write_text("\n  v1\n\n")
    assert stamp.is_current()
    assert not store.stamp("ready", "v2").is_current()


def test_a_usable_directory_has_no_fault_and_keeps_nothing_of_the_probe(tmp_path: Path) -> None:
    store = ArtifactStore(str(tmp_path), "toy")
    assert store.fault() is None
    assert os.listdir(store.path) == []


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("x")
    fault = ArtifactStore(str(tmp_path), "toy").fault()
    assert str(fault) == f"{tmp_path}/artifacts: is no directory; move what stands there"


def test_a_directory_that_cannot_be_made_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise WriteError(path, "Read-only file system", remedy="mount it for writing", code=errno.EROFS)

    monkeypatch.setattr("nodeproof.host.atomic.make_directory", refuse)
    fault = ArtifactStore(str(tmp_path), "toy").fault()
    assert fault is not None
    assert (fault.reason, fault.remedy) == ("Read-only file system", "mount it for writing")


def test_a_directory_of_somebody_else_says_whose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArtifactStore(str(tmp_path), "toy")
    store.directory()

    def refuse(path: str, data: bytes) -> None:
        raise WriteError(path, f"Permission denied ({len(data)})", code=errno.EACCES)

    monkeypatch.setattr("nodeproof.host.atomic.store_file", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    owner = os.stat(store.path).st_uid
    fault = store.fault()
    assert fault is not None
    assert (fault.reason, fault.remedy) == (f"belongs to user {owner}, this is user 4711", "chown it to 4711")
    monkeypatch.setattr(os, "geteuid", lambda: owner)
    own = store.fault()
    assert own is not None
    assert own.remedy == "name another directory"
