"""The limits of rooms are held by a report of known numbers."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_coverage", ROOT / "tools" / "check_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def file(lines: int, missing: list[int], branches: int = 0, untaken: list[list[int]] | None = None) -> dict[str, Any]:
    untaken = untaken or []
    return {
        "missing_lines": missing,
        "missing_branches": untaken,
        "summary": {
            "covered_lines": lines - len(missing),
            "num_statements": lines,
            "covered_branches": branches - len(untaken),
            "num_branches": branches,
        },
    }


def report(**files: dict[str, Any]) -> dict[str, Any]:
    return {
        "meta": {"branch_coverage": True},
        "files": {f"src/nodeproof/{name.replace('__', '/')}.py": found for name, found in files.items()},
    }


def test_rooms_and_their_limits(check: ModuleType) -> None:
    found = check.rooms(
        report(
            sources__proc_stat=file(10, [], 4),
            stress__parsers__hpl=file(5, []),
            stress__manager=file(5, []),
            errors=file(3, []),
            clock=file(1, []),
        )
        | {}
    )
    assert [(room.name, room.limit_percent, room.reached, room.all) for room in found] == [
        ("base", 95.0, 4, 4),
        ("sources", 100.0, 14, 14),
        ("stress", 95.0, 5, 5),
        ("stress/parsers", 100.0, 5, 5),
    ]
    assert check.broken(found) == []


def test_one_branch_is_enough_where_everything_must_be_run(check: ModuleType) -> None:
    found = check.rooms(report(health__rules=file(1000, [], 500, [[12, -1]]), sinks__jsonl=file(100, [7, 8, 9, 10], 0)))
    assert check.broken(found) == [
        "health: 99.93 % of lines and branches are run, 100 % must be",
        "  src/nodeproof/health/rules.py: 12->end",
    ]


def test_a_room_below_95_names_its_gaps(check: ModuleType) -> None:
    found = check.rooms(report(sinks__jsonl=file(100, list(range(1, 7)), 0), sinks__latest=file(20, [], 0)))
    assert check.broken(found) == []
    found = check.rooms(report(sinks__jsonl=file(100, list(range(1, 15)), 0), sinks__latest=file(20, [], 0)))
    assert check.broken(found) == [
        "sinks: 88.33 % of lines and branches are run, 95 % must be",
        "  src/nodeproof/sinks/jsonl.py: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 2 more",
    ]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "no report to judge"),
        (b'{"meta": {"branch_coverage": false}, "files": {}}', "made without branches"),
        (b'{"meta": {"branch_coverage": true}, "files": {}}', "holds nothing of src/nodeproof/"),
    ],
)
def test_a_report_of_no_use_is_no_pass(
    check: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
    complaint: str,
) -> None:
    path = tmp_path / "coverage.json"
    path.write_bytes(content)
    monkeypatch.setattr(sys, "argv", ["check_coverage.py", str(path)])
    assert check.main() == 2
    assert complaint in capsys.readouterr().err


def test_a_good_report_is_passed_in_silence(
    check: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps(report(model__metric=file(3, []))), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["check_coverage.py", str(path)])
    assert check.main() == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(sys, "argv", ["check_coverage.py", str(path), "--table"])
    assert check.main() == 0
    assert capsys.readouterr().out == "model             100.00 % of      3, at least 100 %\n"
