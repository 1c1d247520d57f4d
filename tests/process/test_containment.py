"""What a contained program gets, prints, uses and how its end is told; real processes."""

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import CommandError, CommandFailure, WriteError
from nodeproof.host import containment
from nodeproof.host.cgroups import JobCgroup, own_groups
from nodeproof.host.containment import Contained, Containment, new_token
from nodeproof.host.job_board import Board
from nodeproof.host.job_recovery import Fate, recover
from nodeproof.host.process_tree import TOKEN_VARIABLE
from nodeproof.model.process import Ended, EndKind, Limits
from support.sigmask import signals_in
from support.survivors import bearers, gone_within
from support.users import ENVIRONMENT, nobody

PYTHON = [sys.executable, "-S", "-E", "-c"]
MEMORY = Path("/sys/fs/cgroup/memory")
FREEZER = Path("/sys/fs/cgroup/freezer")

pytestmark = pytest.mark.timeout(60)

Start = Callable[..., Contained]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    jobs: list[Contained] = []

    def start_job(*argv: str, use_cgroup: bool = False, **more: object) -> Contained:
        limits = msgspec.convert({"grace_s": 0.2, "linger_s": 0.1, **more}, Limits)
        job = Containment(use_cgroup=use_cgroup).start(
            argv, cwd=str(tmp_path), output_path=str(tmp_path / f"output{len(jobs)}.log"), limits=limits
        )
        jobs.append(job)
        return job

    yield start_job
    for job in jobs:
        job.close()
        assert bearers(job.token, Path(job.record_path)) == []


def finish(job: Contained) -> Ended:
    ended = job.wait(30)
    assert ended is not None
    return ended


def wait_until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, "it did not come about in 10 s"
        time.sleep(0.005)


# ---- how it starts


def test_a_program_that_has_ended_before_its_owner_comes_to_look_was_started(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine that is busy the owner may read the first news of a short program only after its last."""
    read = Board.read

    def late(board: Board) -> dict[str, object]:
        monkeypatch.setattr(Board, "read", read)
        wait_until(lambda: read(board).get("state") == "ended")
        return read(board)

    monkeypatch.setattr(Board, "read", late)
    job = start("/bin/true")
    assert finish(job).exit_code == 0


# ---- what it gets


def test_surroundings(start: Start) -> None:
    """Standard input empty, limits set, nothing of ours but the environment that was allowed, a session of its own."""
    script = """
import json, os, resource, sys
print(json.dumps({
    "stdin": sys.stdin.read(), "cwd": os.getcwd(), "nice": os.nice(0), "umask": os.umask(0),
    "cpus": sorted(os.sched_getaffinity(0)), "core": resource.getrlimit(resource.RLIMIT_CORE),
    "oom": int(open("/proc/self/oom_score_adj").read()), "environment": dict(os.environ),
    "leader": os.getsid(0) == os.getpid(), "fds": sorted(int(fd) for fd in os.listdir("/proc/self/fd")),
    "ignored": [line.split()[1] for line in open("/proc/self/status") if line.startswith("SigIgn")][0],
    "blocked": [line.split()[1] for line in open("/proc/self/status") if line.startswith("SigBlk")][0],
}))
"""
    job = start(*PYTHON, script, cpus=[0], nice=os.nice(0) + 5, umask=0o077, oom_score_adj=700)
    assert finish(job).exit_code == 0
    told = json.loads(job.tail())
    assert told["stdin"] == ""
    assert (told["nice"], told["umask"], told["cpus"]) == (min(19, 2 * os.nice(0) + 5), 0o077, [0])
    assert (told["core"], told["oom"], told["leader"]) == ([0, 0], 700, True)
    assert told["fds"][:3] == [0, 1, 2]
    assert len(told["fds"]) == 4, "the fourth lists them"
    assert told["environment"][TOKEN_VARIABLE] == job.token
    assert told["environment"]["LC_ALL"] == "C"
    assert int(told["blocked"], 16) == 0
    # Python itself ignores SIGPIPE and SIGXFSZ; nothing else may be.
    assert signals_in(told["ignored"]) == {signal.SIGPIPE, signal.SIGXFSZ}


def test_environment_is_an_allow_list(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LD_PRELOAD", "SECRET_KEY", "PYTHONPATH", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1" if name.startswith("OMP") else "")
    job = start("/usr/bin/env")
    finish(job)
    names = {line.split("=")[0] for line in job.tail().decode().splitlines()}
    assert "OMP_NUM_THREADS" in names
    assert names.isdisjoint({"NOTIFY_SOCKET", "WATCHDOG_USEC", "LD_PRELOAD", "SECRET_KEY", "PYTHONPATH"})


def test_starting_what_cannot_be_started(tmp_path: Path) -> None:
    """Each failure with its own words, and nothing left behind: no file, no process."""
    (tmp_path / "no_shebang").write_bytes(b"\x00\x01")
    (tmp_path / "no_shebang").chmod(0o755)
    (tmp_path / "no_right").write_text("#!/bin/sh\n", encoding="utf-8")
    there = set(tmp_path.iterdir())

    def failure(*argv: str, cwd: str = str(tmp_path)) -> tuple[CommandFailure, str]:
        with pytest.raises(CommandError) as caught:
            Containment().start(argv, cwd=cwd, output_path=str(tmp_path / "output"))
        assert set(tmp_path.iterdir()) == there
        return caught.value.failure, caught.value.detail

    assert failure("no-such-program") == (CommandFailure.NOT_FOUND, f"not found in {os.environ['PATH']}")
    assert failure("./absent") == (CommandFailure.NOT_FOUND, f"executing {tmp_path}/./absent: No such file or directory")
    assert failure("./no_right") == (CommandFailure.NO_PERMISSION, f"executing {tmp_path}/./no_right: Permission denied")
    assert failure("./no_shebang") == (CommandFailure.START_FAILED, f"executing {tmp_path}/./no_shebang: Exec format error")
    missing = f"{tmp_path}/gone"
    assert failure("/bin/true", cwd=missing) == (CommandFailure.NOT_FOUND, f"entering {missing}: No such file or directory")


def test_output_that_cannot_be_kept_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"of another run")
    with pytest.raises(WriteError, match="File exists"):
        Containment().start(["/bin/true"], cwd="/", output_path=str(tmp_path / "taken"))
    assert (tmp_path / "taken").read_bytes() == b"of another run"
    with pytest.raises(WriteError, match="No such file or directory"):
        Containment().start(["/bin/true"], cwd="/", output_path=str(tmp_path / "gone" / "output"))


def test_keeper_that_cannot_be_started(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="the keeper: No such file or directory"):
        Containment(python="/no/python").start(["/bin/true"], cwd="/", output_path=str(tmp_path / "output"))
    with pytest.raises(CommandError, match="its keeper ended at once with status 1"):
        Containment(python="/bin/false").start(["/bin/true"], cwd="/", output_path=str(tmp_path / "output"))


@pytest.mark.parametrize("way", ["killed", "broken"])
def test_keeper_that_dies_while_it_starts(way: str, tmp_path: Path) -> None:
    """The program runs already, and nobody but its record tells of it."""
    death = {"killed": "os.kill(os.getpid(), signal.SIGKILL)", "broken": "raise OSError(5, 'broken')"}[way]
    script = f"""
import os, signal, sys, time
from nodeproof.host import job_keeper
def tick(self):
    while not os.path.exists("{tmp_path}/runs"):
        time.sleep(0.005)
    {death}
job_keeper.Keeper._tick = tick
sys.exit(job_keeper.main(sys.argv[1:]))
"""
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nshift 3\nexec {sys.executable} -P -c '{script.replace(chr(39), chr(34))}' \"$@\"\n", encoding="utf-8"
    )
    python.chmod(0o755)
    argv = ["sh", "-c", f"(env -i setsid sleep 60 &); touch {tmp_path}/runs; sleep 60"]
    told = {"killed": "its keeper ended at once with status -9", "broken": "OSError: .Errno 5. broken"}[way]
    token = new_token()
    with pytest.raises(CommandError, match=told):
        Containment(python=str(python)).start(argv, cwd="/", output_path=str(tmp_path / "output"), token=token)
    assert bearers(token, tmp_path / "output.job.json") == []
    assert JobCgroup.find(token) is None
    assert recover(str(tmp_path / "output.job.json")).fate is Fate.ENDED


# ---- what it prints


def test_output_in_order_as_it_comes(start: Start, tmp_path: Path) -> None:
    job = start("sh", "-c", "echo one; echo two >&2; while [ ! -e go ]; do sleep 0.01; done; echo three")
    wait_until(lambda: len(job.tail()) == 8)
    assert job.output() == b"one\ntwo\n"
    assert job.output() == b""
    (tmp_path / "go").touch()
    ended = finish(job)
    assert job.output(3) == b"thr"
    assert job.output() == b"ee\n"
    assert (ended.output_bytes, ended.output_kept_bytes, ended.truncated, ended.output_error) == (14, 14, False, "")
    assert Path(job.output_path).read_bytes() == b"one\ntwo\nthree\n"


def test_last_words_after_a_cancel_are_kept(start: Start) -> None:
    job = start("sh", "-c", "trap 'echo last words; exit 7' TERM; echo ready; while :; do sleep 0.02; done")
    wait_until(lambda: job.tail() == b"ready\n")
    ended = job.cancel(5.0)
    assert (ended.kind, ended.exit_code, ended.forced) == (EndKind.CANCELLED, 7, False)
    assert job.tail().endswith(b"last words\n")


def test_process_born_after_the_signal_is_told_too(start: Start) -> None:
    job = start("sh", "-c", "trap 'sleep 60; echo slept; exit 0' TERM; echo ready; while :; do sleep 0.02; done")
    wait_until(lambda: job.tail() == b"ready\n")
    ended = job.cancel(30.0)
    assert (ended.kind, ended.exit_code, ended.forced) == (EndKind.CANCELLED, 0, False)
    assert job.tail().endswith(b"slept\n")


def test_flood_that_nobody_reads(start: Start) -> None:
    """200 MB: the program is never held up; its beginning and its end are kept, with a mark that says what is not."""
    script = "head -c 200000000 /dev/zero | tr '\\0' 'x'; echo; echo the end"
    job = start("sh", "-c", script, output_bytes=1_000_000, tail_bytes=1000)
    ended = finish(job)
    assert (ended.kind, ended.exit_code) == (EndKind.EXITED, 0)
    assert (ended.output_bytes, ended.output_kept_bytes, ended.truncated) == (200_000_009, 1_001_000, True)
    kept = Path(job.output_path).read_bytes()
    mark = b"\n[nodeproof: 198999009 bytes left out here; the limit on output is 1000000 bytes]\n"
    assert kept == b"x" * 1_000_000 + mark + b"x" * 991 + b"\nthe end\n"


def test_full_disk(tmp_path: Path) -> None:
    """The program goes on, what could not be kept is told. The limit on the size of files stands for the disk."""
    owner = f"""
import resource, sys, json, msgspec
from nodeproof.host.containment import Containment
resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, 1000000))
job = Containment().start(["sh", "-c", "head -c 3000000 /dev/zero; exit 0"], cwd="/", output_path={str(tmp_path / "output")!r})
print(msgspec.json.encode(job.wait(20)).decode())
job.close()
"""
    done = subprocess.run([sys.executable, "-c", owner], env=ENVIRONMENT, check=True, capture_output=True)
    ended = msgspec.json.decode(done.stdout, type=Ended)
    assert (ended.kind, ended.exit_code, ended.empty) == (EndKind.EXITED, 0, True)
    assert (ended.output_bytes, ended.output_kept_bytes, ended.output_error) == (3_000_000, 1_000_000, "File too large")
    assert (tmp_path / "output").stat().st_size == 1_000_000


# ---- what it uses


def test_progress_counts_the_whole_tree(start: Start, tmp_path: Path) -> None:
    """CPU time and bytes of children that have ended are in it, whoever waited for them."""
    burn = "import time\nwhile time.process_time() < 0.3: pass"
    script = f"""
import os, subprocess, sys, time
for _ in range(2):
    subprocess.run([sys.executable, "-S", "-E", "-c", {burn!r}], check=True)
if os.fork() == 0:
    subprocess.run([sys.executable, "-S", "-E", "-c", {burn!r}], check=True)
    os._exit(0)
subprocess.run(["dd", "if=/dev/zero", "of=written", "bs=1M", "count=3"], check=True, stderr=subprocess.DEVNULL)
print("done", flush=True)
while not os.path.exists("go"):
    time.sleep(0.01)
"""
    job = start(*PYTHON, script)
    wait_until(lambda: b"done" in job.tail() and job.progress().cpu_s >= 0.9)
    seen = job.progress()
    assert seen.written_bytes is not None
    assert seen.read_bytes is not None
    assert seen.written_bytes >= 3 * 1024 * 1024
    assert seen.read_bytes >= 3 * 1024 * 1024
    wait_until(lambda: job.progress().processes == 1)
    seen = job.progress()
    assert (seen.threads, sum(seen.states.values()), seen.output_bytes) == (1, 1, 5)
    assert seen.resident_bytes > 1_000_000
    (tmp_path / "go").touch()
    last = finish(job).progress
    assert last is not None
    assert last.cpu_s >= seen.cpu_s
    assert job.progress() == last


def test_survivors_lists_who_lives_now(start: Start) -> None:
    job = start("sh", "-c", "(setsid sleep 60 &); echo ready; sleep 60")
    wait_until(lambda: sorted(sight.name for sight in job.survivors()) == ["sh", "sleep", "sleep"])
    assert all(sight.state == "S" for sight in job.survivors())
    job.cancel()
    assert job.survivors() == ()


# ---- how it ends


def test_crash(start: Start) -> None:
    ended = finish(start("sh", "-c", "kill -SEGV $$"))
    assert (ended.kind, ended.signal, ended.exit_code) == (EndKind.SIGNALLED, signal.SIGSEGV, None)
    assert ended.reason == "ended by signal 11 (SIGSEGV), which was not ours"


def test_keeper_that_breaks_ends_the_tree_before_it_goes(start: Start) -> None:
    """A command that is none stands for any bug in it."""
    job = start("sh", "-c", "trap '' TERM; (setsid sleep 60 &); echo ready; sleep 60")
    wait_until(lambda: job.tail() == b"ready\n")
    job._control.send(b"nonsense")
    ended = finish(job)
    assert (ended.kind, ended.empty) == (EndKind.KEEPER_LOST, True)
    assert "is gone (ValueError: " in ended.reason
    assert ended.leftovers == 0, "the keeper had ended them"


def test_too_many_processes(start: Start) -> None:
    job = start("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do sleep 60 & done; wait", processes=8)
    ended = finish(job)
    assert (ended.kind, ended.empty) == (EndKind.LIMIT, True)
    assert ended.reason == "it had 10 processes at once, more than the 8 it may have"


def test_wait_gives_up_and_the_job_goes_on(start: Start) -> None:
    job = start("sleep", "60")
    assert job.wait(0.05) is None
    ended = job.cancel()
    assert job.wait(0) is ended
    assert job.cancel() is ended
    assert job.ended is ended
    job.request_cancel()  # of what has ended: nothing


def test_second_cancel_shortens_the_grace(start: Start) -> None:
    job = start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    wait_until(lambda: job.tail() == b"ready\n")
    job.request_cancel("politely", 60.0)
    ended = job.cancel(0.0, "at once")
    assert (ended.kind, ended.reason, ended.forced) == (EndKind.CANCELLED, "politely", True)
    assert ended.ending_s < 30


def test_cancel_from_another_thread_while_one_waits(start: Start) -> None:
    job = start("sleep", "60")
    found: list[Ended | None] = []
    waiting = threading.Thread(target=lambda: found.append(job.wait(30)))
    waiting.start()
    ended = job.cancel()
    waiting.join()
    assert found == [ended]


def test_thread_that_started_it_may_end(start: Start) -> None:
    """A parent-death signal would come when the starting thread ends; the keeper watches the process."""
    jobs: list[Contained] = []
    starting = threading.Thread(target=lambda: jobs.append(start("sleep", "60")))
    starting.start()
    starting.join()
    assert jobs[0].wait(0.3) is None
    assert jobs[0].cancel().kind is EndKind.CANCELLED


def test_closing_ends_it(tmp_path: Path) -> None:
    with Containment().start(["sleep", "60"], cwd="/", output_path=str(tmp_path / "output")) as job:
        pass
    assert job.ended is not None
    assert (job.ended.kind, job.ended.reason) == (EndKind.CANCELLED, "its owner let go of it")
    assert bearers(job.token) == []


def test_stopped_keeper_is_woken_to_do_its_work(start: Start) -> None:
    job = start("sleep", "60")
    os.kill(job.keeper_pid, signal.SIGSTOP)
    ended = job.cancel()
    assert (ended.kind, ended.reason, ended.empty) == (EndKind.CANCELLED, "cancelled", True)


def test_keeper_that_does_not_answer_is_deposed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here: frozen in a way that no signal of ours undoes; the owner does its work."""
    monkeypatch.setattr(containment, "_KEEPER_PATIENCE_S", 0.1)
    job = start("sh", "-c", "(env -i setsid sleep 60 &); echo ready; sleep 60", kill_wait_s=0.1)
    wait_until(lambda: job.tail() == b"ready\n")
    freezing = threading.Event()

    def freeze() -> None:
        with contextlib.suppress(ProcessLookupError):
            while not freezing.is_set():
                os.kill(job.keeper_pid, signal.SIGSTOP)
                time.sleep(0.0005)

    freezer = threading.Thread(target=freeze)
    freezer.start()
    try:
        ended = job.cancel(0.0)
    finally:
        freezing.set()
        freezer.join()
    assert (ended.kind, ended.empty) == (EndKind.CANCELLED, True)
    assert ended.reason == "cancelled; its keeper did not answer"
    assert recover(job.record_path).ended == ended


def test_processes_that_no_signal_reaches_are_named(start: Start, absent_here: list[str]) -> None:
    """Frozen by the freezer of cgroup v1 a process stands in state D, and SIGKILL waits, as for a dead device."""
    frozen = FREEZER / "nodeproof-test-freezer"
    if not os.access(FREEZER, os.W_OK) or not (FREEZER / "cgroup.procs").exists():
        absent_here.append("no freezer of cgroup v1: survivors in state D")
        pytest.skip("no freezer of cgroup v1")
    job = start("sh", "-c", "(setsid sleep 600 & echo $!); sleep 60", kill_wait_s=0.3)
    wait_until(lambda: job.tail().endswith(b"\n"))
    pid = int(job.tail())
    frozen.mkdir()
    try:
        (frozen / "cgroup.procs").write_text(str(pid), encoding="ascii")
        (frozen / "freezer.state").write_text("FROZEN", encoding="ascii")
        wait_until(lambda: (frozen / "freezer.state").read_text(encoding="ascii") == "FROZEN\n")
        ended = job.cancel(0.1)
        assert (ended.kind, ended.empty, ended.forced) == (EndKind.CANCELLED, False, True)
        assert ended.reason == "cancelled; not all of its processes could be ended"
        assert [(sight.pid, sight.name, sight.state) for sight in ended.survivors] == [(pid, "sleep", "D")]
        assert ended.survivors[0].note == "it waits in the kernel, where no signal reaches it; it ends when that wait does"
        assert [sight.pid for sight in job.survivors()] == [pid]
        assert recover(job.record_path).fate is Fate.ENDED
    finally:
        (frozen / "freezer.state").write_text("THAWED", encoding="ascii")
        assert gone_within(5, job.token, Path(job.record_path)) == []
        wait_until(lambda: (frozen / "cgroup.procs").read_text(encoding="ascii") == "")
        frozen.rmdir()


def test_cgroup_delegated_to_an_ordinary_user(tmp_path: Path, absent_here: list[str]) -> None:
    parent = own_groups().get("", "")
    user = nobody(tmp_path)
    if user is None or not os.access(parent, os.W_OK):
        absent_here.append("not root, or no cgroup v2: a cgroup delegated to an ordinary user")
        pytest.skip("no cgroup to delegate")
    delegated = Path(parent) / f"nodeproof-test-{os.getpid()}"
    delegated.mkdir()
    os.chown(delegated, user.uid, user.uid)
    os.chown(delegated / "cgroup.procs", user.uid, user.uid)
    owner = f"""
import msgspec
from nodeproof.host.containment import Containment
argv = ["sh", "-c", "(env -i setsid sleep 60 &); cat /proc/self/cgroup; exit 4"]
job = Containment().start(argv, cwd="/", output_path={str(tmp_path / "output")!r})
print(msgspec.json.encode(job.wait(20)).decode())
job.close()
"""
    script = f'echo $$ > {delegated}/cgroup.procs; exec "$@"'
    command = ["/bin/sh", "-c", script, "sh", *user.prefix, "sh", "-c", 'exec "$@"', "sh", user.python, "-c", owner]
    done = subprocess.run(command, env=ENVIRONMENT, check=True, capture_output=True)
    ended = msgspec.json.decode(done.stdout, type=Ended)
    assert (ended.kind, ended.exit_code, ended.leftovers, ended.empty) == (EndKind.EXITED, 4, 1, True)
    leaf = next(line for line in ended.evidence if line.endswith(": populated 0"))
    assert leaf.startswith(f"{delegated}/nodeproof-")
    told = (tmp_path / "output").read_text(encoding="ascii")
    assert f"0::/{delegated.name}/nodeproof-" in told
    assert [path for path in delegated.iterdir() if path.is_dir()] == [], "its leaf is removed"
    wait_until(lambda: (delegated / "cgroup.procs").read_text(encoding="ascii") == "")
    delegated.rmdir()


def test_keeper_that_misses_the_time_limit_is_deposed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containment, "_KEEPER_PATIENCE_S", 0.1)
    job = start("sleep", "60", duration_s=0.2, kill_wait_s=0.1)
    os.kill(job.keeper_pid, signal.SIGSTOP)
    ended = job.wait(20)
    assert ended is not None
    assert (ended.kind, ended.reason, ended.empty) == (EndKind.KEEPER_LOST, "its keeper did not end it at its time limit", True)


# ---- out of memory

HUNGRY = "x = []\nwhile True: x.append(bytearray(4 << 20))"


@pytest.fixture
def small_memory(absent_here: list[str]) -> Iterator[Path]:
    """A group of 48 MB; processes put themselves in."""
    group = MEMORY / f"nodeproof-test-{os.getpid()}"
    if not os.access(MEMORY, os.W_OK) or not (MEMORY / "cgroup.procs").exists():
        absent_here.append("no memory group of cgroup v1: kills for want of memory")
        pytest.skip("no memory group of cgroup v1")
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(48 << 20), encoding="ascii")
    yield group
    wait_until(lambda: (group / "cgroup.procs").read_text(encoding="ascii") == "")
    group.rmdir()


def test_out_of_memory_is_told_from_a_kill(start: Start, small_memory: Path) -> None:
    job = start("sh", "-c", f"echo $$ > {small_memory}/cgroup.procs; exec {sys.executable} -S -E -c '{HUNGRY}'")
    ended = finish(job)
    assert (ended.kind, ended.signal, ended.oom_kills) == (EndKind.OOM, signal.SIGKILL, 1)
    assert ended.reason.endswith(f"the kernel's log names {job.pid} as killed for want of memory")


def test_out_of_memory_of_a_rank_that_its_launcher_hides(start: Start, small_memory: Path) -> None:
    """The launcher lives and makes an exit status of its own of it."""
    rank = f'echo $$ > {small_memory}/cgroup.procs; sleep 0.2; exec {sys.executable} -S -E -c "{HUNGRY.replace(chr(10), ";")}"'
    rank = rank.replace(";while True:", "\nwhile True:")
    job = start("sh", "-c", f"sh -c '{rank}'; echo rank ended; exit 1")
    ended = finish(job)
    assert (ended.kind, ended.exit_code, ended.oom_kills) == (EndKind.OOM, 1, 1)
    assert b"rank ended" in job.tail()


def test_out_of_memory_of_somebody_else_is_not_ours(start: Start, small_memory: Path) -> None:
    job = start("sleep", "60")
    stranger = subprocess.run(
        ["/bin/sh", "-c", f"echo $$ > {small_memory}/cgroup.procs; exec {sys.executable} -S -E -c '{HUNGRY}'"], check=False
    )
    assert stranger.returncode == -signal.SIGKILL
    os.kill(job.pid, signal.SIGKILL)
    ended = finish(job)
    assert (ended.kind, ended.oom_kills) == (EndKind.SIGNALLED, 0)
    assert ended.reason.endswith("which was not ours; this machine counts 1 killed for want of memory meanwhile")


def test_out_of_memory_in_the_group_that_owner_and_job_share(tmp_path: Path, small_memory: Path) -> None:
    """Of the two the kernel takes the workload: its rank for the killer is raised."""
    owner = f"""
import os, sys, msgspec
from nodeproof.host.containment import Containment
open("{small_memory}/cgroup.procs", "w").write(str(os.getpid()))
argv = [{sys.executable!r}, "-c", {HUNGRY!r}]
job = Containment(use_cgroup=False).start(argv, cwd="/", output_path={str(tmp_path / "output")!r})
print(msgspec.json.encode(job.wait(20)).decode())
job.close()
"""
    done = subprocess.run([sys.executable, "-c", owner], env=ENVIRONMENT, check=True, capture_output=True)
    ended = msgspec.json.decode(done.stdout, type=Ended)
    assert (ended.kind, ended.empty, ended.oom_kills) == (EndKind.OOM, True, 1)


def test_suite_leaves_limits_as_they_were() -> None:
    assert resource.getrlimit(resource.RLIMIT_RTTIME) == (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
