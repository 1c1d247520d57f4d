"""Checks that predict a failing run."""

import pytest

from nodeproof.model.job import CheckStatus
from nodeproof.stress.parsers.hpl_dat import HplDat
from nodeproof.stress.preflight import (
    Finding,
    check_disk,
    check_duration,
    check_hpcg_grid,
    check_hpl_input,
    check_hpl_memory,
    check_load,
    check_process_grid,
    check_stream_array,
    check_workers,
    roll_up,
)
from nodeproof.stress.sizing import BoxFacts

_GIB = 1024**3
_MIB = 1024**2
_BOX = BoxFacts(allowed_cpus=8, memory_available_bytes=16 * _GIB, llc_bytes=64 * _MIB)


def _status(finding: Finding) -> str:
    assert (finding.fix == "") == (finding.status is CheckStatus.PASS)
    return finding.status.value


def test_f22_p_times_q_against_the_ranks() -> None:
    larger = check_process_grid(((1, 2), (2, 4)), 4)
    assert _status(larger) == "fail"
    assert larger.message == "process grid 2 x 4 needs 8 ranks, 4 will be started"
    assert larger.fix == "start 8 ranks, or set P x Q = 4 in HPL.dat"
    assert (larger.measured, larger.limit) == (8, 4)
    smaller = check_process_grid(((1, 2),), 8)
    assert _status(smaller) == "warn"
    assert smaller.message.endswith("6 of them will do nothing")
    assert _status(check_process_grid(((2, 4),), 8)) == "pass"
    assert _status(check_process_grid((), 1)) == "warn"


def test_f22_the_matrix_against_memory() -> None:
    # 16 GiB hold N = 46340; four fifths of them 41448.
    too_large = check_hpl_memory(50000, _BOX)
    assert _status(too_large) == "fail"
    assert too_large.fix == "use N of at most 41448"
    assert too_large.measured == 8 * 50000**2
    assert _status(check_hpl_memory(44000, _BOX)) == "warn"
    assert _status(check_hpl_memory(40000, _BOX)) == "pass"


def test_an_hpl_dat_that_hides_its_results_or_checks_nothing() -> None:
    fine = HplDat(6, (1000, 2000), (192,), ((1, 2), (2, 1)), 16.0)
    assert check_hpl_input(fine).message == "results to standard output, at least 4 tests with residual check"
    assert _status(check_hpl_input(fine)) == "pass"
    assert check_hpl_input(fine._replace(device=8)).fix == "set line 4 of HPL.dat to 6"
    assert _status(check_hpl_input(fine._replace(device=None))) == "fail"
    for threshold in (0.0, -1.0, None):
        assert _status(check_hpl_input(fine._replace(threshold=threshold))) == "fail"


def test_a_stream_array_against_the_cache_and_memory() -> None:
    array, memory = check_stream_array(128 * _MIB, _BOX)
    assert _status(array) == "warn"
    assert array.fix == "use arrays of at least 33554432 elements"
    assert _status(memory) == "pass"
    array, memory = check_stream_array(8 * _GIB, _BOX)
    assert (_status(array), _status(memory)) == ("pass", "fail")
    unknown, _ = check_stream_array(_GIB, BoxFacts(allowed_cpus=8, memory_available_bytes=16 * _GIB))
    assert _status(unknown) == "warn"


@pytest.mark.parametrize(
    ("edges", "status", "fix"),
    [
        ((104, 104, 104), "pass", ""),
        ((17, 32, 32), "fail", "use 16 x 32 x 32"),
        ((8, 32, 32), "fail", "use 16 x 32 x 32"),
        ((430, 430, 430), "fail", "use 424 x 424 x 424"),
        ((16, 160, 160), "fail", "use edges of similar length"),
    ],
)
def test_a_grid_against_hpcgs_own_rules(edges: tuple[int, int, int], status: str, fix: str) -> None:
    grid, _ = check_hpcg_grid(*edges, 1, _BOX)
    assert (_status(grid), grid.fix) == (status, fix)


def test_a_grid_against_memory() -> None:
    _, memory = check_hpcg_grid(256, 256, 256, 8, _BOX)
    # 8 x 256^3 x 720 bytes = 90 GiB.
    assert (_status(memory), memory.measured) == ("fail", 8 * 256**3 * 720)


def test_f22_workers_against_the_allowed_cpus() -> None:
    assert _status(check_workers(16, 1, _BOX)) == "fail"
    shared = check_workers(4, 4, _BOX)
    assert (_status(shared), shared.fix) == ("warn", "use 2 threads a process")
    idle = check_workers(2, 1, _BOX)
    assert _status(idle) == "warn"
    assert idle.message.endswith("6 CPUs are left without load")
    assert _status(check_workers(2, 4, _BOX)) == "pass"


def test_disk_load_and_time() -> None:
    assert _status(check_disk(5 * _MIB, 10 * _MIB, "/var/lib/nodeproof")) == "fail"
    assert _status(check_disk(50 * _MIB, 10 * _MIB, "/var/lib/nodeproof")) == "pass"
    busy = check_load(2.0, _BOX)
    assert _status(busy) == "warn"
    assert busy.message == "the load average of the last minute is 2.00 on 8 allowed CPUs"
    assert _status(check_load(0.2, _BOX)) == "pass"
    late = check_duration(764.0, 600.0)
    assert late.message == "the work takes at least 764 s, the limit is 600 s: it will be stopped without a result"
    assert _status(late) == "warn"
    assert _status(check_duration(20.0, 600.0)) == "pass"


def test_the_sum_of_all_checks() -> None:
    good, warned = check_workers(2, 4, _BOX), check_workers(2, 1, _BOX)
    bad = check_process_grid(((2, 4),), 4)
    assert roll_up([good, good]).message == "2 checks passed"
    assert roll_up([]).status is CheckStatus.PASS
    assert roll_up([good, warned]).status is CheckStatus.WARN
    failed = roll_up([warned, bad, good])
    assert failed.status is CheckStatus.FAIL
    assert failed.message == (
        "1 of 3 checks failed: process grid 2 x 4 needs 8 ranks, 4 will be started (start 8 ranks, or set P x Q = 4 in HPL.dat)"
    )
