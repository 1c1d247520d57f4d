"""A socket of one's own: a live one is kept, a dead one replaced, and everything else left alone."""

import os
import socket
import stat
from pathlib import Path

import pytest

from nodeproof.errors import AddressInUseError, UsageError
from nodeproof.host.unix_listener import UnixListener


def dead_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left:
        left.bind(str(path))


def connects(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0


def test_it_listens_with_its_mode_and_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    listener = UnixListener(str(path), mode=0o600)
    listener.open()
    assert stat.S_IMODE(path.lstat().st_mode) == 0o600
    assert connects(path)
    listener.close()
    assert not path.exists()


def test_the_group_of_the_socket_is_the_one_asked_for(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files to another group")
    path = tmp_path / "r.sock"
    listener = UnixListener(str(path), gid=65534)
    listener.open()
    assert path.lstat().st_gid == 65534
    listener.close()


def test_a_dead_socket_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    dead_socket(path)
    listener = UnixListener(str(path))
    listener.open()
    assert connects(path)
    listener.close()


def test_a_live_socket_is_kept_and_its_holder_named(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as live:
        live.bind(str(path))
        live.listen()
        with pytest.raises(AddressInUseError, match=rf"r\.sock.*\(pid {os.getpid()}\)"):
            UnixListener(str(path)).open()
        assert connects(path)


def test_a_live_socket_whose_backlog_is_full_is_no_dead_one(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as live:
        live.bind(str(path))
        live.listen(0)
        waiting = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(str(path))
        with pytest.raises(AddressInUseError):
            UnixListener(str(path)).open()
        for one in waiting:
            one.close()
    assert path.exists()


@pytest.mark.parametrize("kind", ["file", "directory", "link"])
def test_what_is_no_socket_stays(tmp_path: Path, kind: str) -> None:
    path, precious = tmp_path / "r.sock", tmp_path / "precious"
    precious.write_text("kept")
    if kind == "file":
        path.write_text("kept")
    elif kind == "directory":
        path.mkdir()
    else:
        path.symlink_to(precious)
    with pytest.raises(UsageError, match="is no socket; it stays"):
        UnixListener(str(path)).open()
    assert path.is_symlink() == (kind == "link")
    assert precious.read_text() == "kept"


def test_two_that_start_at_once_do_not_take_it_from_each_other(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    first, second = UnixListener(str(path)), UnixListener(str(path))
    first.open()
    with pytest.raises(AddressInUseError):
        second.open()
    assert connects(path)
    first.close()
    second.open()
    second.close()


def test_a_socket_that_another_has_put_there_meanwhile_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    listener = UnixListener(str(path))
    listener.open()
    path.unlink()
    dead_socket(path)
    listener.close()
    assert path.exists()


@pytest.mark.parametrize(
    ("path", "mode", "message"),
    [
        ("relative.sock", 0o660, "expected an absolute path"),
        ("/" + "x" * 120, 0o660, "at most 100 bytes"),
        ("/tmp/r.sock", 0o666, "must give others nothing"),  # noqa: S108 - never made
        ("/tmp/r.sock", 0o10660, "must give others nothing"),  # noqa: S108 - never made
    ],
)
def test_paths_and_modes_that_are_refused(path: str, mode: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        UnixListener(path, mode=mode)


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot listen on .*/none/r\.sock: No such file or directory; name another --socket"):
        UnixListener(str(tmp_path / "none" / "r.sock")).open()
