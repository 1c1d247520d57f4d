import errno
import gzip
import os
import stat
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import WriteError
from nodeproof.host import append, atomic
from support.disks import tiny_disk


def test_lines_are_added_with_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = os.write

    def write(fd: int, data: bytes) -> int:
        calls.append(len(data))
        return real(fd, data)

    file = append.AppendFile(str(tmp_path / "made" / "a.jsonl"))
    monkeypatch.setattr(os, "write", write)
    file.append(b"1\n2\n3\n")
    file.append(b"4\n")
    assert calls == [6, 2]
    assert file.size == 8
    file.close()
    assert (tmp_path / "made" / "a.jsonl").read_bytes() == b"1\n2\n3\n4\n"
    assert stat.S_IMODE((tmp_path / "made" / "a.jsonl").stat().st_mode) == 0o640


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        (b'{"a":1}\n{"b":', b'{"a":1}\n'),
        (b'{"a":1}\n', b'{"a":1}\n'),
        (b"torn", b""),
        (b"", b""),
        (b"a\n" + b"x" * 200_000, b"a\n"),
        (b"a\n\0\0\0\0", b"a\n"),
    ],
)
def test_a_line_that_a_crash_tore_is_cut_off(left: bytes, kept: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(left)
    file = append.AppendFile(str(path))
    assert file.cut_bytes == len(left) - len(kept)
    file.append(b"next\n")
    file.close()
    assert path.read_bytes() == kept + b"next\n"


@given(st.binary(max_size=300))
def test_whatever_is_there_ends_in_a_whole_line_and_loses_none(left: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a"
        path.write_bytes(left)
        append.AppendFile(str(path)).close()
        assert path.read_bytes() == left[: left.rfind(b"\n") + 1]


def test_a_full_disk_tears_no_line_and_heals(tmp_path: Path) -> None:
    with tiny_disk(tmp_path, 64):
        file = append.AppendFile(str(tmp_path / "a.jsonl"))
        file.append(b"first\n")
        with pytest.raises(WriteError) as caught:
            file.append(b"x" * 200_000 + b"\n")
        assert caught.value.code in {errno.ENOSPC, errno.EFBIG}
        assert (tmp_path / "a.jsonl").read_bytes() == b"first\n"
        file.append(b"second\n")
        assert (tmp_path / "a.jsonl").read_bytes() == b"first\nsecond\n"
        file.close()


def test_it_knows_when_its_name_stands_for_another_file(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    file = append.AppendFile(str(path))
    assert file.still_there()
    path.rename(tmp_path / "b")
    assert not file.still_there()
    path.write_bytes(b"")
    assert not file.still_there()
    file.close()
    with pytest.raises(WriteError, match="is closed"):
        file.append(b"x\n")


def test_it_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"torn")
    (tmp_path / "a.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(WriteError):
        append.AppendFile(str(tmp_path / "a.jsonl"))
    assert (tmp_path / "precious").read_bytes() == b"torn"


class TestCompression:
    def test_the_compressed_file_takes_the_place(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        content = b'{"value":1}\n' * 50_000
        path.write_bytes(content)
        assert append.compress_file(str(path)) == f"{path}.gz"
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl.gz"]
        assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == content
        assert stat.S_IMODE((tmp_path / "a.jsonl.gz").stat().st_mode) == 0o640

    @pytest.mark.parametrize("step", ["fsync", "rename", "write"])
    def test_a_failure_at_any_step_keeps_the_original_and_leaves_nothing(
        self, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "a.jsonl"
        path.write_bytes(b"line\n" * 1000)

        def broken(*_: object) -> None:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

        monkeypatch.setattr(os, step, broken)
        with pytest.raises(WriteError, match="Input/output"):
            append.compress_file(str(path))
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.jsonl"]
        assert path.read_bytes() == b"line\n" * 1000

    def test_a_crash_before_the_original_went_is_made_good_by_doing_it_again(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_bytes(b"all of it\n")
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"all"))
        append.compress_file(str(path))
        assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == b"all of it\n"
        assert not path.exists()

    def test_what_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(WriteError):
            append.compress_file(str(tmp_path / "none"))


def test_sizes_of_plain_files_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert append.file_sizes(str(tmp_path)) == {"a": 3}
    assert append.file_sizes(str(tmp_path / "nowhere")) == {}
    with pytest.raises(WriteError):
        append.file_sizes(str(tmp_path / "a"))


def test_free_bytes(tmp_path: Path) -> None:
    free = append.free_bytes(str(tmp_path))
    found = os.statvfs(tmp_path)
    assert free is not None
    assert abs(free - found.f_bavail * found.f_frsize) < 1 << 28
    assert append.free_bytes(str(tmp_path / "nowhere")) is None


def test_only_the_calling_thread_becomes_nice() -> None:
    seen: list[int] = []

    def work() -> None:
        append.lower_priority()
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    before = os.getpriority(os.PRIO_PROCESS, 0)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [19]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_every_error_number_of_a_write_has_its_words() -> None:
    error = atomic.write_error("/x", OSError(errno.ENOSPC, "no"))
    assert str(error) == "/x: No space left on device; free some space there"
    assert str(atomic.write_error("/x", OSError("odd"))) == "/x: odd"
