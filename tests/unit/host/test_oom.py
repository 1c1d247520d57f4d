"""Kills for want of memory, told from other ends by log, group and counters."""

import os
from pathlib import Path

import pytest

from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.oom import Nearness, OomFinding, OomWitness
from support.tree import write

# Lines in the shape of mm/oom_kill.c of kernels 5.x and 6.x (constructed).
GLOBAL = (
    b"3,1093,7712345,-;Out of memory: Killed process 4711 (xhpl) total-vm:9000kB, anon-rss:8000kB, file-rss:0kB, shmem-rss:0kB,"
    b" UID:0 pgtables:60kB oom_score_adj:500\n SUBSYSTEM=none\n"
)
CGROUP = b"3,1094,7712346,-;Memory cgroup out of memory: Killed process 4712 (python3) total-vm:1kB, oom_score_adj:500\n"
ALLOCATING = b"3,1095,7712347,-;Out of memory (oom_kill_allocating_task): Killed process 4713 (a;b) total-vm:1kB\n"
OTHERS = b"6,1096,7712348,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=xhpl,pid=4714,uid=0\n4,1097,1,-;Killed process 4715 (x)\n"


class Log(OomWitness):
    """A witness whose log gives records one read at a time, as the device does."""

    def __init__(self, root: str, records: list[bytes]) -> None:
        super().__init__(proc=root, kmsg=f"{root}/kmsg")
        self._records = records

    def feed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def read(fd: int, _: int) -> bytes:
            if not self._records:
                raise BlockingIOError
            record = self._records.pop(0)
            if not record:
                raise BrokenPipeError
            return record

        monkeypatch.setattr(os, "read", read)


@pytest.fixture
def root(tmp_path: Path) -> str:
    write(str(tmp_path), "/kmsg", b"")
    write(str(tmp_path), "/vmstat", "nr_free_pages 5\noom_kill 7\n")
    write(str(tmp_path), "/self/mountinfo", f"31 23 0:27 / {tmp_path}/unified rw - cgroup2 cgroup2 rw\n")
    write(str(tmp_path), "/self/cgroup", "0::/service\n")
    write(str(tmp_path), "/unified/service/memory.events", "oom 0\noom_kill 2\n")
    return str(tmp_path)


def test_log_names_a_process_of_the_job(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = Log(root, [OTHERS, b"", GLOBAL, CGROUP, ALLOCATING])
    witness.begin()
    write(root, "/vmstat", "oom_kill 12\n")
    witness.feed(monkeypatch)
    finding = witness.finding({4711, 4713, 4714, 4715}, None, wait=True)
    assert finding == OomFinding(Nearness.JOB, 2, "the kernel's log names 4711, 4713 as killed for want of memory")
    monkeypatch.undo()
    witness.close()


def test_log_that_names_others_only(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = Log(root, [GLOBAL])
    witness.begin()
    witness.feed(monkeypatch)
    assert witness.finding({1}, None, wait=True) == OomFinding(Nearness.NOWHERE, 0, "")
    monkeypatch.undo()
    witness.close()


def test_own_group_counts(root: str) -> None:
    witness = OomWitness(root, f"{root}/absent")
    witness.begin()
    write(root, "/leaf/memory.events", "oom_kill 1\n")
    write(root, "/unified/service/memory.events", "oom_kill 3\n")
    finding = witness.finding(set(), JobCgroup(f"{root}/leaf"), wait=True)
    assert finding == OomFinding(Nearness.JOB, 1, "the job's own cgroup counts 1 killed for want of memory")


def test_shared_group_counts(root: str) -> None:
    witness = OomWitness(root, f"{root}/kmsg")
    witness.begin()
    write(root, "/unified/service/memory.events", "oom_kill 4\n")
    write(root, "/vmstat", "oom_kill 9\n")
    finding = witness.finding({1}, JobCgroup(f"{root}/no-controller"), wait=False)
    assert finding == OomFinding(Nearness.CGROUP, 2, "the cgroup of its starter counts 2 killed for want of memory")
    witness.close()
    witness.close()


def test_machine_counts(root: str) -> None:
    witness = OomWitness(root, f"{root}/absent")
    witness.begin()
    write(root, "/vmstat", "oom_kill 8\n")
    finding = witness.finding(set(), None, wait=False)
    assert finding == OomFinding(Nearness.MACHINE, 1, "this machine counts 1 killed for want of memory meanwhile")


def test_nobody_counts(tmp_path: Path) -> None:
    witness = OomWitness(str(tmp_path), str(tmp_path / "absent"))
    witness.begin()
    assert witness.finding({1}, None, wait=True).nearness is Nearness.NOWHERE
    write(str(tmp_path), "/vmstat", "nr_free_pages 5\n")
    assert witness.finding({1}, None, wait=True).nearness is Nearness.NOWHERE
