"""Patterns over memory: which, in which direction, how much of it, and how an error is named."""

import argparse
import io
import os
from itertools import pairwise

import numpy as np
import pytest

from support.workloads import ARRANGED, beats, result, team_of

assert ARRANGED

from nodeproof.stress.parsers import own_result  # noqa: E402 - the environment stands first
from nodeproof.stress.workloads import memory_pattern_job, pattern_kernels  # noqa: E402 - the same
from nodeproof.stress.workloads.box import Box  # noqa: E402 - the same
from nodeproof.stress.workloads.console import Console  # noqa: E402 - the same
from nodeproof.stress.workloads.launch import CannotRunError  # noqa: E402 - the same
from nodeproof.stress.workloads.memory_pattern_job import WordError  # noqa: E402 - the same
from nodeproof.stress.workloads.native import Words  # noqa: E402 - the same

pytestmark = pytest.mark.timeout(120)
MIB = 1 << 20
LLC = 1 * MIB


def _run(monkeypatch: pytest.MonkeyPatch, memory_bytes: int = 16 * MIB, llc_bytes: int = LLC, **changes: object) -> str:
    monkeypatch.setattr(memory_pattern_job, "look", lambda *_: Box(tuple(team_of(2)), memory_bytes, llc_bytes, llc_known=True))
    base: dict[str, object] = {"plan": "quick", "seconds": None, "threads": None, "mib": None, "passes": None, "inject": None}
    stream = io.StringIO()
    memory_pattern_job.run(argparse.Namespace(**(base | changes)), Console("memory_pattern", stream=stream))
    return stream.getvalue()


def _errors() -> Words:
    return np.zeros((pattern_kernels.KEPT, pattern_kernels.FIELDS), np.int64)


@pytest.mark.parametrize("size", [1, 4096, 10_000])
@pytest.mark.parametrize("downwards", [0, 1])
@pytest.mark.parametrize("by_address", [0, 1])
def test_a_sweep_finds_what_was_written_and_leaves_its_complement(size: int, downwards: int, by_address: int) -> None:
    words, done = np.zeros(size, np.int64), np.zeros(1, np.int64)
    pattern_kernels.write(words, 0x1000, 0x55, by_address, done)
    wanted = (0x1000 + 8 * np.arange(size)) ^ 0x55 if by_address else np.full(size, 0x55)
    assert np.array_equal(words, wanted)
    assert pattern_kernels.sweep(words, 0x1000, 0x55, 0, by_address, downwards, _errors(), done) == 0
    assert np.array_equal(words, ~wanted)
    assert pattern_kernels.sweep(words, 0x1000, 0x55, 1, by_address, downwards, _errors(), done) == 0
    assert np.array_equal(words, wanted)
    assert done[0] == 3 * size


def test_errors_are_kept_in_full_up_to_a_number_and_all_are_counted() -> None:
    words, errors = np.zeros(5000, np.int64), _errors()
    words[[7, 4999]] = [1, -(2**63)]
    assert pattern_kernels.sweep(words, 0, 0, 0, 0, 0, errors, np.zeros(1, np.int64)) == 2
    assert errors[:3].tolist() == [[7, 0, 1], [4999, 0, -(2**63)], [0, 0, 0]]
    words[:] = 3
    assert pattern_kernels.sweep(words, 0, 0, 0, 0, 0, _errors(), np.zeros(1, np.int64)) == 5000


def test_washing_reads_every_word() -> None:
    done = np.zeros(1, np.int64)
    assert pattern_kernels.wash(np.arange(1000), done) == 499_500
    assert done[0] == 1000


def test_nine_tenths_of_what_may_be_used_are_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    output = _run(monkeypatch)
    fields = result(output)
    assert 0.8 <= fields["share_of_usable"] <= 0.9
    assert (fields["passed"], fields["past_caches"], fields["errors"], fields["passes"]) == (True, True, 0, 1)
    assert own_result.judge("memory_pattern", own_result.parse(output.encode())).correctness == "validated"


def test_between_write_and_read_of_a_word_lies_more_than_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of sweeps is looked at: one in the same direction lies a whole sweep after the last, a turn needs a wash."""
    log: list[tuple[str, int]] = []
    memory = [0]

    def write(part: Words, *_: object) -> None:
        memory[0] = part.size
        log.append(("up", part.size))

    def sweep(part: Words, base: int, background: int, inverted: int, by_address: int, downwards: int, *_: object) -> int:
        del base, background, inverted, by_address
        log.append(("down" if downwards else "up", part.size))
        return 0

    def wash(part: Words, *_: object) -> int:
        log.append(("wash", part.size))
        return 0

    for function in (write, sweep, wash):
        monkeypatch.setattr(pattern_kernels, function.__name__, function)
    cpu = team_of(1)[0]
    box = Box((cpu,), 16 * MIB, LLC, llc_known=True)
    monkeypatch.setattr(memory_pattern_job, "look", lambda *_: box)
    options = argparse.Namespace(plan="standard", seconds=None, threads=None, mib=None, passes=None, inject=None)
    memory_pattern_job.run(options, Console("memory_pattern", stream=io.StringIO()))
    log = log[3:]  # the first three were made to compile
    assert {direction for direction, _ in log} == {"up", "down", "wash"}
    least = memory[0] * 8
    for (first, _), (second, length) in pairwise(log):
        if {first, second} == {"up", "down"}:
            least = 0  # a turn without a wash
        if second == "wash":
            least = min(least, 8 * length)
    assert least >= 2 * LLC


def test_a_planted_error_is_named_by_address_and_words(monkeypatch: pytest.MonkeyPatch) -> None:
    # word 1,000,001 of 16 MiB lies in the second thread's half
    output = _run(monkeypatch, mib=12, inject="1000001:62")
    (line,) = [line for line in output.splitlines() if line.startswith("ERROR ")]
    (found,) = result(output)["found"]
    address, expected, actual = (int(found[name], 16) for name in ("address", "expected", "actual"))
    assert expected ^ actual == 1 << 62
    assert expected == address ^ 0x2545F4914F6CDD1D
    assert found["element"] == "address-1"
    assert int(found["page_offset"], 16) == address % 4096 == 1_000_001 * 8 % 4096
    assert f"address={address:#x}" in line
    judged = own_result.judge("memory_pattern", own_result.parse(output.encode()))
    assert judged.correctness == "failed"
    assert f"address={address:#x}" in judged.reason


def test_root_is_told_the_physical_address(absent_here: list[str]) -> None:
    words = np.ones(1, np.int64)
    physical = memory_pattern_job.physical_address(words.ctypes.data)
    if os.geteuid() == 0 and physical is None:
        absent_here.append("physical addresses (/proc/self/pagemap shows none here)")
    assert physical is None or physical % 4096 == words.ctypes.data % 4096
    assert memory_pattern_job.physical_address(1 << 62) is None


def test_many_errors_are_told_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_kernels, "sweep", lambda *_: 70)
    output = _run(monkeypatch, mib=12)
    # 8 sweeps, 2 threads, 70 errors each, of which 64 are kept
    assert result(output)["errors"] == 8 * 2 * 70
    assert f"... and {8 * 2 * 6} more" in output


def test_memory_that_the_caches_hold_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    output = _run(monkeypatch, llc_bytes=16 * MIB)
    assert "NOT PROVEN" in output
    assert "never have left them" in output
    assert own_result.judge("memory_pattern", own_result.parse(output.encode())).correctness == "not_proven"


def test_memory_that_was_swapped_out_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_pattern_job, "swapped_bytes", lambda: 4096)
    output = _run(monkeypatch)
    assert "swapped out" in output
    assert result(output)["passed"] is None


def test_passes_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert result(_run(monkeypatch, passes=2))["passes"] == 2
    assert result(_run(monkeypatch, seconds=1))["passes"] >= 2


def test_heartbeats_name_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    phases = [beat.phase for beat in beats(_run(monkeypatch))]
    assert "address-write" in phases
    assert any(phase.startswith("march-5555555555555555-") for phase in phases)


@pytest.mark.parametrize(("mib", "memory_bytes"), [(17, 16 * MIB), (None, 1024)])
def test_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, mib: int | None, memory_bytes: int) -> None:
    with pytest.raises(CannotRunError, match="MiB may be used"):
        _run(monkeypatch, memory_bytes=memory_bytes, mib=mib)


def test_too_many_threads_are_refused() -> None:
    with pytest.raises(CannotRunError, match="CPUs may be used"):
        memory_pattern_job.run(argparse.Namespace(threads=100_000), Console("memory_pattern", stream=io.StringIO()))


def test_an_error_without_physical_address_says_so() -> None:
    found = WordError("march-1", 0x7F0000001008, None, 0, 1)
    assert memory_pattern_job.error_line(found) == (
        "ERROR element=march-1 address=0x7f0000001008 page_offset=0x8 physical=unknown "
        "expected=0x0000000000000000 actual=0x0000000000000001 differing=0x0000000000000001"
    )
