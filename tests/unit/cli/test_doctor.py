"""``nodeproof doctor`` as it is printed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeproof.cli.commands import doctor
from nodeproof.cli.main import main
from nodeproof.daemon.circumstances import Check, Standing
from nodeproof.daemon.once import Observation
from nodeproof.errors import Absence
from nodeproof.model.metric import Missing
from support.node import healthy
from support.observed import HOSTILE, hostile_look, look_at, steers

Show = Callable[[Observation, Check], None]
Captured = pytest.CaptureFixture[str]
WELL = Check("configuration", Standing.OK, "built-in defaults")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    return {"NODEPROOF_DATA_DIR": str(tmp_path), "NODEPROOF_CONFIG": "/dev/null"}


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Show:
    """Lets the command see and find what the test says."""

    def let(seen: Observation, check: Check) -> None:
        monkeypatch.setattr(doctor, "observe_once", lambda _, __: seen)
        monkeypatch.setattr(doctor, "circumstances", lambda *_: [check])

    return let


def test_everything_that_applies_can_be_read(show: Show, home: dict[str, str], capsys: Captured) -> None:
    show(look_at(healthy()), WELL)
    assert main(["doctor"], home) == 0
    out = capsys.readouterr().out
    assert "configuration  ok     built-in defaults" in out
    assert "100% of the rules that apply here could be judged." in out
    assert "Everything that applies to this machine can be read." in out
    assert main(["doctor", "-o", "json"], home) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["everything_applicable_can_be_read"], found["causes"], found["points_blind"]) == (True, [], 0.0)


def test_one_bad_circumstance_is_enough(show: Show, home: dict[str, str], capsys: Captured) -> None:
    show(look_at(healthy()), Check("exporter", Standing.BAD, "127.0.0.1:1 is in use by x (pid 7)", "stop it"))
    assert main(["doctor"], home) == 1
    assert "exporter  bad    127.0.0.1:1 is in use by x (pid 7)  stop it" in capsys.readouterr().out
    show(look_at(healthy()), Check("daemon", Standing.NOTE, "absent", "nodeproof up"))
    assert main(["doctor"], home) == 0


def test_causes_with_remedy_and_cost(show: Show, home: dict[str, str], capsys: Captured) -> None:
    node = healthy()
    node.miss("memory", "usage", Absence.NO_PERMISSION, "/proc/meminfo: Permission denied")
    seen = look_at(node)
    stamp = seen.batches["cpu"].timestamp
    for look in (seen.first, seen.batches):
        look["cpu"].missing.append(Missing("cpu", "power", Absence.UNSUPPORTED, "no counter", timestamp=stamp))
        look["cpu"].missing.append(Missing("cpu", "forks", Absence.UNKNOWN, "not yet", timestamp=stamp))
        look["cpu"].missing.append(Missing("cpu", "energy", Absence.NOT_APPLICABLE, "a virtual machine", timestamp=stamp))
    show(seen, WELL)
    assert main(["doctor"], home) == 1
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    begin = lines.index("1. no_permission: /proc/meminfo: Permission denied")
    assert lines[begin + 1 : begin + 5] == [
        "Remedy:  do something",
        "Costs:   6.2 of 100 points of the score are blind; 1 rule and 1 metric in the dark",
        "Metrics: memory: usage",
        "Rules:   memory.usage",
    ]
    assert lines[begin + 6 : begin + 10] == [
        "2. unsupported: no counter",
        "Remedy:  none known on this kernel and hardware",
        "Costs:   no points of the score; 1 metric in the dark",
        "Metrics: cpu: power",
    ]
    assert "not yet (cpu.forks)" in lines
    assert lines[-1] == "1 metrics do not apply to this machine: a virtual machine."


def test_hostile_text_steers_no_terminal(show: Show, home: dict[str, str], capsys: Captured) -> None:
    show(hostile_look(), Check(HOSTILE, Standing.BAD, HOSTILE, HOSTILE))
    for output in ("table", "json"):
        assert main(["doctor", "-o", output], home) == 1
        out = capsys.readouterr().out
        assert "owned" in out
        assert not steers(out)
