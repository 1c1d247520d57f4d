"""Asking a driver for its link settings."""

import errno
import fcntl
import socket
import struct
from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host import ethtool
from nodeproof.host.files import FileTree
from nodeproof.sources import ethtool_link
from support.network import link_settings_answer


def test_a_recorded_machine_answers_from_its_files(tmp_path: Path) -> None:
    (tmp_path / "ethtool").mkdir()
    (tmp_path / "ethtool/ens1").write_bytes(link_settings_answer(36))
    files = FileTree(str(tmp_path))
    assert ethtool_link.parse(ethtool.link_settings(files, "ens1")) == 100_000
    with pytest.raises(NoData):
        ethtool.link_settings(files, "lo")


def test_what_has_no_driver_or_is_not_there_is_unsupported_on_this_machine() -> None:
    for name in ("lo", "none-such", "a-name-that-is-too-long"):
        with pytest.raises(NoData) as caught:
            ethtool.link_settings(FileTree(), name)
        assert caught.value.state is Absence.UNSUPPORTED


def test_the_second_question_asks_for_the_length_that_the_kernel_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[bytes, int]] = []
    answer = link_settings_answer(31)

    def ask(channel: socket.socket, name: bytes, length: int) -> bytes:
        assert channel.family is socket.AF_INET
        asked.append((name, length))
        return answer if length else bytes(15) + struct.pack("b", -4) + bytes(32)

    monkeypatch.setattr(ethtool, "_ask", ask)
    assert ethtool.link_settings(FileTree(), "ens1") == answer
    assert asked == [(b"ens1", 0), (b"ens1", 4)]


def test_a_kernel_that_names_no_length_is_unsupported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ethtool, "_ask", lambda *_: bytes(48))
    with pytest.raises(NoData) as caught:
        ethtool.link_settings(FileTree(), "ens1")
    assert caught.value.state is Absence.UNSUPPORTED


def test_a_question_that_is_refused_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    with pytest.raises(NoData) as caught:
        ethtool.link_settings(FileTree(), "ens1")
    assert caught.value.state is Absence.NO_PERMISSION
