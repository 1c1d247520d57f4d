import json
from pathlib import Path

import pytest

from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.host.commands import CommandResult
from nodeproof.host.filesystems import Space
from nodeproof.host.recorded import ManualClock, RecordedCommands, recorded_machine


def test_recorded_space_and_absences(tmp_path: Path) -> None:
    table = {"/": [4096, 100, 50, 40, 10, 5], "/dead": ["stale", "no answer"], "/\ufffd": [512, 1, 1, 1, 0, 0]}
    (tmp_path / "statvfs.json").write_text(json.dumps(table), encoding="utf-8")
    files = recorded_machine(str(tmp_path)).files
    assert files.statvfs("/") == Space(4096, 100, 50, 40, 10, 5)
    assert files.statvfs("/\udcff").block_bytes == 512
    with pytest.raises(NoData, match="/dead: no answer") as caught:
        files.statvfs("/dead")
    assert caught.value.state is Absence.STALE
    with pytest.raises(NoData, match="no numbers were recorded"):
        files.statvfs("/other")


def test_recorded_commands() -> None:
    failure = CommandError("slow", CommandFailure.TIMED_OUT, "gave no answer")
    result = CommandResult(("odd",), 3, b"", b"\n oops\n", 0.5, truncated=False)
    commands = RecordedCommands({"tool -a": b"text", "slow": failure, "odd": result})
    assert commands.find("tool") == "/usr/bin/tool"
    assert commands.find("other") is None
    assert commands.run(["tool", "-a"], deadline_s=1).stdout == b"text"
    assert commands.run(["odd"], deadline_s=1, subject="sda").first_error_line() == " oops"
    with pytest.raises(CommandError) as caught:
        commands.run(["slow"], deadline_s=1)
    assert caught.value.failure is CommandFailure.TIMED_OUT
    with pytest.raises(CommandError, match="not found: tool -b"):
        commands.run(["tool", "-b"], deadline_s=1)
    assert commands.asked == ["tool -a", "odd", "slow", "tool -b"]
    commands.close()


def test_a_manual_clock_moves_when_told() -> None:
    clock = ManualClock(wall_s=100.0, mono_s=5.0)
    clock.sleep(2.5)
    assert clock.now() == (102.5, 7.5)
