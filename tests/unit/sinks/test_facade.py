import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData, SnapshotError, WriteError
from nodeproof.host import locks
from nodeproof.host.recorded import ManualClock
from nodeproof.model.health import HealthScore
from nodeproof.model.metric import Metric
from nodeproof.model.snapshot import CollectorInfo
from nodeproof.sinks import facade
from support.batches import health, metric


class Memory:
    """A storage that remembers, or fails."""

    def __init__(self, *, broken: bool = False) -> None:
        self.batches: list[Sequence[Metric]] = []
        self.broken = broken

    def write(self, metrics: Sequence[Metric], /) -> None:
        if self.broken:
            raise OSError("inner storage failed")
        self.batches.append(metrics)


class Source:
    def __init__(self, metrics: list[Metric], *, ready: bool = True) -> None:
        self.metrics = metrics
        self.is_ready = ready

    def all_metrics(self) -> list[Metric]:
        return self.metrics

    def ready(self) -> bool:
        return self.is_ready


class TestWriting:
    def test_plain_values_and_structs(self, tmp_path: Path) -> None:
        facade.write_json_atomic(str(tmp_path / "a.json"), {"x": [1, 2.5, None], "m": metric("usage", 1.0)})
        assert json.loads((tmp_path / "a.json").read_text())["m"]["name"] == "usage"

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_case_60_never_a_bare_nan(self, value: float, tmp_path: Path) -> None:
        with pytest.raises(SnapshotError, match=r"value at \$\.metrics\.1\.value is no finite number"):
            facade.write_json_atomic(str(tmp_path / "a.json"), {"metrics": [metric("a", 1.0), metric("b", value)]})
        assert list(tmp_path.iterdir()) == []

    def test_what_is_no_json(self, tmp_path: Path) -> None:
        with pytest.raises(SnapshotError, match="not written"):
            facade.write_json_atomic(str(tmp_path / "a.json"), {"f": object()})
        endless: list[object] = []
        endless.append(endless)
        with pytest.raises(SnapshotError, match="not written"):
            facade.write_json_atomic(str(tmp_path / "a.json"), endless)

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(WriteError):
            facade.write_json_atomic(str(tmp_path / "file" / "a.json"), {})

    def test_the_combined_view_goes_round(self, tmp_path: Path) -> None:
        snapshot = facade.Snapshot(
            session_id="1",
            timestamp="2026-11-30T12:00:00+00:00",
            refresh_interval_ms=3000,
            history_points=60,
            health=health(),
            metrics=[metric("usage", 1.0)],
            history={"cpu_usage": [1.0]},
            specs=[metric("core_num", 2.0)],
        )
        path = str(tmp_path / "snapshot.json")
        facade.write_atomic(path, snapshot)
        assert facade.read(path) == snapshot


class TestHistory:
    def test_one_point_of_each_series_that_is_there(self) -> None:
        history = facade.History(2)
        history.update([metric("usage", 1.0, {"core": "total"}), metric("usage", 9.0, component="memory")])
        history.update([metric("usage", 2.0, {"core": "total"})])
        assert history.update([metric("usage", 3.0, {"core": "total"})]) == {"cpu_usage": [2.0, 3.0], "memory_usage": [9.0]}

    def test_what_it_gives_is_a_copy(self) -> None:
        history = facade.History()
        given = history.update([metric("usage", 1.0, {"core": "total"})])
        given["cpu_usage"].append(99.0)
        given["x"] = []
        assert history.update([]) == {"cpu_usage": [1.0]}

    @pytest.mark.parametrize("cap", [0, -5])
    def test_no_cap_means_sixty(self, cap: int) -> None:
        history = facade.History(cap)
        for value in range(70):
            given = history.update([metric("usage", float(value), {"core": "total"})])
        assert given["cpu_usage"] == [float(value) for value in range(10, 70)]


class TestPerCompWriter:
    def test_inner_first_then_the_files_of_its_components(self, tmp_path: Path) -> None:
        inner = Memory()
        writer = facade.PerCompWriter(inner, str(tmp_path), 0, clock=ManualClock())
        batch = [metric("usage", 1.0, {"core": "total"}), metric("usage", 2.0, component="memory")]
        writer.write(batch)
        assert inner.batches == [batch]
        assert facade.read_comp(str(tmp_path / "snapshot_cpu.json")).history == {"cpu_usage": [1.0]}
        assert facade.read_comp(str(tmp_path / "snapshot_memory.json")).history == {"memory_usage": [2.0]}
        writer.write(batch)
        assert facade.read_comp(str(tmp_path / "snapshot_cpu.json")).sequence == 2

    def test_what_inner_raises_is_passed_on_without_a_file(self, tmp_path: Path) -> None:
        writer = facade.PerCompWriter(Memory(broken=True), str(tmp_path))
        with pytest.raises(OSError, match="inner storage failed"):
            writer.write([metric("usage", 1.0)])
        assert list(tmp_path.iterdir()) == []

    def test_specs_are_kept_and_numbers_that_are_none_are_missing(self, tmp_path: Path) -> None:
        writer = facade.PerCompWriter(Memory(), str(tmp_path), stale_after_s=7.5)
        writer.set_comp_specs("gpu", [metric("gpu_info", 1.0, {"model": "x"}, component="gpu")])
        writer.write([metric("temperature", math.nan, component="gpu")])
        found = facade.read_comp(str(tmp_path / "snapshot_gpu.json"))
        assert [spec.name for spec in found.specs] == ["gpu_info"]
        assert found.metrics == []
        assert found.missing[0].state is Absence.READ_ERROR
        assert found.stale_after_ms == 7500

    def test_an_empty_batch_writes_nothing(self, tmp_path: Path) -> None:
        facade.PerCompWriter(Memory(), str(tmp_path)).write([])
        assert list(tmp_path.iterdir()) == []

    def test_a_cadence_nobody_told_has_the_default_limit(self, tmp_path: Path) -> None:
        facade.PerCompWriter(Memory(), str(tmp_path)).write([metric("usage", 1.0)])
        assert facade.read_comp(str(tmp_path / "snapshot_cpu.json")).stale_after_ms == 15000


class TestGlobalWriter:
    @pytest.mark.parametrize("interval_s", [0.0, -1.0])
    def test_no_interval_means_five_seconds(self, interval_s: float, tmp_path: Path) -> None:
        writer = facade.GlobalWriter(Source([]), str(tmp_path), interval_s, assess=lambda _: health())
        assert writer.interval_s == 5.0

    def test_it_writes_at_once_and_every_interval_and_says_goodbye(self, tmp_path: Path) -> None:
        seen: list[Sequence[Metric]] = []
        stop = threading.Event()

        def assess(metrics: Sequence[Metric]) -> HealthScore:
            seen.append(metrics)
            if len(seen) == 3:
                stop.set()
            return health()

        source = Source([metric("usage", 1.0)])
        writer = facade.GlobalWriter(source, str(tmp_path), 0.01, assess=assess)
        writer.set_collectors([CollectorInfo("cpu", "cpu", "High", "1s", enabled=True)])
        writer.set_intervals({"cpu": 1000})
        writer.set_system_specs([metric("os_info", 1.0, component="system")])
        writer.run(stop)
        assert seen == [source.metrics] * 3
        found = facade.read_global(str(tmp_path / "snapshot.json"))
        assert (found.sequence, found.stopped, found.intervals_ms) == (4, True, {"cpu": 1000})
        assert (found.collectors[0].name, found.system_specs[0].name) == ("cpu", "os_info")
        assert facade.read_state(str(tmp_path)).verdict == "stopped"

    def test_nothing_is_written_before_the_source_is_ready(self, tmp_path: Path) -> None:
        stop = threading.Event()
        stop.set()
        facade.GlobalWriter(Source([], ready=False), str(tmp_path), assess=lambda _: health()).run(stop)
        assert [path.name for path in tmp_path.iterdir()] == ["daemon.lock"]

    def test_a_rule_that_raises_does_not_end_it(self, tmp_path: Path) -> None:
        stop = threading.Event()
        calls: list[int] = []

        def assess(_: Sequence[Metric]) -> HealthScore:
            calls.append(1)
            if len(calls) < 3:
                raise ZeroDivisionError("rule")
            stop.set()
            return health()

        writer = facade.GlobalWriter(Source([]), str(tmp_path), 0.001, assess=assess)
        writer.run(stop)
        assert writer.trouble.total == 2
        assert writer.trouble.problem == ""

    def test_a_directory_with_another_owner_is_refused(self, tmp_path: Path) -> None:
        lock = locks.DirectoryLock(str(tmp_path))
        lock.acquire()
        with pytest.raises(SnapshotError, match="in use by process"):
            facade.GlobalWriter(Source([]), str(tmp_path), assess=lambda _: health()).run(threading.Event())
        lock.release()


def test_hardware_identity_is_read_once_and_its_absence_is_an_empty_list() -> None:
    assert facade.collect_hw_specs(lambda: [metric("disk_info", 1.0)]) == [metric("disk_info", 1.0)]

    def nothing() -> list[Metric]:
        raise NoData(Absence.UNSUPPORTED, "no SMBIOS")

    assert facade.collect_hw_specs(nothing) == []


def test_every_name_of_the_reference_is_there() -> None:
    names = {
        "write_json_atomic", "write_atomic", "read", "read_comp", "read_global", "filter_static", "STATIC_METRIC_NAMES",
        "TRACKED_SERIES", "collect_hw_specs", "History", "PerCompWriter", "GlobalWriter", "MetricSource", "CollectorInfo",
        "CompSnapshot", "GlobalSnapshot", "Snapshot",
    }  # fmt: skip
    assert names <= set(facade.__all__)
    assert all(hasattr(facade, name) for name in facade.__all__)
