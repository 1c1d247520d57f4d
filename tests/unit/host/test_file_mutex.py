"""One at a time, and errors that say who is in the way."""

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from nodeproof.errors import WriteError
from nodeproof.host.file_mutex import file_mutex, lock_whole_file


def test_second_one_waits_for_the_first(tmp_path: Path) -> None:
    path = str(tmp_path / "deep" / "lock")
    order: list[str] = []
    inside = threading.Event()

    def second() -> None:
        inside.wait(5)
        with file_mutex(path, timeout_s=5):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with file_mutex(path, timeout_s=5):
        inside.set()
        thread.join(0.05)
        order.append("first")
    thread.join(5)
    assert order == ["first", "second"]


def test_time_is_up(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with file_mutex(path, timeout_s=1), pytest.raises(WriteError, match=r"held this lock for 0\.02 s; end that process"):  # noqa: SIM117
        with file_mutex(path, timeout_s=0.02):
            pass


def test_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(WriteError, match="is no directory"), file_mutex(str(tmp_path / "file" / "lock"), timeout_s=1):
        pass
    (tmp_path / "lock").mkdir()
    with pytest.raises(WriteError, match="Is a directory"), file_mutex(str(tmp_path / "lock"), timeout_s=1):
        pass


def test_other_errors_are_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, how: int) -> None:
        raise OSError(errno.ENOLCK, f"{fd > 0} {how > 0}")

    monkeypatch.setattr(fcntl, "flock", refuse)
    fd = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    with pytest.raises(OSError, match=str(errno.ENOLCK)):
        lock_whole_file(fd)
    os.close(fd)
