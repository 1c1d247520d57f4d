"""The daemon's answer out of its file: what is believed, and who is waited for."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeproof.clock import Instant
from nodeproof.health.grades import verdict
from nodeproof.host import locks
from nodeproof.model.answer import Answer
from nodeproof.model.health import HealthScore
from nodeproof.sinks.last_verdict import last_verdict
from nodeproof.sinks.snapshot import GlobalSnapshots
from support.batches import health

SOUND = Answer(0, "sound", "SOUND: score 97 Excellent, 100% of what applies was read")


class Time:
    """A clock that only :meth:`sleep` moves; ``then`` happens at the first sleep."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept: list[float] = []
        self.then: Callable[[], object] = lambda: None

    def now(self) -> Instant:
        return Instant(1_700_000_000.0, self.now_s)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds
        self.then()


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[locks.DirectoryLock]:
    held = locks.DirectoryLock(str(tmp_path))
    held.acquire()
    yield held
    held.release()


def put(folder: Path, time: Time, score: HealthScore) -> None:
    GlobalSnapshots(str(folder), time, 1.0).write(score, verdict(score))


def test_a_living_daemon_is_not_waited_for(tmp_path: Path, lock: locks.DirectoryLock) -> None:
    time = Time()
    put(tmp_path, time, health(97))
    time.now_s += 4.9
    assert last_verdict(str(tmp_path), time) == SOUND
    assert time.slept == []


def test_one_that_has_just_been_woken_is(tmp_path: Path, lock: locks.DirectoryLock) -> None:
    """The machine slept for an hour: what lies there is old, and the next file is under way."""
    time = Time()
    put(tmp_path, time, health(30))
    time.now_s += 3600.0
    time.then = lambda: put(tmp_path, time, health(97)) if len(time.slept) == 8 else None
    assert last_verdict(str(tmp_path), time) == SOUND
    assert len(time.slept) == 8


def test_one_that_has_just_been_started_is(tmp_path: Path, lock: locks.DirectoryLock) -> None:
    time = Time()
    time.then = lambda: put(tmp_path, time, health(97)) if len(time.slept) == 3 else None
    assert last_verdict(str(tmp_path), time) == SOUND


def test_patience_ends(tmp_path: Path, lock: locks.DirectoryLock) -> None:
    time = Time()
    put(tmp_path, time, health(97))
    time.now_s += 3600.0
    answer = last_verdict(str(tmp_path), time)
    assert answer is not None
    assert (answer.exit_code, answer.word) == (3, "unknown")
    assert answer.line.startswith(f"UNKNOWN: daemon frozen: process {os.getpid()} has not written for 360")
    assert 2.4 <= sum(time.slept) <= 2.6


@pytest.mark.parametrize("state", ["T", "D", "Z"])
def test_one_that_cannot_write_is_not_waited_for(
    state: str, tmp_path: Path, lock: locks.DirectoryLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    time = Time()
    put(tmp_path, time, health(97))
    time.now_s += 3600.0
    monkeypatch.setattr(locks, "process_state", lambda _: state)
    answer = last_verdict(str(tmp_path), time)
    assert answer is not None
    assert answer.exit_code == 3
    assert time.slept == []


def test_nobody_is_waited_for_where_nobody_holds_the_lock(tmp_path: Path) -> None:
    time = Time()
    put(tmp_path, time, health(97))
    answer = last_verdict(str(tmp_path), time)
    assert answer is not None
    assert answer.line.startswith("UNKNOWN: daemon dead: ")
    assert time.slept == []


def test_a_file_without_an_answer_has_none(tmp_path: Path, lock: locks.DirectoryLock) -> None:
    time = Time()
    GlobalSnapshots(str(tmp_path), time, 1.0).write(health(97))
    assert last_verdict(str(tmp_path), time) is None


@pytest.mark.parametrize(
    "given",
    [
        3,
        {"exit_code": 0, "word": "sound"},
        {"exit_code": 0, "word": "critical", "line": "x"},
        {"exit_code": 0, "word": "well", "line": "x"},
        {"exit_code": 0, "word": 0, "line": "x"},
        {"exit_code": "0", "word": "sound", "line": "x"},
        {"exit_code": 0, "word": "sound", "line": None},
    ],
)
def test_an_answer_that_is_none_of_ours_is_not_believed(given: object, tmp_path: Path, lock: locks.DirectoryLock) -> None:
    time = Time()
    put(tmp_path, time, health(97))
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"verdict": given}))
    assert last_verdict(str(tmp_path), time) == Answer(3, "unknown", f"UNKNOWN: {file} holds no verdict of nodeproof")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "holds no snapshot: Expecting value"),
        (b"[" * 100_000, "holds no snapshot: "),
        (b"\xff", "holds no snapshot: "),
        (b"[1]", "holds no snapshot: it is no object"),
        (b'{"pid": "x"}', "holds no snapshot: pid is 'x'"),
        (b'{"stopped": 1}', "holds no snapshot: stopped is 1"),
        (b'{"monotonic_s": true}', "holds no snapshot: monotonic_s is True"),
    ],
)
def test_a_file_that_is_no_snapshot_is_named(content: bytes, told: str, tmp_path: Path, lock: locks.DirectoryLock) -> None:
    file = tmp_path / "snapshot.json"
    file.write_bytes(content)
    answer = last_verdict(str(tmp_path), Time())
    assert answer is not None
    assert answer.exit_code == 3
    assert answer.line.startswith(f"UNKNOWN: daemon unknown: {file} {told}")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, lock: locks.DirectoryLock) -> None:
    (tmp_path / "snapshot.json").mkdir()
    answer = last_verdict(str(tmp_path), Time())
    assert answer == Answer(3, "unknown", f"UNKNOWN: daemon unknown: {tmp_path}/snapshot.json: Is a directory")
