import json
import logging
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import SnapshotError
from nodeproof.host.locks import probe_lock
from nodeproof.host.recorded import ManualClock
from nodeproof.model.snapshot import CollectorInfo
from nodeproof.sinks.base import StaleAfter
from nodeproof.sinks.snapshot import (
    ComponentSnapshots,
    GlobalSnapshots,
    Origin,
    SnapshotDirectory,
    global_stale_after_s,
)
from nodeproof.sinks.snapshot_names import component_file, component_of_file
from support.batches import batch, health, metric, missing
from support.disks import read_only, tiny_disk, writable_again

ORIGIN = Origin("11111111-2222-3333-4444-555555555555", 4711)


def writer(folder: Path, clock: ManualClock | None = None) -> ComponentSnapshots:
    return ComponentSnapshots(str(folder), clock or ManualClock(), StaleAfter({"cpu": 1.0, "disk": 5.0}), origin=ORIGIN)


def load(path: Path) -> dict[str, Any]:
    found = json.loads(path.read_text())
    assert isinstance(found, dict)
    return found


class TestComponentFile:
    def test_every_key_and_its_value(self, tmp_path: Path) -> None:
        clock = ManualClock()
        begun = clock.now()
        clock.advance(0.25)
        sink = writer(tmp_path, clock)
        sink.write(batch([metric("usage", 9.56, {"core": "total"})], [missing("temperature", "no sensor")], at=begun, sequence=7))
        found = load(tmp_path / "snapshot_cpu.json")
        assert found == {
            "component": "cpu",
            "timestamp": rfc3339(begun.wall_s + 0.25),
            "metrics": [
                {
                    "component": "cpu",
                    "name": "usage",
                    "value": 9.56,
                    "unit": "%",
                    "labels": {"core": "total"},
                    "timestamp": "2026-11-30T12:00:00.000000+00:00",
                }
            ],
            "history": {"cpu_usage": [9.56]},
            "schema": 1,
            "sequence": 7,
            "stale_after_ms": 5000,
            "boot_id": "11111111-2222-3333-4444-555555555555",
            "monotonic_s": 1000.0,
            "pid": 4711,
            "missing": [
                {
                    "component": "cpu",
                    "name": "temperature",
                    "state": "unknown",
                    "reason": "no sensor",
                    "timestamp": "2026-11-30T12:00:00.000000+00:00",
                }
            ],
            "history_series": {"cpu_usage": {"points": [[begun.wall_s, 9.56]], "entity": {"core": "total"}}},
        }

    def test_it_is_compact_and_one_write(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        sizes: list[int] = []
        real = os.write

        def write(fd: int, data: bytes) -> int:
            sizes.append(len(data))
            return real(fd, data)

        monkeypatch.setattr(os, "write", write)
        writer(tmp_path).write(batch([metric("usage", 1.0)]))
        content = (tmp_path / "snapshot_cpu.json").read_bytes()
        assert sizes == [len(content)]
        assert b"\n" not in content
        assert b'": ' not in content

    def test_defect_21_the_group_may_read_it(self, tmp_path: Path) -> None:
        folder = tmp_path / "snap"
        writer(folder).write(batch([metric("usage", 1.0)]))
        assert stat.S_IMODE((folder / "snapshot_cpu.json").stat().st_mode) == 0o640
        assert stat.S_IMODE(folder.stat().st_mode) == 0o750

    def test_statics_stick_and_a_partial_set_loses_nothing(self, tmp_path: Path) -> None:
        sink = writer(tmp_path)
        sink.write(batch([metric("core_num", 2.0), metric("cpu_num", 1.0)]))
        sink.write(batch([metric("usage", 5.0)]))
        assert [spec["name"] for spec in load(tmp_path / "snapshot_cpu.json")["specs"]] == ["core_num", "cpu_num"]
        sink.write(batch([metric("core_num", 4.0)]))
        specs = load(tmp_path / "snapshot_cpu.json")["specs"]
        assert [(spec["name"], spec["value"]) for spec in specs] == [("core_num", 4.0), ("cpu_num", 1.0)]

    def test_identity_is_in_every_later_file(self, tmp_path: Path) -> None:
        sink = writer(tmp_path)
        sink.set_comp_specs("disk", [metric("disk_info", 274.9, {"device": "vda"}, component="disk", unit="GB")])
        for sequence in (1, 2):
            sink.write(batch([metric("io_wait", 0.1, component="disk")], component="disk", sequence=sequence))
            assert load(tmp_path / "snapshot_disk.json")["specs"][0]["labels"] == {"device": "vda"}
        sink.write(batch([metric("usage", 1.0)]))
        assert "specs" not in load(tmp_path / "snapshot_cpu.json")

    def test_defect_19_an_empty_batch_takes_the_old_readings_away(self, tmp_path: Path) -> None:
        sink = writer(tmp_path)
        sink.write(batch([metric("usage", 5.0, {"core": "total"})]))
        sink.write(batch([], [missing("usage", "gone")], sequence=2))
        found = load(tmp_path / "snapshot_cpu.json")
        assert found["metrics"] == []
        assert found["history"] == {"cpu_usage": [5.0]}
        assert found["missing"][0]["reason"] == "gone"

    def test_components_stay_apart(self, tmp_path: Path) -> None:
        sink = writer(tmp_path)
        sink.write(batch([metric("usage", 1.0)]))
        sink.write(batch([metric("usage", 2.0, component="memory")], component="memory"))
        assert load(tmp_path / "snapshot_cpu.json")["history"] == {}
        assert load(tmp_path / "snapshot_memory.json")["history"] == {"memory_usage": [2.0]}

    @pytest.mark.parametrize("name", ["", "../evil", "a/b", "CPU", "a" * 65, "a\n"])
    def test_a_name_that_cannot_be_part_of_a_file_name_is_refused(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(SnapshotError, match="cannot have a snapshot"):
            writer(tmp_path).write(batch([], component=name))
        assert list(tmp_path.iterdir()) == []

    def test_names_and_their_way_back(self) -> None:
        assert component_file("npu") == "snapshot_npu.json"
        assert component_of_file("snapshot_npu.json") == "npu"
        for other in ("snapshot.json", "snapshot_.json", "snapshot_npu.json.bak", ".snapshot_npu.json", "snapshot_NPU.json"):
            assert component_of_file(other) is None


class TestTrouble:
    def test_full_disk_is_told_of_once_costs_nothing_else_and_heals(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        with tiny_disk(tmp_path, 64):
            sink = writer(tmp_path)
            small = batch([metric("usage", 1.0)])
            large = batch(
                [metric(f"m{number}", 1.0, {"k": "v" * 50}, component="disk") for number in range(2000)], component="disk"
            )
            sink.write(small)
            with caplog.at_level(logging.INFO):
                for _ in range(5):
                    sink.write(large)
                    sink.write(small)
            assert sink.trouble.total == 5
            assert "snapshot_disk.json" in sink.trouble.problem
            assert len(caplog.records) == 1
            assert load(tmp_path / "snapshot_cpu.json")["history"] == {}
            caplog.clear()
            with caplog.at_level(logging.INFO):
                sink.write(batch([metric("io_wait", 1.0, component="disk")], component="disk"))
            assert load(tmp_path / "snapshot_disk.json")["metrics"][0]["value"] == 1.0
            assert sink.trouble.problem == ""
            assert [record.getMessage() for record in caplog.records] == ["snapshot disk: works again (5 failures so far)"]

    def test_read_only_directory_keeps_the_old_file_and_heals(self, tmp_path: Path) -> None:
        with tiny_disk(tmp_path, 64):
            sink = writer(tmp_path)
            sink.write(batch([metric("usage", 1.0)], sequence=1))
            read_only(tmp_path)
            sink.write(batch([metric("usage", 2.0)], sequence=2))
            assert sink.trouble.total == 1
            assert load(tmp_path / "snapshot_cpu.json")["sequence"] == 1
            writable_again(tmp_path)
            sink.write(batch([metric("usage", 3.0)], sequence=3))
            assert load(tmp_path / "snapshot_cpu.json")["sequence"] == 3
            assert sink.trouble.problem == ""

    def test_a_directory_that_is_removed_comes_back_with_the_next_batch(self, tmp_path: Path) -> None:
        folder = tmp_path / "snap"
        sink = writer(folder)
        sink.write(batch([metric("usage", 1.0)]))
        shutil.rmtree(folder)
        sink.write(batch([metric("usage", 2.0)], sequence=2))
        assert load(folder / "snapshot_cpu.json")["sequence"] == 2
        assert sink.trouble.total == 0

    def test_history_goes_on_while_the_file_cannot_be_written(self, tmp_path: Path) -> None:
        folder = tmp_path / "snap"
        folder.write_text("in the way")
        sink = writer(folder)
        sink.write(batch([metric("usage", 1.0, {"core": "total"})]))
        folder.unlink()
        sink.write(batch([metric("usage", 2.0, {"core": "total"})]))
        assert load(folder / "snapshot_cpu.json")["history"] == {"cpu_usage": [1.0, 2.0]}


class TestGlobalFile:
    def test_every_key_and_its_value(self, tmp_path: Path) -> None:
        clock = ManualClock(wall_s=1_796_075_331.25, mono_s=4000.5)
        files = GlobalSnapshots(str(tmp_path), clock, 3.0, origin=ORIGIN)
        files.set_collectors([CollectorInfo("cpu", "cpu", "High", "3s", enabled=True)])
        files.set_intervals({"cpu": 3000})
        files.set_system_specs([metric("os_info", 1.0, {"kernel": "6.18"}, component="system", unit="")])
        clock.advance(2.0)
        files.write(health(97))
        found = load(tmp_path / "snapshot.json")
        assert found.pop("health")["score"] == 97
        assert found == {
            "session_id": "1796075331",
            "timestamp": rfc3339(1_796_075_333.25),
            "refresh_interval_ms": 3000,
            "intervals_ms": {"cpu": 3000},
            "collectors": [{"name": "cpu", "component": "cpu", "priority": "High", "interval": "3s", "enabled": True}],
            "system_specs": [
                {
                    "component": "system",
                    "name": "os_info",
                    "value": 1.0,
                    "unit": "",
                    "labels": {"kernel": "6.18"},
                    "timestamp": "2026-11-30T12:00:00.000000+00:00",
                }
            ],
            "schema": 1,
            "sequence": 1,
            "stale_after_ms": 9000,
            "boot_id": "11111111-2222-3333-4444-555555555555",
            "monotonic_s": 4002.5,
            "pid": 4711,
        }

    def test_what_is_empty_is_left_out_as_the_reference_does(self, tmp_path: Path) -> None:
        files = GlobalSnapshots(str(tmp_path), ManualClock(), 1.0, origin=ORIGIN)
        files.write(health())
        found = load(tmp_path / "snapshot.json")
        assert not {"intervals_ms", "system_specs", "stopped"} & found.keys()
        assert found["collectors"] == []

    def test_the_last_file_says_that_it_is_the_last(self, tmp_path: Path) -> None:
        files = GlobalSnapshots(str(tmp_path), ManualClock(), 1.0, origin=ORIGIN)
        files.close()
        assert list(tmp_path.iterdir()) == []
        files.write(health(80))
        files.close()
        found = load(tmp_path / "snapshot.json")
        assert (found["stopped"], found["sequence"], found["health"]["score"]) == (True, 2, 80)

    def test_failure_is_counted_and_heals(self, tmp_path: Path) -> None:
        (tmp_path / "snapshot.json").mkdir()
        files = GlobalSnapshots(str(tmp_path), ManualClock(), 1.0, origin=ORIGIN)
        files.write(health())
        assert files.trouble.total == 1
        (tmp_path / "snapshot.json").rmdir()
        files.write(health())
        assert files.trouble.problem == ""
        assert load(tmp_path / "snapshot.json")["sequence"] == 2

    def test_a_removed_directory_is_locked_again_with_the_next_file(self, tmp_path: Path) -> None:
        folder = tmp_path / "snap"
        directory = SnapshotDirectory(str(folder))
        directory.open(())
        files = GlobalSnapshots(str(folder), ManualClock(), 1.0, origin=ORIGIN, renew=directory.renew)
        files.write(health())
        shutil.rmtree(folder)
        files.write(health())
        assert probe_lock(str(folder)).held is True
        shutil.rmtree(folder)
        other = SnapshotDirectory(str(folder))
        other.open(())
        files.write(health())
        assert "in use by process" in files.trouble.problem
        assert not (folder / "snapshot.json").exists()
        other.close()
        files.write(health())
        assert files.trouble.problem == ""
        files.close()
        directory.close()

    @pytest.mark.parametrize(("interval_s", "limit_s"), [(1.0, 5.0), (3.0, 9.0), (60.0, 180.0)])
    def test_limit_of_its_age(self, interval_s: float, limit_s: float) -> None:
        assert global_stale_after_s(interval_s) == limit_s


class TestDirectory:
    def test_defect_21_leftovers_and_vanished_components_go_and_foreign_files_stay(self, tmp_path: Path) -> None:
        old = writer(tmp_path)
        for component in ("cpu", "gpu", "npu"):
            old.write(batch([metric("usage", 1.0, component=component)], component=component))
        foreign = {
            "snapshot_mine.json": b'{"note": "mine"}',
            "snapshot_other.json": b"not json",
            "snapshot_x.json": b'{"component": "y"}',
            "snapshot_dump.json.gz": b"x",
            "notes.txt": b"x",
            ".snap-123.tmp": b"of another program",
        }
        for name, content in foreign.items():
            (tmp_path / name).write_bytes(content)
        (tmp_path / "snapshot_link.json").symlink_to(tmp_path / "snapshot_cpu.json")
        (tmp_path / f".snapshot_cpu.json.{2**22 + 1}-1.np-tmp").write_bytes(b"torn")
        directory = SnapshotDirectory(str(tmp_path))
        removed = directory.open({"cpu", "disk"})
        assert removed == [f".snapshot_cpu.json.{2**22 + 1}-1.np-tmp", "snapshot_gpu.json", "snapshot_npu.json"]
        left = {path.name for path in tmp_path.iterdir()}
        assert left == {"snapshot_cpu.json", "snapshot_link.json", "daemon.lock", *foreign}
        assert directory.tidy({"disk"}) == ["snapshot_cpu.json"]
        directory.close()

    def test_two_daemons_cannot_have_it(self, tmp_path: Path) -> None:
        first, second = SnapshotDirectory(str(tmp_path)), SnapshotDirectory(str(tmp_path))
        first.open(())
        with pytest.raises(SnapshotError, match=rf"process {os.getpid()} .*set snapshot.dir"):
            second.open(())
        first.close()
        second.open(())
        second.renew()
        second.close()

    def test_origin_is_this_process_on_this_boot(self) -> None:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        assert Origin.here() == Origin(boot, os.getpid())


def test_flush_and_close_write_nothing(tmp_path: Path) -> None:
    sink = writer(tmp_path)
    sink.flush(Instant(0.0, 0.0))
    sink.close()
    assert list(tmp_path.iterdir()) == []
