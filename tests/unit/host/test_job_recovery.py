"""Jobs whose owner is dead, from the record it left."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.host import job_recovery
from nodeproof.host.job_family import Birthmarks, Family
from nodeproof.host.job_recovery import Fate, end_without_keeper, recover
from nodeproof.host.locks import boot_id
from nodeproof.host.process_tree import ProcessTree
from nodeproof.model.process import Ended, EndKind, Progress

DEAD = [999_999_999, 1]
MARK = (1 << 62) + 4242


def record(path: Path, **changes: object) -> str:
    content = {
        "schema": 1,
        "token": "tok",
        "boot_id": boot_id(),
        "owner": DEAD,
        "argv": ["x"],
        "state": "running",
        "pid": 0,
        "keeper": DEAD,
        "mark": MARK,
        "cgroup": "",
    }
    path.write_bytes(json.dumps({**content, **changes}).encode())
    return str(path)


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    child = subprocess.Popen(["/bin/sleep", "60"])
    yield child
    child.kill()
    child.wait()


def identity(pid: int) -> list[int]:
    stat = ProcessTree().stat(pid)
    assert stat is not None
    return list(stat.identity)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema":1}', b"\xff"])
def test_record_that_is_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    path.write_bytes(content)
    assert recover(str(path)).fate is Fate.UNREADABLE
    assert path.read_bytes() == content


def test_no_record(tmp_path: Path) -> None:
    recovery = recover(str(tmp_path / "job.json"))
    assert (recovery.fate, recovery.ended) == (Fate.UNREADABLE, None)
    assert "No such file" in recovery.detail


def test_record_of_another_boot(tmp_path: Path) -> None:
    path = record(tmp_path / "job.json", boot_id="another", owner=identity(os.getpid()))
    assert recover(path).fate is Fate.OTHER_BOOT


def test_owner_that_lives(tmp_path: Path) -> None:
    path = record(tmp_path / "job.json", owner=identity(os.getpid()))
    recovery = recover(path)
    assert (recovery.fate, recovery.detail) == (Fate.RUNNING, f"its owner, process {os.getpid()}, lives")


def test_stranger_with_the_number_of_the_owner(tmp_path: Path) -> None:
    pid, start = identity(os.getpid())
    assert recover(record(tmp_path / "job.json", owner=[pid, start - 1])).fate is Fate.SWEPT


def test_nothing_is_left(tmp_path: Path) -> None:
    path = record(tmp_path / "job.json")
    recovery = recover(path)
    assert recovery.fate is Fate.SWEPT
    assert recovery.ended is not None
    ended = recovery.ended
    assert (ended.kind, ended.empty, ended.forced, ended.leftovers) == (EndKind.OWNER_LOST, True, False, 0)
    assert ended.reason == "its owner and its keeper were killed"
    again = recover(path)
    assert (again.fate, again.ended) == (Fate.ENDED, ended)
    assert json.loads(Path(path).read_bytes())["argv"] == ["x"]


def test_keeper_that_is_still_at_work_is_waited_for(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "job.json"
    record(path, keeper=identity(sleeper.pid))
    end = Ended(kind=EndKind.OWNER_LOST, reason="done", duration_s=1.0, empty=True)

    def finish(_: float) -> None:
        record(path, state="ended", ended=msgspec.to_builtins(end))
        sleeper.kill()
        sleeper.wait()

    monkeypatch.setattr(job_recovery.time, "sleep", finish)  # type: ignore[attr-defined]  # the module's own name for it
    recovery = recover(str(path))
    assert (recovery.fate, recovery.ended) == (Fate.ENDED, end)


def test_keeper_that_takes_too_long_is_killed(tmp_path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    path = record(tmp_path / "job.json", keeper=identity(sleeper.pid))
    assert recover(path, patience_s=0.1).fate is Fate.SWEPT
    assert sleeper.wait() == -9


def family(known: "subprocess.Popen[bytes] | None" = None) -> Family:
    found = Family(ProcessTree(), Birthmarks("tok", MARK, 0))
    if known is not None:
        stat = ProcessTree().stat(known.pid)
        assert stat is not None
        found.known = {stat.identity}
    return found


def test_known_process_is_ended(tmp_path: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    progress = Progress(1.0, 2.0, 300, 1, 1, 0, {"S": 1})
    (tmp_path / "output").write_bytes(b"x" * 200)
    path = record(tmp_path / "job.json")
    ended = end_without_keeper(
        family(sleeper),
        EndKind.KEEPER_LOST,
        "why",
        record_path=path,
        started_s=0.0,
        output_path=str(tmp_path / "output"),
        progress=progress,
    )
    assert sleeper.wait() == -9
    assert (ended.kind, ended.reason, ended.empty, ended.forced, ended.leftovers) == (EndKind.KEEPER_LOST, "why", True, True, 1)
    assert (ended.output_bytes, ended.output_kept_bytes, ended.truncated) == (300, 200, True)
    assert ended.evidence[-1] == "2 looks in a row at all of /proc found no process of the job"
    assert json.loads(Path(path).read_bytes())["ended"]["kind"] == "keeper_lost"


def test_process_that_does_not_end_is_a_survivor(
    tmp_path: Path, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    found = family(sleeper)
    monkeypatch.setattr(found, "strike", lambda: True)
    ended = end_without_keeper(
        found, EndKind.KEEPER_LOST, "why", record_path=str(tmp_path / "absent.json"), started_s=0.0, kill_wait_s=0.05
    )
    assert (ended.empty, ended.reason) == (False, "why; not all of its processes could be ended")
    assert [sight.pid for sight in ended.survivors] == [sleeper.pid]
    assert "the record could not be completed" in ended.evidence[-1]
