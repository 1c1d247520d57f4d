import json
from pathlib import Path
from typing import Any

import pytest

from nodeproof.errors import SnapshotError
from nodeproof.host import locks
from nodeproof.host.recorded import ManualClock
from nodeproof.model.snapshot import ComponentAge, DaemonVerdict, SeriesHistory
from nodeproof.sinks.base import StaleAfter
from nodeproof.sinks.snapshot import ComponentSnapshots, GlobalSnapshots, Origin
from nodeproof.sinks.snapshot_reader import read_comp, read_global, read_state
from support.batches import batch, health, metric

HERE = Origin.here()
CLOCK = ManualClock()


def wrote(folder: Path, origin: Origin = HERE, *, stopped: bool = False) -> None:
    """What a daemon leaves that wrote at second 1000 since boot."""
    parts = ComponentSnapshots(str(folder), CLOCK, StaleAfter({"cpu": 1.0}), origin=origin)
    parts.write(batch([metric("usage", 1.0, {"core": "total"})]))
    whole = GlobalSnapshots(str(folder), CLOCK, 3.0, origin=origin)
    whole.set_intervals({"cpu": 1000, "disk": 2000})
    whole.write(health())
    if stopped:
        whole.close()


def at(mono_s: float, wall_s: float = 1_790_000_000.0) -> ManualClock:
    return ManualClock(wall_s=wall_s, mono_s=mono_s)


@pytest.fixture
def lock(tmp_path: Path) -> locks.DirectoryLock:
    held = locks.DirectoryLock(str(tmp_path))
    held.acquire()
    return held


class TestVerdict:
    def test_no_daemon_ever(self, tmp_path: Path) -> None:
        state = read_state(str(tmp_path))
        assert state.verdict is DaemonVerdict.ABSENT
        assert not state.fresh
        assert read_state(str(tmp_path / "nowhere")).verdict is DaemonVerdict.ABSENT

    def test_running_with_the_evidence_for_it(self, tmp_path: Path, lock: locks.DirectoryLock) -> None:
        wrote(tmp_path)
        state = read_state(str(tmp_path), at(1004.0))
        assert state.verdict is DaemonVerdict.RUNNING
        assert state.fresh
        assert state.reason == f"process {HERE.pid} wrote 4.0 s ago"
        assert (state.evidence.lock_held, state.evidence.lock_pid, state.evidence.snapshot_pid) == (True, HERE.pid, HERE.pid)
        assert (state.evidence.same_boot, state.evidence.age_s, state.evidence.stale_after_s) == (True, 4.0, 9.0)
        assert state.components == {"cpu": ComponentAge(4.0, 5.0, fresh=True), "disk": ComponentAge(None, None, fresh=False)}
        lock.release()

    def test_frozen_when_it_holds_the_lock_and_does_not_write(self, tmp_path: Path, lock: locks.DirectoryLock) -> None:
        wrote(tmp_path)
        state = read_state(str(tmp_path), at(1009.5))
        assert state.verdict is DaemonVerdict.FROZEN
        assert "has not written for 10 s (limit 9 s)" in state.reason
        assert state.components["cpu"].fresh is False
        lock.release()

    @pytest.mark.parametrize("wall_s", [0.0, 1_790_000_000.0 - 86400, 1_790_000_000.0 + 10 * 365 * 86400])
    def test_the_wall_clock_has_no_part_in_it(self, wall_s: float, tmp_path: Path, lock: locks.DirectoryLock) -> None:
        wrote(tmp_path)
        assert read_state(str(tmp_path), at(1001.0, wall_s)).verdict is DaemonVerdict.RUNNING
        assert read_state(str(tmp_path), at(1100.0, wall_s)).verdict is DaemonVerdict.FROZEN
        lock.release()

    def test_dead_when_the_lock_is_free_and_nobody_said_goodbye(self, tmp_path: Path) -> None:
        wrote(tmp_path)
        state = read_state(str(tmp_path), at(1000.1))
        assert state.verdict is DaemonVerdict.DEAD
        assert f"process {HERE.pid} is gone" in state.reason

    def test_stopped_in_good_order(self, tmp_path: Path) -> None:
        wrote(tmp_path, stopped=True)
        assert read_state(str(tmp_path), at(1000.1)).verdict is DaemonVerdict.STOPPED

    def test_stopping_while_it_still_holds_the_lock(self, tmp_path: Path, lock: locks.DirectoryLock) -> None:
        wrote(tmp_path, stopped=True)
        assert read_state(str(tmp_path), at(1000.1)).verdict is DaemonVerdict.STOPPED
        lock.release()

    def test_dead_since_another_boot_even_when_the_seconds_would_fit(self, tmp_path: Path) -> None:
        wrote(tmp_path, Origin("another-boot", HERE.pid))
        state = read_state(str(tmp_path), at(1000.1))
        assert state.verdict is DaemonVerdict.DEAD
        assert "before this machine was booted" in state.reason
        assert (state.evidence.same_boot, state.evidence.age_s) == (False, None)

    def test_starting_while_the_files_are_of_another_boot_or_process(self, tmp_path: Path, lock: locks.DirectoryLock) -> None:
        assert read_state(str(tmp_path), at(1000.1)).verdict is DaemonVerdict.STARTING
        wrote(tmp_path, Origin("another-boot", HERE.pid))
        assert read_state(str(tmp_path), at(1000.1)).verdict is DaemonVerdict.STARTING
        wrote(tmp_path, Origin(HERE.boot_id, HERE.pid + 1))
        state = read_state(str(tmp_path), at(1000.1))
        assert state.verdict is DaemonVerdict.STARTING
        assert f"still those of process {HERE.pid + 1}" in state.reason
        lock.release()

    def test_files_of_another_program_prove_nothing(self, tmp_path: Path, lock: locks.DirectoryLock) -> None:
        (tmp_path / "snapshot.json").write_text('{"session_id": "1", "timestamp": "2026-11-30T21:49:18Z"}')
        assert read_state(str(tmp_path), at(1000.1)).verdict is DaemonVerdict.STARTING
        lock.release()
        assert read_state(str(tmp_path), at(1000.1)).verdict is DaemonVerdict.UNKNOWN

    @pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b'{"pid": "x"}', b"null"])
    def test_an_unreadable_file_is_unknown_and_named(self, content: bytes, tmp_path: Path) -> None:
        (tmp_path / "snapshot.json").write_bytes(content)
        state = read_state(str(tmp_path))
        assert state.verdict is DaemonVerdict.UNKNOWN
        assert "snapshot.json" in state.reason

    def test_a_directory_that_may_not_be_looked_into_is_unknown(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        wrote(tmp_path)
        monkeypatch.setattr(locks, "probe_lock", lambda _: locks.LockState(held=None, pid=0, detail="daemon.lock: denied"))
        # What is fresh must have been written by somebody.
        assert read_state(str(tmp_path), at(1001.0)).verdict is DaemonVerdict.RUNNING
        assert read_state(str(tmp_path), at(1100.0)).verdict is DaemonVerdict.FROZEN
        (tmp_path / "snapshot.json").unlink()
        state = read_state(str(tmp_path), at(1001.0))
        assert state.verdict is DaemonVerdict.UNKNOWN
        assert "denied" in state.reason

    def test_seconds_that_count_from_elsewhere_are_not_believed(self, tmp_path: Path, lock: locks.DirectoryLock) -> None:
        wrote(tmp_path)
        assert read_state(str(tmp_path), at(500.0)).verdict is DaemonVerdict.UNKNOWN
        lock.release()

    def test_a_component_file_of_an_earlier_process_is_not_fresh(self, tmp_path: Path, lock: locks.DirectoryLock) -> None:
        wrote(tmp_path, Origin(HERE.boot_id, HERE.pid + 1))
        GlobalSnapshots(str(tmp_path), CLOCK, 3.0, origin=HERE).write(health())
        state = read_state(str(tmp_path), at(1001.0))
        assert state.verdict is DaemonVerdict.RUNNING
        assert state.components == {"cpu": ComponentAge(None, None, fresh=False)}
        lock.release()


class TestReading:
    def test_what_was_written_comes_back(self, tmp_path: Path) -> None:
        wrote(tmp_path)
        part = read_comp(str(tmp_path / "snapshot_cpu.json"))
        assert part.metrics == [metric("usage", 1.0, {"core": "total"})]
        assert part.history_series == {"cpu_usage": SeriesHistory([(1_790_000_000.0, 1.0)], {"core": "total"})}
        whole = read_global(str(tmp_path / "snapshot.json"))
        assert whole.health == health()
        assert whole.intervals_ms == {"cpu": 1000, "disk": 2000}

    def test_missing_and_bad_files_are_named_with_a_remedy(self, tmp_path: Path) -> None:
        with pytest.raises(SnapshotError, match=r"snapshot_cpu.json does not exist; is a daemon running"):
            read_comp(str(tmp_path / "snapshot_cpu.json"))
        (tmp_path / "snapshot.json").write_text('{"session_id": 5}')
        with pytest.raises(SnapshotError, match="holds no snapshot"):
            read_global(str(tmp_path / "snapshot.json"))
        with pytest.raises(SnapshotError, match="directory"):
            read_global(str(tmp_path))


def strict(value: Any, shape: Any, place: str = "$") -> None:
    """A typed reader of the reference (observe.md 4.1): wrong type, null or missing key is an error, unknown keys are not."""
    if isinstance(shape, dict):
        assert isinstance(value, dict), place
        for key, inner in shape.items():
            name = key.removesuffix("?")
            if name in value or not key.endswith("?"):
                assert name in value, f"{place}.{name} is missing"
                strict(value[name], inner, f"{place}.{name}")
    elif isinstance(shape, list):
        assert isinstance(value, list), place
        for number, member in enumerate(value):
            strict(member, shape[0], f"{place}[{number}]")
    elif isinstance(shape, tuple):
        assert isinstance(value, dict), place
        for key, member in value.items():
            strict(member, shape[0], f"{place}.{key}")
    else:
        assert not isinstance(value, bool) or shape is bool, place
        assert isinstance(value, (int, float) if shape is float else shape), f"{place}: {value!r}"


METRIC: Any = {"component": str, "name": str, "value": float, "unit": str, "labels?": (str,), "timestamp": str}
COMP: Any = {"component": str, "timestamp": str, "metrics": [METRIC], "history": ([float],), "specs?": [METRIC]}
GLOBAL: Any = {
    "session_id": str,
    "timestamp": str,
    "refresh_interval_ms": int,
    "intervals_ms?": (int,),
    "health": {"score": int, "grade": str, "server_type": str, "components": ({"score": int, "max": int},), "timestamp": str},
    "collectors": [{"name": str, "component": str, "priority": str, "interval": str, "enabled": bool}],
    "system_specs?": [METRIC],
}


def test_a_reader_of_the_reference_reads_our_directory(tmp_path: Path) -> None:
    wrote(tmp_path)
    strict(json.loads((tmp_path / "snapshot_cpu.json").read_text()), COMP)
    strict(json.loads((tmp_path / "snapshot.json").read_text()), GLOBAL)


def test_the_strict_reader_would_notice() -> None:
    with pytest.raises(AssertionError, match="missing"):
        strict({"component": "cpu"}, COMP)
    with pytest.raises(AssertionError, match="value"):
        strict({"component": "a", "name": "b", "value": None, "unit": "", "timestamp": ""}, METRIC)
