"""Whose CPU time it is, worked by hand on process tables that change between looks. Times are hundredths of a second."""

import os
import shutil
from pathlib import Path

import pytest

from nodeproof.clock import Instant
from nodeproof.errors import NoData
from nodeproof.hardware.readers.processes import Processes, ProcessUse
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import recorded_machine
from support.tree import write

KERNEL = 0x00200000


class Table:
    """Processes of a made-up machine and the reader that looks at them."""

    def __init__(self, root: Path, roots: tuple[int, ...] = (500,), allowed: frozenset[int] | None = None) -> None:
        self.root = str(root)
        self.now_s = 100.0
        self.named: list[int] = []
        self.machine: Machine = recorded_machine(self.root)
        write(self.root, "/proc/2/comm", "kthreadd")
        self.process(1, ppid=0)
        self.process(500, ppid=1)
        self.process(900, ppid=1)
        self.reader = Processes(self.machine, roots, lambda: self.named, allowed)

    def process(
        self, pid: int, *, ppid: int, own: int = 0, child: int = 0, start: int = 10, cpu: int = 0, flags: int = 0
    ) -> None:
        numbers = [ppid, pid, pid, 0, -1, flags, 0, 0, 0, 0, own, 0, child, 0, 20, 0, 1, 0, start, *[0] * 16, cpu]
        write(self.root, f"/proc/{pid}/stat", f"{pid} (p{pid}) S {' '.join(map(str, numbers))}")

    def end(self, pid: int) -> None:
        shutil.rmtree(f"{self.root}/proc/{pid}")

    def look(self) -> ProcessUse:
        self.now_s += 1.0
        return self.reader.read(Instant(0.0, self.now_s))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(tmp_path)
    assert made.look() == (0, 0, True, "", ())
    return made


def test_what_was_used_before_the_first_look_counts_for_nobody(tmp_path: Path) -> None:
    made = Table(tmp_path)
    made.process(900, ppid=1, own=5000)
    assert made.look()[:2] == (0, 0)
    made.process(900, ppid=1, own=5030)
    assert made.look()[:2] == (0, 30)


def test_own_and_foreign_time_are_told_apart_and_the_greatest_named(table: Table) -> None:
    table.process(500, ppid=1, own=40)
    table.process(900, ppid=1, own=7)
    table.process(901, ppid=900, own=9, start=10_150)
    use = table.look()
    assert use[:2] == (40, 16)
    assert [(user.pid, user.name, user.used_s) for user in use.top] == [(901, "p901", 0.09), (900, "p900", 0.07)]


def test_children_and_their_children_are_the_runs_own(table: Table) -> None:
    table.process(501, ppid=500, own=10, start=10_150)
    table.process(502, ppid=501, own=20, start=10_150)
    assert table.look()[:2] == (30, 0)


def test_a_child_that_ends_is_counted_once(table: Table) -> None:
    table.process(501, ppid=500, own=10, start=10_150)
    assert table.look()[:2] == (10, 0)
    table.end(501)
    table.process(500, ppid=1, child=25)  # its 10 of then, and 15 since
    assert table.look()[:2] == (25, 0)


def test_a_child_that_lives_between_two_looks_counts_for_who_waited(table: Table) -> None:
    table.process(900, ppid=1, child=60)
    assert table.look()[:2] == (0, 60)


def test_a_grandchild_is_inherited_by_the_nearest_living_ancestor(table: Table) -> None:
    table.process(501, ppid=500, own=1, start=10_150)
    table.process(502, ppid=501, own=30, start=10_150)
    assert table.look()[:2] == (31, 0)
    table.end(502)
    table.end(501)
    table.process(500, ppid=1, child=36)
    assert table.look()[:2] == (36, 0)


def test_a_process_that_forked_twice_stays_own(table: Table) -> None:
    table.process(501, ppid=500, own=1, start=10_150)
    table.process(502, ppid=501, own=1, start=10_150)
    table.look()
    table.end(501)
    table.process(502, ppid=1, own=50, start=10_150)
    table.process(500, ppid=1, child=1)
    assert table.look()[:2] == (51, 0)
    assert table.reader.is_own(502)
    assert not table.reader.is_own(900)
    table.end(502)  # and init, who inherits it, does not get its time counted as somebody else's
    table.process(1, ppid=0, child=50)
    assert table.look()[:2] == (51, 0)


def test_a_number_given_out_again_is_another_process(table: Table) -> None:
    table.process(501, ppid=500, own=10, start=10_150)
    table.look()
    table.process(501, ppid=900, own=4, start=10_250)
    assert table.look()[:2] == (10, 4)


def test_the_caller_may_name_more_of_its_own(table: Table) -> None:
    table.named = [900, 4242]
    table.process(900, ppid=1, own=10)
    assert table.look()[:2] == (10, 0)


def test_a_process_that_shows_late_brings_no_past(table: Table) -> None:
    table.process(905, ppid=1, own=70_000, start=20)
    assert table.look()[:2] == (0, 0)


def test_kernel_threads_are_nobodys_and_are_looked_at_anew_now_and_then(table: Table) -> None:
    table.process(15, ppid=2, own=10, flags=KERNEL)
    assert table.look()[:2] == (0, 0)
    table.process(15, ppid=1, own=10, start=10_500)  # the number went to a program
    for _ in range(21):
        table.look()
    table.process(15, ppid=1, own=17, start=10_500)
    assert table.look().foreign_ticks == 7


def test_foreign_processes_count_only_where_the_run_may_be(tmp_path: Path) -> None:
    made = Table(tmp_path, allowed=frozenset({0, 1}))
    made.look()
    made.process(900, ppid=1, own=10, cpu=1)
    made.process(901, ppid=1, own=10, cpu=2, start=10_150)
    assert made.look().foreign_ticks == 10


def test_processes_that_are_hidden_are_told(tmp_path: Path) -> None:
    made = Table(tmp_path)
    made.end(1)
    use = made.look()
    assert not use.sees_all
    assert "hidepid" in use.hidden
    write(str(tmp_path), "/run/systemd/container", "podman")
    made = Table(tmp_path)
    assert made.look().hidden == "a container (podman) sees only its own processes"


def test_damaged_and_vanished_entries_are_passed_over(table: Table) -> None:
    write(table.root, "/proc/777/stat", "rubbish")
    os.makedirs(f"{table.root}/proc/778")
    table.process(900, ppid=1, own=3)
    assert table.look()[:2] == (0, 3)


def test_no_table_at_all_is_an_absence(tmp_path: Path) -> None:
    reader = Processes(recorded_machine(str(tmp_path)), (1,), None, None)
    with pytest.raises(NoData):
        reader.read(Instant(0.0, 1.0))
