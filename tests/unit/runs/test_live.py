"""How a run gets on is told in a file beside it, believed only of that run, and gone when it is over."""

import json
import os
import threading
import time
from pathlib import Path

import msgspec
import pytest

from nodeproof.model.live_run import LiveRun
from nodeproof.model.run import Stage, VerdictKind
from nodeproof.runs.headless import HeadlessOptions, RunReporter, run_blocking
from nodeproof.runs.live import RunTeller, read_live_run
from support.runs import Bench, Evidence, Scripted, script


def runs_of(folder: Path) -> str:
    return str(folder / "runs")


def test_a_run_tells_how_it_gets_on_until_it_is_over(tmp_path: Path) -> None:
    told: list[LiveRun] = []
    seen = threading.Event()

    def work(run: Scripted) -> object:
        if run.done == 1:
            run.given.status("half of it")
            run.given.progress(1, 2)
            seen.wait(10)
        return None

    class Watcher(RunReporter):
        def tick(self, live: object) -> None:
            del live
            found = [read_live_run(runs_of(tmp_path), path.stem) for path in tmp_path.glob("runs/.live/run-*.json")]
            if found and found[0] is not None and found[0].status:
                told.append(found[0])
                seen.set()

    bench = Bench(tmp_path, evidence=Evidence)
    outcome = run_blocking(
        bench.executor, script([], next=work), {}, Watcher(), options=HeadlessOptions(poll_s=0.02, probe_coherence=False)
    )
    assert outcome.record.verdict.kind is VerdictKind.PASS
    live = told[0]
    assert live.run_id == outcome.record.run_id
    assert (live.status, live.done, live.total, live.stage) == ("half of it", 1, 2, Stage.RUN)
    assert live.box is not None
    assert len(live.strip) >= 1
    assert os.listdir(tmp_path / "runs" / ".live") == []
    assert bench.store.load(outcome.record.run_id).problems == ()


def test_a_run_that_is_not_kept_tells_nobody(tmp_path: Path) -> None:
    options = HeadlessOptions(poll_s=0.02, probe_coherence=False, save=False)
    run_blocking(Bench(tmp_path).executor, script([]), {}, RunReporter(), options=options)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"[", b'{"run_id":"run-2","at":1,"elapsed_s":1,"stage":"run"}'])
def test_what_is_no_word_of_this_run_is_not_believed(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "runs" / ".live"
    folder.mkdir(parents=True)
    (folder / "run-1.json").write_bytes(content)
    assert read_live_run(runs_of(tmp_path), "run-1") is None
    assert read_live_run(runs_of(tmp_path), "run-3") is None


class Handle:
    """As much of a handle as a teller asks."""

    run_id = "run-7"
    stage = Stage.LOAD

    def live(self) -> None:
        return None


def test_what_dead_owners_left_is_removed_and_a_place_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / ".live"
    folder.mkdir(parents=True)
    for name, age_s in (("run-1.json", 1000.0), ("run-2.json", 1.0)):
        (folder / name).write_text("{}")
        os.utime(folder / name, (time.time() - age_s,) * 2)
    teller = RunTeller(runs_of(tmp_path))
    teller.tell(Handle())  # type: ignore[arg-type]  # a stand-in
    assert sorted(os.listdir(folder)) == ["run-2.json", "run-7.json"]
    live = msgspec.json.decode((folder / "run-7.json").read_bytes(), type=LiveRun)
    assert (live.stage, live.box, live.done) == (Stage.LOAD, None, None)
    assert json.loads((folder / "run-7.json").read_bytes())["schema"] == 1
    teller.forget()
    teller.forget()
    assert os.listdir(folder) == ["run-2.json"]
    (tmp_path / "file").write_text("")
    RunTeller(str(tmp_path / "file")).tell(Handle())  # type: ignore[arg-type]  # a stand-in
