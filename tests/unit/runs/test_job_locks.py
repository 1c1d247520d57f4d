"""The right to load the machine: one holder, and what a dead one left is ended before the next may begin."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from nodeproof.host.job_lock import HolderState, JobLock, probe_job_lock
from nodeproof.host.job_recovery import Fate, Recovery
from nodeproof.host.owner import this_process
from nodeproof.host.process_tree import TOKEN_VARIABLE
from nodeproof.model.process import Ended, EndKind, ProcessSight
from nodeproof.model.run import RunSource, RunStatus, VerdictKind
from nodeproof.runs import job_locks
from nodeproof.runs.job_locks import JobLocks, host_lock_path, report_lock_path
from nodeproof.runs.ports import Switches
from support.runs import NO_VALUES, Bench, script

DEAD = {"pid": 2**22 + 1, "start_ticks": 1, "boot_id": this_process().boot_id, "pid_namespace": this_process().pid_namespace}


def died(path: str, record: str, token: str = "ab" * 8) -> None:
    """A holder that was killed."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps({**DEAD, "token": token, "record": record}))


def ending(*survivors: ProcessSight) -> Ended:
    return Ended(
        kind=EndKind.OWNER_LOST,
        reason="its owner and its keeper were killed",
        duration_s=1.0,
        ending_s=1.0,
        forced=True,
        leftovers=len(survivors),
        survivors=survivors,
        empty=not survivors,
        evidence=(),
        output_bytes=0,
        output_kept_bytes=0,
    )


def test_both_or_none(tmp_path: Path) -> None:
    report = str(tmp_path / "reports" / "stress-latest.json")
    stranger = JobLock(report_lock_path(report))
    stranger.acquire("theirs", "")
    locks = JobLocks(str(tmp_path), report)
    holder = locks.acquire("ours")
    assert holder is not None
    assert holder.detail == f"{report_lock_path(report)} is held by process {os.getpid()}"
    assert probe_job_lock(host_lock_path(str(tmp_path))).state is HolderState.FREE, "the first was given back"
    stranger.release()
    assert locks.acquire("ours") is None
    assert {probe_job_lock(path).token for path in (host_lock_path(str(tmp_path)), report_lock_path(report))} == {"ours"}
    assert locks.holder().state is HolderState.LIVE
    assert locks.release() == ""
    assert locks.holder().state is HolderState.FREE


def test_what_a_dead_holder_left_and_nobody_can_end_keeps_the_next_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died(host_lock_path(str(tmp_path)), "/run/record")
    stuck = ProcessSight(4711, 1, "xhpl", "D")
    answers = [Recovery(Fate.SWEPT, "not all could be ended", ending(stuck)), Recovery(Fate.SWEPT, "", ending())]
    asked: list[tuple[str, str]] = []

    def recover(record: str, *, token: str) -> Recovery:
        asked.append((record, token))
        return answers.pop(0)

    monkeypatch.setattr(job_locks, "recover", recover)
    locks = JobLocks(str(tmp_path))
    holder = locks.acquire("ours")
    assert holder is not None
    assert "xhpl (4711, state D)" in holder.detail
    assert f"process {DEAD['pid']} held" in holder.detail
    left = probe_job_lock(host_lock_path(str(tmp_path)))
    assert (left.state, left.token, left.record) == (HolderState.DEAD, "ab" * 8, "/run/record"), "as it was found"
    assert locks.acquire("ours") is None, "it went away meanwhile"
    assert asked == [("/run/record", "ab" * 8)] * 2
    locks.release()


def test_an_owner_that_lives_without_its_lock_is_in_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died(host_lock_path(str(tmp_path)), "/run/record")
    monkeypatch.setattr(job_locks, "recover", lambda *_, **__: Recovery(Fate.RUNNING, "its owner, process 7, lives", None))
    holder = JobLocks(str(tmp_path)).acquire("ours")
    assert holder is not None
    assert holder.detail.endswith("its owner, process 7, lives")


def test_without_a_record_the_token_is_looked_for_and_that_is_said(tmp_path: Path) -> None:
    """A file that somebody removed must neither hide a process nor block the machine for ever."""
    token = "5a" * 8
    left = subprocess.Popen(["/bin/sleep", "60"], env={**os.environ, TOKEN_VARIABLE: token})
    try:
        died(host_lock_path(str(tmp_path)), str(tmp_path / "gone.json"), token)
        locks = JobLocks(str(tmp_path))
        assert locks.acquire("ours") is None
        assert left.wait(5) == -9
        assert "could only be looked for by its token" in locks.trouble
        locks.release()
    finally:
        left.kill()
        left.wait()


def test_a_benchmark_run_and_a_stress_job_exclude_each_other(tmp_path: Path) -> None:
    """The run in this process, the job's lock in another, and the other way round."""
    home = str(tmp_path / "home")
    command = (
        "import sys; from nodeproof.runs.job_locks import JobLocks\n"
        "locks = JobLocks(sys.argv[1]); print(locks.acquire('aa') is None, flush=True)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def job(then: str = "") -> "subprocess.Popen[str]":
        argv = [sys.executable, "-c", command + then, home]
        return subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    bench = Bench(tmp_path)
    going, go_on = threading.Event(), threading.Event()

    def stay(_: object) -> None:
        going.set()
        assert go_on.wait(20)

    handle = bench.executor.start(script([], load=stay), NO_VALUES, locks=JobLocks(home))
    assert going.wait(20)
    assert job().communicate(timeout=20)[0] == "False\n"
    go_on.set()
    assert handle.wait(20)

    held = job("; input()")
    assert held.stdout is not None
    assert held.stdout.readline() == "True\n"
    calls: list[str] = []
    refused = bench.run(script(calls), locks=JobLocks(home))
    assert calls == []
    assert refused.record.status is RunStatus.REFUSED
    assert refused.record.exit_code == 4
    assert refused.record.verdict.kind is not VerdictKind.PASS
    assert f"held by process {held.pid}" in refused.record.verdict.reason
    held.communicate("\n", timeout=20)
    assert bench.run(script([]), locks=JobLocks(home)).record.status is RunStatus.COMPLETED
    assert bench.run(script([]), locks=JobLocks(home), source=RunSource.CLI).record.status is RunStatus.COMPLETED, "given back"


def test_a_lock_that_cannot_be_made_ends_the_run_before_it_begins(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    calls: list[str] = []
    ran = Bench(tmp_path / "elsewhere").run(script(calls), locks=JobLocks(str(tmp_path / "home")))
    assert calls == []
    assert ran.record.status is RunStatus.FAILED
    assert "is no directory" in ran.record.verdict.reason


@pytest.mark.parametrize(
    ("precheck", "gate", "expected"),
    [
        ("1", "", Switches(never_refuse=True)),
        (" TRUE ", "Yes", Switches(never_refuse=True, temperature_gate=True)),
        ("on", "0", Switches()),
        ("", "2", Switches()),
    ],
)
def test_switches_are_on_by_three_words_and_off_by_everything_else(precheck: str, gate: str, expected: Switches) -> None:
    assert Switches.of({"NODEPROOF_NO_HW_PRECHECK": precheck, "NODEPROOF_HW_TEMP_GATE": gate}) == expected
    assert Switches.of({}) == Switches()
