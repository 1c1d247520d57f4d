"""The owner of a run is killed at every point; nothing of what the run had said is lost, and the next run is not held up."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nodeproof.model.run import RunStatus, Stage, VerdictKind
from nodeproof.runs.store import RunStore
from support.runs import Bench, script

ROOT = Path(__file__).parents[2]
BEFORE_THE_END = [
    ("build", Stage.START),
    ("hardware", Stage.HARDWARE),
    ("coherence", Stage.COHERENCE),
    ("load", Stage.LOAD),
    ("configure", Stage.CONFIGURE),
    ("next", Stage.RUN),
    ("after", Stage.AFTER),
]


def kill_at(root: Path, point: str) -> None:
    """Start a run, wait until it stands at ``point``, and kill its process."""
    argv = [sys.executable, str(ROOT / "tests" / "support" / "run_victim.py"), str(root), point]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT / 'tests'}"}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment, text=True) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == f"{point}\n"
        victim.send_signal(signal.SIGKILL)
        assert victim.wait(10) == -signal.SIGKILL


def next_run_is_well(root: Path) -> None:
    ran = Bench(root).run(script([]))
    assert ran.record.status is RunStatus.COMPLETED
    assert Bench(root).store.load(ran.record.run_id).problems == ()
    assert os.listdir(root / "runs" / ".open") == []


@pytest.mark.parametrize(("point", "stage"), BEFORE_THE_END)
def test_killed_before_the_end_is_crashed_in_its_stage(tmp_path: Path, point: str, stage: Stage) -> None:
    kill_at(tmp_path, point)
    store = RunStore(str(tmp_path))
    assert store.history() == []
    (run_id,) = store.recover()
    stored = store.load(run_id)
    assert (stored.record.status, stored.record.interrupted) == (RunStatus.CRASHED, stage)
    assert stored.record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert stored.record.params == {"steps": "2"}
    assert stored.messages()
    next_run_is_well(tmp_path)


@pytest.mark.parametrize("point", ["cleanup", "hashing", "manifest"])
def test_killed_after_the_terminal_frame_keeps_it(tmp_path: Path, point: str) -> None:
    kill_at(tmp_path, point)
    store = RunStore(str(tmp_path))
    (run_id,) = store.recover()
    record = store.load(run_id).record
    assert (record.status, record.verdict.kind) == (RunStatus.COMPLETED, VerdictKind.PASS)
    assert record.frame.metrics == {"rate": 2.5}
    assert record.interrupted is (Stage.CLEANUP if point == "cleanup" else None)
    next_run_is_well(tmp_path)


def test_killed_between_rename_and_index_is_found(tmp_path: Path) -> None:
    kill_at(tmp_path, "renamed")
    store = RunStore(str(tmp_path))
    assert store.recover() == []
    (run,) = store.history()
    assert store.load(run.run_id).record.status is RunStatus.COMPLETED
    next_run_is_well(tmp_path)


def test_killed_before_anything_was_written_is_set_aside(tmp_path: Path) -> None:
    kill_at(tmp_path, "claim")
    store = RunStore(str(tmp_path))
    assert store.recover() == []
    assert store.history() == []
    assert len(os.listdir(tmp_path / "runs" / ".damaged")) == 1
    next_run_is_well(tmp_path)
