"""The `memory_pattern` run: which memory, which sweeps, and where what was read differed from what was written.

A pass writes the address pattern and sweeps it twice upwards; then, for each background, writes it and sweeps twice upwards
and twice downwards (March C-). Sweeps run over all the memory, so between writing a word and reading it back lies a whole
sweep of other traffic; where the direction turns, the far end is read first, twice the last-level caches of it. A last sweep
reads what the one before it left.
"""

import argparse
import contextlib
import time
from typing import Final, NamedTuple

import numpy as np

from nodeproof.host.machine import Machine
from nodeproof.stress.workloads import native, pattern_kernels, team
from nodeproof.stress.workloads.box import Box, look
from nodeproof.stress.workloads.console import Console
from nodeproof.stress.workloads.launch import CannotRunError
from nodeproof.stress.workloads.native import Words

__all__ = ["WordError", "error_line", "physical_address", "run", "swapped_bytes"]

_SHARE: Final = 0.9
_LEAST_BYTES: Final = 1 << 20
_PAGE: Final = 4096
_WASH_FACTOR: Final = 2
_SOAK_S: Final = 3600.0
_BACKGROUNDS: Final = {
    "quick": (0x5555555555555555,),
    "standard": (0, 0x5555555555555555, 0x3333333333333333, 0x6C8E9CF570932BD5),
    "soak": (0, 0x5555555555555555, 0x3333333333333333, 0x6C8E9CF570932BD5),
}
"""Each is used together with its complement."""
_ADDRESS_KEY: Final = 0x2545F4914F6CDD1D
_WORD_BITS: Final = (1 << 64) - 1
_DIRECTIONS: Final = (False, False, True, True, False)
"""Sweeps of a march after its first writing: downwards or not."""


class WordError(NamedTuple):
    """A word that did not hold what was written to it."""

    element: str
    address: int
    physical: int | None
    expected: int
    actual: int


def error_line(found: WordError) -> str:
    """What is told of one."""
    physical = "unknown" if found.physical is None else f"{found.physical:#x}"
    place = f"address={found.address:#x} page_offset={found.address % _PAGE:#x} physical={physical}"
    return (
        f"ERROR element={found.element} {place} expected={found.expected:#018x} actual={found.actual:#018x} "
        f"differing={found.expected ^ found.actual:#018x}"
    )


def run(options: argparse.Namespace, console: Console) -> None:
    """Run passes until they are done or the time is up; a pass begun is finished."""
    try:
        box = look(Machine.here(), options.threads)
    except ValueError as error:
        raise CannotRunError(str(error)) from None
    memory = _Memory(box, _bytes(options, box), console)
    with native.watch_compiling(console):
        memory.compile()
    _header(console, box, memory)
    seconds = float(options.seconds or (_SOAK_S if options.plan == "soak" else 0.0))
    started, passes = time.monotonic(), 0
    while True:
        passes += 1
        memory.one_pass(_BACKGROUNDS[options.plan], options.inject if passes == 1 else None)
        if passes >= options.passes if options.passes else time.monotonic() - started >= seconds:
            break
    _tell(console, memory, passes)
    _result(console, options, box, memory, passes)


def _bytes(options: argparse.Namespace, box: Box) -> int:
    """How much to test, in whole pages for each thread. Raises CannotRunError when it is not there."""
    wanted = options.mib * 2**20 if options.mib else int(_SHARE * box.memory_bytes)
    unit = _PAGE * len(box.cpus)
    if wanted > box.memory_bytes or wanted < max(_LEAST_BYTES, unit):
        raise CannotRunError(f"{wanted / 2**20:.0f} MiB to be tested, {box.memory_bytes / 2**20:.0f} MiB may be used")
    return wanted // unit * unit


class _Memory:
    """The memory under test, one part a thread."""

    def __init__(self, box: Box, size: int, console: Console) -> None:
        self.size = size
        self.share = size / box.memory_bytes if box.memory_bytes else 0.0
        self.wash_bytes = _WASH_FACTOR * box.llc_bytes
        self.past_caches = size >= 2 * self.wash_bytes
        self.found: list[WordError] = []
        self.count = 0
        self._cpus = box.cpus
        self._console = console
        room = np.empty(size // 8 + _PAGE // 8, np.int64)
        start = -room.ctypes.data % _PAGE // 8
        length = size // 8 // len(box.cpus)
        self._parts = [room[start + rank * length : start + (rank + 1) * length] for rank in range(len(box.cpus))]
        self._done = [np.zeros(1, np.int64) for _ in box.cpus]

    def compile(self) -> None:
        """Have every kernel compiled or loaded."""
        words, errors, done = (
            np.zeros(8, np.int64),
            np.zeros((pattern_kernels.KEPT, pattern_kernels.FIELDS), np.int64),
            np.zeros(1, np.int64),
        )
        pattern_kernels.write(words, 0, 0, 0, done)
        pattern_kernels.sweep(words, 0, 0, 0, 0, 0, errors, done)
        pattern_kernels.wash(words, done)

    def doubt(self) -> str:
        """Why no error would prove little; empty when it proves what it should."""
        if not self.past_caches:
            return "so little memory partly stays in the caches; what was read back may never have left them"
        if swapped_bytes():
            return "part of the memory was swapped out; not all of it was tested"
        return ""

    def one_pass(self, backgrounds: tuple[int, ...], inject: str | None) -> None:
        """The address pattern and a march on each background."""
        self._write("address", _ADDRESS_KEY, by_address=True)
        if inject is not None:
            self._flip(inject)
        for turn in range(3):
            self._sweep(f"address-{turn + 1}", _ADDRESS_KEY, inverted=turn % 2 == 1, by_address=True, downwards=False)
        for background in backgrounds:
            name = f"march-{background:016x}"
            self._write(name, background, by_address=False)
            for turn, downwards in enumerate(_DIRECTIONS):
                if turn and downwards != _DIRECTIONS[turn - 1]:
                    self._wash(f"{name}-turn", from_start=downwards)
                self._sweep(f"{name}-{turn + 1}", background, inverted=turn % 2 == 1, by_address=False, downwards=downwards)

    def _write(self, name: str, background: int, *, by_address: bool) -> None:
        def work(rank: int) -> None:
            part = self._parts[rank]
            pattern_kernels.write(part, part.ctypes.data, background, int(by_address), self._done[rank])

        self._run(f"{name}-write", work)

    def _sweep(self, name: str, background: int, *, inverted: bool, by_address: bool, downwards: bool) -> None:
        threads = len(self._cpus)
        errors = np.zeros((threads, pattern_kernels.KEPT, pattern_kernels.FIELDS), np.int64)
        counts = [0] * threads

        def work(rank: int) -> None:
            part, base = self._parts[rank], self._parts[rank].ctypes.data
            counts[rank] = pattern_kernels.sweep(
                part, base, background, int(inverted), int(by_address), int(downwards), errors[rank], self._done[rank]
            )

        self._run(name, work)
        self.count += sum(counts)
        for rank, count in enumerate(counts):
            base = self._parts[rank].ctypes.data
            for place, wanted, actual in errors[rank, : min(count, pattern_kernels.KEPT)]:
                address = base + 8 * int(place)
                self.found.append(
                    WordError(name, address, physical_address(address), int(wanted) & _WORD_BITS, int(actual) & _WORD_BITS)
                )

    def _wash(self, name: str, *, from_start: bool) -> None:
        """Read the end of each part that is read last next."""
        length = min(self._parts[0].size, self.wash_bytes // 8 // len(self._cpus))

        def work(rank: int) -> None:
            part = self._parts[rank]
            pattern_kernels.wash(part[:length] if from_start else part[-length:], self._done[rank])

        self._run(name, work)

    def _run(self, phase: str, work: team.Work) -> None:
        for done in self._done:
            done[0] = 0

        def watch() -> None:
            words = int(sum(int(done[0]) for done in self._done))
            self._console.beat(phase, words, self.size // 8, unit="words", work_done=8.0 * words, rate_unit="B/s")

        team.run(self._cpus, work, watch)

    def _flip(self, inject: str) -> None:
        place, _, bit = inject.partition(":")
        rank, offset = divmod(int(place), self._parts[0].size)
        words: Words = self._parts[rank]
        words.view(np.uint64)[offset] ^= np.uint64(1 << int(bit))


def physical_address(address: int) -> int | None:
    """Physical address of a byte, where the kernel tells (it tells root)."""
    with contextlib.suppress(OSError), open("/proc/self/pagemap", "rb") as file:
        file.seek(address // _PAGE * 8)
        entry = int.from_bytes(file.read(8), "little")
        frame = entry & ((1 << 55) - 1)
        if entry >> 63 and frame:
            return frame * _PAGE + address % _PAGE
    return None


def _header(console: Console, box: Box, memory: _Memory) -> None:
    console.line("memory_pattern, nodeproof's own check of memory")
    console.line(f"{memory.size / 2**20:.0f} MiB, {100 * memory.share:.1f} % of what may be used; {len(box.cpus)} threads")


def swapped_bytes() -> int:
    """Of this process."""
    with open("/proc/self/status", "rb") as file:
        for line in file:
            if line.startswith(b"VmSwap:"):
                return int(line.split()[1]) * 1024
    return 0


def _tell(console: Console, memory: _Memory, passes: int) -> None:
    for found in memory.found:
        console.line(error_line(found))
    if memory.count > len(memory.found):
        console.line(f"... and {memory.count - len(memory.found)} more")
    doubt = memory.doubt()
    if doubt:
        console.line(f"WARNING: {doubt}")
    verdict = "FAILED" if memory.count else "NOT PROVEN" if doubt else "PASSED"
    console.line(f"memory_pattern: {verdict}, {passes} passes over {memory.size / 2**20:.0f} MiB, {memory.count} errors")


def _result(console: Console, options: argparse.Namespace, box: Box, memory: _Memory, passes: int) -> None:
    console.result(
        {
            "plan": options.plan,
            "threads": len(box.cpus),
            "cpus": list(box.cpus),
            "bytes": memory.size,
            "memory_usable_bytes": box.memory_bytes,
            "share_of_usable": memory.share,
            "llc_bytes": box.llc_bytes,
            "llc_known": box.llc_known,
            "past_caches": memory.past_caches,
            "swapped_bytes": swapped_bytes(),
            "passes": passes,
            "errors": memory.count,
            "passed": False if memory.count else None if memory.doubt() else True,
            "doubt": memory.doubt(),
            "failures": [error_line(found) for found in memory.found],
            "found": [
                {
                    "element": found.element,
                    "address": f"{found.address:#x}",
                    "page_offset": f"{found.address % _PAGE:#x}",
                    "physical": None if found.physical is None else f"{found.physical:#x}",
                    "expected": f"{found.expected:#018x}",
                    "actual": f"{found.actual:#018x}",
                }
                for found in memory.found
            ],
        }
    )
