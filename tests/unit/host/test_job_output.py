"""Output on disk: whole up to a limit, its end in any case, and readable while it grows."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.host.job_output import OutputFile, OutputReader


def keep(path: Path, chunks: list[bytes], limit: int, tail: int) -> OutputFile:
    output = OutputFile(str(path), limit, tail)
    for chunk in chunks:
        output.write(chunk)
    output.close()
    return output


def test_all_of_it_below_the_limit(tmp_path: Path) -> None:
    output = keep(tmp_path / "o", [b"one\n", b"", b"two"], 7, 4)
    assert (tmp_path / "o").read_bytes() == b"one\ntwo"
    assert (output.total_bytes, output.kept_bytes, output.error) == (7, 7, "")
    assert (tmp_path / "o").stat().st_mode & 0o777 == 0o640


def test_little_more_than_the_limit_fits_into_the_tail(tmp_path: Path) -> None:
    output = keep(tmp_path / "o", [b"one\n", b"two\n"], 6, 4)
    assert (tmp_path / "o").read_bytes() == b"one\ntwo\n"
    assert output.kept_bytes == 8


def test_beginning_mark_and_end(tmp_path: Path) -> None:
    output = keep(tmp_path / "o", [b"begin\n", *[b"%d\n" % number for number in range(1000, 2000)]], 6, 10)
    mark = b"[nodeproof: 4990 bytes left out here; the limit on output is 6 bytes]\n"
    assert (tmp_path / "o").read_bytes() == b"begin\n" + mark + b"1998\n1999\n"
    assert (output.total_bytes, output.kept_bytes) == (5006, 16)


def test_mark_stands_on_a_line_of_its_own(tmp_path: Path) -> None:
    keep(tmp_path / "o", [b"abcdefgh"], 3, 0)
    assert (tmp_path / "o").read_bytes() == b"abc\n[nodeproof: 5 bytes left out here; the limit on output is 3 bytes]\n"


@given(chunks=st.lists(st.binary(max_size=40), max_size=20), limit=st.integers(0, 100), tail=st.integers(0, 60))
def test_beginning_mark_and_end_of_anything(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes], limit: int, tail: int
) -> None:
    path = tmp_path_factory.mktemp("output") / "o"
    printed = b"".join(chunks)
    output = keep(path, chunks, limit, tail)
    head, end = printed[:limit], printed[len(printed) - tail :] if tail else b""
    left_out = len(printed) - limit - tail
    mark = f"[nodeproof: {left_out} bytes left out here; the limit on output is {limit} bytes]\n".encode()
    line_break = b"" if head.endswith(b"\n") or not head else b"\n"
    assert path.read_bytes() == (printed if left_out <= 0 else head + line_break + mark + end)
    assert (output.total_bytes, output.kept_bytes) == (len(printed), min(len(printed), limit + tail))


def test_disk_that_fills_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits is kept, the end is kept when there is room again, and the error is told."""
    output = OutputFile(str(tmp_path / "o"), 100, 5)
    real_write, room = os.write, [4, 0]

    def write(fd: int, data: bytes) -> int:
        if not room:
            return real_write(fd, data)
        free = room.pop(0)
        if free == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_write(fd, data[:free])

    monkeypatch.setattr(os, "write", write)
    output.write(b"0123456789")
    output.write(b"abcdefghij")
    output.close()
    mark = b"[nodeproof: 11 bytes left out here; it could not be kept: No space left on device]\n"
    assert (tmp_path / "o").read_bytes() == b"0123\n" + mark + b"fghij"
    assert (output.kept_bytes, output.total_bytes, output.error) == (9, 20, "No space left on device")


def test_disk_that_fails_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = OutputFile(str(tmp_path / "o"), 100, 5)

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    output.close()
    output.close()
    assert output.error == "Input/output error"


def test_file_of_another_run_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "o").write_bytes(b"theirs")
    with pytest.raises(FileExistsError):
        OutputFile(str(tmp_path / "o"), 10, 10)


def test_reader_follows(tmp_path: Path) -> None:
    path = tmp_path / "o"
    reader = OutputReader(str(path))
    assert (reader.new(), reader.tail(5)) == (b"", b"")
    output = OutputFile(str(path), 100, 0)
    output.write(b"one two")
    assert (reader.new(3), reader.new(), reader.new()) == (b"one", b" two", b"")
    output.write(b" three")
    assert (reader.new(), reader.tail(5), reader.tail(100)) == (b" three", b"three", b"one two three")
    output.close()
    reader.close()
    reader.close()
