"""Attempts that leave everything as it was."""

import os
import socket
from pathlib import Path

import pytest

from nodeproof.errors import AddressInUseError, UsageError, WriteError
from nodeproof.host.probe import try_listening, try_writing
from support.daemon import free_port


def test_writing_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("x")
    try_writing(str(tmp_path))
    try_writing(str(tmp_path / "a" / "b" / "c"))
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(WriteError, match=r"file: is no directory; move the file that stands in the way"):
            try_writing(str(path))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(WriteError, match="dangling: is no directory"):
        try_writing(str(tmp_path / "dangling"))


def test_a_directory_nobody_may_write_to() -> None:
    """/proc takes no file from anybody, root included."""
    with pytest.raises(WriteError, match=r"^/proc: "):
        try_writing("/proc")
    with pytest.raises(WriteError, match=r"^/proc: "):
        try_writing("/proc/nodeproof-none/below")


def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int, __: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nodeproof.host.probe.os.write", full)
    with pytest.raises(WriteError, match="No space left on device; free some space there"):
        try_writing(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_short_write_is_followed_by_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def short(_: int, data: bytes) -> int:
        sizes.append(len(data))
        return min(len(data), 3000)

    monkeypatch.setattr("nodeproof.host.probe.os.write", short)
    try_writing(str(tmp_path))
    assert sizes == [4096, 1096]


def test_a_free_port_is_free_again() -> None:
    port = free_port()
    try_listening(f"127.0.0.1:{port}", "")
    with socket.socket() as again:
        again.bind(("127.0.0.1", port))


def test_a_taken_port_names_its_holder() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        with pytest.raises(AddressInUseError, match=rf"\(pid {os.getpid()}\); do something"):
            try_listening(f"127.0.0.1:{holder.getsockname()[1]}", "do something")


def test_an_address_of_another_machine() -> None:
    with pytest.raises(UsageError, match="Cannot assign requested address"):
        try_listening("192.0.2.1:19320", "")


def test_a_unix_socket_is_asked_and_never_bound(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    try_listening(f"unix:{path}", "")
    assert not os.path.exists(path)
    with socket.socket(socket.AF_UNIX) as holder:
        holder.bind(path)
        holder.listen()
        with pytest.raises(AddressInUseError, match=rf"\(pid {os.getpid()}\)"):
            try_listening(f"unix:{path}", "")
    try_listening(f"unix:{path}", "")
    assert os.path.exists(path), "what a dead process left is not ours to remove"
