"""Computations whose exact answer is known beforehand, one for each kind of unit in a core.

Each takes fixed inputs and gives a whole number in which every bit of the result has a part. The answers stand in
`sdc_answers`; `tools/make_sdc_answers.py` works them out in another way and tells how. What is fixed here (seeds, lengths,
formulas) is fixed there too.
"""

import hashlib
import lzma
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from nodeproof.stress.workloads.native import Floats, Words, fused_multiply_add, kernel

__all__ = ["Inputs", "Kernel", "inputs", "kernels"]

_INTEGER_STEPS: Final = 20_000
_FLOAT_LANES, _FLOAT_STEPS = 32, 256
_VECTOR_LANES, _VECTOR_STEPS = 1024, 32
_MATRIX_ORDER: Final = 192
_SORT_LENGTH: Final = 8192
_COLLATZ_LAST: Final = 4000
_BYTES: Final = 1 << 17
_REPEATS: Final = {"integer": 200, "float": 100, "vector": 400, "sort": 20}
"""Passes in one call, so that a call takes some ten milliseconds without the interpreter lock."""
_HASH_PASSES, _MATRIX_PASSES = 40, 20


class Inputs(NamedTuple):
    """One core's own copies of what the kernels work on."""

    left: Floats
    right: Floats
    product: Floats
    floats: Floats
    words: Words
    data: bytes


class Kernel(NamedTuple):
    """A computation by name: `run` repeats it and gives its answer, or the first answer that differs from the one expected."""

    name: str
    run: Callable[[Inputs, int], int]


@kernel()
def _next(state: np.uint64) -> np.uint64:
    """The generator of all inputs: a step of Knuth's 64-bit linear congruence."""
    return state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)


@kernel()
def _fold(digest: np.uint64, word: np.uint64) -> np.uint64:
    """Take a word into a digest: rotated by 13, so that its place counts."""
    return ((digest << np.uint64(13)) | (digest >> np.uint64(51))) ^ word


@kernel()
def _integer(repeats: int, expected: np.uint64) -> np.uint64:
    digest = np.uint64(0)
    for _ in range(repeats):
        state, digest = np.uint64(1), np.uint64(0)
        for _ in range(_INTEGER_STEPS):
            state = _next(state)
            divisor = ((digest ^ state) & np.uint64(0xFFFFF)) | np.uint64(1)
            digest = _fold(digest, (state // divisor) + (state % divisor) * (state >> np.uint64(32)))
        if digest != expected:
            return digest
    return digest


@kernel()
def _float(values: Floats, repeats: int, expected: np.uint64) -> np.uint64:
    """Chains of fused multiply-add, square root and division, each rounded once; every link counts, as a chain forgets."""
    digest = np.uint64(0)
    bits = values.view(np.uint64)
    for _ in range(repeats):
        digest = np.uint64(0)
        for lane in range(_FLOAT_LANES):
            x = 1.0 + lane / 64.0
            for _ in range(_FLOAT_STEPS):
                x = fused_multiply_add(x, 1.640625, 0.3359375)
                x = np.sqrt(x) + 7.0 / x
                x = x / 2.5 + 0.5625
                values[lane] = x
                digest = _fold(digest, bits[lane])
        if digest != expected:
            return digest
    return digest


@kernel()
def _vector_pass(values: Floats, words: Words) -> None:
    """Maps that spread any difference instead of forgetting it."""
    for _ in range(_VECTOR_STEPS):
        for lane in range(_VECTOR_LANES):
            values[lane] = fused_multiply_add(values[lane] * values[lane], -1.90625, 1.0)
        for lane in range(_VECTOR_LANES):
            words[lane] = (words[lane] * 0x5851F42D4C957F2D) ^ ((words[lane] >> 29) + lane)


@kernel()
def _vector(values: Floats, words: Words, repeats: int, expected: np.uint64) -> np.uint64:
    """Wide floating-point and integer operations on lanes that do not mix."""
    digest = np.uint64(0)
    bits = values.view(np.uint64)
    for _ in range(repeats):
        for lane in range(_VECTOR_LANES):
            values[lane] = 0.125 + lane / 4096.0
            words[lane] = lane * 0x9E3779B97F4A7C + 1
        _vector_pass(values[:_VECTOR_LANES], words[:_VECTOR_LANES])
        digest = np.uint64(0)
        for lane in range(_VECTOR_LANES):
            digest = _fold(digest, bits[lane])
            digest = _fold(digest, np.uint64(words[lane]))
        if digest != expected:
            return digest
    return digest


@kernel()
def _sift(words: Words, start: int, end: int) -> None:
    """One step of a heap sort."""
    root = start
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and words[child] < words[child + 1]:
            child += 1
        if words[root] >= words[child]:
            return
        words[root], words[child] = words[child], words[root]
        root = child


@kernel()
def _sort(words: Words, repeats: int, expected: np.uint64) -> np.uint64:
    """Branches that no predictor learns: a heap sort of random numbers, and the lengths of Collatz chains."""
    digest = np.uint64(0)
    for _ in range(repeats):
        state = np.uint64(2)
        for index in range(_SORT_LENGTH):
            state = _next(state)
            words[index] = np.int64(state >> np.uint64(1))
        for start in range(_SORT_LENGTH // 2 - 1, -1, -1):
            _sift(words, start, _SORT_LENGTH)
        for end in range(_SORT_LENGTH - 1, 0, -1):
            words[0], words[end] = words[end], words[0]
            _sift(words, 0, end)
        digest = np.uint64(0)
        for index in range(_SORT_LENGTH):
            digest = _fold(digest, np.uint64(words[index]))
        for first in range(1, _COLLATZ_LAST + 1):
            number, length = first, 0
            while number != 1:
                number = 3 * number + 1 if number & 1 else number >> 1
                length += 1
            digest = _fold(digest, np.uint64(length))
        if digest != expected:
            return digest
    return digest


@kernel()
def _fold_matrix(product: Floats) -> np.uint64:
    digest = np.uint64(0)
    for row in range(product.shape[0]):
        for column in range(product.shape[1]):
            digest = _fold(digest, np.uint64(np.int64(product[row, column])))
    return digest


@kernel()
def _fill(left: Floats, right: Floats, data: Words) -> None:
    """Whole numbers of up to 20 bits: all sums of their products are exact, in whatever order they are taken."""
    state = np.uint64(3)
    for row in range(left.shape[0]):
        for column in range(left.shape[1]):
            state = _next(state)
            left[row, column] = np.float64(np.int64(state >> np.uint64(44)) - (1 << 19))
            state = _next(state)
            right[row, column] = np.float64(np.int64(state >> np.uint64(44)) - (1 << 19))
    state = np.uint64(4)
    for index in range(data.size):
        state = _next(state)
        data[index] = np.int64(state >> np.uint64(40)) & 0x0F0F0F


def inputs() -> Inputs:
    """Fresh inputs for one core."""
    square = (_MATRIX_ORDER, _MATRIX_ORDER)
    left, right, words = np.zeros(square), np.zeros(square), np.zeros(_BYTES // 8, np.int64)
    _fill(left, right, words)
    length = max(_FLOAT_LANES, _VECTOR_LANES)
    return Inputs(
        left, right, np.zeros(square), np.zeros(length), np.zeros(_SORT_LENGTH, np.int64), words.astype("<i8").tobytes()
    )


def _run_integer(_: Inputs, expected: int) -> int:
    return int(_integer(_REPEATS["integer"], np.uint64(expected)))


def _run_float(its: Inputs, expected: int) -> int:
    return int(_float(its.floats, _REPEATS["float"], np.uint64(expected)))


def _run_vector(its: Inputs, expected: int) -> int:
    return int(_vector(its.floats, its.words, _REPEATS["vector"], np.uint64(expected)))


def _run_sort(its: Inputs, expected: int) -> int:
    return int(_sort(its.words, _REPEATS["sort"], np.uint64(expected)))


def _run_matrix(its: Inputs, expected: int) -> int:
    """The widest multiply-add units, as BLAS uses them."""
    answer = expected
    for _ in range(_MATRIX_PASSES):
        np.matmul(its.left, its.right, out=its.product)
        answer = int(_fold_matrix(its.product))
        if answer != expected:
            break
    return answer


def _run_hash(its: Inputs, expected: int) -> int:
    """SHA-256 and SHA-512 one after the other, 768 bits."""
    answer = expected
    for _ in range(_HASH_PASSES):
        answer = int.from_bytes(hashlib.sha256(its.data).digest() + hashlib.sha512(its.data).digest(), "big")
        if answer != expected:
            break
    return answer


def _run_compression(its: Inputs, expected: int) -> int:
    """CRC-32 of the data after zlib and after LZMA have packed and unpacked it, 64 bits. What cannot be unpacked counts as 0."""
    del expected
    checks = []
    for pack, unpack, error in ((zlib.compress, zlib.decompress, zlib.error), (_pack_lzma, lzma.decompress, lzma.LZMAError)):
        try:
            checks.append(zlib.crc32(unpack(pack(its.data))))
        except error:
            checks.append(0)
    return checks[0] << 32 | checks[1]


def _pack_lzma(data: bytes) -> bytes:
    return lzma.compress(data, preset=0)


def kernels() -> tuple[Kernel, ...]:
    """All of them."""
    return (
        Kernel("integer", _run_integer),
        Kernel("float", _run_float),
        Kernel("vector", _run_vector),
        Kernel("matrix", _run_matrix),
        Kernel("hash", _run_hash),
        Kernel("compression", _run_compression),
        Kernel("sort", _run_sort),
    )
