"""Sizes of problems."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.stress.parsers import hpl_dat as hpl_input
from nodeproof.stress.parsers.hpl import operations
from nodeproof.stress.sizing import (
    BoxFacts,
    Plan,
    hpcg_dat,
    hpl_dat,
    process_grid,
    size_hpcg,
    size_hpl,
    size_stream,
)

_GIB = 1024**3
_MIB = 1024**2


def _box(memory: int = 64 * _GIB, cpus: int = 16, llc: int | None = 32 * _MIB, room: int | None = None) -> BoxFacts:
    return BoxFacts(allowed_cpus=cpus, memory_available_bytes=memory, cgroup_room_bytes=room, llc_bytes=llc)


def test_the_cgroup_limits_what_may_be_used() -> None:
    assert _box(room=2 * _GIB).usable_bytes == 2 * _GIB
    assert _box(room=128 * _GIB).usable_bytes == 64 * _GIB
    assert _box().usable_bytes == 64 * _GIB


def test_stream_arrays_of_a_small_cache_are_those_of_the_reference() -> None:
    size = size_stream(_box())
    assert (size.elements, size.array_bytes, size.total_bytes, size.threads) == (80_000_000, 640_000_000, 1_920_000_000, 16)
    assert size.concerns == []
    assert size.reason == "610 MiB an array, 16 threads; 19.1 x the last-level cache"


def test_stream_arrays_of_a_large_cache_are_four_times_its_size() -> None:
    # Two sockets of 384 MiB: 4 x 768 MiB / 8 bytes.
    assert size_stream(_box(llc=768 * _MIB)).elements == 402_653_184


def test_stream_arrays_that_memory_does_not_hold() -> None:
    # Half of 1.5 GiB for three arrays of doubles: 805306368 / 24.
    size = size_stream(_box(memory=1536 * _MIB, llc=256 * _MIB))
    assert size.elements == 33_554_432
    assert "1024 MiB" in size.concerns[0]
    assert size_stream(_box(memory=1)).elements == 1_000_000


def test_an_unknown_cache_is_told() -> None:
    assert size_stream(_box(llc=None)).concerns == [
        "the size of the last-level cache is unknown, so the array rule cannot be checked"
    ]


@pytest.mark.parametrize(("ranks", "grid"), [(1, (1, 1)), (2, (1, 2)), (8, (2, 4)), (7, (1, 7)), (36, (6, 6)), (96, (8, 12))])
def test_grids_are_as_square_as_can_be(ranks: int, grid: tuple[int, int]) -> None:
    assert process_grid(ranks) == grid


def test_standard_hpl_fills_seven_tenths() -> None:
    # sqrt(0.7 x 64 GiB / 8) = 77530.2, 403 blocks of 192.
    size = size_hpl(_box(), Plan.STANDARD, processes=8)
    assert (size.n, size.nb, size.p, size.q, size.threads_per_process) == (77376, 192, 2, 4, 2)
    assert size.matrix_bytes == 8 * 77376**2
    assert size.memory_share == pytest.approx(0.697, abs=0.001)
    assert size.repeats == 1
    assert size.concerns == []


def test_quick_hpl_takes_twenty_seconds_even_at_the_fastest_rate() -> None:
    # (1.5 x 125e9 x 20)^(1/3) = 15536.2, one block above 80 of them.
    size = size_hpl(_box(), Plan.QUICK, fastest_flops=125e9)
    assert size.n == 15552
    assert size.least_seconds == pytest.approx(operations(15552) / 125e9)
    assert size.least_seconds >= 20
    assert size_hpl(_box(cpus=2), Plan.QUICK).n == 21312


def test_quick_hpl_that_memory_does_not_hold_is_repeated() -> None:
    size = size_hpl(_box(memory=128 * _MIB, cpus=2), Plan.QUICK)
    # sqrt(0.6 x 128 MiB / 8) = 3172.9: 16 blocks; 1.934e10 operations at 320e9 a second take 0.0604 s, 20 s 330.9 of them.
    assert size.n == 3072
    assert size.repeats == 331
    assert size.concerns == ["memory holds no problem that takes 20 s; it is run 331 times"]


def test_a_box_with_hardly_any_memory_gets_one_block_and_a_warning() -> None:
    size = size_hpl(_box(memory=1000), Plan.STANDARD)
    assert size.n == 192
    assert size.concerns == ["even one block of 192 takes 29491% of the usable memory"]
    assert size_hpl(_box(memory=0), Plan.STANDARD).memory_share == float("inf")


@given(st.integers(2 * _GIB, 4096 * _GIB), st.integers(1, 512), st.integers(1, 64))
def test_standard_hpl_always_fills_60_to_80_percent(memory: int, cpus: int, processes: int) -> None:
    size = size_hpl(_box(memory, cpus), Plan.STANDARD, processes=processes)
    assert 0.6 <= size.memory_share <= 0.8
    assert size.n % size.nb == 0
    assert size.p * size.q == processes
    assert size.p <= size.q


@given(st.integers(64 * _MIB, 4096 * _GIB), st.integers(1, 512), st.floats(1e9, 1e14))
def test_quick_hpl_always_makes_20_seconds_and_fits(memory: int, cpus: int, rate: float) -> None:
    size = size_hpl(_box(memory, cpus), Plan.QUICK, fastest_flops=rate)
    assert size.least_seconds * size.repeats >= 20 * (1 - 1e-9)
    assert size.memory_share <= 0.6


def test_quick_hpcg_is_hpcgs_own_default() -> None:
    size = size_hpcg(_box(), Plan.QUICK, processes=4)
    assert (size.nx, size.ny, size.nz, size.processes, size.threads_per_process) == (104, 104, 104, 4, 4)
    assert size.total_bytes == 4 * 104**3 * 720
    assert size.runtime_seconds == 30
    assert size.concerns == []


def test_standard_hpcg_takes_a_quarter_of_memory_and_the_official_time() -> None:
    # 64 GiB / 4 / 4 processes / 720 bytes = 5965232 equations: an edge of 181.4, the next multiple of 8 is 184.
    size = size_hpcg(_box(), Plan.STANDARD, processes=4)
    assert (size.nx, size.runtime_seconds) == (184, 1800)
    assert size.memory_share == pytest.approx(4 * 184**3 * 720 / (64 * _GIB))
    assert size.concerns == []


def test_hpcg_on_a_box_that_is_too_small_says_so() -> None:
    tiny = size_hpcg(_box(memory=4 * _MIB), Plan.STANDARD)
    assert tiny.nx == 16
    assert tiny.concerns == [
        "even the smallest grid takes 70% of the usable memory",
        "the problem of 3 MiB partly fits into the last-level cache",
    ]
    # 0.6 x 12 MiB hold an edge of 21.9, so 16: a quarter of memory is not reached.
    short = size_hpcg(_box(memory=12 * _MIB, llc=None), Plan.STANDARD)
    assert short.concerns == ["the grid takes 23% of the usable memory, an official run needs a quarter"]
    assert size_hpcg(_box(memory=0, llc=None), Plan.QUICK).memory_share == float("inf")


def test_a_cube_that_fits_exactly_is_not_lost_to_rounding() -> None:
    # A quarter of memory holds 24^3 equations of 720 bytes exactly; the next edge is 32.
    assert size_hpcg(_box(memory=4 * 24**3 * 720, llc=None), Plan.STANDARD).nx == 32


@given(st.integers(256 * _MIB, 4096 * _GIB), st.integers(1, 64))
def test_hpcg_grids_are_multiples_of_eight_that_fit(memory: int, processes: int) -> None:
    size = size_hpcg(_box(memory), Plan.STANDARD, processes=processes)
    assert size.nx % 8 == 0
    assert size.nx >= 16
    if not size.concerns:
        assert 0.25 <= size.memory_share <= 0.6


def test_hpl_dat_is_what_hpl_and_our_own_reader_expect() -> None:
    size = size_hpl(_box(), Plan.STANDARD, processes=8)
    text = hpl_dat(size)
    dat = hpl_input.parse(text.encode())
    assert dat == hpl_input.HplDat(6, (77376,), (192,), ((2, 4),), 16.0)
    first = [line.split()[0] for line in text.splitlines()]
    assert first[2:] == "HPL.out 6 1 77376 1 192 0 1 2 4 16.0 1 2 1 4 1 2 1 1 1 1 1 1 2 64 0 0 1 8".split()  # noqa: SIM905 - one line as HPL reads it
    # The reference's rule: the first word of the lines that are not empty; 6 = N, 8 = NB, 11 = P, 12 = Q.
    assert [first[line - 1] for line in (6, 8, 11, 12)] == ["77376", "192", "2", "4"]


def test_hpcg_dat_has_the_grid_in_line_3_and_the_time_in_line_4() -> None:
    assert hpcg_dat(size_hpcg(_box(), Plan.QUICK)).splitlines()[2:] == ["104 104 104", "30"]
