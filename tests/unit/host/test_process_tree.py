"""Process tables read by number, descent, mark and token."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.host.process_tree import Counters, Identity, ProcessStat, ProcessTree, descent
from support.process_table import newest, process, remove
from support.tree import write


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path)


def test_stat_of_a_process_with_a_name_like_fields(root: str) -> None:
    process(root, 12, 7, name="a) S 1 (b", state="R", start=812, threads=3, ticks=(1, 2, 30, 40), pages=55)
    stat = ProcessTree(root).stat(12)
    assert stat == ProcessStat(12, "a) S 1 (b", "R", 7, 73, 3, 812, 55)
    assert stat.identity == Identity(12, 812)
    assert stat.lives


@pytest.mark.parametrize(
    ("state", "threads", "lives"), [("S", 1, True), ("Z", 1, False), ("X", 1, False), ("Z", 2, True), ("D", 1, True)]
)
def test_a_zombie_lives_only_by_its_other_threads(root: str, state: str, threads: int, *, lives: bool) -> None:
    process(root, 12, state=state, threads=threads)
    stat = ProcessTree(root).stat(12)
    assert stat is not None
    assert stat.lives is lives


def test_process_that_is_gone(root: str) -> None:
    tree = ProcessTree(root)
    assert tree.stat(12) is None
    assert tree.counters(12) is None
    assert not tree.bears(12, 1 << 62, "t")
    assert tree.wait_channel(12) == ""
    assert tree.descendants(12) == []


@given(st.binary(max_size=300))
def test_any_bytes_in_the_place_of_a_stat(raw: bytes) -> None:
    class Fake(ProcessTree):
        def _read(self, pid: int, name: str, limit: int) -> bytes:  # noqa: ARG002 - takes what the real one takes
            return raw

    assert Fake().stat(1) is None or isinstance(Fake().stat(1), ProcessStat)
    assert Fake().counters(1) is None or isinstance(Fake().counters(1), Counters)
    assert Fake().bears(1, 1 << 62, "") in {True, False}


def test_counters(root: str) -> None:
    process(root, 12, io=(100, 200, 30, 40))
    process(root, 13)
    tree = ProcessTree(root)
    assert tree.counters(12) == Counters(100, 200, 30, 40)
    assert tree.counters(13) is None


def test_mark_is_read_and_the_environment_is_not_touched(root: str) -> None:
    mark = (1 << 62) + 12345
    process(root, 12, mark=mark, environ=b"A=1\0NODEPROOF_JOB=tok\0")
    process(root, 13, mark=mark + 1)
    process(root, 14)
    tree = ProcessTree(root)
    assert [tree.bears(pid, mark, "other") for pid in (12, 13, 14)] == [True, False, False]
    assert not tree.bears(13, mark, "tok")


def test_token_where_no_mark_could_be_set(root: str) -> None:
    process(root, 12, environ=b"A=1\0NODEPROOF_JOB=tok\0B=2")
    process(root, 13, environ=b"A=NODEPROOF_JOB=tok\0NODEPROOF_JOB=token\0")
    tree = ProcessTree(root)
    assert [tree.bears(pid, 0, "tok") for pid in (12, 13)] == [True, False]
    assert not tree.bears(12, 0, "")


def test_wait_channel(root: str) -> None:
    process(root, 12)
    assert ProcessTree(root).wait_channel(12) == "do_nanosleep"
    write(root, "/12/wchan", b"0")
    assert ProcessTree(root).wait_channel(12) == ""


def test_descendants_by_the_kernels_lists(root: str) -> None:
    process(root, 10, children=[12, 13])
    process(root, 12, 10, children=[14])
    process(root, 13, 10, children=[])
    process(root, 14, 12, children=[99])
    process(root, 15, 1, children=[])
    assert sorted(stat.pid for stat in ProcessTree(root).descendants(10)) == [12, 13, 14]


def test_descendants_where_the_kernel_keeps_no_lists(root: str) -> None:
    """The whole table is read instead, and the lists are not looked for again."""
    for pid, parent in ((10, 1), (12, 10), (13, 10), (14, 12), (15, 1)):
        process(root, pid, parent)
    tree = ProcessTree(root)
    assert sorted(stat.pid for stat in tree.descendants(10)) == [12, 13, 14]
    write(root, "/10/task/10/children", "")
    assert sorted(stat.pid for stat in tree.descendants(10)) == [12, 13, 14]


def test_thread_that_ends_during_the_look_is_no_missing_list(root: str) -> None:
    process(root, 10, children=[12])
    process(root, 12, 10, children=[])
    os.mkdir(f"{root}/10/task/11")
    assert [stat.pid for stat in ProcessTree(root).descendants(10)] == [12]


def test_youngest_first_also_after_the_numbers_began_anew(root: str) -> None:
    for pid in (5, 40, 32000, 32700):
        process(root, pid)
    newest(root, 41)
    assert [stat.pid for stat in ProcessTree(root).newest_first()] == [40, 5, 32700, 32000]


def test_processes_that_come_during_the_look_are_met(root: str) -> None:
    """Each forks its successor and ends when it is looked at, as a runaway does."""
    process(root, 40)
    newest(root, 40)
    met = []
    for stat in ProcessTree(root).newest_first():
        met.append(stat.pid)
        if stat.pid < 45:
            remove(root, stat.pid)
            process(root, stat.pid + 1)
            newest(root, stat.pid + 1)
    assert met == [40, 41, 42, 43, 44, 45]


def test_many_new_numbers_cost_one_more_pass(root: str) -> None:
    process(root, 40)
    newest(root, 40)
    met = []
    for stat in ProcessTree(root).newest_first():
        met.append(stat.pid)
        if len(met) == 1:
            process(root, 30000)
            newest(root, 30000)
    assert met == [40, 30000, 40]


def test_a_machine_that_forks_for_ever_is_not_followed_for_ever(root: str) -> None:
    process(root, 1)
    newest(root, 1)
    looks = 0
    for pid, _ in enumerate(ProcessTree(root).newest_first(), start=2):
        process(root, pid)
        newest(root, pid)
        looks += 1
    assert looks == 65


def test_descent_from_several() -> None:
    table = {
        pid: ProcessStat(pid, "p", "S", parent, 0, 1, 1, 0) for pid, parent in ((2, 1), (3, 2), (4, 3), (5, 1), (6, 5), (7, 7))
    }
    assert sorted(stat.pid for stat in descent(table, 2, 5)) == [3, 4, 6]
    assert descent(table, 99) == []


def test_the_real_table_knows_us() -> None:
    tree = ProcessTree()
    stat = tree.stat(os.getpid())
    assert stat is not None
    assert stat.parent == os.getppid()
    assert os.getpid() in {other.pid for other in tree.descendants(os.getppid())}
    assert tree.table()[os.getpid()].start_ticks == stat.start_ticks
