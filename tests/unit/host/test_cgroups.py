"""Where this process stands in the hierarchies of control groups, and a leaf of its own."""

import os
import subprocess
from pathlib import Path

import pytest

from nodeproof.host.cgroups import JobCgroup, memory_events, own_groups
from support.tree import write

MOUNTS = """\
23 28 0:22 / /proc rw,relatime shared:5 - proc proc rw
31 23 0:27 / {root}/unified rw,nosuid,nodev shared:9 - cgroup2 cgroup2 rw,nsdelegate
32 23 0:28 / {root}/memory rw - cgroup cgroup rw,memory
33 23 0:29 /slice/box {root}/cpu\\040time rw - cgroup cgroup rw,cpu,cpuacct
40 23 0:40 / /odd line
"""
GROUPS = """\
4:memory:/slice/box
3:cpu,cpuacct:/slice/box/job
2:name=systemd:/slice
1:net_cls:/
0::/slice/service
"""


@pytest.fixture
def proc(tmp_path: Path) -> str:
    write(str(tmp_path), "/self/mountinfo", MOUNTS.format(root=tmp_path))
    write(str(tmp_path), "/self/cgroup", GROUPS)
    return str(tmp_path)


def test_own_groups_by_controller(proc: str) -> None:
    assert own_groups(proc) == {
        "": f"{proc}/unified/slice/service",
        "memory": f"{proc}/memory/slice/box",
        "cpu": f"{proc}/cpu time/job",
        "cpuacct": f"{proc}/cpu time/job",
    }


def test_group_outside_of_what_is_mounted(proc: str) -> None:
    write(proc, "/self/cgroup", "3:cpu:/slice/other\n")
    assert own_groups(proc) == {}


def test_no_groups_at_all(tmp_path: Path) -> None:
    assert own_groups(str(tmp_path)) == {}
    assert JobCgroup.find("t", str(tmp_path)) is None
    assert JobCgroup.make_or_tell("t", str(tmp_path)) == (None, "no cgroup v2 hierarchy is mounted")


def test_no_right_to_make_one(proc: str) -> None:
    assert JobCgroup.make_or_tell("t", proc) == (
        None,
        f"{proc}/unified/slice/service is not delegated to this user (No such file or directory)",
    )


def test_kills_for_want_of_memory_of_either_version(proc: str) -> None:
    groups = own_groups(proc)
    assert memory_events(groups) is None
    write(proc, "/memory/slice/box/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert memory_events(groups) == 3
    write(proc, "/unified/slice/service/memory.events", "low 0\nhigh 0\nmax 9\noom 2\noom_kill 1\noom_group_kill 0\n")
    assert memory_events(groups) == 1
    write(proc, "/unified/slice/service/memory.events", "oom_kill many\n")
    assert memory_events(groups) == 3


def test_files_of_a_leaf(proc: str) -> None:
    os.makedirs(f"{proc}/unified/slice/service")
    made, _ = JobCgroup.make_or_tell("tok", proc)
    assert made is not None
    assert made.path == f"{proc}/unified/slice/service/nodeproof-tok"
    found = JobCgroup.find("tok", proc)
    assert found is not None
    assert found.path == made.path
    assert JobCgroup.find("other", proc) is None
    assert made.populated() is None
    write(made.path, "/cgroup.events", "populated 1\nfrozen 0\n")
    assert made.populated() is True
    write(made.path, "/cgroup.events", "populated 0\nfrozen 0\n")
    assert made.populated() is False
    write(made.path, "/cgroup.events", "odd\n")
    assert made.populated() is None
    write(made.path, "/cgroup.procs", "12\n13\n")
    write(made.path, "/inner/cgroup.procs", "14\n")
    assert sorted(made.pids()) == [12, 13, 14]
    assert made.kill() is False, "a kernel before 5.14"
    write(made.path, "/cgroup.kill", "")
    assert made.kill() is True
    assert Path(made.path, "cgroup.kill").read_bytes() == b"1"


def test_kernel_that_refuses_the_kill(tmp_path: Path) -> None:
    (tmp_path / "cgroup.kill").symlink_to("/dev/full")
    assert JobCgroup(str(tmp_path)).kill() is False


def test_leaf_that_the_kernel_does_not_let_go_yet(proc: str, monkeypatch: pytest.MonkeyPatch) -> None:
    os.makedirs(f"{proc}/unified/slice/service")
    made, _ = JobCgroup.make_or_tell("tok", proc)
    assert made is not None
    real, refusals = os.rmdir, [OSError(16, "busy")] * 2

    def rmdir(path: str) -> None:
        if refusals:
            raise refusals.pop()
        real(path)

    monkeypatch.setattr(os, "rmdir", rmdir)
    assert made.remove() is True
    assert refusals == []


def test_leaf_that_is_never_let_go(tmp_path: Path) -> None:
    """A file in it stands for whatever the reason is."""
    write(str(tmp_path), "/leaf/file", "")
    assert JobCgroup(str(tmp_path / "leaf")).remove() is False


def test_real_leaf(absent_here: list[str]) -> None:
    made, why_not = JobCgroup.make_or_tell(f"unit-test-{os.getpid()}")
    if made is None:
        absent_here.append(f"cgroup v2: {why_not}")
        pytest.skip(why_not)
    try:
        assert made.populated() is False
        child = subprocess.Popen(["/bin/sh", "-c", f"echo $$ > {made.path}/cgroup.procs; mkdir {made.path}/inner; exec sleep 60"])
        while not Path(made.path, "inner").is_dir() or made.pids() != [child.pid]:  # mkdir is a process of its own
            assert child.poll() is None
        assert made.populated() is True
        assert made.remove() is False, "a process is in it"
        assert made.kill() is True
        assert child.wait() == -9
        assert made.populated() is False
    finally:
        made.kill()
        assert made.remove() is True
