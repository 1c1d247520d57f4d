"""What was stored is there, as it was, or it is said by name what is not."""

import contextlib
import errno
import hashlib
import os
import sqlite3
import threading
import time
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import RecordError, WriteError
from nodeproof.host.owner import this_process
from nodeproof.model.hardware import Sensitivity
from nodeproof.model.run import (
    ExecutorMessage,
    Frame,
    GlowEvent,
    LogEvent,
    LogLevel,
    Owner,
    RunRecord,
    RunStatus,
    Stage,
    StageEvent,
    Verdict,
    VerdictKind,
)
from nodeproof.runs.manifest import read_manifest
from nodeproof.runs.open_run import OpenRun, ScratchRun
from nodeproof.runs.store import RunStore, StoreLimits

VERDICT = Verdict(VerdictKind.PASS, "1 of 1")
DEAD = Owner(2**22 + 1, 1, this_process().boot_id, this_process().pid_namespace)


def record_of(benchmark: str = "toy", at: float = 1000.0, owner: Owner | None = None) -> RunRecord:
    return RunRecord(
        schema=1,
        run_id="",
        benchmark_id=benchmark,
        recorded_at=at,
        owner=owner or Owner(*this_process()),
        params={"steps": "2"},
        sensitivity=Sensitivity.SPEED,
        status=RunStatus.COMPLETED,
        verdict=VERDICT,
        exit_code=0,
        frame=Frame.completed("done", 1.0, verdict=VERDICT, metrics={"rate": 2.5}),
    )


def put(store: RunStore, benchmark: str = "toy", at: float = 1000.0, text: str = "raw") -> str:
    run = store.claim(record_of(benchmark, at))
    Path(run.file_path("raw.txt")).write_text(text)
    run.append(msgspec.json.encode(ExecutorMessage(1, "2026-11-30T00:00:00+00:00", 1.0, event=GlowEvent(on=True))) + b"\n")
    run.publish(msgspec.structs.replace(record_of(benchmark, at), run_id=run.run_id))
    return run.run_id


def left_behind(store: RunStore, *messages: ExecutorMessage, owner: Owner = DEAD) -> OpenRun:
    """A run whose owner is not there any more."""
    run = store.claim(record_of(owner=owner))
    for message in messages:
        run.append(msgspec.json.encode(message) + b"\n")
    run.release()
    return run


def test_what_is_stored_comes_back_as_it_was(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run_id = put(store)
    stored = store.load(run_id)
    assert stored.record == msgspec.structs.replace(record_of(), run_id=run_id)
    assert stored.problems == ()
    assert [message.sequence for message in stored.messages()] == [1]
    assert [Path(path).read_text() for path in stored.files()] == ["raw"]
    assert stored.path == str(tmp_path / "runs" / "toy" / run_id)
    assert len(run_id) == len("run-") + 19
    assert sorted(os.listdir(stored.path)) == ["files", "log.jsonl", "manifest.json", "record.json"]
    assert os.listdir(tmp_path / "runs" / ".open") == []


def test_stored_runs_are_read_only(tmp_path: Path) -> None:
    path = Path(RunStore(str(tmp_path)).load(put(RunStore(str(tmp_path)))).path)
    for found in (path, *path.rglob("*")):
        assert found.stat().st_mode & 0o222 == 0, found


def test_making_a_store_and_asking_it_touches_nothing(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path / "state"))
    assert store.history() == []
    assert store.recover() == []
    assert store.going_on() == []
    with pytest.raises(RecordError, match="there is no run run-1 in"):
        store.load("run-1")
    assert not (tmp_path / "state").exists()


def test_names_from_outside_are_plain(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    for name in ("../x", "a/b", "", ".hidden", "x" * 200, "a\nb"):
        with pytest.raises(RecordError, match="no plain file name"):
            store.inspect(name)
        with pytest.raises(RecordError, match="no plain file name"):
            store.claim(record_of(name))
    run = store.claim(record_of())
    with pytest.raises(RecordError, match="no plain file name"):
        run.file_path("../../etc/passwd")
    run.release()


def test_history_is_newest_first_and_by_benchmark(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    ids = [put(store, at=at) for at in (10.0, 30.0, 20.0)]
    other = put(store, "other", at=25.0)
    assert [run.run_id for run in store.history(limit=None)] == [ids[1], other, ids[2], ids[0]]
    assert [run.run_id for run in store.history("toy")] == [ids[1], ids[2], ids[0]]
    assert [run.run_id for run in store.history("toy", limit=1)] == [ids[1]]
    (summary,) = store.history("other")
    assert (summary.status, summary.verdict, summary.exit_code) == (RunStatus.COMPLETED, VerdictKind.PASS, 0)
    assert summary.bytes > 3


def test_two_claims_in_one_nanosecond_get_two_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_764_541_241_000_000_000)
    store = RunStore(str(tmp_path))
    first, open_one, third = put(store), store.claim(record_of()), put(store, "other")
    assert [name[-3:] for name in (first, open_one.run_id, third)] == ["000", "001", "002"]
    open_one.release()


def test_eight_writers_lose_nothing(tmp_path: Path) -> None:
    errors: list[BaseException] = []

    def write() -> None:
        try:
            for _ in range(4):
                put(RunStore(str(tmp_path)), at=time.time())
        except BaseException as error:  # noqa: BLE001 - seen by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    store = RunStore(str(tmp_path))
    runs = store.history(limit=None)
    assert len({run.run_id for run in runs}) == 32
    assert all(store.inspect(run.run_id).problems == () for run in runs)


# A changed byte


def _writable(path: Path) -> Path:
    for found in (path.parent, path):
        found.chmod(0o750)
    return path


@pytest.mark.parametrize("name", ["record.json", "log.jsonl", "files/raw.txt"])
def test_a_changed_byte_is_named(tmp_path: Path, name: str) -> None:
    store = RunStore(str(tmp_path))
    run_id = put(store)
    path = _writable(tmp_path / "runs" / "toy" / run_id / name)
    data = bytearray(path.read_bytes())
    at = data.find(b"a")
    data[at] = ord("b")
    if name == "record.json":
        data = bytearray(path.read_bytes().replace(b'"1 of 1"', b'"9 of 1"'))
    path.write_bytes(data)
    with pytest.raises(RecordError, match=f"{path} was changed: "):
        store.load(run_id)
    assert len(store.inspect(run_id).problems) == 1
    assert [run.run_id for run in store.history()] == [run_id]


def test_a_record_that_cannot_be_read_is_an_error_of_that_run(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run_id = put(store)
    record = _writable(tmp_path / "runs" / "toy" / run_id / "record.json")
    record.unlink()
    os.mkfifo(record)

    with pytest.raises(RecordError, match=f"{record} cannot be read: Invalid argument"):
        store.inspect(run_id)


def test_missing_added_and_unreadable_files_are_named(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run_id = put(store)
    place = tmp_path / "runs" / "toy" / run_id
    _writable(place / "files" / "raw.txt").unlink()
    (place / "files" / "more.txt").write_text("x")
    _writable(place / "log.jsonl").unlink()
    (place / "log.jsonl").mkdir()
    problems = "\n".join(store.inspect(run_id).problems)
    assert f"{place}/files/raw.txt is missing" in problems
    assert f"{place}/files/more.txt was added" in problems
    assert f"{place}/log.jsonl cannot be read: Is a directory" in problems


def test_a_manifest_that_was_changed_with_its_file_contradicts_index_and_successor(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    first, second = put(store), put(store)
    place = tmp_path / "runs" / "toy" / first
    raw = _writable(place / "files" / "raw.txt")
    place.chmod(0o750)
    old, new = hashlib.sha256(b"raw").hexdigest(), hashlib.sha256(b"RAW").hexdigest()
    raw.write_bytes(b"RAW")
    manifest = _writable(place / "manifest.json")
    manifest.write_text(manifest.read_text().replace(old, new))
    problems = store.inspect(first).problems
    assert [problem.partition(" says ")[0].rpartition(", ")[2] for problem in problems] == [
        "the index",
        f"the manifest of {second}",
    ]
    (tmp_path / "runs" / ".index.sqlite3").unlink()
    store.recover()
    (problem,) = store.inspect(first).problems
    assert f"the manifest of {second} says" in problem
    assert store.inspect(second).problems == ()


def test_a_manifest_that_cannot_be_understood_is_named(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run_id = put(store)
    manifest = _writable(tmp_path / "runs" / "toy" / run_id / "manifest.json")
    manifest.write_text("{")
    assert "manifest.json cannot be understood" in store.inspect(run_id).problems[0]
    manifest.unlink()
    assert "manifest.json" in store.inspect(run_id).problems[0]


def test_links_and_special_files_are_not_taken_in(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = store.claim(record_of())
    folder = Path(run.file_path("raw.txt")).parent
    (folder / "link").symlink_to("/etc/hostname")
    (folder / "folder").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    run.publish(msgspec.structs.replace(record_of(), run_id=run.run_id))
    assert store.load(run.run_id).files() == []
    assert set(read_manifest(store.load(run.run_id).path)[0].files) == {"record.json", "log.jsonl"}


# The index


def test_index_is_made_again_from_the_directories(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    ids = [put(store, at=at) for at in (10.0, 20.0)]
    before = store.history()
    (tmp_path / "runs" / ".index.sqlite3").unlink()
    assert store.history() == before
    assert [run.run_id for run in RunStore(str(tmp_path)).history()] == ids[::-1]


def test_damaged_index_is_set_aside_and_made_again(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    put(store)
    before = store.history()
    (tmp_path / "runs" / ".index.sqlite3").write_bytes(b"no database at all" * 100)
    assert store.history() == before
    assert len(list(tmp_path.glob("runs/.index.sqlite3.damaged-*"))) == 1
    (tmp_path / "runs" / ".index.sqlite3").write_bytes(b"no database at all" * 100)
    assert put(store) in {run.run_id for run in store.history()}
    assert len(store.history()) == 2


def test_index_of_another_version_is_made_again(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    put(store)
    with contextlib.closing(sqlite3.connect(tmp_path / "runs" / ".index.sqlite3")) as connection:
        connection.execute("PRAGMA user_version = 99")
    put(store)
    store.recover()
    assert len(store.history()) == 2


def test_runs_that_were_removed_by_hand_leave_the_index(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    gone, kept = put(store), put(store)
    os.rename(tmp_path / "runs" / "toy" / gone, tmp_path / "elsewhere")
    store.recover()
    assert [run.run_id for run in store.history()] == [kept]


def test_a_reader_without_a_right_to_write_sees_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(str(tmp_path))
    ids = [put(store, at=at) for at in (10.0, 20.0)]
    before = store.history()
    (tmp_path / "runs" / ".index.sqlite3").unlink()

    def refuse(*_: object, **__: object) -> None:
        raise WriteError("store.lock", "Read-only file system", code=errno.EROFS)

    monkeypatch.setattr("nodeproof.runs.store.file_mutex", refuse)
    assert store.history() == before
    assert store.history("absent") == []
    assert [run.run_id for run in store.history(limit=1)] == [ids[1]]


# Damage


def test_a_damaged_record_is_set_aside_and_hides_none_of_the_others(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    bad, stolen, good = put(store), put(store), put(store)
    _writable(tmp_path / "runs" / "toy" / bad / "record.json").write_bytes(b'{"schema"')
    record = _writable(tmp_path / "runs" / "toy" / stolen / "record.json")
    record.write_bytes(record.read_bytes().replace(stolen.encode(), good.encode()))
    (tmp_path / "runs" / "toy" / "run-empty").mkdir()
    (tmp_path / "runs" / ".index.sqlite3").unlink()
    assert [run.run_id for run in store.history()] == [good]
    assert sorted(os.listdir(tmp_path / "runs" / ".damaged")) == sorted([bad, stolen, "run-empty"])
    (tmp_path / "runs" / "toy" / "run-empty").mkdir()
    store.recover()
    assert "run-empty-again" in os.listdir(tmp_path / "runs" / ".damaged")
    assert put(store) in {run.run_id for run in store.history()}


def test_a_record_that_cannot_be_read_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(str(tmp_path))
    run_id = put(store)
    (tmp_path / "runs" / ".index.sqlite3").unlink()

    def refuse(place: str) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)

    monkeypatch.setattr("nodeproof.runs.store.read_manifest", refuse)
    assert store.history() == []
    assert (tmp_path / "runs" / "toy" / run_id).is_dir()


# Limits


def test_oldest_go_first_beyond_the_count(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), StoreLimits(max_runs=3))
    ids = [put(store, at=time.time() + at) for at in range(5)]
    assert [run.run_id for run in store.history()] == ids[:1:-1]
    assert sorted(os.listdir(tmp_path / "runs" / "toy")) == sorted(ids[2:])
    assert os.listdir(tmp_path / "runs" / ".damaged") == []


def test_oldest_go_first_beyond_the_size(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), StoreLimits(max_total_bytes=25_000))
    ids = [put(store, at=time.time() + at, text="x" * 10_000) for at in range(4)]
    assert [run.run_id for run in store.history()] == ids[:1:-1]
    huge = put(store, at=time.time() + 10, text="x" * 100_000)
    assert [run.run_id for run in store.history()] == [huge]


def test_age_never_takes_the_newest_for_the_clock_may_be_wrong(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), StoreLimits(max_age_s=100.0, keep_runs=2))
    ids = [put(store, at=float(at)) for at in range(4)]
    assert [run.run_id for run in store.history()] == ids[:1:-1]


def test_a_run_stored_under_a_clock_that_went_back_is_not_lost_at_once(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), StoreLimits(max_runs=2))
    put(store, at=2000.0)
    put(store, at=3000.0)
    early = put(store, at=1.0)
    assert early in {run.run_id for run in store.history()}


def test_what_cannot_be_removed_stays_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(str(tmp_path), StoreLimits(max_runs=1))
    first = put(store, at=1.0)

    def refuse(directory: str, target: str) -> None:
        raise PermissionError(errno.EACCES, directory, target)

    monkeypatch.setattr("nodeproof.runs.store.move", refuse)
    put(store, at=2.0)
    assert first in {run.run_id for run in store.history()}


# Owners that died


def _message(sequence: int, **parts: object) -> ExecutorMessage:
    return ExecutorMessage(sequence, "2026-11-30T00:00:00+00:00", float(sequence), **parts)  # type: ignore[arg-type]  # by name


def test_a_run_of_a_dead_owner_is_stored_as_crashed(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    messages = (
        _message(1, event=StageEvent(Stage.LOAD)),
        _message(2, event=LogEvent(LogLevel.WARN, "hot")),
        _message(3, event=StageEvent(Stage.RUN)),
        _message(4, frame=Frame.running("work", 0.5)),
    )
    run = left_behind(store, *messages)
    with Path(run.path, "log.jsonl").open("ab") as log:
        log.write(b'{"sequence":5,"ti')
    Path(run.path, "files").mkdir()
    Path(run.path, "files", "raw.txt").write_text("half")
    assert store.recover() == [run.run_id]
    stored = store.load(run.run_id)
    record = stored.record
    assert (record.status, record.interrupted, record.exit_code) == (RunStatus.CRASHED, Stage.RUN, 1)
    assert record.verdict.kind is VerdictKind.INCONCLUSIVE
    assert f"process {DEAD.pid} that ran it came to an end in stage run" in record.verdict.reason
    assert record.frame.cause is not None
    assert record.frame.cause.type == "interrupted"
    assert record.frame.elapsed.seconds == 3.0
    assert record.warnings[0] == "hot"
    assert len(record.warnings) == 2
    assert record.params == {"steps": "2"}
    assert tuple(stored.messages()) == messages
    assert len(stored.files()) == 1
    assert store.recover() == []
    assert [summary.status for summary in store.history()] == [RunStatus.CRASHED]


def test_a_terminal_frame_that_was_sent_stays_what_it_was(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = left_behind(store, _message(1, frame=record_of().frame), _message(2, event=StageEvent(Stage.CLEANUP)))
    store.recover()
    record = store.load(run.run_id).record
    assert (record.status, record.verdict, record.interrupted) == (RunStatus.COMPLETED, VERDICT, Stage.CLEANUP)
    assert record.exit_code == 0
    assert "stage cleanup" in record.warnings[-1]


def test_a_record_that_was_written_before_the_owner_died_is_stored_as_it_is(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = left_behind(store)
    record = msgspec.structs.replace(record_of(owner=DEAD), run_id=run.run_id)
    Path(run.path, "record.json").write_bytes(msgspec.json.encode(record))
    Path(run.path, "manifest.json").write_text("{")
    store.recover()
    assert store.load(run.run_id).record == record


def test_the_next_claim_stores_what_is_left(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = left_behind(store)
    store.claim(record_of()).release()
    assert store.load(run.run_id).record.status is RunStatus.CRASHED


def test_a_run_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = store.claim(record_of())
    assert store.recover() == []
    assert [draft.run_id for draft in store.going_on()] == [run.run_id]
    assert store.history() == []
    run.publish(msgspec.structs.replace(record_of(), run_id=run.run_id))
    assert store.going_on() == []


def test_a_number_that_was_given_away_again_is_not_the_owner(tmp_path: Path) -> None:
    ours = this_process()
    for owner in (Owner(ours.pid, ours.start_ticks + 1, *ours[2:]), Owner(*ours[:2], "another boot", ours.pid_namespace)):
        store = RunStore(str(tmp_path / str(owner.start_ticks)))
        run = left_behind(store, owner=owner)
        assert store.going_on() == []
        assert store.recover() == [run.run_id]


def test_an_owner_in_another_container_lives_as_long_as_it_holds_its_lock(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    ours = this_process()
    run = store.claim(record_of(owner=Owner(1, 1, ours.boot_id, "pid:[1]")))
    assert store.recover() == []
    run.release()
    assert store.recover() == [run.run_id]


def test_what_no_draft_can_be_read_of_is_set_aside(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = left_behind(store)
    Path(run.path, "draft.json").write_text('{"half')
    (tmp_path / "runs" / ".open" / "run-2").mkdir()
    assert store.recover() == []
    assert sorted(os.listdir(tmp_path / "runs" / ".damaged")) == sorted([run.run_id, "run-2"])


def test_a_left_run_that_cannot_be_stored_now_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(str(tmp_path))
    run = left_behind(store)

    def full(directory: str, **_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory)

    with monkeypatch.context() as patch:
        patch.setattr("nodeproof.runs.store.survey", full)
        assert store.recover() == []
    assert store.recover() == [run.run_id]


def test_a_log_that_is_gone_costs_only_the_messages(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = left_behind(store)
    Path(run.path, "log.jsonl").unlink()
    store.recover()
    assert store.load(run.run_id).record.interrupted is Stage.START


# Disks that fail


def test_a_disk_that_fails_leaves_the_open_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(str(tmp_path))
    run = store.claim(record_of())

    def full(directory: str, **_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory)

    with monkeypatch.context() as patch:
        patch.setattr("nodeproof.runs.store.survey", full)
        with pytest.raises(WriteError, match="No space left on device; free some space there"):
            run.publish(msgspec.structs.replace(record_of(), run_id=run.run_id))
    assert Path(run.path, "record.json").exists()
    with pytest.raises(RecordError, match="has ended"):
        run.file_path("late.txt")


def test_a_claim_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(str(tmp_path))

    def full(path: str, data: bytes) -> None:
        raise WriteError(path, f"No space left on device for {len(data)} bytes")

    with monkeypatch.context() as patch:
        patch.setattr("nodeproof.runs.open_run.atomic.store_file", full)
        with pytest.raises(WriteError, match="No space left"):
            store.claim(record_of())
    assert os.listdir(tmp_path / "runs" / ".open") == []


def test_a_store_that_is_busy_for_too_long_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(str(tmp_path))
    run = store.claim(record_of())
    monkeypatch.setattr("nodeproof.runs.store._LOCK_TIMEOUT_S", 0.05)
    with store._locked(), pytest.raises(WriteError, match=r"another process has held this lock for 0\.05 s"):
        store.claim(record_of())
    run.release()


def test_scratch_runs_keep_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run = ScratchRun()
    run.append(b"x")
    path = Path(run.file_path("raw.txt"))
    path.write_text("raw")
    assert run.file_path("raw.txt") == str(path)
    assert run.publish(record_of()) == ""
    assert os.listdir(tmp_path) == []
    assert ScratchRun().publish(record_of()) == ""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "absent"))
    with pytest.raises(WriteError, match="absent"):
        ScratchRun().file_path("raw.txt")


def test_an_index_that_cannot_be_opened_costs_only_the_quick_lists(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path), StoreLimits(max_runs=1))
    (tmp_path / "runs" / ".index.sqlite3").mkdir(parents=True)
    ids = [put(store, at=at) for at in (10.0, 20.0)]
    assert [run.run_id for run in store.history()] == ids[::-1]
    assert store.load(ids[0]).problems == ()
    os.rename(tmp_path / "runs" / "toy" / ids[0], tmp_path / "elsewhere")
    left_behind(store)
    assert len(store.recover()) == 1
    assert len(store.history()) == 2


def test_a_run_whose_place_is_taken_stays_open(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = store.claim(record_of())
    place = tmp_path / "runs" / "toy" / run.run_id
    place.parent.mkdir(parents=True)
    place.write_text("squatter")
    with pytest.raises(WriteError, match="Not a directory"):
        run.publish(msgspec.structs.replace(record_of(), run_id=run.run_id))
    assert Path(run.path, "record.json").exists()


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(str(tmp_path))
    put(store)

    def refuse(path: str, mode: int) -> None:
        raise OSError(errno.EDQUOT, f"{os.strerror(errno.EDQUOT)} {mode:o}", path)

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(WriteError, match="Disk quota exceeded; raise the quota"):
        store.claim(record_of())


def test_what_can_be_neither_understood_nor_moved_stays(tmp_path: Path) -> None:
    store = RunStore(str(tmp_path))
    run = left_behind(store)
    (tmp_path / "runs" / ".damaged").write_text("in the way")
    Path(run.path, "draft.json").unlink()
    assert store.recover() == []
    assert os.listdir(tmp_path / "runs" / ".open") == [run.run_id]


def test_a_run_that_went_away_while_it_was_to_be_removed_leaves_the_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = RunStore(str(tmp_path), StoreLimits(max_runs=1))
    put(store, at=1.0)

    def gone(directory: str, target: str) -> None:
        raise FileNotFoundError(errno.ENOENT, directory, target)

    monkeypatch.setattr("nodeproof.runs.store.move", gone)
    second = put(store, at=2.0)
    assert [run.run_id for run in store.history()] == [second]


def test_an_owner_lock_that_cannot_be_made_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int) -> bool:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK), str(fd))

    monkeypatch.setattr("nodeproof.runs.open_run.lock_whole_file", refuse)
    with pytest.raises(WriteError, match="No locks available"):
        RunStore(str(tmp_path)).claim(record_of())
    assert os.listdir(tmp_path / "runs" / ".open") == []
