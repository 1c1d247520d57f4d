"""The STREAM run: array size, turns, validation, and the official lines."""

import argparse
import time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodeproof.host.machine import Machine
from nodeproof.stress.workloads import native, team, triad
from nodeproof.stress.workloads.box import Box, look
from nodeproof.stress.workloads.console import Console
from nodeproof.stress.workloads.launch import CannotRunError
from nodeproof.stress.workloads.triad import Arrays

__all__ = ["ArrayCheck", "Seconds", "kernel_line", "run", "validation_lines"]

Seconds = NDArray[np.float64]

_RULE: Final = "-" * 61
_EPSILON: Final = 1e-13
"""Largest average relative error, the official program's for 8-byte elements."""
_LEAST_ELEMENTS: Final = 10_000_000
_CACHE_FACTOR: Final = 4
_MOST_TURNS: Final = 200
"""Values grow fifteenfold a turn; after 260 turns they would overflow."""
_TURNS: Final = {"quick": 10, "standard": 50, "soak": 100}
_SOAK_S: Final = 1800.0
_ARRAYS_TOUCHED: Final = {"Copy": 2, "Scale": 2, "Add": 3, "Triad": 3}
"""Arrays read or written by each kernel: the official count of bytes is 8 an element and array."""
_MEAN_BYTES: Final = 20.0
"""Of an element, over the four kernels."""


class ArrayCheck:
    """How far one array is from what it must hold."""

    def __init__(self, name: str, wanted: float, error_sum: float, wrong: int, size: int) -> None:
        self.name = name
        self.wanted = wanted
        self.average_error = error_sum / size
        self.relative_error = abs(self.average_error / wanted)
        self.wrong = wrong

    @property
    def passed(self) -> bool:
        """Whether the average relative error is small enough; a NaN is not."""
        return self.relative_error <= _EPSILON


def kernel_line(name: str, size: int, seconds: Seconds) -> str:
    """The official row of one kernel, from the seconds of every turn but the first."""
    rate = 1e-6 * _ARRAYS_TOUCHED[name] * 8 * size / seconds.min()
    return f"{name + ':':<12}{rate:12.1f}  {seconds.mean():11.6f}  {seconds.min():11.6f}  {seconds.max():11.6f}"


def validation_lines(checks: list[ArrayCheck]) -> list[str]:
    """The official words on the arrays."""
    lines = []
    for check in checks:
        if not check.passed:
            average, relative = f"AvgAbsErr: {check.average_error:e}", f"AvgRelAbsErr: {check.relative_error:e}"
            lines += [
                f"Failed Validation on array {check.name}[], AvgRelAbsErr > epsilon ({_EPSILON:e})",
                f"     Expected Value: {check.wanted:e}, {average}, {relative}",
                f"     For array {check.name}[], {check.wrong} errors were found.",
            ]
    return lines or [f"Solution Validates: avg error less than {_EPSILON:e} on all three arrays"]


def run(options: argparse.Namespace, console: Console) -> None:
    """Run as many rounds of turns as plan and time ask for; every round is validated."""
    try:
        box = look(Machine.here(), options.threads)
    except ValueError as error:
        raise CannotRunError(str(error)) from None
    turns = options.ntimes or _TURNS[options.plan]
    if not 2 <= turns <= _MOST_TURNS:
        raise CannotRunError(f"{turns} turns asked for; 2 to {_MOST_TURNS} are possible")
    stream = _Stream(box, _elements(options, box), options.stores, console)
    stream.compile()
    _header(console, options, box, stream.size, turns)
    seconds_wanted = float(options.seconds or (_SOAK_S if options.plan == "soak" else 0))
    started, rounds, checks = time.monotonic(), list[Seconds](), list[ArrayCheck]()
    while True:
        rounds.append(stream.turns(turns, len(rounds)))
        found = stream.check(turns, options.inject)
        if not checks or all(check.passed for check in checks):
            checks = found  # the first failure is what is told
        if time.monotonic() - started >= seconds_wanted:
            break
    seconds = np.concatenate([taken[1:] for taken in rounds])
    _tell(console, stream.size, seconds, checks)
    _result(console, options, box, stream.size, turns, seconds, checks)


def _elements(options: argparse.Namespace, box: Box) -> int:
    """Elements of an array, whole pages. Raises CannotRunError when three arrays do not fit."""
    wanted = options.elements or max(_LEAST_ELEMENTS, _CACHE_FACTOR * box.llc_bytes // 8)
    size = -(-wanted // triad.PIECE_ELEMENTS) * triad.PIECE_ELEMENTS
    if 24 * size > box.memory_bytes:
        raise CannotRunError(f"three arrays need {24 * size / 2**20:.0f} MiB, {box.memory_bytes / 2**20:.0f} MiB may be used")
    return size


class _Stream:
    """The three arrays and the threads that work on them."""

    def __init__(self, box: Box, size: int, stores: str, console: Console) -> None:
        self.size = size
        self._cpus = box.cpus
        self._streaming = int(stores == "streaming")
        self._console = console
        self._arrays = triad.arrays(size)
        slices = [triad.part(size, rank, len(box.cpus)) for rank in range(len(box.cpus))]
        self._parts = [Arrays(*(array[its] for array in self._arrays)) for its in slices]

    def compile(self) -> None:
        """Have every kernel compiled or loaded, on arrays too small to count."""
        small, sync = triad.arrays(triad.PIECE_ELEMENTS), np.zeros(native.BARRIER_WORDS, np.int64)
        with native.watch_compiling(self._console):
            triad.fill(*small)
            triad.run_times(small, self._streaming, 0, 1, sync, np.zeros((2, 4), np.int64), np.zeros(1, np.int64))
            triad.errors(small.a, 1.0, _EPSILON, np.zeros(2))

    def turns(self, turns: int, index: int) -> Seconds:
        """Start the arrays anew and run; seconds of each kernel in each turn."""
        threads, suffix = len(self._cpus), f" {index + 1}" if index else ""
        touched = np.zeros(threads, np.int64)

        def touch(rank: int) -> None:
            triad.fill(*self._parts[rank])
            touched[rank] = 1

        team.run(self._cpus, touch, lambda: self._console.beat(f"setup{suffix}", int(touched.sum()), threads, unit="parts"))
        sync, times, done = np.zeros(native.BARRIER_WORDS, np.int64), np.zeros((turns, 4), np.int64), np.zeros(1, np.int64)

        def watch() -> None:
            moved = _MEAN_BYTES * self.size * int(done[0])
            self._console.beat(f"run{suffix}", int(done[0]), 4 * turns, unit="kernels", work_done=moved, rate_unit="B/s")

        team.run(
            self._cpus, lambda rank: triad.run_times(self._parts[rank], self._streaming, rank, threads, sync, times, done), watch
        )
        return times / 1e9

    def check(self, turns: int, inject: str | None) -> list[ArrayCheck]:
        """Hold the arrays against what they must hold."""
        if inject is not None:
            name, _, index = inject.partition(":")
            self._arrays["abc".index(name)][int(index)] *= 1.5
        return [self._check(which, wanted) for which, wanted in enumerate(triad.expected(turns))]

    def _check(self, which: int, wanted: float) -> ArrayCheck:
        sums = np.zeros((len(self._cpus), 2))
        team.run(
            self._cpus,
            lambda rank: triad.errors(self._parts[rank][which], wanted, _EPSILON, sums[rank]),
            lambda: self._console.beat("verify", which, 3, unit="arrays"),
        )
        return ArrayCheck("abc"[which], wanted, float(sums[:, 0].sum()), int(sums[:, 1].sum()), self.size)


def _header(console: Console, options: argparse.Namespace, box: Box, size: int, turns: int) -> None:
    mebibytes = 8 * size / 2**20
    for line in (
        _RULE,
        "STREAM benchmark, nodeproof's own implementation (not STREAM 5.10 of the University of Virginia)",
        _RULE,
        "This system uses 8 bytes per array element.",
        _RULE,
        f"Array size = {size} (elements), Offset = 0 (elements)",
        f"Memory per array = {mebibytes:.1f} MiB (= {mebibytes / 1024:.1f} GiB).",
        f"Total memory required = {3 * mebibytes:.1f} MiB (= {3 * mebibytes / 1024:.1f} GiB).",
        f"Last-level caches = {box.llc_bytes / 2**20:.1f} MiB{'' if box.llc_known else ' (assumed, the machine does not tell)'}.",
        f"Each kernel will be executed {turns} times.",
        " The *best* time for each kernel (excluding the first iteration)",
        " will be used to compute the reported bandwidth.",
        f"Stores: {options.stores}.",
        _RULE,
        f"Number of Threads requested = {len(box.cpus)}",
        f"Number of Threads counted = {len(box.cpus)}",
        _RULE,
    ):
        console.line(line)
    if 8 * size < _CACHE_FACTOR * box.llc_bytes:
        console.line(f"WARNING -- Each array should be at least {_CACHE_FACTOR} times the last-level caches; these are smaller.")
        console.line(_RULE)


def _tell(console: Console, size: int, seconds: Seconds, checks: list[ArrayCheck]) -> None:
    console.line("Function    Best Rate MB/s  Avg time     Min time     Max time")
    for column, name in enumerate(triad.KERNELS):
        console.line(kernel_line(name, size, seconds[:, column]))
    console.line(_RULE)
    for line in validation_lines(checks):
        console.line(line)
    console.line(_RULE)


def _result(
    console: Console,
    options: argparse.Namespace,
    box: Box,
    size: int,
    turns: int,
    seconds: Seconds,
    checks: list[ArrayCheck],
) -> None:
    best = seconds.min(axis=0)
    rates = {
        f"{name.lower()}_mb_s": 1e-6 * _ARRAYS_TOUCHED[name] * 8 * size / float(best[column])
        for column, name in enumerate(triad.KERNELS)
    }
    console.result(
        {
            "plan": options.plan,
            "threads": len(box.cpus),
            "cpus": list(box.cpus),
            "elements": size,
            "ntimes": turns,
            "turns_counted": int(seconds.shape[0]),
            "stores": options.stores,
            "llc_bytes": box.llc_bytes,
            "llc_known": box.llc_known,
            "array_rule_met": 8 * size >= _CACHE_FACTOR * box.llc_bytes,
            "passed": all(check.passed for check in checks),
            "failures": [line for line in validation_lines(checks) if line.startswith("Failed")],
            **rates,
        }
    )
