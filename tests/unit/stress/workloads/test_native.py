"""Atomics, barriers, calls by address and exact arithmetic inside compiled functions."""

import threading
from fractions import Fraction

import numpy as np
import pytest

from support.workloads import ARRANGED, team_of

assert ARRANGED

from nodeproof.stress.workloads import lu, native, team, triad  # noqa: E402 - the environment stands first

pytestmark = pytest.mark.timeout(120)


@native.kernel()
def _count(counter: native.Words, turns: int, sync: native.Words, threads: int, seen: native.Words, rank: int) -> None:
    for turn in range(turns):
        native.add_atomic(counter.ctypes.data, 1)
        native.barrier(sync, threads)
        seen[rank, turn] = native.load_atomic(counter.ctypes.data)
        native.barrier(sync, threads)


def test_a_barrier_lets_nobody_through_before_all_have_come() -> None:
    threads, turns = 2, 20
    counter, sync, seen = np.zeros(1, np.int64), np.zeros(native.BARRIER_WORDS, np.int64), np.zeros((threads, turns), np.int64)
    team.run(team_of(threads), lambda rank: _count(counter, turns, sync, threads, seen, rank), lambda: None)
    assert seen.tolist() == [[threads * (turn + 1) for turn in range(turns)]] * threads


@native.kernel()
def _store_and_load(words: native.Words) -> int:
    native.store_atomic(words.ctypes.data, 41)
    native.pause()
    return int(native.load_atomic(words.ctypes.data) + native.relax(1) + native.relax(1_000_000) - 1_000_003)


def test_words_are_stored_and_loaded_by_address() -> None:
    assert _store_and_load(np.zeros(1, np.int64)) == 41


@native.kernel()
def _fused(first: float, second: float, third: float) -> float:
    return float(native.fused_multiply_add(first, second, third))


def test_a_fused_multiply_add_is_rounded_once() -> None:
    first = 1.0 + 2.0**-30
    exact = Fraction(first) * Fraction(first) - 1
    assert _fused(first, first, -1.0) == float(exact) != first * first - 1.0


def test_the_clock_is_the_monotonic_one() -> None:
    scratch = np.zeros(2, np.int64)
    before = native.now_ns(scratch)
    assert 0 <= native.now_ns(scratch) - before < 60_000_000_000


@native.kernel()
def _swap_rows(address: int, matrix: native.Floats, sizes: native.Ints, pivots: native.Ints) -> None:
    size = sizes.ctypes.data
    native.call_pointers(address, (size, matrix.ctypes.data, size + 4, size + 8, size + 12, pivots.ctypes.data, size + 8))


def test_lapack_is_called_by_address() -> None:
    matrix = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    _swap_rows(lu.blas().dlaswp, matrix, np.array([2, 3, 1, 1], np.int32), np.array([3], np.int32))
    assert matrix.tolist() == [[4.0, 5.0], [2.0, 3.0], [0.0, 1.0]]


@pytest.mark.parametrize("streaming", [0, 1])
def test_both_kinds_of_stores_compute_the_same(streaming: int) -> None:
    arrays, turns = triad.arrays(4 * triad.PIECE_ELEMENTS), 7
    triad.fill(*arrays)
    done = np.zeros(1, np.int64)
    triad.run_times(arrays, streaming, 0, 1, np.zeros(native.BARRIER_WORDS, np.int64), np.zeros((turns, 4), np.int64), done)
    for array, wanted in zip(arrays, triad.expected(turns), strict=True):
        assert array.tolist() == [wanted] * array.size
    assert done[0] == 4 * turns


def test_arrays_begin_on_a_page_and_parts_cover_them() -> None:
    array = triad.array(10 * triad.PIECE_ELEMENTS)
    assert array.ctypes.data % 4096 == 0
    parts = [triad.part(array.size, rank, 3) for rank in range(3)]
    assert [index for part in parts for index in range(array.size)[part]] == list(range(array.size))


def test_the_first_error_of_a_thread_is_raised_though_another_never_ends() -> None:
    released = threading.Event()

    def work(rank: int) -> None:
        if rank:
            raise ArithmeticError("planted")
        released.wait(30)

    try:
        with pytest.raises(ArithmeticError, match="planted"):
            team.run(team_of(2), work, lambda: None)
    finally:
        released.set()


def test_threads_are_pinned_one_to_a_cpu() -> None:
    import os  # noqa: PLC0415 - of this test alone

    cpus, seen = team_of(2), [set[int](), set[int]()]

    def work(rank: int) -> None:
        seen[rank] = set(os.sched_getaffinity(0))

    team.run(cpus, work, lambda: None)
    assert seen == [{cpu} for cpu in cpus]
    assert len(os.sched_getaffinity(0)) >= len(set(cpus))
