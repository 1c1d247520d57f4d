"""The `cpu_sdc` run: rounds of all kernels on each CPU until the time is up, and every answer that differed."""

import argparse
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from nodeproof.host.machine import Machine
from nodeproof.stress.workloads import native, sdc_kernels, team
from nodeproof.stress.workloads.box import look
from nodeproof.stress.workloads.console import Console
from nodeproof.stress.workloads.launch import CannotRunError
from nodeproof.stress.workloads.sdc_answers import ANSWERS
from nodeproof.stress.workloads.sdc_kernels import Kernel

__all__ = ["Mismatch", "mismatch_line", "run"]

_SECONDS: Final = {"quick": 10.0, "standard": 120.0, "soak": 3600.0}
_MOST_KEPT: Final = 100
"""Mismatches told in full, for each CPU; all are counted."""
_NS_PER_S: Final = 1_000_000_000


class Mismatch(NamedTuple):
    """One answer that was not the known one."""

    kernel: str
    cpu: int
    round: int
    expected: int
    actual: int

    @property
    def bits(self) -> list[int]:
        """Places of the bits that differ, from 0."""
        difference = self.expected ^ self.actual
        return [place for place in range(difference.bit_length()) if difference >> place & 1]


def mismatch_line(found: Mismatch) -> str:
    """What is told of one."""
    bits = ",".join(map(str, found.bits))
    values = f"expected={found.expected:#x} actual={found.actual:#x}"
    return f"MISMATCH kernel={found.kernel} cpu={found.cpu} round={found.round} {values} bits={bits}"


def run(options: argparse.Namespace, console: Console) -> None:
    """Run on all CPUs at once."""
    try:
        box = look(Machine.here(), options.threads)
    except ValueError as error:
        raise CannotRunError(str(error)) from None
    kernels = sdc_kernels.kernels()
    flips = _flips(options.inject or (), kernels, box.cpus)
    with native.watch_compiling(console):
        trial = sdc_kernels.inputs()
        for kernel in kernels:
            kernel.run(trial, 0)
    seconds = None if options.rounds else float(options.seconds or _SECONDS[options.plan])
    deadline_ns = None if seconds is None else time.monotonic_ns() + int(seconds * _NS_PER_S)
    cores = [_Core(cpu, kernels, flips) for cpu in box.cpus]
    _header(console, box.cpus, kernels)

    def watch() -> None:
        calls = sum(core.calls for core in cores)
        console.beat("run", calls, unit="kernels", work_done=float(calls), rate_unit="kernels/s")

    team.run(box.cpus, lambda rank: cores[rank].work(options.rounds, deadline_ns), watch)
    _tell(console, cores, kernels)
    _result(console, options, box.cpus, cores, kernels)


class _Core:
    """The rounds of one CPU; its fields are read while it works."""

    def __init__(self, cpu: int, kernels: Sequence[Kernel], flips: dict[tuple[str, int], int]) -> None:
        self.cpu = cpu
        self.calls = 0
        self.rounds = 0
        self.counts = dict.fromkeys((kernel.name for kernel in kernels), 0)
        self.found: list[Mismatch] = []
        self._kernels = kernels
        self._flips = flips

    def work(self, rounds: int | None, deadline_ns: int | None) -> None:
        """All kernels in turn, whole rounds, at least one."""
        its = sdc_kernels.inputs()
        while True:
            for kernel in self._kernels:
                expected = ANSWERS[kernel.name]
                actual = kernel.run(its, expected)
                if self.rounds == 0:
                    actual ^= self._flips.get((kernel.name, self.cpu), 0)
                if actual != expected:
                    self._note(Mismatch(kernel.name, self.cpu, self.rounds + 1, expected, actual))
                self.calls += 1
            self.rounds += 1
            if self.rounds == rounds or (deadline_ns is not None and time.monotonic_ns() >= deadline_ns):
                return

    def _note(self, found: Mismatch) -> None:
        self.counts[found.kernel] += 1
        if len(self.found) < _MOST_KEPT:
            self.found.append(found)


def _flips(asked: Sequence[str], kernels: Sequence[Kernel], cpus: Sequence[int]) -> dict[tuple[str, int], int]:
    """The bits to flip, by kernel and CPU. Raises CannotRunError for what is not there."""
    flips: dict[tuple[str, int], int] = {}
    for text in asked:
        name, cpu, bit = text.split(":")
        if name not in {kernel.name for kernel in kernels} or int(cpu) not in cpus:
            raise CannotRunError(f"--inject {text}: no such kernel, or CPU {cpu} is not used")
        flips[name, int(cpu)] = 1 << int(bit)
    return flips


def _header(console: Console, cpus: Sequence[int], kernels: Sequence[Kernel]) -> None:
    console.line("cpu_sdc, nodeproof's own check for silent data corruption")
    console.line(f"CPUs: {','.join(map(str, cpus))}; kernels: {', '.join(kernel.name for kernel in kernels)}")


def _tell(console: Console, cores: Sequence[_Core], kernels: Sequence[Kernel]) -> None:
    for core in cores:
        for found in core.found:
            console.line(mismatch_line(found))
    console.line(f"{'kernel':<12}{'answers':>12}{'mismatches':>12}  CPUs")
    answers = sum(core.rounds for core in cores)
    for kernel in kernels:
        bad = [core for core in cores if core.counts[kernel.name]]
        wrong = sum(core.counts[kernel.name] for core in bad)
        console.line(f"{kernel.name:<12}{answers:>12}{wrong:>12}  {','.join(str(core.cpu) for core in bad) or '-'}")
    total = sum(sum(core.counts.values()) for core in cores)
    console.line(f"cpu_sdc: {'FAILED' if total else 'PASSED'}, {answers} rounds on {len(cores)} CPUs, {total} mismatches")


def _result(
    console: Console, options: argparse.Namespace, cpus: Sequence[int], cores: Sequence[_Core], kernels: Sequence[Kernel]
) -> None:
    total = sum(sum(core.counts.values()) for core in cores)
    console.result(
        {
            "plan": options.plan,
            "threads": len(cpus),
            "cpus": list(cpus),
            "kernels": [kernel.name for kernel in kernels],
            "rounds": {str(core.cpu): core.rounds for core in cores},
            "mismatches": total,
            "passed": total == 0,
            "failures": [mismatch_line(found) for core in cores for found in core.found],
            "found": [
                {
                    "kernel": found.kernel,
                    "cpu": found.cpu,
                    "round": found.round,
                    "expected": f"{found.expected:#x}",
                    "actual": f"{found.actual:#x}",
                    "bits": found.bits,
                }
                for core in cores
                for found in core.found
            ],
            "versions": {"numpy": np.__version__},
        }
    )
