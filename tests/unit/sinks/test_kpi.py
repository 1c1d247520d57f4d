"""KPI files: lines as the reference writes them, a tail that is never lost, other people's files left alone."""

import json
import os
import stat
from pathlib import Path

import pytest

from nodeproof.errors import UsageError, WriteError
from nodeproof.host.recorded import ManualClock
from nodeproof.model.metric import Batch, Labels, Metric
from nodeproof.sinks.kpi import FIELDS, KpiFiles
from nodeproof.sinks.kpi_reader import kpi_batches

_NOON = 1_790_000_000.0
_HOUR = 3600.0


def _batch(component: str, *rows: tuple[str, float, Labels]) -> Batch:
    return Batch(component, "t", 0.0, [Metric(component, name, value, "", labels, "t") for name, value, labels in rows], [])


def _npu(temperature: float = 41.0, chip: str = "0", card: str = "3") -> Batch:
    return _batch("npu", ("temperature", temperature, {"npu_id": card, "chip_id": chip}))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(_NOON)


@pytest.fixture
def sink(tmp_path: Path, clock: ManualClock) -> KpiFiles:
    return KpiFiles(str(tmp_path / "kpi"), clock, retention_s=48 * _HOUR, flush_interval_s=60.0)


def _lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]


def test_lines_are_those_of_the_reference(tmp_path: Path, sink: KpiFiles) -> None:
    card = {"npu_id": "3", "chip_id": "0"}
    sink.write(
        _batch(
            "npu",
            ("temperature", 41.0, card),
            ("power_draw", 94.5, card),
            ("roce_new_pkt_rty", 7.0, card),
            ("hbm_temp", 48.0, card),
            ("temperature", 38.0, {"npu_id": "0", "chip_id": "0"}),
        )
    )
    sink.write(_batch("cpu", ("usage", 12.5, {"core": "total"}), ("usage", 3.25, {"core": "0"}), ("usage", 100.0, {"core": "1"})))
    sink.write(_batch("memory", ("usage", 1.0, {})))
    sink.close()
    assert _lines(tmp_path / "kpi") == [
        {"ts": 1790000000, "vals": {"0": {"temp": 38.0}, "3": {"temp": 41.0, "power": 94.5, "roce_new_pkt_rty": 7.0}}},
        {"ts": 1790000000, "cpu_avg": {"0": "3.25", "1": "100"}},
    ]
    path = next((tmp_path / "kpi").iterdir())
    assert path.name == "straggler_kpi_2026-09-21.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    assert len(FIELDS) == 11


def test_chips_of_a_card_are_counted_through(tmp_path: Path, sink: KpiFiles) -> None:
    sink.write(
        _batch(
            "npu",
            ("temperature", 40.0, {"npu_id": "0", "chip_id": "0"}),
            ("temperature", 41.0, {"npu_id": "0", "chip_id": "1"}),
            ("temperature", 52.0, {"npu_id": "6", "chip_id": "0"}),
        )
    )
    assert _lines(tmp_path / "kpi")[0]["vals"] == {"0": {"temp": 40.0}, "1": {"temp": 41.0}, "12": {"temp": 52.0}}


def test_the_first_sample_is_written_at_once_and_the_tail_when_its_time_has_come(
    tmp_path: Path, sink: KpiFiles, clock: ManualClock
) -> None:
    sink.write(_npu())
    assert len(_lines(tmp_path / "kpi")) == 1
    clock.advance(10.0)
    sink.write(_npu())
    assert len(_lines(tmp_path / "kpi")) == 1, "it waits"
    clock.advance(50.0)
    sink.flush(clock.now())
    assert len(_lines(tmp_path / "kpi")) == 2, "though no sample came"
    clock.advance(5.0)
    sink.write(_npu())
    sink.close()
    assert [line["ts"] for line in _lines(tmp_path / "kpi")] == [1790000000, 1790000010, 1790000065]


def test_a_sample_stands_in_the_file_of_its_own_day(tmp_path: Path, sink: KpiFiles, clock: ManualClock) -> None:
    sink.write(_npu())
    clock.advance(9 * _HOUR + 46 * 60)  # 23:59:20 UTC
    sink.flush(clock.now())
    clock.advance(30.0)
    sink.write(_npu())
    clock.advance(60.0)
    sink.write(_npu())
    sink.close()
    assert len(list((tmp_path / "kpi").iterdir())) >= 1
    assert len(_lines(tmp_path / "kpi")) == 3


def test_only_own_files_of_days_long_past_are_removed(tmp_path: Path, sink: KpiFiles, clock: ManualClock) -> None:
    folder = tmp_path / "kpi"
    folder.mkdir()
    for name in (
        "straggler_kpi_2026-09-01.jsonl",
        "straggler_kpi_2026-09-20.jsonl",
        "notes.jsonl",
        "straggler_kpi_x.jsonl",
        "2001.jsonl",
    ):
        (folder / name).write_text("", "utf-8")
        os.utime(folder / name, (0, 0))
    sink.write(_npu())
    assert sorted(path.name for path in folder.iterdir()) == [
        "2001.jsonl",
        "notes.jsonl",
        "straggler_kpi_2026-09-20.jsonl",
        "straggler_kpi_2026-09-21.jsonl",
        "straggler_kpi_x.jsonl",
    ]
    (folder / "straggler_kpi_2026-09-02.jsonl").write_text("", "utf-8")
    sink.flush(clock.now())
    assert (folder / "straggler_kpi_2026-09-02.jsonl").exists(), "looked for once an hour"
    clock.advance(_HOUR)
    sink.flush(clock.now())
    assert not (folder / "straggler_kpi_2026-09-02.jsonl").exists()


def test_what_the_disk_does_not_take_is_kept(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / "kpi").write_text("a file", "utf-8")
    sink = KpiFiles(str(tmp_path / "kpi"), clock, retention_s=_HOUR, flush_interval_s=60.0)
    with pytest.raises(WriteError):
        sink.write(_npu())
    (tmp_path / "kpi").unlink()
    sink.write(_npu(42.0))
    assert [line["vals"] for line in _lines(tmp_path / "kpi")] == [{"3": {"temp": 41.0}}, {"3": {"temp": 42.0}}]


def test_files_are_read_back_and_torn_lines_passed_over(tmp_path: Path, sink: KpiFiles) -> None:
    sink.write(_npu())
    path = next((tmp_path / "kpi").iterdir())
    torn = b'{"ts": 5, "vals": {"0": {"temp"\n{"ts":7,"cpu_avg":{"0":"1"}}\n{"ts":8,"vals":{"1":{"odd":1}}}\n'
    path.write_bytes(path.read_bytes() + torn)
    batches = list(kpi_batches(str(tmp_path / "kpi")))
    assert [(batch.mono_s, [(one.name, one.value, one.labels) for one in batch.metrics]) for batch in batches] == [
        (1790000000.0, [("temperature", 41.0, {"npu_id": "3"})]),
        (8.0, []),
    ]
    with pytest.raises(UsageError, match=r"straggler_output\.enabled"):
        list(kpi_batches(str(tmp_path)))
