"""A file remade again and again: whole for every reader, however slow, and made of two files in turn."""

import errno
import fcntl
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.errors import WriteError
from nodeproof.host import remade_file
from nodeproof.host.remade_file import RemadeFile, allow_leases


@pytest.fixture(autouse=True)
def sigio() -> Iterator[None]:
    previous = signal.getsignal(signal.SIGIO)
    allow_leases()
    yield
    signal.signal(signal.SIGIO, previous)


def content(number: int) -> bytes:
    """Something that shows whether it is whole: one digit, repeated, of a length of its own."""
    return b"%d" % (number % 10) * (5000 + number % 7 * 1000)


def test_two_files_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    remade = RemadeFile(str(path))
    inodes = []
    for number in range(6):
        remade.put(content(number))
        assert path.read_bytes() == content(number)
        assert path.stat().st_mode & 0o777 == 0o640
        inodes.append(path.stat().st_ino)
    assert len(set(inodes)) == 2
    assert inodes[0] == inodes[2] == inodes[4]
    remade.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.json"]


def test_a_reader_that_holds_the_old_file_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    remade = RemadeFile(str(path))
    remade.put(content(1))
    with path.open("rb") as slow:
        first = slow.read(100)
        for number in range(2, 9):
            remade.put(content(number))
        assert first + slow.read() == content(1)
    assert path.read_bytes() == content(8)
    remade.close()


def test_readers_never_see_a_mixture(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    remade = RemadeFile(str(path))
    remade.put(content(0))
    stop = threading.Event()
    whole = {content(number) for number in range(70)}
    torn: list[bytes] = []
    reads = 0

    def read() -> None:
        nonlocal reads
        while not stop.is_set():
            with path.open("rb", buffering=0) as file:
                data = file.read(1000) + (file.readall() or b"")
            reads += 1
            if data not in whole:
                torn.append(data)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for number in range(400):
        remade.put(content(number))
    stop.set()
    for reader in readers:
        reader.join()
    remade.close()
    assert reads > 20
    assert torn == []


def test_a_removed_or_replaced_file_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    path = folder / "s.json"
    remade = RemadeFile(str(path))
    remade.put(content(1))
    remade.put(content(2))
    path.unlink()
    remade.put(content(3))
    assert path.read_bytes() == content(3)
    for entry in folder.iterdir():
        entry.unlink()
    folder.rmdir()
    remade.put(content(4))
    assert path.read_bytes() == content(4)
    path.write_bytes(b"somebody else's")
    os.replace(path, folder / "moved")
    path.write_bytes(b"another")
    remade.put(content(5))
    assert path.read_bytes() == content(5)
    remade.put(content(6))
    remade.put(content(7))
    assert path.read_bytes() == content(7)
    assert (folder / "moved").read_bytes() == b"somebody else's"
    remade.close()


def test_a_second_name_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    remade = RemadeFile(str(path))
    remade.put(content(1))
    (tmp_path / "kept").hardlink_to(path)
    for number in range(2, 6):
        remade.put(content(number))
        assert path.read_bytes() == content(number)
        assert (tmp_path / "kept").read_bytes() == content(1)
    remade.close()


def test_a_failed_write_leaves_the_old_content_and_heals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.json"
    remade = RemadeFile(str(path))
    remade.put(content(1))
    remade.put(content(2))

    def full(fd: int, data: bytes, offset: int) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(WriteError, match="No space left on device"):
            remade.put(content(3))
    assert path.read_bytes() == content(2)
    remade.put(content(4))
    assert path.read_bytes() == content(4)
    remade.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.json"]


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS])
def test_without_exchange_the_plain_way_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(one: str, other: str) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(remade_file, "_exchange", refuse)
    path = tmp_path / "s.json"
    remade = RemadeFile(str(path))
    for turn in range(4):
        remade.put(content(turn))
        assert path.read_bytes() == content(turn)
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.json"]


def test_another_failure_of_the_exchange_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remade = RemadeFile(str(tmp_path / "s.json"))
    remade.put(content(1))
    monkeypatch.setattr(remade_file, "_AT_FDCWD", 10**6)
    monkeypatch.setattr(remade_file, "_RENAME_EXCHANGE", 1 | 2)  # flags that exclude each other
    remade.put(content(2))
    assert (tmp_path / "s.json").read_bytes() == content(2)


def test_without_leave_to_ignore_sigio_no_lease_is_taken(tmp_path: Path) -> None:
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    path = tmp_path / "s.json"
    remade = RemadeFile(str(path))
    remade.put(content(1))
    remade.put(content(2))
    assert path.read_bytes() == content(2)
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.json"]


def test_without_leases_every_turn_gets_new_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, command: int, argument: int) -> int:
        raise OSError(errno.EACCES, "no leases here")

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    path = tmp_path / "s.json"
    remade = RemadeFile(str(path))
    for turn in range(4):
        remade.put(content(turn))
        assert path.read_bytes() == content(turn)
    remade.close()
    assert [entry.name for entry in tmp_path.iterdir()] == ["s.json"]
