import datetime as dt
import errno
import gzip
import json
import logging
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeproof.clock import rfc3339
from nodeproof.errors import Absence
from nodeproof.host.recorded import ManualClock
from nodeproof.model.catalogue import CATALOGUE, Kind
from nodeproof.model.metric import Metric, Missing
from nodeproof.sinks import jsonl
from nodeproof.sinks.jsonl import JsonLines
from nodeproof.sinks.jsonl_files import Limits
from support.batches import batch, metric, missing
from support.disks import tiny_disk

NOON = dt.datetime(2026, 11, 30, 12, tzinfo=dt.UTC).timestamp()
LIMITS = Limits(min_free_bytes=0)


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue with one metric of each kind."""
    usage = CATALOGUE["cpu", "usage"]
    table = {
        spec.key: spec
        for spec in (
            usage,
            usage._replace(name="core_state", kind=Kind.STATE),
            usage._replace(name="core_num", kind=Kind.STATIC),
            usage._replace(name="model_info", kind=Kind.INFO),
        )
    }
    monkeypatch.setattr(jsonl, "CATALOGUE", table)


class Desk:
    def __init__(self, folder: Path, limits: Limits = LIMITS, interval_s: float = 60.0) -> None:
        self.folder = folder
        self.clock = ManualClock(wall_s=NOON, mono_s=5000.0)
        self.sink = JsonLines(str(folder), self.clock, interval_s=interval_s, limits=limits)
        self.sequence = 0

    def write(self, metrics: Sequence[Metric], absent: Sequence[Missing] = (), *, advance_s: float = 1.0) -> None:
        self.sequence += 1
        self.sink.write(batch(metrics, absent, at=self.clock.now(), sequence=self.sequence))
        self.clock.advance(advance_s)

    def lines(self, stream: str = "cpu", date: str = "2026-11-30") -> list[dict[str, Any]]:
        path = self.folder / f"{stream}_{date}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def values(self, name: str, date: str = "2026-11-30") -> list[float]:
        return [line["value"] for line in self.lines(date=date) if line["name"] == name]

    def events(self, date: str = "2026-11-30") -> list[tuple[str, str, str]]:
        return [(line["event"], line["name"], line["state"]) for line in self.lines("missing", date)]


def test_one_metric_object_a_line_as_the_reference(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    first, second = metric("usage", 9.5, {"core": "total"}), metric("usage", 3, {"core": "0"})
    desk.write([first, second])
    content = (tmp_path / "cpu_2026-11-30.jsonl").read_bytes()
    assert content.endswith(b"\n")
    assert [msgspec.json.decode(line, type=Metric) for line in content.splitlines()] == [first, second]


def test_defect_5_a_full_set_each_interval_and_one_write_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = os.write

    def write(fd: int, data: bytes) -> int:
        calls.append(data.count(b"\n"))
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    desk = Desk(tmp_path)
    for second in range(121):
        desk.write([metric("usage", float(second), {"core": "total"}), metric("usage", 0.0, {"core": "0"})])
    assert calls == [2, 2, 2]
    assert [line["value"] for line in desk.lines() if line["labels"] == {"core": "total"}] == [0.0, 60.0, 120.0]


def test_a_cadence_that_does_not_divide_the_interval_is_not_late_by_a_whole_cycle(tmp_path: Path) -> None:
    desk = Desk(tmp_path, interval_s=3.0)
    for second in range(7):
        desk.write([metric("usage", float(second))], advance_s=0.99)
    assert desk.values("usage") == [0.0, 3.0, 6.0]


def test_a_state_is_kept_the_moment_it_changes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for value in (1.0, 1.0, 0.0, 0.0, 1.0):
        desk.write([metric("usage", value), metric("core_state", value, {"core": "1"}), metric("core_state", 1.0, {"core": "2"})])
    assert desk.values("core_state") == [1.0, 1.0, 0.0, 1.0]
    assert desk.values("usage") == [1.0]


def test_an_entity_that_appears_is_kept_at_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write([metric("core_state", 1.0, {"core": "1"})])
    desk.write([metric("core_state", 1.0, {"core": "1"}), metric("core_state", 1.0, {"core": "2"})])
    assert [line["labels"] for line in desk.lines()] == [{"core": "1"}, {"core": "2"}]


def test_constants_and_identities_are_kept_once_a_day_and_when_they_change(tmp_path: Path) -> None:
    desk = Desk(tmp_path, interval_s=1.0)
    for second in range(5):
        desk.write([metric("usage", float(second)), metric("core_num", 2.0), metric("model_info", 1.0, {"model": "x"})])
    desk.write([metric("usage", 9.0), metric("core_num", 4.0), metric("model_info", 1.0, {"model": "y"})])
    assert desk.values("core_num") == [2.0, 4.0]
    assert [line["labels"]["model"] for line in desk.lines() if line["name"] == "model_info"] == ["x", "y"]
    assert desk.values("usage") == [0.0, 1.0, 2.0, 3.0, 4.0, 9.0]
    desk.clock.advance(86400)
    desk.write([metric("usage", 1.0), metric("core_num", 4.0)])
    assert desk.values("core_num", "2026-12-01") == [4.0]


def test_readings_kept_by_slow_groups_are_compared_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    kept = metric("core_state", 1.0)
    desk.write([kept])
    desk.write([kept])
    desk.write([metric("core_state", 0.0)])
    desk.write([kept])
    assert desk.values("core_state") == [1.0, 0.0, 1.0]


def test_what_comes_and_goes_all_day_is_not_remembered(tmp_path: Path) -> None:
    desk = Desk(tmp_path, interval_s=10.0)
    for pid in range(100):
        desk.write([metric("core_state", 1.0, {"task": str(pid)}), metric("core_num", 2.0)])
    assert len(desk.values("core_state")) == 100
    assert desk.values("core_num") == [2.0]
    assert len(desk.sink._kept["cpu"].values) <= 11


class TestAbsences:
    def test_they_stand_in_files_of_their_own_when_they_begin_and_end(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path)
        gone = missing("temperature", "sensor is gone", {"cpu": "0"}, state=Absence.READ_ERROR)
        desk.write([metric("usage", 1.0)])
        for _ in range(3):
            desk.write([metric("usage", 1.0)], [gone])
        desk.write([metric("usage", 1.0)])
        assert desk.events() == [("appeared", "temperature", "read_error"), ("cleared", "temperature", "read_error")]
        line = desk.lines("missing")[0]
        assert (line["component"], line["reason"], line["labels"]) == ("cpu", "sensor is gone", {"cpu": "0"})
        assert not any("value" in line for line in desk.lines("missing"))
        assert all("value" in line for line in desk.lines())

    def test_a_reason_that_counts_seconds_is_no_change_and_another_state_is(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path)
        for age in range(5):
            desk.write([], [missing("power", f"{age} s old", state=Absence.STALE)])
        desk.write([], [missing("power", "denied", state=Absence.NO_PERMISSION)])
        assert desk.events() == [
            ("appeared", "power", "stale"),
            ("cleared", "power", "stale"),
            ("appeared", "power", "no_permission"),
        ]

    def test_each_day_begins_with_what_continues(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path)
        desk.write([], [missing("power")])
        desk.clock.advance(86400)
        desk.write([], [missing("power"), missing("temperature")])
        assert desk.events("2026-12-01") == [("continues", "power", "unknown"), ("appeared", "temperature", "unknown")]


class TestTrouble:
    def test_a_full_disk_is_told_of_once_tears_nothing_and_heals(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with tiny_disk(tmp_path, 64):
            desk = Desk(tmp_path, interval_s=1.0)
            desk.write([metric("usage", 1.0)])
            many = [metric("usage", 1.0, {"core": str(core), "pad": "x" * 60}) for core in range(2000)]
            with caplog.at_level(logging.INFO):
                for _ in range(25):
                    desk.write(many)
            assert len(caplog.records) == 1
            assert os.strerror(errno.ENOSPC) in caplog.text or os.strerror(errno.EFBIG) in caplog.text
            assert desk.values("usage") == [1.0]
            desk.clock.advance(60)
            desk.write([metric("usage", 2.0)])
            assert desk.values("usage") == [1.0, 2.0]
            assert desk.sink.trouble.problem == ""

    def test_a_change_that_could_not_be_written_is_written_later(self, tmp_path: Path) -> None:
        folder = tmp_path / "data"
        desk = Desk(folder)
        desk.write([metric("core_state", 1.0)], [])
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        folder.write_text("in the way")
        kept = metric("core_state", 0.0)
        desk.write([kept], [missing("power")])
        assert desk.sink.trouble.total == 2
        folder.unlink()
        desk.write([kept], [missing("power")])
        assert desk.values("core_state") == [0.0]
        assert desk.events() == [("appeared", "power", "unknown")]

    def test_a_full_set_that_failed_is_not_tried_each_cycle(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("in the way")
        desk = Desk(tmp_path / "data")
        for _ in range(30):
            desk.write([metric("usage", 1.0)])
        assert desk.sink.trouble.total == 3

    def test_the_day_is_full_for_full_sets_first(self, tmp_path: Path) -> None:
        desk = Desk(tmp_path, Limits(day_bytes=2000, min_free_bytes=0), interval_s=1.0)
        for second in range(40):
            desk.write([metric("usage", float(second))])
        assert "reached their limit" in desk.sink.trouble.problem
        size = (tmp_path / "cpu_2026-11-30.jsonl").stat().st_size
        assert size <= 1800
        desk.write([], [missing("power")])
        assert desk.events() == [("appeared", "power", "unknown")]

    def test_housekeeping_that_fails_is_told_of_and_heals(self, tmp_path: Path) -> None:
        (tmp_path / "data").write_text("in the way")
        desk = Desk(tmp_path / "data")
        desk.sink.flush(desk.clock.now())
        assert "data" in desk.sink.trouble.problem
        (tmp_path / "data").unlink()
        desk.clock.advance(61)
        desk.sink.flush(desk.clock.now())
        assert desk.sink.trouble.problem == ""


def test_a_batch_without_readings_makes_no_file(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write([])
    desk.write([])
    assert list(tmp_path.iterdir()) == []
    desk.sink.close()


def test_compression_can_be_waited_for(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.write([metric("usage", 1.0)])
    desk.clock.advance(86400)
    desk.sink.flush(desk.clock.now())
    assert desk.sink.settle(5.0)
    assert [path.name for path in tmp_path.iterdir()] == ["cpu_2026-11-30.1.jsonl.gz"]


def test_a_day_of_an_ordinary_host_stays_within_its_budget(tmp_path: Path) -> None:
    # 400 readings a set, a set a minute for a day, in 2 MB parts: DESIGN allows 30 MB.
    desk = Desk(tmp_path)
    desk.clock.wall_s = dt.datetime(2026, 11, 30, tzinfo=dt.UTC).timestamp()
    labels = [{"core": str(core)} for core in range(400)]
    for minute in range(0, 1440, 4):
        for _ in range(4):
            desk.write([metric("usage", (minute * 7 + core) % 10000 / 100, labels[core]) for core in range(400)], advance_s=60.0)
        assert desk.sink.settle(10.0)
    assert desk.sink.trouble.total == 0
    total = sum(path.stat().st_size for path in tmp_path.iterdir())
    assert total < 10_000_000


def test_a_host_too_large_for_a_day_keeps_its_sets_all_day_long_only_fewer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a pace the limit was reached in the morning, and nothing kept until midnight."""
    limits = Limits(day_bytes=400_000, part_bytes=20_000, min_free_bytes=0)
    desk = Desk(tmp_path, limits)
    desk.clock.wall_s = dt.datetime(2026, 11, 30, tzinfo=dt.UTC).timestamp()
    digits = random.Random(7)  # noqa: S311 - numbers that do not pack well
    labels = [{"core": str(core)} for core in range(40)]
    for _ in range(24 * 60 - 1):
        stamp = rfc3339(desk.clock.wall_s)
        desk.write([Metric("cpu", "usage", digits.random(), "%", label, stamp) for label in labels], advance_s=60.0)
        desk.sink.settle(5.0)
    desk.sink.close()
    hours: dict[str, int] = {}
    on_disk = 0
    for path in tmp_path.glob("cpu_2026-11-30*"):
        on_disk += path.stat().st_size
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in text.splitlines():
            hour = json.loads(line)["timestamp"][11:13]
            hours[hour] = hours.get(hour, 0) + 1
    assert len(hours) == 24
    assert min(hours.values()) >= 40, hours
    assert on_disk <= limits.day_bytes
    assert not any("reached their limit" in record.getMessage() for record in caplog.records)
    assert [record.getMessage() for record in caplog.records] == [
        "data files: a full set every 60 s is more than a day may take; some are left out, all day long"
    ]
