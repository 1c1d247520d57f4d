"""Programs that are hard to end, by every road out: nothing of them is left, and the record says what happened.

Each end is checked against ``/proc`` itself (token, mark, command line), not against what containment says of itself.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import pytest

from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.containment import Contained, Containment, new_token
from nodeproof.host.job_lock import HolderState, probe_job_lock
from nodeproof.host.job_recovery import Fate, recover
from nodeproof.model.process import Ended, EndKind, Limits
from support.patients import PATIENTS, PRINT_NOTHING, patient
from support.survivors import bearers, gone_within
from support.users import ENVIRONMENT, User, nobody

TESTS = Path(__file__).parents[1]
QUICK = {"grace_s": 0.15, "linger_s": 0.1, "output_bytes": 1_000_000}
LIMITS = Limits(**QUICK)  # type: ignore[arg-type]  # the same values go to the owner process as JSON

pytestmark = pytest.mark.timeout(60)


class Way(StrEnum):
    """How a job is held together."""

    CGROUP = "cgroup"
    SUBREAPER = "subreaper"


class Started(NamedTuple):
    """An owner in a process of its own."""

    process: "subprocess.Popen[str]"
    keeper: int
    program: int
    token: str
    folder: Path

    @property
    def record(self) -> Path:
        return self.folder / "output.log.job.json"


def start(folder: Path, name: str, *, life_s: float = 30.0, limits: Limits = LIMITS, way: Way = Way.SUBREAPER) -> Contained:
    job = Containment(use_cgroup=way is Way.CGROUP).start(
        patient(name, life_s), cwd=str(folder), output_path=str(folder / "output.log"), limits=limits
    )
    if name not in PRINT_NOTHING:
        wait_until(lambda: b"ready" in job.tail())
    return job


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in 10 s"
        time.sleep(0.005)


def nothing_left(job: Contained, ended: Ended) -> None:
    assert ended.empty, ended
    assert ended.survivors == ()
    assert bearers(job.token, Path(job.record_path)) == []
    assert json.loads(Path(job.record_path).read_bytes())["ended"]["kind"] == ended.kind
    job.close()


@pytest.fixture(params=Way)
def way(request: pytest.FixtureRequest, absent_here: list[str]) -> Way:
    if request.param is Way.CGROUP and not has_cgroup():
        absent_here.append("no delegated cgroup v2: the kill matrix ran with the subreaper alone")
        pytest.skip("no delegated cgroup v2")
    return Way(request.param)


def has_cgroup() -> bool:
    made, _ = JobCgroup.make_or_tell(new_token())
    return made is not None and made.remove()


@pytest.mark.parametrize("name", PATIENTS)
def test_cancel(name: str, tmp_path: Path, way: Way) -> None:
    job = start(tmp_path, name, way=way)
    ended = job.cancel(reason="enough of it")
    assert (ended.kind, ended.reason) == (EndKind.CANCELLED, "enough of it")
    nothing_left(job, ended)


@pytest.mark.parametrize("name", PATIENTS)
def test_kill_at_once(name: str, tmp_path: Path, way: Way) -> None:
    job = start(tmp_path, name, way=way)
    ended = job.cancel(0.0)
    assert (ended.kind, ended.forced) == (EndKind.CANCELLED, True)
    assert ended.exit_code is None
    nothing_left(job, ended)


@pytest.mark.parametrize("name", PATIENTS)
def test_end_of_the_program_alone(name: str, tmp_path: Path, way: Way) -> None:
    """It ends by itself; what it leaves behind is ended and counted."""
    job = start(tmp_path, name, life_s=0.1, way=way)
    ended = job.wait(20)
    assert ended is not None
    assert (ended.kind, ended.exit_code) == (EndKind.EXITED, 0)
    leaves_none = {"worker", "silent", "headless"}
    assert (ended.leftovers == 0) == (name in leaves_none)
    nothing_left(job, ended)


@pytest.mark.parametrize("name", PATIENTS)
def test_time_limit(name: str, tmp_path: Path) -> None:
    job = start(tmp_path, name, limits=Limits(duration_s=1.0, **QUICK))  # type: ignore[arg-type]  # as above
    ended = job.wait(20)
    assert ended is not None
    assert (ended.kind, ended.reason) == (EndKind.LIMIT, "its time limit of 1 s was reached")
    nothing_left(job, ended)


@pytest.mark.parametrize("name", PATIENTS)
def test_program_killed_by_a_stranger(name: str, tmp_path: Path) -> None:
    job = start(tmp_path, name)
    os.kill(job.pid, signal.SIGKILL)
    ended = job.wait(20)
    assert ended is not None
    assert (ended.kind, ended.signal, ended.oom_kills) == (EndKind.SIGNALLED, signal.SIGKILL, 0)
    nothing_left(job, ended)


@pytest.mark.parametrize("name", PATIENTS)
def test_keeper_killed(name: str, tmp_path: Path, way: Way) -> None:
    """The owner ends what the parent-death signal does not reach."""
    job = start(tmp_path, name, way=way)
    os.kill(job.keeper_pid, signal.SIGKILL)
    ended = job.wait(20)
    assert ended is not None
    assert ended.kind is EndKind.KEEPER_LOST
    assert "exit status -9" in ended.reason
    nothing_left(job, ended)


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    owners = []

    def start_owner(name: str, *, user: User | None = None, way: Way = Way.SUBREAPER, **limits: float) -> Started:
        token = new_token()
        python = user.python if user is not None else sys.executable
        spec = {
            "argv": [python if word == sys.executable else word for word in patient(name)],
            "limits": {**QUICK, **limits},
            "use_cgroup": way is Way.CGROUP,
            "token": token,
            "wait_for": "" if name in PRINT_NOTHING else "ready",
        }
        process = subprocess.Popen(
            [
                *(user.prefix if user is not None else ()),
                python,
                str(TESTS / "support" / "job_owner.py"),
                str(tmp_path),
                json.dumps(spec),
            ],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            text=True,
        )
        owners.append(process)
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert told["owner"] == process.pid
        return Started(process, told["keeper"], told["program"], token, tmp_path)

    yield start_owner
    for process in owners:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("name", PATIENTS)
def test_owner_killed(name: str, owner: Callable[..., Started]) -> None:
    """The keeper ends the tree, writes the record and only then lets go of the lock."""
    job = owner(name)
    job.process.kill()
    job.process.wait()
    assert gone_within(10, job.token, job.record) == []
    recovery = recover(str(job.record))
    assert recovery.fate is Fate.ENDED
    assert recovery.ended is not None
    assert (recovery.ended.kind, recovery.ended.empty) == (EndKind.OWNER_LOST, True)
    lock = str(job.folder / "job.lock")
    wait_until(lambda: probe_job_lock(lock).state is not HolderState.ENDING)  # a dying process loses its name first
    holder = probe_job_lock(lock)
    assert (holder.state, holder.token, holder.record) == (HolderState.DEAD, job.token, str(job.record))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("name", ["worker", "double_fork", "ignores_term", "runaways"])
def test_owner_told_to_end(name: str, number: signal.Signals, owner: Callable[..., Started]) -> None:
    job = owner(name)
    job.process.send_signal(number)
    out, _ = job.process.communicate(timeout=20)
    assert json.loads(out) == {"kind": "cancelled", "empty": True}
    assert bearers(job.token, job.record) == []
    assert probe_job_lock(str(job.folder / "job.lock")).state is HolderState.FREE


@pytest.mark.parametrize("name", ["worker", "ignores_term", "runaways", "disguised"])
def test_keeper_told_to_end(name: str, tmp_path: Path) -> None:
    """As a service manager does that stops a whole group of processes."""
    job = start(tmp_path, name)
    os.kill(job.keeper_pid, signal.SIGTERM)
    ended = job.wait(20)
    assert ended is not None
    assert (ended.kind, ended.reason) == (EndKind.CANCELLED, "its keeper was told to end (SIGTERM)")
    nothing_left(job, ended)


@pytest.mark.parametrize("name", PATIENTS)
def test_owner_and_keeper_killed(name: str, owner: Callable[..., Started], way: Way) -> None:
    """Whoever takes the lock next finds the record of the dead owner and ends what is left."""
    job = owner(name, way=way)
    os.kill(job.keeper, signal.SIGSTOP)  # so that it cannot do its work between the two
    job.process.kill()
    job.process.wait()
    os.kill(job.keeper, signal.SIGKILL)
    wait_until(lambda: probe_job_lock(str(job.folder / "job.lock")).state is HolderState.DEAD)
    recovery = recover(probe_job_lock(str(job.folder / "job.lock")).record)
    assert recovery.fate is Fate.SWEPT
    assert recovery.ended is not None
    assert recovery.ended.empty
    assert bearers(job.token, job.record) == []
    assert recover(str(job.record)).fate is Fate.ENDED, "once is enough"


def test_lock_outlives_the_owner_until_the_tree_is_gone(owner: Callable[..., Started]) -> None:
    job = owner("ignores_term", grace_s=1.0)
    lock = str(job.folder / "job.lock")
    assert probe_job_lock(lock).state is HolderState.LIVE
    job.process.kill()
    job.process.wait()
    assert probe_job_lock(lock).state is HolderState.ENDING
    wait_until(lambda: probe_job_lock(lock).state is HolderState.DEAD)
    assert bearers(job.token, job.record) == []


def test_recovery_touches_no_job_whose_owner_lives(owner: Callable[..., Started]) -> None:
    job = owner("worker")
    assert recover(str(job.record)).fate is Fate.RUNNING
    assert len(bearers(job.token, job.record)) == 3, "owner, keeper, program"
    job.process.send_signal(signal.SIGTERM)
    job.process.communicate(timeout=20)


@pytest.mark.parametrize("name", PATIENTS)
def test_as_ordinary_user(name: str, owner: Callable[..., Started], tmp_path: Path, absent_here: list[str]) -> None:
    user = nobody(tmp_path)
    if user is None:
        absent_here.append("not root, no setpriv, or no Python that others may run: containment as user nobody")
        pytest.skip("cannot become another user")
    job = owner(name, user=user)
    assert Path(f"/proc/{job.keeper}/status").read_text(encoding="utf-8").split("Uid:")[1].split()[0] == "65534"
    job.process.send_signal(signal.SIGTERM)
    out, _ = job.process.communicate(timeout=20)
    assert json.loads(out) == {"kind": "cancelled", "empty": True}
    assert bearers(job.token, job.record) == []
