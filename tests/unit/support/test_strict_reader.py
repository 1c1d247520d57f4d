"""The strict reader itself: it takes what the format says and names everything else."""

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.strict_reader import Deduction, StrictError, read_component, read_directory, read_global

_AT = "2026-11-30T21:49:18.514513183Z"
_METRIC: dict[str, Any] = {
    "component": "cpu",
    "name": "usage",
    "value": 9.56,
    "unit": "%",
    "labels": {"core": "total"},
    "timestamp": "2026-11-30T22:49:18.5+01:00",
}
_CPU: dict[str, Any] = {
    "component": "cpu",
    "timestamp": _AT,
    "metrics": [_METRIC, {"component": "cpu", "name": "load", "value": 1, "unit": "", "timestamp": _AT}],
    "history": {"cpu_usage": [9.56, 8, -1.5], "cpu_power": []},
    "specs": [_METRIC | {"name": "core_num", "value": 2}],
}
_GLOBAL: dict[str, Any] = {
    "session_id": "1796075331",
    "timestamp": _AT,
    "refresh_interval_ms": 3000,
    "intervals_ms": {"cpu": 3000},
    "health": {
        "score": 97,
        "grade": "Excellent",
        "server_type": "cpu_only",
        "components": {
            "cpu": {"score": 25, "max": 25, "deductions": None},
            "disk": {"score": 22, "max": 30, "deductions": [{"rule": "io_wait>20%", "penalty": 4.5}]},
        },
        "timestamp": _AT,
    },
    "collectors": [{"name": "cpu", "component": "cpu", "priority": "High", "interval": "1m30s", "enabled": True}],
    "system_specs": [_METRIC | {"component": "system", "name": "os_info", "value": 1}],
}


def _write(folder: Path, cpu: object = _CPU, overall: object = _GLOBAL) -> Path:
    (folder / "snapshot_cpu.json").write_text(json.dumps(cpu))
    (folder / "snapshot.json").write_text(json.dumps(overall))
    return folder


def _without(tree: dict[str, Any], path: str) -> dict[str, Any]:
    """``tree`` without the key at ``path`` (``health.score``, ``metrics.0.unit``)."""
    return _changed(tree, path, lambda holder, key: holder.pop(key))


def _with(tree: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    return _changed(tree, path, lambda holder, key: holder.__setitem__(key, value))


def _changed(tree: dict[str, Any], path: str, change: Callable[[Any, Any], object]) -> dict[str, Any]:
    copied = copy.deepcopy(tree)
    holder: Any = copied
    *way, last = path.split(".")
    for step in way:
        holder = holder[int(step)] if isinstance(holder, list) else holder[step]
    change(holder, last)
    return copied


def test_a_good_directory_is_read_with_its_types(tmp_path: Path) -> None:
    found = read_directory(_write(tmp_path))
    assert found.overall.health.components["disk"].deductions == [Deduction("io_wait>20%", 4.5)]
    assert found.overall.health.components["cpu"].deductions == []
    assert found.overall.timestamp == datetime(2026, 11, 30, 21, 49, 18, 514513, UTC)
    cpu = found.components["cpu"]
    assert (cpu.metrics[0].value, cpu.metrics[0].labels, cpu.metrics[1].labels) == (9.56, {"core": "total"}, {})
    assert cpu.metrics[0].timestamp == datetime(2026, 11, 30, 21, 49, 18, 500000, UTC)
    assert cpu.history == {"cpu_usage": [9.56, 8.0, -1.5], "cpu_power": []}
    assert found.overall.system_specs[0].component == "system"


def test_what_may_be_left_out(tmp_path: Path) -> None:
    cpu = _without(_CPU, "specs")
    overall = _without(_without(_GLOBAL, "system_specs"), "intervals_ms")
    found = read_directory(_write(tmp_path, cpu, overall))
    assert (found.components["cpu"].specs, found.overall.system_specs, found.overall.intervals_ms) == ([], [], {})


def test_unknown_keys_are_let_pass(tmp_path: Path) -> None:
    cpu = _CPU | {"schema": 1, "missing": [{"state": "unknown"}]}
    overall = _with(_GLOBAL, "health.coverage", {"cpu": 0.5}) | {"stale_after_ms": 9000}
    assert read_directory(_write(tmp_path, cpu, overall)).components["cpu"].component == "cpu"


_CPU_KEYS = ["component", "timestamp", "metrics", "history"]
_CPU_KEYS += [f"metrics.0.{key}" for key in ("component", "name", "value", "unit", "timestamp")]
_GLOBAL_KEYS = ["session_id", "timestamp", "refresh_interval_ms", "health", "collectors"]
_GLOBAL_KEYS += [f"health.{key}" for key in ("score", "grade", "server_type", "components", "timestamp")]
_GLOBAL_KEYS += [f"health.components.cpu.{key}" for key in ("score", "max", "deductions")]
_GLOBAL_KEYS += ["health.components.disk.deductions.0.rule", "health.components.disk.deductions.0.penalty"]
_GLOBAL_KEYS += [f"collectors.0.{key}" for key in ("name", "component", "priority", "interval", "enabled")]


@pytest.mark.parametrize("path", _CPU_KEYS)
def test_a_missing_key_of_a_component_is_named(tmp_path: Path, path: str) -> None:
    with pytest.raises(StrictError, match=f"'{path.rpartition('.')[2]}' is missing"):
        read_directory(_write(tmp_path, cpu=_without(_CPU, path)))


@pytest.mark.parametrize("path", _GLOBAL_KEYS)
def test_a_missing_key_of_the_whole_is_named(tmp_path: Path, path: str) -> None:
    with pytest.raises(StrictError, match=f"'{path.rpartition('.')[2]}' is missing"):
        read_directory(_write(tmp_path, overall=_without(_GLOBAL, path)))


@pytest.mark.parametrize("path", [*_CPU_KEYS, "metrics.0.labels", "metrics.0.labels.core", "history.cpu_usage", "specs"])
def test_null_is_never_a_value_in_a_component(tmp_path: Path, path: str) -> None:
    with pytest.raises(StrictError, match="null is not"):
        read_directory(_write(tmp_path, cpu=_with(_CPU, path, None)))


@pytest.mark.parametrize("path", [key for key in _GLOBAL_KEYS if not key.endswith("cpu.deductions")] + ["intervals_ms"])
def test_null_is_never_a_value_in_the_whole(tmp_path: Path, path: str) -> None:
    with pytest.raises(StrictError, match="null is not"):
        read_directory(_write(tmp_path, overall=_with(_GLOBAL, path, None)))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("metrics.0.value", "9.56", "a finite number"),
        ("metrics.0.value", True, "a finite number"),
        ("metrics.0.component", "disk", "one of cpu"),
        ("metrics.0.name", "", "not empty"),
        ("metrics.0.labels", {}, "left out"),
        ("metrics.0.labels.core", 1, "a string"),
        ("metrics.0.timestamp", "2026-11-30T21:49:18", "RFC 3339"),
        ("metrics.0.timestamp", "2026-13-30T21:49:18Z", "a moment that exists"),
        ("metrics.0", [], "an object"),
        ("metrics", {}, "a list"),
        ("component", "memory", "one of cpu"),
        ("history", [], "an object"),
        ("history.cpu_usage", [1, "2"], "a finite number"),
        ("history.cpu_usage", [0] * 61, "at most 60 points"),
        ("history.disk_iops", [1], "a series of cpu"),
        ("specs", [], "left out"),
    ],
)
def test_wrong_values_of_a_component(tmp_path: Path, path: str, value: object, expected: str) -> None:
    changed = _changed(_CPU, path, lambda holder, key: holder.__setitem__(int(key) if isinstance(holder, list) else key, value))
    with pytest.raises(StrictError, match=expected):
        read_directory(_write(tmp_path, cpu=changed))


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("session_id", 1796075331, "a string"),
        ("session_id", "now", "seconds since the epoch"),
        ("refresh_interval_ms", 3000.5, "an integer"),
        ("refresh_interval_ms", True, "an integer"),
        ("intervals_ms", {}, "left out"),
        ("intervals_ms.cpu", "3s", "an integer"),
        ("health.server_type", "desktop", "one of accelerated, cpu_only"),
        ("health.score", 97.0, "an integer"),
        ("health.components.disk.deductions.0.penalty", "4", "a finite number"),
        ("collectors.0.enabled", 1, "true or false"),
        ("collectors.0.interval", "3 seconds", "a duration"),
        ("collectors.0.priority", "high", "one of High, Low, Medium"),
    ],
)
def test_wrong_values_of_the_whole(tmp_path: Path, path: str, value: object, expected: str) -> None:
    changed = _changed(
        _GLOBAL, path, lambda holder, key: holder.__setitem__(int(key) if isinstance(holder, list) else key, value)
    )
    with pytest.raises(StrictError, match=expected):
        read_directory(_write(tmp_path, overall=changed))


@pytest.mark.parametrize("text", ["", "{", "[]", '{"value": NaN}', '{"value": 1, "value": 2}', "null"])
def test_text_that_is_no_snapshot(tmp_path: Path, text: str) -> None:
    (tmp_path / "snapshot.json").write_text(text)
    with pytest.raises(StrictError, match=r"snapshot\.json"):
        read_global(tmp_path / "snapshot.json")


def test_a_file_of_no_component(tmp_path: Path) -> None:
    (tmp_path / "snapshot_toaster.json").write_text(json.dumps(_CPU))
    with pytest.raises(StrictError, match="'toaster' is no component"):
        read_component(tmp_path / "snapshot_toaster.json")


def test_every_problem_of_every_file_is_told_with_its_place(tmp_path: Path) -> None:
    cpu = _with(_with(_CPU, "metrics.0.value", None), "metrics.1.unit", 3)
    (tmp_path / "snapshot_disk.json").write_text("{")
    with pytest.raises(StrictError) as caught:
        read_directory(_write(tmp_path, cpu, _without(_GLOBAL, "timestamp")))
    assert caught.value.problems[:3] == [
        "snapshot.json: key 'timestamp' is missing",
        "snapshot_cpu.json.metrics[0].value: null is not a finite number",
        "snapshot_cpu.json.metrics[1].unit: 3 is not a string",
    ]
    assert caught.value.problems[3].startswith("snapshot_disk.json: ")


def test_a_directory_without_the_whole_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StrictError, match=r"snapshot\.json"):
        read_directory(tmp_path)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*_CPU, *_METRIC]), inner, max_size=6),
    max_leaves=12,
)


@given(_JSON)
def test_any_json_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: object) -> None:
    path = tmp_path_factory.getbasetemp() / "snapshot_cpu.json"
    path.write_text(json.dumps(value))
    try:
        assert read_component(path).component == "cpu"
    except StrictError as error:
        assert error.problems
