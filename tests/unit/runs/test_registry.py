"""Benchmarks of installed distributions, and rivals for one name."""

import sys
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import RunError
from nodeproof.runs.registry import ENTRY_POINT_GROUP, Registry, discover
from support.runs import script

EXAMPLE = str(Path(__file__).parents[2] / "fixtures" / "packages" / "example_benchmark")


def package(folder: Path, name: str, body: str, points: str) -> str:
    (folder / f"{name}.py").write_text(body)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\n{points}\n")
    return str(folder)


def test_example_package_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    registry = discover([EXAMPLE])
    assert [descriptor.id for descriptor in registry] == ["example-hash"]
    assert len(registry) == 1
    assert registry.problems == []
    assert registry.origin("example-hash") == "example_benchmark-1.0.dist-info"
    assert registry.get("example-hash").build().metadata().version == "1.0"


def test_everything_that_is_installed_here_can_be_had() -> None:
    assert discover().problems == []


def test_two_with_one_id_are_refused_by_name() -> None:
    registry = Registry()
    first = msgspec.structs.replace(script([]), aliases=("old-name",))
    registry.add(first, "ours-1.dist-info")
    for rival in (script([]), msgspec.structs.replace(script([]), id="other", aliases=("old-name",))):
        with pytest.raises(RunError, match=r"theirs-1\.dist-info offers it, but ours-1\.dist-info has that name already"):
            registry.add(rival, "theirs-1.dist-info")
    assert [descriptor.id for descriptor in registry] == ["scripted"]
    assert registry.get("old-name") is first
    with pytest.raises(RunError, match="there is no benchmark 'other'; there are scripted"):
        registry.get("other")
    with pytest.raises(RunError, match="there are none"):
        Registry().get("x")
    with pytest.raises(RunError, match="has an alias twice"):
        Registry().add(msgspec.structs.replace(script([]), aliases=("scripted",)), "x")


def test_what_cannot_be_had_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLE)
    for name in ("broken", "odd", "twin", "many"):
        (tmp_path / name).mkdir()
    folders = [
        EXAMPLE,
        package(tmp_path / "broken", "np_broken", "raise OSError('no library')", "broken = np_broken:D"),
        package(tmp_path / "odd", "np_odd", "D = 5", "odd = np_odd:D"),
        package(tmp_path / "twin", "np_twin", "from example_benchmark import DESCRIPTOR as D", "example = np_twin:D"),
        package(tmp_path / "many", "np_many", "from support.runs import script\nD = (script([]),)", "many = np_many:D"),
    ]
    for folder in folders:
        monkeypatch.syspath_prepend(folder)
    registry = discover(folders)
    assert [descriptor.id for descriptor in registry] == ["example-hash", "scripted"]
    assert len(registry.problems) == 3
    broken, odd, twin = registry.problems
    assert "np_broken-1.0.dist-info) cannot be loaded: no library" in broken
    assert "is a int, expected a Descriptor" in odd
    assert "np_twin-1.0.dist-info offers it, but example_benchmark-1.0.dist-info has that name already" in twin
    for name in ("np_broken", "np_odd", "np_twin", "np_many", "example_benchmark"):
        sys.modules.pop(name, None)
