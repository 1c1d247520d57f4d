"""What a program begins with, and what is told when it cannot have it."""

import os
import resource
import signal
from pathlib import Path

import pytest

from nodeproof.host import job_launch
from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.job_launch import Program, StartFailed, launch, new_mark
from support.children import children
from support.sigmask import signals_in

TRUE = Program(["/bin/true"], "/bin/true", "/", {}, 0, (), 0, 0o022, 0)
MARK = (1 << 62) + 5


def run(program: Program, tmp_path: Path, cgroup: JobCgroup | None = None) -> tuple[job_launch.Launched, int, bytes]:
    output = os.open(tmp_path / "output", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        launched = launch(program, output, cgroup)
        _, status = os.waitpid(launched.pid, 0)
        return launched, os.waitstatus_to_exitcode(status), (tmp_path / "output").read_bytes()
    finally:
        os.close(output)


def test_program_with_all_it_asked_for(tmp_path: Path) -> None:
    script = "grep -h 'Max realtime timeout' /proc/self/limits; cat /proc/self/oom_score_adj; umask; pwd; env | grep ^A="
    program = TRUE._replace(
        argv=["shell", "-c", script],
        executable="/bin/sh",
        cwd=str(tmp_path),
        environment={"A": "b", "PATH": os.environ["PATH"]},
        mark=MARK,
        umask=0o077,
        oom_score_adj=900,
    )
    launched, code, output = run(program, tmp_path)
    assert (launched.marked, launched.in_cgroup, launched.notes, code) == (True, False, (), 0)
    words = output.decode().split()
    assert words[3:5] == [str(MARK), str(MARK)]
    assert words[6:] == ["900", "0077", str(tmp_path), "A=b"]


def test_program_without_a_mark_keeps_its_limit(tmp_path: Path) -> None:
    program = TRUE._replace(argv=["grep", "Max realtime timeout", "/proc/self/limits"], executable="/bin/grep")
    _, _, output = run(program, tmp_path)
    assert output.split()[3:5] == [b"unlimited", b"unlimited"]


def test_rank_for_the_killer_is_never_lowered(tmp_path: Path) -> None:
    program = TRUE._replace(argv=["cat", "/proc/self/oom_score_adj"], executable="/bin/cat", oom_score_adj=-1000)
    _, _, output = run(program, tmp_path)
    assert output == Path("/proc/self/oom_score_adj").read_bytes()


def test_what_it_can_do_without_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: int) -> None:
        raise ValueError("not allowed to raise maximum limit")  # so says the resource module

    monkeypatch.setattr(job_launch, "_set_mark", refuse)
    launched, code, _ = run(TRUE._replace(mark=MARK), tmp_path, JobCgroup(str(tmp_path / "absent")))
    assert (launched.in_cgroup, launched.marked, code) == (False, False, 0)
    assert launched.notes == ("entering its cgroup: No such file or directory", "setting its mark: Operation not permitted")


@pytest.mark.parametrize(
    ("changes", "stage"),
    [
        ({"cpus": (9999,)}, "binding it to its processors: Invalid argument"),
        ({"cwd": "/absent"}, "entering /absent: No such file or directory"),
        ({"executable": "/etc/passwd"}, "executing /etc/passwd: Permission denied"),
    ],
)
def test_what_it_cannot_do_without_ends_it(changes: dict[str, object], stage: str, tmp_path: Path) -> None:
    before = children()
    with pytest.raises(StartFailed) as caught:
        run(TRUE._replace(**changes), tmp_path)  # type: ignore[arg-type]  # fields of the parametrisation
    assert str(caught.value) == stage
    assert children() <= before


def test_signals_that_we_ignore_are_its_own_again(tmp_path: Path) -> None:
    previous = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        program = TRUE._replace(argv=["grep", "SigIgn", "/proc/self/status"], executable="/bin/grep")
        _, _, output = run(program, tmp_path)
    finally:
        signal.signal(signal.SIGUSR1, previous)
    name, mask = output.split()
    assert name == b"SigIgn:"
    assert signals_in(mask) == set()


def test_marks_differ_and_limit_nothing() -> None:
    marks = {new_mark() for _ in range(100)}
    assert len(marks) == 100
    assert all(1 << 62 <= mark < 1 << 63 for mark in marks)


@pytest.mark.parametrize(
    ("hard", "uid", "possible"), [(1000, 1000, False), (1000, 0, True), (resource.RLIM_INFINITY, 1000, True)]
)
def test_no_mark_below_a_limit_that_is_set_already(
    hard: int, uid: int, *, possible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (hard, hard))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert (new_mark() != 0) is possible
