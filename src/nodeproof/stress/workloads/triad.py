"""The four kernels of STREAM, each thread on its own part of the arrays."""

from typing import NamedTuple

import numpy as np

from nodeproof.stress.workloads.native import Floats, Words, barrier, kernel, now_ns, stream_copy, stream_scaled, stream_sum

__all__ = ["KERNELS", "PIECE_ELEMENTS", "SCALAR", "Arrays", "array", "arrays", "errors", "expected", "fill", "part", "run_times"]

KERNELS = ("Copy", "Scale", "Add", "Triad")
SCALAR = 3.0
PIECE_ELEMENTS = 512
"""Arrays are cut at multiples of this: a page, so that each thread touches whole pages first."""
_LINE = 64  # bytes


class Arrays(NamedTuple):
    """The three arrays, or a thread's part of them."""

    a: Floats
    b: Floats
    c: Floats


def part(size: int, rank: int, threads: int) -> slice:
    """The elements of a thread; `size` is a multiple of `PIECE_ELEMENTS`."""
    pieces = size // PIECE_ELEMENTS
    return slice(pieces * rank // threads * PIECE_ELEMENTS, pieces * (rank + 1) // threads * PIECE_ELEMENTS)


def arrays(size: int) -> Arrays:
    """Untouched room for three arrays."""
    return Arrays(array(size), array(size), array(size))


def array(size: int) -> Floats:
    """Untouched room for so many elements, beginning on a page."""
    room = np.empty(size + PIECE_ELEMENTS)
    start = -room.ctypes.data % (8 * PIECE_ELEMENTS) // 8
    return room[start : start + size]


@kernel()
def fill(a: Floats, b: Floats, c: Floats) -> None:
    """Touch this thread's part first, with the official values; `a` is doubled as the official timing check does."""
    for index in range(a.size):
        a[index] = 1.0
        b[index] = 2.0
        c[index] = 0.0
    for index in range(a.size):
        a[index] = 2.0 * a[index]


@kernel(reassociate=True)
def _copy(a: Floats, c: Floats) -> None:
    for index in range(c.size):
        c[index] = a[index]


@kernel(reassociate=True)
def _scale(b: Floats, c: Floats) -> None:
    for index in range(c.size):
        b[index] = 3.0 * c[index]


@kernel(reassociate=True)
def _add(a: Floats, b: Floats, c: Floats) -> None:
    for index in range(c.size):
        c[index] = a[index] + b[index]


@kernel(reassociate=True)
def _triad(a: Floats, b: Floats, c: Floats) -> None:
    for index in range(c.size):
        a[index] = b[index] + 3.0 * c[index]


@kernel()
def _copy_past(a: Floats, c: Floats) -> None:
    source, target = a.ctypes.data, c.ctypes.data
    for offset in range(0, c.size * 8, 4 * _LINE):
        for line in range(offset, offset + 4 * _LINE, _LINE):
            stream_copy(target + line, source + line)


@kernel()
def _scale_past(b: Floats, c: Floats) -> None:
    source, target = c.ctypes.data, b.ctypes.data
    for offset in range(0, c.size * 8, 4 * _LINE):
        for line in range(offset, offset + 4 * _LINE, _LINE):
            stream_scaled(target + line, source + line, 3.0)


@kernel()
def _add_past(a: Floats, b: Floats, c: Floats) -> None:
    first, second, target = a.ctypes.data, b.ctypes.data, c.ctypes.data
    for offset in range(0, c.size * 8, 4 * _LINE):
        for line in range(offset, offset + 4 * _LINE, _LINE):
            stream_sum(target + line, first + line, second + line, 1.0)


@kernel()
def _triad_past(a: Floats, b: Floats, c: Floats) -> None:
    first, second, target = b.ctypes.data, c.ctypes.data, a.ctypes.data
    for offset in range(0, c.size * 8, 4 * _LINE):
        for line in range(offset, offset + 4 * _LINE, _LINE):
            stream_sum(target + line, first + line, second + line, 3.0)


@kernel()
def _run(which: int, arrays: Arrays) -> None:
    if which == 0:
        _copy(arrays.a, arrays.c)
    elif which == 1:
        _scale(arrays.b, arrays.c)
    elif which == 2:
        _add(arrays.a, arrays.b, arrays.c)
    else:
        _triad(arrays.a, arrays.b, arrays.c)


@kernel()
def _run_past(which: int, arrays: Arrays) -> None:
    if which == 0:
        _copy_past(arrays.a, arrays.c)
    elif which == 1:
        _scale_past(arrays.b, arrays.c)
    elif which == 2:
        _add_past(arrays.a, arrays.b, arrays.c)
    else:
        _triad_past(arrays.a, arrays.b, arrays.c)


@kernel()
def run_times(arrays: Arrays, streaming: int, rank: int, threads: int, sync: Words, times: Words, done: Words) -> None:
    """Run the four kernels in turn as often as `times` has rows; rank 0 writes each one's nanoseconds there."""
    scratch = np.zeros(2, np.int64)
    for turn in range(times.shape[0]):
        for which in range(4):
            barrier(sync, threads)
            begun = now_ns(scratch)
            if streaming:
                _run_past(which, arrays)
            else:
                _run(which, arrays)
            barrier(sync, threads)
            if rank == 0:
                times[turn, which] = now_ns(scratch) - begun
                done[0] += 1


def expected(turns: int) -> tuple[float, float, float]:
    """What every element of a, b and c must be after so many turns, by the same operations on three numbers."""
    a, b, c = 2.0, 2.0, 0.0
    for _ in range(turns):
        c = a
        b = SCALAR * c
        c = a + b
        a = b + SCALAR * c
    return a, b, c


@kernel()
def errors(values: Floats, wanted: float, tolerance: float, sums: Floats) -> None:
    """This thread's share of the sum of |error| and of the count of elements off by more than the tolerance."""
    total, count = 0.0, 0.0
    for index in range(values.size):
        total += abs(values[index] - wanted)
        if not abs(values[index] / wanted - 1.0) <= tolerance:
            count += 1.0
    sums[0] = total
    sums[1] = count
