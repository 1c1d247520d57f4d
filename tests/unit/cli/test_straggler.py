"""``nodeproof straggler``: the verdict on KPI files of a directory, ours or the reference's."""

import json
from pathlib import Path

import pytest

from nodeproof.cli.main import main

HOME = {"NODEPROOF_CONFIG": "/dev/null"}


def _write(folder: Path, slow_mhz: float, minutes: int = 6) -> str:
    lines = []
    for second in range(0, minutes * 60 + 10, 10):
        vals = {
            str(card): {"temp": 60.0, "power": 350.0, "aicore_freq": slow_mhz if card == 2 else 1800.0, "aicore_util": 95.0}
            for card in range(8)
        }
        lines.append(json.dumps({"ts": 1_790_000_000 + second, "vals": vals}))
        lines.append(json.dumps({"ts": 1_790_000_000 + second, "cpu_avg": {"0": "12"}}))
    (folder / "straggler_kpi_2026-09-21.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return str(folder)


def test_a_slow_card_is_named_with_its_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = _write(tmp_path, 1200.0)
    assert main(["straggler", "--dir", folder], HOME) == 1
    out = capsys.readouterr().out
    assert out.startswith("found: clock of the AI cores of npu 2 is 1200, that of its peers 1800\n")
    assert "npu 2" in out.split("Windows\n")[1]
    assert main(["straggler", "--dir", folder, "-o", "json"], HOME) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["devices"], found["samples"]) == ("found", 8, 37)
    assert found["stragglers"] == [
        {"device": "npu 2", "metric": "aicore_freq", "value": 1200.0, "peers": 1800.0, "robust_z": 42.0, "windows": 5}
    ]


def test_a_sound_node_and_one_that_cannot_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["straggler", "--dir", _write(tmp_path, 1800.0)], HOME) == 0
    assert capsys.readouterr().out.startswith("none: 8 devices at work do alike\n")
    assert main(["straggler", "--dir", _write(tmp_path, 1200.0, minutes=2)], HOME) == 3
    assert capsys.readouterr().out.startswith("unknown: 2 of the 3 windows")


def test_a_directory_without_files_names_the_remedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["straggler", "--dir", str(tmp_path)], HOME) == 2
    assert "switch straggler_output.enabled on" in capsys.readouterr().err


@pytest.mark.parametrize("days", ["-5", "0", "3661"])
def test_a_number_of_days_that_is_none_is_refused(tmp_path: Path, days: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``--days -5`` read all files but the newest five."""
    assert main(["straggler", "--dir", _write(tmp_path, 1200.0), "--days", days], HOME) == 2
    assert capsys.readouterr().err == f"nodeproof: --days {days} is not within 1 and 3660\n"
