import datetime as dt
import gzip
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import WriteError
from nodeproof.host import append
from nodeproof.host.recorded import ManualClock
from nodeproof.sinks.base import Trouble
from nodeproof.sinks.jsonl_files import DataFiles, DataName, Limits, local_date

DAY_S = 86400.0
NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC).timestamp()


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class Desk:
    """Data files of one folder, and a clock."""

    def __init__(self, folder: Path, limits: Limits | None = None, *, wall_s: float = NOON) -> None:
        self.folder = folder
        self.clock = ManualClock(wall_s=wall_s, mono_s=5000.0)
        self.trouble = Trouble("data files")
        self.files = DataFiles(str(folder), limits or Limits(min_free_bytes=0), self.trouble)

    def add(self, lines: bytes, stream: str = "cpu", *, urgent: bool = False) -> None:
        self.files.append(stream, lines, self.clock.now(), urgent=urgent)

    def look(self) -> None:
        self.files.look_after(self.clock.now())
        assert self.files.settle(5.0)
        self.files.look_after(self.clock.now())

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def open_descriptors(self) -> list[str]:
        found = []
        for fd in os.listdir("/proc/self/fd"):
            try:
                target = os.readlink(f"/proc/self/fd/{fd}")
            except OSError:
                continue
            if target.startswith(str(self.folder)) and target != str(self.folder):
                found.append(os.path.basename(target))
        return sorted(found)


class TestNames:
    def test_names_of_ours_taken_apart(self) -> None:
        assert DataName.parse("cpu_2026-11-30.jsonl") == DataName(
            "cpu", "2026-11-30", 0, compressed=False, name="cpu_2026-11-30.jsonl"
        )
        name = "my_part_2026-11-30.12.jsonl.gz"
        assert DataName.parse(name) == DataName("my_part", "2026-11-30", 12, compressed=True, name=name)

    @pytest.mark.parametrize(
        "name",
        [
            "cpu_2026-11-30.jsonl.bak",
            "cpu_2026-13-30.jsonl",
            "cpu_2026-02-30.jsonl",
            "cpu-2026-11-30.jsonl",
            "CPU_2026-11-30.jsonl",
            "_2026-11-30.jsonl",
            "cpu_2026-11-30.x.jsonl",
            "cpu_2026-11-30.jsonl\n",
            "report.jsonl",
            "cpu_2026-11-30.csv",
            ".cpu_2026-11-30.jsonl.1-1.np-tmp",
        ],
    )
    def test_every_other_name_is_somebody_elses(self, name: str) -> None:
        assert DataName.parse(name) is None

    @given(st.text(max_size=60))
    def test_any_text(self, name: str) -> None:
        found = DataName.parse(name)
        assert found is None or found.name == name

    def test_the_day_is_the_local_one(self, monkeypatch: pytest.MonkeyPatch) -> None:
        late = dt.datetime(2026, 11, 30, 23, 30, tzinfo=dt.UTC).timestamp()
        assert local_date(late) == "2026-11-30"
        monkeypatch.setenv("TZ", "XXX-8")  # eight hours east
        time.tzset()
        assert local_date(late) == "2026-12-01"


class TestDays:
    def test_defect_5_at_midnight_the_old_file_is_closed_and_compressed(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path)
        desk.add(b"a\n")
        desk.add(b"m\n", "memory")
        assert desk.open_descriptors() == ["cpu_2026-11-30.jsonl", "memory_2026-11-30.jsonl"]
        desk.clock.advance(DAY_S)
        desk.add(b"b\n")
        assert desk.files.settle(5.0)
        assert desk.open_descriptors() == ["cpu_2026-12-01.jsonl"]
        assert desk.names() == ["cpu_2026-11-30.1.jsonl.gz", "cpu_2026-12-01.jsonl", "memory_2026-11-30.1.jsonl.gz"]
        assert gzip.decompress((tmp_path / "cpu_2026-11-30.1.jsonl.gz").read_bytes()) == b"a\n"
        assert (tmp_path / "cpu_2026-12-01.jsonl").read_bytes() == b"b\n"
        desk.files.close()
        assert desk.open_descriptors() == []

    def test_a_day_that_passed_while_suspended_is_noticed_without_a_write(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path)
        desk.add(b"a\n")
        desk.clock.advance(3 * DAY_S)
        desk.look()
        assert desk.names() == ["cpu_2026-11-30.1.jsonl.gz"]
        assert desk.open_descriptors() == []

    def test_a_clock_that_jumps_back_and_forth_loses_no_line(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path)
        for number, jump_s in enumerate((0, DAY_S, -DAY_S, DAY_S, -2 * DAY_S)):
            desk.clock.wall_s += jump_s
            desk.add(b"%d\n" % number)
            assert desk.files.settle(5.0)
        desk.files.close()
        kept: dict[str, bytes] = {}
        for path in tmp_path.iterdir():
            data = DataName.parse(path.name)
            assert data is not None
            content = gzip.decompress(path.read_bytes()) if data.compressed else path.read_bytes()
            kept[data.date] = kept.get(data.date, b"") + content
        assert {date: sorted(content.split()) for date, content in kept.items()} == {
            "2026-11-29": [b"4"],
            "2026-11-30": [b"0", b"2"],
            "2026-12-01": [b"1", b"3"],
        }

    def test_what_an_earlier_run_left_is_finished(self, tmp_path: Path) -> None:
        (tmp_path / "cpu_2026-11-28.jsonl").write_bytes(b"old\n")
        (tmp_path / "cpu_2026-11-30.3.jsonl").write_bytes(b"part\n")
        (tmp_path / "cpu_2026-11-30.jsonl").write_bytes(b"today\ntorn")
        (tmp_path / f".cpu_2026-11-28.jsonl.gz.{2**22 + 1}-1.np-tmp").write_bytes(b"half")
        desk = Desk(tmp_path)
        desk.look()
        assert desk.names() == ["cpu_2026-11-28.1.jsonl.gz", "cpu_2026-11-30.3.jsonl.gz", "cpu_2026-11-30.jsonl"]
        desk.add(b"more\n")
        assert (tmp_path / "cpu_2026-11-30.jsonl").read_bytes() == b"today\nmore\n"

    def test_a_crash_between_compressing_and_removing_is_made_good(self, tmp_path: Path) -> None:
        (tmp_path / "cpu_2026-11-28.1.jsonl").write_bytes(b"whole\n")
        (tmp_path / "cpu_2026-11-28.1.jsonl.gz").write_bytes(gzip.compress(b"whole\n"))
        desk = Desk(tmp_path)
        desk.look()
        assert desk.names() == ["cpu_2026-11-28.1.jsonl.gz"]
        assert gzip.decompress((tmp_path / "cpu_2026-11-28.1.jsonl.gz").read_bytes()) == b"whole\n"


class TestParts:
    def test_a_full_file_is_set_aside_and_compressed(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path, Limits(part_bytes=100, min_free_bytes=0))
        for number in range(5):
            desk.add(b"%d" % number + b"x" * 58 + b"\n")
            assert desk.files.settle(5.0)
        assert desk.names() == [*(f"cpu_2026-11-30.{part}.jsonl.gz" for part in (1, 2, 3, 4)), "cpu_2026-11-30.jsonl"]
        assert gzip.decompress((tmp_path / "cpu_2026-11-30.2.jsonl.gz").read_bytes())[:1] == b"1"

    def test_lines_larger_than_a_part_have_one_of_their_own(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path, Limits(part_bytes=10, min_free_bytes=0))
        desk.add(b"x" * 50 + b"\n")
        assert desk.names() == ["cpu_2026-11-30.jsonl"]

    def test_compression_that_fails_keeps_the_lines_and_is_told_of(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(path: str) -> str:
            raise WriteError(path, "disk broken")

        monkeypatch.setattr(append, "compress_file", broken)
        desk = Desk(tmp_path)
        desk.add(b"a\n")
        desk.clock.advance(DAY_S)
        desk.look()
        assert desk.names() == ["cpu_2026-11-30.1.jsonl"]
        assert "disk broken" in desk.trouble.problem
        monkeypatch.undo()
        desk.clock.advance(61)
        desk.look()
        assert desk.names() == ["cpu_2026-11-30.1.jsonl.gz"]
        assert desk.trouble.problem == ""

    def test_a_rename_that_fails_is_told_of_and_writing_goes_on(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        desk = Desk(tmp_path, Limits(part_bytes=4, min_free_bytes=0))
        desk.add(b"one\n")

        def broken(*_: object) -> None:
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(os, "rename", broken)
        desk.add(b"two\n")
        assert (tmp_path / "cpu_2026-11-30.jsonl").read_bytes() == b"one\ntwo\n"
        assert "Operation not permitted" in desk.trouble.problem


class TestLimits:
    def old_days(self, folder: Path, days: int, size: int = 100) -> None:
        for back in range(1, days + 1):
            date = (dt.date(2026, 11, 30) - dt.timedelta(days=back)).isoformat()
            (folder / f"cpu_{date}.1.jsonl.gz").write_bytes(b"x" * size)

    def test_defect_5_what_is_too_old_goes_once_the_clock_has_proven_itself(self, tmp_path: Path) -> None:
        self.old_days(tmp_path, 10)
        desk = Desk(tmp_path)
        desk.look()
        assert len(desk.names()) == 10
        desk.clock.advance(3601)
        desk.look()
        assert desk.names()[0] == "cpu_2026-11-23.1.jsonl.gz"
        assert len(desk.names()) == 7

    def test_a_clock_that_jumps_to_the_future_costs_no_history(self, tmp_path: Path) -> None:
        self.old_days(tmp_path, 3)
        desk = Desk(tmp_path)
        desk.clock.advance(3601)
        desk.look()
        desk.clock.wall_s += 12 * 365 * DAY_S
        desk.look()
        desk.clock.advance(1800)
        desk.look()
        desk.clock.wall_s -= 12 * 365 * DAY_S
        desk.look()
        desk.clock.advance(7200)
        desk.look()
        assert len(desk.names()) == 3

    def test_defect_5_the_oldest_go_when_all_are_too_much_and_today_stays(self, tmp_path: Path) -> None:
        self.old_days(tmp_path, 5)
        desk = Desk(tmp_path, Limits(max_total_bytes=250, min_free_bytes=0))
        desk.add(b"x" * 99 + b"\n")
        desk.clock.advance(61)
        desk.look()
        assert desk.names() == ["cpu_2026-11-29.1.jsonl.gz", "cpu_2026-11-30.jsonl"]
        desk.add(b"x" * 299 + b"\n")
        desk.clock.advance(61)
        desk.look()
        assert desk.names() == ["cpu_2026-11-30.jsonl"]
        assert (tmp_path / "cpu_2026-11-30.jsonl").stat().st_size == 400

    def test_a_year_that_is_too_much_goes_a_little_a_minute(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("nodeproof.sinks.jsonl_files._REMOVED_AT_ONCE", 2)
        self.old_days(tmp_path, 7)
        desk = Desk(tmp_path, Limits(max_total_bytes=100, min_free_bytes=0))
        left = []
        for _ in range(4):
            desk.files.look_after(desk.clock.now())
            left.append(len(desk.names()))
            desk.clock.advance(61)
        assert left == [5, 3, 1, 1]

    def test_foreign_files_are_never_touched(self, tmp_path: Path) -> None:
        foreign = {"cpu_2020-01-01.jsonl.bak", "notes_2020-01-01.txt", "report.jsonl", "cpu_2020-99-01.jsonl.gz", ".snap-1.tmp"}
        for name in foreign:
            (tmp_path / name).write_bytes(b"x" * 1000)
        (tmp_path / "disk_2020-01-01.jsonl").mkdir()
        (tmp_path / "npu_2020-01-01.jsonl.gz").symlink_to(tmp_path / "report.jsonl")
        desk = Desk(tmp_path, Limits(max_total_bytes=1, min_free_bytes=0))
        desk.clock.advance(3601)
        desk.look()
        desk.clock.advance(3601)
        desk.look()
        assert set(desk.names()) == foreign | {"disk_2020-01-01.jsonl", "npu_2020-01-01.jsonl.gz"}

    def test_a_day_that_is_full_takes_no_more_and_the_next_day_does(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path, Limits(day_bytes=1000, min_free_bytes=0))
        desk.add(b"x" * 899 + b"\n")
        with pytest.raises(WriteError, match=r"files of 2026-11-30 have reached their limit of 0\.001 MB.*storage\.interval"):
            desk.add(b"y\n")
        desk.add(b"z\n", urgent=True)
        with pytest.raises(WriteError):
            desk.add(b"z" * 99 + b"\n", urgent=True)
        assert (tmp_path / "cpu_2026-11-30.jsonl").stat().st_size == 902
        desk.clock.advance(DAY_S)
        desk.add(b"y\n")

    def test_compression_makes_room_within_the_day(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path, Limits(day_bytes=10_000, part_bytes=4000, min_free_bytes=0))
        for _ in range(40):
            desk.add(b"x" * 999 + b"\n")
            assert desk.files.settle(5.0)
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 5000

    def test_nothing_is_written_while_the_disk_is_nearly_full(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        free = [100]
        monkeypatch.setattr(append, "free_bytes", lambda _: free[0])
        desk = Desk(tmp_path, Limits(min_free_bytes=1 << 20))
        with pytest.raises(WriteError, match="less than 1 MiB free"):
            desk.add(b"x\n")
        free[0] = 2 << 20
        desk.clock.advance(61)
        desk.add(b"x\n")
        assert (tmp_path / "cpu_2026-11-30.jsonl").read_bytes() == b"x\n"

    def test_a_file_that_cannot_be_removed_is_told_of(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.old_days(tmp_path, 2)
        desk = Desk(tmp_path, Limits(max_total_bytes=100, min_free_bytes=0))

        def broken(_path: str) -> None:
            raise PermissionError(1, "Operation not permitted")

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", broken)
            desk.look()
        assert "Operation not permitted" in desk.trouble.problem
        desk.clock.advance(61)
        desk.look()
        assert desk.trouble.problem == ""
        assert len(desk.names()) == 1


def test_a_removed_directory_or_file_is_made_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    desk = Desk(folder)
    desk.add(b"a\n")
    (folder / "cpu_2026-11-30.jsonl").unlink()
    folder.rmdir()
    desk.add(b"b\n")
    assert (folder / "cpu_2026-11-30.jsonl").read_bytes() == b"b\n"


def test_a_stream_whose_name_cannot_be_part_of_a_file_name(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match="cannot be part of a file name"):
        Desk(tmp_path).add(b"x\n", "../evil")


def test_nothing_begins_after_the_end(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.add(b"a\n")
    desk.files.close()
    desk.clock.advance(DAY_S)
    desk.files.look_after(desk.clock.now())
    assert desk.files.settle(1.0)
    assert desk.names() == ["cpu_2026-11-30.1.jsonl"]
