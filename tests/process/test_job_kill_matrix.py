"""Whole stress jobs, ended in every phase by every road, with programs that are hard to end: nothing is left of any.

Every phase is gone through by every road with one program, the run by every road with all of them, and the whole matrix by
``tools/kill_matrix.py``, whose table stands in ``docs/verification.md``.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle

import pytest

from support.kill_rows import PHASES, ROADS, WORKLOADS, Matrix, Row, Seen, all_rows, memory_groups

pytestmark = pytest.mark.timeout(200)
HARD = WORKLOADS[1:]
SLOW = ("end", "limit", "out_of_memory")
"""Of a built-in workload: it has to be compiled first, and to work for some seconds."""


def chosen(*, with_memory: bool) -> list[Row]:
    """Each phase by each road, the programs in turn; the run with every program, but what is slow."""
    turn, rows = cycle(HARD), []
    for row in all_rows(with_memory=with_memory):
        if row.phase == "run":
            rows += [row] if row.workload != "builtin" or row.road not in SLOW else []
        elif row.workload == HARD[0]:
            rows.append(row._replace(workload=next(turn)))
    return rows


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Seen]]:
    with Matrix(tmp_path_factory.mktemp("matrix")) as matrix, ThreadPoolExecutor(6) as pool:
        yield list(pool.map(matrix.run, chosen(with_memory=memory_groups())))


def test_every_phase_and_every_road_is_among_them(seen: list[Seen], absent_here: list[str]) -> None:
    if not memory_groups():
        absent_here.append("no memory group of cgroup v1: the kill matrix had no out-of-memory kill")
    roads = [road for road in ROADS if road != "out_of_memory" or memory_groups()]
    rows = {one.row for one in seen}
    assert {(row.phase, row.road) for row in rows} >= {
        (phase, road) for phase in PHASES for road in roads if phase == "run" or road != "kill_worker"
    }
    assert {(row.road, row.workload) for row in rows if row.phase == "run"} >= {(road, one) for road in roads for one in HARD}


def test_nothing_survives_and_the_record_says_what_happened(seen: list[Seen]) -> None:
    assert [f"{one.row}: {fault}" for one in seen for fault in one.faults] == []


def test_each_road_ends_the_command_as_it_should(seen: list[Seen]) -> None:
    codes: dict[str, set[int]] = {}
    for one in seen:
        if one.row.phase == "run":
            codes.setdefault(one.row.road, set()).add(one.code)
    assert codes.pop("out_of_memory", {1}) == {1}
    assert codes == {
        "end": {1},  # these programs bring no result, which proves nothing
        "limit": {1},
        "cancel": {1},
        "ctrl_c": {1},
        "ctrl_c_twice": {130},
        "term": {1},
        "kill_owner": {-9},
        "kill_worker": {1},
    }
