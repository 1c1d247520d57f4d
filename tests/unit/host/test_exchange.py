"""Two directories trade places, or nothing moves."""

import ctypes
import os
from pathlib import Path

import pytest

from nodeproof.host.exchange import exchange


class OldLibrary:
    """A C library before glibc 2.28."""


class Refusing:
    """A file system that knows no exchange."""

    def __init__(self, code: int) -> None:
        self._code = code

    def renameat2(self, *_: object) -> int:
        ctypes.set_errno(self._code)
        return -1


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    return tmp_path / "one", tmp_path / "other"


@pytest.mark.parametrize("library", [None, OldLibrary(), Refusing(22), Refusing(38)])
def test_they_trade_places_on_every_system(pair: tuple[Path, Path], library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    if library is not None:
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    exchange(str(pair[0]), str(pair[1]))
    assert [os.listdir(place) for place in pair] == [["other"], ["one"]]
    assert sorted(os.listdir(pair[0].parent)) == ["one", "other"]


@pytest.mark.parametrize("library", [None, OldLibrary()])
def test_nothing_moves_when_it_cannot_be_done(pair: tuple[Path, Path], library: object, monkeypatch: pytest.MonkeyPatch) -> None:
    if library is not None:
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    with pytest.raises(FileNotFoundError):
        exchange(str(pair[0].parent / "none"), str(pair[1]))
    assert [os.listdir(place) for place in pair] == [["one"], ["other"]]
