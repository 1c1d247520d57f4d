"""Whatever is damaged in a state directory is found, named and mended, and nothing else is touched."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.main import main
from nodeproof.host.locks import DirectoryLock
from nodeproof.host.node_key import NodeKey
from nodeproof.host.signing_key import SigningKey
from nodeproof.model.job import Report, Status
from nodeproof.runs.store import RunStore, StoreLimits
from nodeproof.stress.baselines import BaselineStore, Sample
from nodeproof.stress.report_files import ReportFiles
from support.stored_runs import stored_run

_LINE = b'{"component":"cpu","name":"usage","value":1.0,"unit":"%"}\n'


class State:
    """A state directory with something in every store."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys
        self.runs = [stored_run(str(home), at=1000.0 + number) for number in range(3)]
        key = NodeKey(str(home))
        self.baseline = home / "stress" / "baselines" / "stream-abc.json"
        sample = Sample(value=1.0, at=1.0, run_id="r", environment="e")
        BaselineStore(str(self.baseline.parent), key).add("stream", "abc", "triad", sample)
        self.report = home / "stress" / "stress-latest.json"
        report = Report(job_id="one", platform="linux", status=Status.HEALTHY, benchmarks=[])
        ReportFiles(str(self.report)).archive(report)
        ReportFiles(str(self.report)).store(report)
        self.data = home / "cpu_2026-11-30.jsonl"
        self.data.write_bytes(_LINE * 3)
        self.packed = home / "cpu_2026-11-29.1.jsonl.gz"
        self.packed.write_bytes(gzip.compress(_LINE * 50))
        self.faults = home / "faults"
        (self.faults / "deliveries").mkdir(parents=True)
        self.log = self.faults / "events-000000000001.jsonl"
        self.log.write_bytes(b"")
        self.audit = home / "web-audit.jsonl"
        self.audit.write_bytes(b'{"at":"x"}\n')

    def run(self, *words: str) -> tuple[int, list[dict[str, str]]]:
        """Exit code and problems of a command."""
        code = main(["state", *words, "-o", "json"], {"NODEPROOF_DATA_DIR": str(self.home)})
        return code, json.loads(self._capsys.readouterr().out)["problems"]


@pytest.fixture
def state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> State:
    """One in good order."""
    return State(tmp_path / "state", capsys)


def test_a_state_in_good_order_has_no_problem(state: State) -> None:
    assert state.run("check", "--deep") == (0, [])
    assert state.run("repair", "--deep") == (0, [])


def _spoil_run(state: State) -> Path:
    (state.runs[0] / "record.json").chmod(0o640)
    state.runs[0].chmod(0o750)
    (state.runs[0] / "record.json").unlink()
    return state.runs[0]


def _tamper_with_run(state: State) -> Path:
    raw = state.runs[1] / "files" / "raw.txt"
    raw.chmod(0o640)
    raw.write_text("RAW", "utf-8")
    return state.runs[1]


def _spoil_index(state: State) -> Path:
    index = state.home / "runs" / ".index.sqlite3"
    index.write_bytes(b"SQLite format 3\0" + b"\xff" * 4000)
    return index


def _forget_index(state: State) -> Path:
    index = state.home / "runs" / ".index.sqlite3"
    index.unlink()
    return index


def _written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _linked(path: Path) -> Path:
    path.unlink(missing_ok=True)
    path.symlink_to("/etc/passwd")
    return path


SPOILT: dict[str, tuple[str, Callable[[State], Path]]] = {
    "record gone": ("runs", _spoil_run),
    "file changed": ("runs", _tamper_with_run),
    "index damaged": ("runs", _spoil_index),
    "index gone": ("runs", _forget_index),
    "baseline of no form": ("baselines", lambda state: _written(state.baseline, b"{")),
    "baseline forged": ("baselines", lambda state: _written(state.baseline, state.baseline.read_bytes().replace(b"1.0", b"9.0"))),
    "report": ("stress reports", lambda state: _written(state.report, b"[1]")),
    "history": ("stress reports", lambda state: _written(state.home / "stress" / "stress-history.json", b'[{"x":1}]')),
    "lines": ("samples", lambda state: _written(state.data, _LINE + b"\x00\x00\n" + _LINE + b'{"component"')),
    "packed": ("samples", lambda state: _written(state.packed, state.packed.read_bytes()[:-6])),
    "active": ("faults", lambda state: _written(state.faults / "active.json", b"nonsense")),
    "log": ("fault log", lambda state: _written(state.log, b"nonsense\n")),
    "subscriptions": ("subscriptions", lambda state: _written(state.faults / "subscriptions.json", b"\xff")),
    "delivery": ("deliveries", lambda state: _written(state.faults / "deliveries" / "a.json", b"[]")),
    "dead letters": ("deliveries", lambda state: _written(state.faults / "deliveries" / "a.dead.json", b"{}")),
    "audit": ("audit log", lambda state: _written(state.audit, b'{"at":"x"}\nhalf a li')),
    "form": ("form", lambda state: _written(state.home / "state.json", b"??")),
    "link in place of lines": ("samples", lambda state: _linked(state.data)),
    "link in place of a document": ("deliveries", lambda state: _linked(state.faults / "deliveries" / "b.json")),
    "leftover": ("leftovers", lambda state: _written(state.home / "stress" / ".x.4194999-1.np-tmp", b"x")),
}


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_damaged_is_named_and_mended_and_nothing_is_lost(name: str, state: State) -> None:
    store, spoil = SPOILT[name]
    place = spoil(state)
    files = [path for path in state.home.rglob("*") if path.is_file() and not path.is_symlink()]
    before = {path: path.read_bytes() for path in files if place not in {path, *path.parents}}

    code, problems = state.run("check", "--deep")
    assert code == 1
    assert store in {problem["store"] for problem in problems}
    assert any(str(place) in problem["path"] or problem["path"] in str(place) for problem in problems)

    code, done = state.run("repair", "--deep")
    assert (code, [problem["path"] for problem in done]) == (0, [problem["path"] for problem in problems])
    assert state.run("check", "--deep") == (0, [])
    index = str(state.home / "runs" / ".index.sqlite3")
    changed = [path for path, content in before.items() if not str(path).startswith(index) and path.read_bytes() != content]
    assert changed == []


def test_lines_that_can_be_read_stay_where_they_are(state: State) -> None:
    SPOILT["lines"][1](state)

    state.run("repair")

    assert state.data.read_bytes() == _LINE * 2
    aside = next(state.home.glob("cpu_2026-11-30.jsonl.bad-*"))
    assert aside.read_bytes() == b'\x00\x00\n{"component"'


def test_the_rebuilt_index_lists_every_run(state: State) -> None:
    SPOILT["index damaged"][1](state)

    state.run("repair")

    listed = {run.run_id for run in RunStore(str(state.home)).history()}
    assert listed == {path.name for path in state.runs}


def test_a_run_that_was_changed_is_set_aside_with_all_its_files(state: State) -> None:
    place = _tamper_with_run(state)

    _, done = state.run("repair", "--deep")

    aside = state.home / "runs" / ".damaged" / place.name
    assert done[0]["repair"] == f"set aside as {aside}"
    assert (aside / "files" / "raw.txt").read_text("utf-8") == "RAW"


def test_what_the_daemon_writes_is_left_alone_while_it_runs(state: State) -> None:
    SPOILT["lines"][1](state)
    lock = DirectoryLock(str(state.home / "snapshot"))
    lock.acquire()
    try:
        code, done = state.run("repair")
    finally:
        lock.release()

    assert code == 1
    assert done[0]["repair"] == "nothing: the daemon writes there; stop it, then repair"
    assert state.data.read_bytes().startswith(_LINE + b"\x00\x00\n")


def test_only_a_person_can_mend_a_key_that_others_may_read(state: State) -> None:
    os.chmod(state.home / "identity" / "node.key", 0o644)

    code, done = state.run("repair")

    assert code == 1
    assert "chmod 600 it" in " ".join(problem["what"] for problem in done)
    assert {problem["repair"] for problem in done if problem["store"] == "key of the node"} == {"nothing: a person must look"}


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b""), lambda path: path.chmod(0o644)])
def test_a_key_pair_of_no_use_is_named(state: State, damage: Callable[[Path], None]) -> None:
    key = SigningKey(str(state.home))
    assert key.public
    assert state.run("check") == (0, [])
    damage(Path(key.path))

    code, (problem,) = state.run("check")

    assert (code, problem["store"], problem["path"]) == (1, "key of the node", key.path)


@pytest.mark.parametrize("words", [("--rate", "0"), ("--rate", "-1"), ("--rate", "nan"), ("--most", "0"), ("--most", "-1")])
def test_pruning_wants_numbers_that_can_be_kept(state: State, words: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["state", "prune", *words], {"NODEPROOF_DATA_DIR": str(state.home)}) == 2
    assert f"{words[0]} {words[1]}: expected" in capsys.readouterr().err


def test_pruning_takes_the_oldest_and_only_so_many(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    store = RunStore(str(state.home), StoreLimits(max_runs=1))

    assert store.prune(1) == 1
    assert [path.name for path in state.runs if path.exists()] == [state.runs[1].name, state.runs[2].name]
    assert store.prune(10) == 1
    assert store.prune(10) == 0, "the run stored last never goes"
    assert main(["state", "prune", "--rate", "1000"], {"NODEPROOF_DATA_DIR": str(state.home)}) == 0
    assert "0 runs beyond the limits were removed" in capsys.readouterr().out


def test_a_store_far_beyond_its_limits_is_brought_down_a_little_with_each_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodeproof.runs.store._REMOVED_AT_ONCE", 2)
    for number in range(6):
        stored_run(str(tmp_path), at=float(number))
    for left in (5, 4, 3):
        stored_run(str(tmp_path), at=float(100 - left), limits=StoreLimits(max_runs=3))
        assert len(RunStore(str(tmp_path)).history()) == left


def test_people_get_a_table(state: State, capsys: pytest.CaptureFixture[str]) -> None:
    SPOILT["report"][1](state)

    assert main(["state", "check"], {"NODEPROOF_DATA_DIR": str(state.home)}) == 1

    text = capsys.readouterr().out
    assert "stress reports" in text
    assert f"stress reports: {state.report}" in text
    assert "repair: set it aside under another name" in text


def test_report_entries_that_can_be_read_survive(state: State) -> None:
    history = state.home / "stress" / "stress-history.json"
    entries = msgspec.json.decode(history.read_bytes())
    history.write_bytes(msgspec.json.encode([*entries, {"x": 1}]))

    state.run("repair")

    assert [report.job_id for report in ReportFiles(str(state.report)).history(10)] == ["one"]
