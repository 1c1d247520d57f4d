"""The manager over a dispatcher script, as the reference's V1 is used (stress.md 4, 9.3)."""

import json
import os
import time
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import WriteError
from nodeproof.host.job_lock import JobLock
from nodeproof.model.job import Correctness, Execution, Initiator, Performance, Report, Status
from nodeproof.runs.job_locks import host_lock_path, report_lock_path
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.problems import Busy, Disabled, JobNotFound, SelectionError
from nodeproof.stress.views import config_view
from support.benchmark_outputs import recorded
from support.stress import MARKER, STREAM_GOOD, make_manager, make_settings, run_job, write_dispatcher


def wait_for(predicate: object, seconds: float = 8.0) -> None:
    """Until ``predicate()`` holds."""
    ends = time.monotonic() + seconds
    while not predicate():  # type: ignore[operator]  # a plain function
        assert time.monotonic() < ends, "it did not happen"
        time.sleep(0.02)


def blocking(folder: Path, *, names: tuple[str, ...] = ("stream",), timeout_s: float = 20.0) -> tuple[str, Path]:
    """A dispatcher that writes its number and sleeps."""
    mark = folder / "started"
    return write_dispatcher(folder / "check.sh", run=f"echo $$ > {mark}; sleep 60"), mark


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_run_through_the_references_dispatcher_is_healthy_and_leaves_everything(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    report = run_job(make_manager(settings), "stream")
    (item,) = report.benchmarks
    assert report.status is Status.HEALTHY
    assert item.values == {"copy_mb_s": 9000.5, "scale_mb_s": 8000.1, "add_mb_s": 10000.0, "triad_mb_s": 10000.0}
    assert item.source == "stdout"
    assert item.output.strip() == STREAM_GOOD
    assert item.outcome is not None
    assert item.outcome.correctness is Correctness.VALIDATED
    assert item.outcome.performance is Performance.NO_BASELINE
    assert item.details["process_tree"]["empty"] is True
    shared = json.loads(Path(settings.report_path).read_text())
    assert shared["job_id"] == report.job_id
    assert len(shared["configuration_sha256"]) == 64
    assert shared["owner"]["pid"] == os.getpid()
    (entry,) = json.loads((tmp_path / "reports" / "stress-history.json").read_text())
    assert "output" not in entry["benchmarks"][0]
    assert entry["benchmarks"][0]["values"]["triad_mb_s"] == 10000.0
    assert "cancellable" not in entry
    stored = make_manager(settings).runs.load(item.run_id)
    assert stored.record.frame.metrics["triad_mb_s"] == 10000.0
    assert [os.path.basename(path) for path in stored.files() if path.endswith(".log")] == ["output.log"]


def test_a_new_manager_reads_report_and_history_of_the_old_one(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    report = run_job(make_manager(settings))
    other = make_manager(settings)
    newest = other.latest()
    assert newest is not None
    assert newest.job_id == report.job_id
    assert other.job(report.job_id).status is Status.HEALTHY
    assert [entry.job_id for entry in other.history()] == [report.job_id]
    with pytest.raises(JobNotFound):
        other.job("0000000000000000")


def test_an_older_job_is_found_by_its_id(tmp_path: Path) -> None:
    """F17: the reference found only the newest."""
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh")))
    first = run_job(manager)
    run_job(manager)
    assert manager.job(first.job_id).job_id == first.job_id
    assert len(manager.history(1)) == 1
    assert len(manager.history(1000)) == 2


def test_items_run_in_their_order_and_a_failing_one_stops_none(tmp_path: Path) -> None:
    script = write_dispatcher(tmp_path / "check.sh", run=f"[ \"$1\" = hpl ] && exit 3\ncat <<'END'\n{STREAM_GOOD}\nEND")
    report = run_job(make_manager(make_settings(tmp_path, script, names=("hpl", "stream"))), "hpl", "stream", " HPL ")
    assert [(item.name, item.status) for item in report.benchmarks] == [("hpl", Status.UNHEALTHY), ("stream", Status.HEALTHY)]
    assert report.status is Status.UNHEALTHY
    assert report.benchmarks[0].outcome is not None
    assert report.benchmarks[0].outcome.execution is Execution.CRASHED


@pytest.mark.parametrize(
    ("names", "said"),
    [(["osu"], "no stress item"), (["hpl"], "not configured"), (["stream", "npu_burn"], "npu_burn is disabled")],
)
def test_what_cannot_be_selected_is_refused_with_its_reason(tmp_path: Path, names: list[str], said: str) -> None:
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"), names=("stream", "npu_burn"))
    off = msgspec.structs.replace(settings.benchmarks["npu_burn"], enabled=False)
    settings = msgspec.structs.replace(settings, benchmarks={**settings.benchmarks, "npu_burn": off})
    with pytest.raises(SelectionError, match=said):
        make_manager(settings).start(names)


def test_a_disabled_feature_refuses_and_describes_nothing(tmp_path: Path) -> None:
    script = write_dispatcher(tmp_path / "check.sh", describe=f"touch {tmp_path}/described; exit 1")
    settings = msgspec.structs.replace(make_settings(tmp_path, script), enabled=False)
    manager = make_manager(settings)
    with pytest.raises(Disabled):
        manager.start()
    assert manager.availability("stream").message == "stress jobs are disabled (stress.enabled)"
    assert not (tmp_path / "described").exists()


def test_a_limit_may_only_be_shortened_and_changes_the_hash(tmp_path: Path) -> None:
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"), timeout_s=20.0))
    with pytest.raises(SelectionError, match=r"over the 20 s configured for stream"):
        manager.start_with_options(["stream"], RunOptions(timeout_s=21.0))
    with pytest.raises(SelectionError):
        manager.start_with_options(["stream"], RunOptions(timeout_s=-1.0))
    whole = manager.describe("stream")
    short = manager.describe("stream", timeout_s=5.0)
    assert (whole.timeout_seconds, short.timeout_seconds) == (20, 5)
    assert whole.configuration_sha256 != short.configuration_sha256
    assert whole.script_sha256 == short.script_sha256


def test_a_limit_without_progress_is_no_pass(tmp_path: Path) -> None:
    """F6, and 9.3 31 where it pins a fault: a program that only sleeps proved nothing."""
    script, _ = blocking(tmp_path)
    report = run_job(make_manager(make_settings(tmp_path, script, timeout_s=1.0)))
    (item,) = report.benchmarks
    assert item.outcome is not None
    assert item.outcome.execution is Execution.PLANNED_STOP
    assert not item.outcome.progress
    assert item.status is Status.UNHEALTHY
    assert item.values == {}


def test_a_limit_with_progress_until_the_stop_passes_without_values(tmp_path: Path) -> None:
    script = write_dispatcher(tmp_path / "check.sh", run="for i in $(seq 200); do echo step $i; sleep 0.05; done")
    report = run_job(make_manager(make_settings(tmp_path, script, timeout_s=3.0)))
    (item,) = report.benchmarks
    assert item.status is Status.TIME_LIMIT_REACHED
    assert report.status is Status.HEALTHY
    assert item.values == {}


def test_an_npu_run_stopped_at_its_limit_is_never_a_pass(tmp_path: Path) -> None:
    script = write_dispatcher(tmp_path / "check.sh", run="for i in $(seq 200); do echo step $i; sleep 0.05; done")
    report = run_job(make_manager(make_settings(tmp_path, script, names=("npu_burn",), timeout_s=3.0)), "npu_burn")
    assert report.benchmarks[0].status is Status.UNHEALTHY


def test_an_npu_failure_keeps_its_counts(tmp_path: Path) -> None:
    summary = "CATMONITOR_NPU_BURN_SUMMARY devices=2 cases=2 passed=1 failed=1 errors=3 case_time_seconds=26.000000"
    script = write_dispatcher(tmp_path / "check.sh", run=f"echo {summary}; exit 1")
    report = run_job(make_manager(make_settings(tmp_path, script, names=("npu_burn",))), "npu_burn")
    (item,) = report.benchmarks
    assert item.status is Status.UNHEALTHY
    assert (item.values["passed"], item.values["failed"], item.values["errors"]) == (1, 1, 3)


def test_hpcg_is_judged_by_the_file_of_this_run_only(tmp_path: Path) -> None:
    """9.1 6 to 10: an old file is no result of today, and neither is what stands on the terminal."""
    good = "Final Summary::HPCG result is VALID with a GFLOP/s rating of=22.1496"
    result = tmp_path / "results" / "HPCG-Benchmark_3.1_2026.txt"
    script = write_dispatcher(tmp_path / "check.sh", run=f"echo '{good}'; touch {tmp_path}/results/notes.txt")
    settings = make_settings(tmp_path, script, names=("hpcg",))
    result.write_text(good)
    report = run_job(make_manager(settings), "hpcg")
    assert report.benchmarks[0].status is Status.UNHEALTHY
    assert "no new or changed result file" in report.benchmarks[0].message


def test_hpcg_with_a_new_file_of_an_official_run_is_healthy(tmp_path: Path) -> None:
    """F1: the reference calls every run of 1800 s or more unhealthy."""
    (tmp_path / "new.txt").write_bytes(recorded("24"))
    result = tmp_path / "results" / "HPCG-Benchmark_3.1_today.txt"
    script = write_dispatcher(tmp_path / "check.sh", run=f"cp {tmp_path}/new.txt {result}")
    (item,) = run_job(make_manager(make_settings(tmp_path, script, names=("hpcg",))), "hpcg").benchmarks
    assert item.status is Status.HEALTHY, item.message
    assert item.source == "result_file"
    assert item.values["gflops"] == 3.32293


def test_a_result_directory_that_goes_missing_is_told(tmp_path: Path) -> None:
    script = write_dispatcher(tmp_path / "check.sh", run=f"rmdir {tmp_path}/results")
    (item,) = run_job(make_manager(make_settings(tmp_path, script, names=("hpcg",))), "hpcg").benchmarks
    assert item.status is Status.UNHEALTHY
    assert "cannot be read" in item.message


def test_the_view_for_a_page(tmp_path: Path) -> None:
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh")))
    view = config_view(manager, loopback=True)
    assert (view.feature_enabled, view.web_enabled, view.enabled, view.shared_report) == (True, False, False, True)
    assert [(one.name, one.available, one.timeout_seconds) for one in view.benchmarks if one.enabled] == [("stream", True, 20)]


def test_a_second_start_is_busy_with_the_active_report_and_cancel_works(tmp_path: Path) -> None:
    script, mark = blocking(tmp_path)
    manager = make_manager(make_settings(tmp_path, script))
    report = manager.start()
    wait_for(mark.exists)
    with pytest.raises(Busy) as busy:
        manager.start()
    assert busy.value.report is not None
    assert busy.value.report.job_id == report.job_id
    newest = manager.latest()
    assert newest is not None
    assert newest.cancellable
    assert manager.can_cancel(report.job_id)
    manager.cancel(report.job_id)
    ended = manager.wait(report.job_id, 10.0)
    assert ended is not None
    assert ended.status is Status.CANCELLED
    assert ended.benchmarks[0].details["process_tree"]["empty"] is True
    assert gone(int(mark.read_text()))
    assert not manager.can_cancel(report.job_id)
    with pytest.raises(JobNotFound):
        manager.cancel(report.job_id)


def test_cancelled_items_that_waited_never_ran_and_took_no_time(tmp_path: Path) -> None:
    """F16: the reference shows 292 years."""
    script, mark = blocking(tmp_path)
    manager = make_manager(make_settings(tmp_path, script, names=("stream", "hpl")))
    report = manager.start(["stream", "hpl"])
    wait_for(mark.exists)
    manager.cancel(report.job_id)
    ended = manager.wait(report.job_id, 10.0)
    assert ended is not None
    assert [(item.status, item.duration_ms) for item in ended.benchmarks[1:]] == [(Status.CANCELLED, 0)]
    assert ended.benchmarks[1].started_at == ""


def test_an_observer_shares_the_lock_sees_the_job_and_may_cancel_it(tmp_path: Path) -> None:
    """9.3 38 and 39, the latter as it is decided here: an authorised caller may cancel any job; shutdown ends only its own."""
    script, mark = blocking(tmp_path)
    settings = make_settings(tmp_path, script)
    owner, observer = make_manager(settings), make_manager(settings)
    report = owner.start_with_options(["stream"], RunOptions(initiator=Initiator.WEB))
    wait_for(mark.exists)
    seen = observer.latest()
    assert seen is not None
    assert (seen.job_id, seen.status, seen.initiator) == (report.job_id, Status.RUNNING, "web")
    with pytest.raises(Busy):
        observer.start()
    assert observer.shutdown(1.0)
    assert owner.latest().status is Status.RUNNING  # type: ignore[union-attr]  # it runs
    assert observer.can_cancel(report.job_id)
    observer.cancel(report.job_id)
    ended = owner.wait(report.job_id, 10.0)
    assert ended is not None
    assert ended.status is Status.CANCELLED
    assert observer.latest() == ended


def test_shutdown_cancels_writes_the_last_report_and_frees_the_lock(tmp_path: Path) -> None:
    script, mark = blocking(tmp_path)
    settings = make_settings(tmp_path, script)
    manager = make_manager(settings)
    report = manager.start()
    wait_for(mark.exists)
    assert manager.shutdown(10.0)
    assert json.loads(Path(settings.report_path).read_text())["status"] == "cancelled"
    write_dispatcher(tmp_path / "check.sh")
    again = run_job(manager)
    assert again.status is Status.HEALTHY
    assert again.job_id != report.job_id


def test_an_unwritable_report_rejects_the_start_and_runs_nothing(tmp_path: Path) -> None:
    script, mark = blocking(tmp_path)
    settings = make_settings(tmp_path, script)
    (tmp_path / "reports").write_text("a file stands where the directory should be")
    manager = make_manager(settings)
    with pytest.raises(WriteError):
        manager.start()
    assert not mark.exists()
    assert manager.live() is None
    (tmp_path / "reports").unlink()
    write_dispatcher(tmp_path / "check.sh")
    assert run_job(manager).status is Status.HEALTHY


def test_a_report_that_cannot_be_written_later_leaves_the_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "reports"
    run = f"mv {folder} {folder}.away; touch {folder}\ncat <<'END'\n{STREAM_GOOD}\nEND"
    report = run_job(make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", run=run))))
    assert report.status is Status.HEALTHY
    assert "could not be written" in report.report_error


@pytest.mark.parametrize("damage", ["not json", "[]garbage", '{"job_id": 7}', "\x00\x01"])
def test_damaged_report_and_history_are_set_aside_and_block_nothing(tmp_path: Path, damage: str) -> None:
    """F14: the reference's history takes nothing more once it is damaged."""
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "stress-latest.json").write_text(damage)
    (folder / "stress-history.json").write_text(damage)
    manager = make_manager(settings)
    assert manager.latest() is None
    assert manager.history_damage()
    report = run_job(manager)
    assert report.status is Status.HEALTHY
    assert "set aside" in report.report_error
    assert [entry.job_id for entry in manager.history()] == [report.job_id]
    aside = [path.name for path in folder.iterdir() if ".damaged-" in path.name]
    assert len(aside) == 2


def test_a_lock_held_by_a_stranger_is_busy(tmp_path: Path) -> None:
    """The reference's own programs keep this lock, without a name in it."""
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    lock = JobLock(report_lock_path(settings.report_path))
    lock.acquire()
    Path(lock.path).write_text("")
    with pytest.raises(Busy, match="does not say who it is"):
        make_manager(settings).start()
    lock.release()
    assert run_job(make_manager(settings)).status is Status.HEALTHY


def test_the_lock_of_the_machine_excludes_jobs_with_another_report(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    lock = JobLock(host_lock_path(settings.home))
    lock.acquire("aa", "")
    with pytest.raises(Busy):
        make_manager(settings).start()
    lock.release()


def test_a_running_report_of_a_dead_owner_is_told_as_interrupted(tmp_path: Path) -> None:
    """F7: the reference says running for ever."""
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    manager = make_manager(settings)
    report = run_job(manager)
    item = msgspec.structs.replace(report.benchmarks[0], status=Status.RUNNING, outcome=None, finished_at="")
    stale = msgspec.structs.replace(report, status=Status.RUNNING, benchmarks=[item], finished_at="", job_id="00aa00aa00aa00aa")
    Path(settings.report_path).write_bytes(msgspec.json.encode(stale))
    told = make_manager(settings).latest()
    assert told is not None
    assert told.status is Status.UNHEALTHY
    assert told.benchmarks[0].outcome is not None
    assert told.benchmarks[0].outcome.execution is Execution.INTERRUPTED
    run_job(manager)
    assert [entry.job_id for entry in manager.history()][1] == "00aa00aa00aa00aa"


def test_a_report_of_the_reference_without_owner_is_understood(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))
    (tmp_path / "reports").mkdir()
    Path(settings.report_path).write_text(
        json.dumps(
            {
                "job_id": "0f3a9c1d2b4e5f60",
                "initiator": "cli",
                "started_at": "2026-08-17T10:00:00Z",
                "finished_at": "0001-01-01T00:00:00Z",
                "platform": "linux",
                "status": "running",
                "benchmarks": [{"name": "stream", "status": "running", "message": "m", "duration_ms": 0}],
            }
        )
    )
    told = make_manager(settings).latest()
    assert told is not None
    assert told.status is Status.UNHEALTHY


def test_without_a_report_path_there_is_no_file_and_still_a_record(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh")), report_path="")
    manager = make_manager(settings)
    report = run_job(manager)
    assert report.status is Status.HEALTHY
    assert manager.history() == []
    assert not (tmp_path / "reports").exists()
    assert manager.runs.load(report.benchmarks[0].run_id).record.benchmark_id == "stream"


def test_a_script_without_the_marker_is_never_executed(tmp_path: Path) -> None:
    script = write_dispatcher(
        tmp_path / "check.sh", describe=f"touch {tmp_path}/ran", run=f"touch {tmp_path}/ran", marker="# none"
    )
    manager = make_manager(make_settings(tmp_path, script))
    assert not manager.availability("stream").available
    with pytest.raises(SelectionError, match="does not say CATMONITOR_STRESS_DESCRIBE_PROTOCOL=1"):
        manager.start()
    assert not (tmp_path / "ran").exists()
    assert MARKER not in Path(script).read_text()


def test_reports_are_values_that_nobody_can_change(tmp_path: Path) -> None:
    report = run_job(make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh"))))
    with pytest.raises(AttributeError):
        report.status = Status.UNHEALTHY  # type: ignore[misc]  # that is the point
    assert isinstance(report, Report)


def test_a_program_that_leaves_children_behind_leaves_none(tmp_path: Path) -> None:
    """9.3 44, for one that double-forks into a session of its own and ignores TERM."""
    mark = tmp_path / "escaped"
    run = f"setsid bash -c 'trap \"\" TERM; echo $$ > {mark}; sleep 60' & disown\nwhile [ ! -s {mark} ]; do sleep 0.02; done\n"
    script = write_dispatcher(tmp_path / "check.sh", run=f"{run}cat <<'END'\n{STREAM_GOOD}\nEND")
    report = run_job(make_manager(make_settings(tmp_path, script)))
    assert gone(int(mark.read_text()))
    assert report.benchmarks[0].details["process_tree"]["empty"] is True
