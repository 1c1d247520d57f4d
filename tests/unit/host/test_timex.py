"""adjtimex(2) of this machine, and a recorded one."""

import ctypes
import errno

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree
from nodeproof.host.recorded import recorded_machine
from nodeproof.sources import timex


def test_this_machine_answers_what_the_parser_reads() -> None:
    try:
        raw = FileTree().adjtimex()
    except NoData as absence:
        pytest.skip(f"adjtimex is forbidden here: {absence.reason}")
    keys = [line.split()[0] for line in raw.decode().splitlines()]
    assert keys == ["state", "status", "offset", "freq", "maxerror", "esterror", "tai"]
    assert 0 <= timex.parse(raw).max_error_s <= 16.0


class _Refusing:
    @staticmethod
    def adjtimex(_timex: object) -> int:
        ctypes.set_errno(errno.EPERM)
        return -1


def test_a_container_that_forbids_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: _Refusing)
    with pytest.raises(NoData) as caught:
        FileTree().adjtimex()
    assert caught.value.state is Absence.NO_PERMISSION


def test_a_recorded_machine_never_asks_this_one(tmp_path: object) -> None:
    machine = recorded_machine(str(tmp_path))
    with pytest.raises(NoData) as caught:
        machine.files.adjtimex()
    assert caught.value.state is Absence.UNSUPPORTED
    with open(f"{tmp_path}/adjtimex", "wb") as file:
        file.write(b"state 0\n")
    assert machine.files.adjtimex() == b"state 0\n"
