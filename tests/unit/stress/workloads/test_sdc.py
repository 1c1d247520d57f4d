"""Known answers core by core: made in another way, told by kernel and core when a bit differs."""

import argparse
import io
import lzma
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from support.workloads import ARRANGED, result, team_of

assert ARRANGED

from nodeproof.stress.parsers import own_result  # noqa: E402 - the environment stands first
from nodeproof.stress.workloads import cpu_sdc_job, sdc_kernels  # noqa: E402 - the same
from nodeproof.stress.workloads.box import Box  # noqa: E402 - the same
from nodeproof.stress.workloads.console import Console  # noqa: E402 - the same
from nodeproof.stress.workloads.cpu_sdc_job import Mismatch  # noqa: E402 - the same
from nodeproof.stress.workloads.launch import CannotRunError  # noqa: E402 - the same
from nodeproof.stress.workloads.sdc_answers import ANSWERS  # noqa: E402 - the same
from nodeproof.stress.workloads.sdc_kernels import Kernel  # noqa: E402 - the same

pytestmark = pytest.mark.timeout(120)
TOOL = Path(__file__).resolve().parents[4] / "tools" / "make_sdc_answers.py"
CPU = team_of(1)[0]


@pytest.fixture(scope="module")
def tool() -> dict[str, object]:
    return runpy.run_path(str(TOOL))


def test_the_answers_are_those_that_integer_arithmetic_gives(tool: dict[str, object]) -> None:
    module = tool["module"]
    assert callable(module)
    written = Path(TOOL.parent.parent / "src/nodeproof/stress/workloads/sdc_answers.py").read_text(encoding="utf-8")
    assert module() == written


def test_the_tools_rounding_agrees_with_python_where_python_can(tool: dict[str, Callable[..., object]]) -> None:
    from fractions import Fraction  # noqa: PLC0415 - of this test alone
    from math import sqrt  # noqa: PLC0415 - the same
    from struct import pack  # noqa: PLC0415 - the same

    for number in (0.1, 1.0, 3.75, 1e10, 1 / 3, 2.0**-40 + 1):
        assert tool["rounded"](Fraction(number) / 7) == Fraction(number / 7)
        assert tool["rounded"](-Fraction(number) / 7) == Fraction(-number / 7)
        assert tool["root"](Fraction(number)) == Fraction(sqrt(number))
        assert tool["bits"](Fraction(-number)) == int.from_bytes(pack(">d", -number), "big")
    assert tool["rounded"](Fraction(0)) == 0


@pytest.mark.parametrize("kernel", sdc_kernels.kernels(), ids=lambda kernel: str(kernel.name))
def test_each_kernel_gives_its_answer_whatever_is_expected(kernel: Kernel) -> None:
    its = sdc_kernels.inputs()
    assert kernel.run(its, ANSWERS[kernel.name]) == ANSWERS[kernel.name]
    assert kernel.run(its, ANSWERS[kernel.name] ^ 1) == ANSWERS[kernel.name]


def test_a_changed_input_changes_the_answer() -> None:
    its = sdc_kernels.inputs()
    its.left[10, 20] += 1.0
    other = its._replace(data=b"\x01" + its.data[1:])
    for kernel in sdc_kernels.kernels():
        if kernel.name in ("matrix", "hash", "compression"):
            assert kernel.run(other, ANSWERS[kernel.name]) != ANSWERS[kernel.name]


def test_what_cannot_be_unpacked_is_a_mismatch(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: bytes) -> bytes:
        raise lzma.LZMAError("corrupt")

    monkeypatch.setattr(lzma, "decompress", broken)
    kernel = next(kernel for kernel in sdc_kernels.kernels() if kernel.name == "compression")
    assert kernel.run(sdc_kernels.inputs(), ANSWERS["compression"]) == ANSWERS["compression"] & ~0xFFFFFFFF


def test_a_mismatch_names_kernel_cpu_and_bits() -> None:
    found = Mismatch("float", 7, 3, 0b1000, 0b0001)
    assert found.bits == [0, 3]
    assert cpu_sdc_job.mismatch_line(found) == "MISMATCH kernel=float cpu=7 round=3 expected=0x8 actual=0x1 bits=0,3"


def _run(monkeypatch: pytest.MonkeyPatch, **changes: object) -> str:
    monkeypatch.setattr(cpu_sdc_job, "look", lambda *_: Box(tuple(team_of(2)), 1 << 30, 1 << 20, llc_known=True))
    base: dict[str, object] = {"plan": "quick", "seconds": None, "threads": None, "rounds": 1, "inject": None}
    stream = io.StringIO()
    cpu_sdc_job.run(argparse.Namespace(**(base | changes)), Console("cpu_sdc", stream=stream))
    return stream.getvalue()


def test_a_sound_machine_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    output = _run(monkeypatch, rounds=2)
    assert "cpu_sdc: PASSED, 4 rounds on 2 CPUs, 0 mismatches" in output
    assert own_result.judge("cpu_sdc", own_result.parse(output.encode())).correctness == "validated"


def test_rounds_go_on_until_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = result(_run(monkeypatch, rounds=None, seconds=1))
    assert all(rounds >= 1 for rounds in fields["rounds"].values())


@pytest.mark.parametrize("kernel", [kernel.name for kernel in sdc_kernels.kernels()])
def test_one_flipped_bit_of_any_kernel_names_kernel_and_cpu(monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    monkeypatch.setattr(sdc_kernels, "kernels", lambda: tuple(Kernel(name, lambda _, expected: expected) for name in ANSWERS))
    output = _run(monkeypatch, inject=[f"{kernel}:{CPU}:33"])
    assert f"MISMATCH kernel={kernel} cpu={CPU} round=1 " in output
    fields = result(output)
    assert fields["passed"] is False
    assert {(found["kernel"], found["cpu"]) for found in fields["found"]} == {(kernel, CPU)}
    assert all(found["bits"] == [33] for found in fields["found"])
    judged = own_result.judge("cpu_sdc", own_result.parse(output.encode()))
    assert judged.correctness == "failed"
    assert f"kernel={kernel} cpu={CPU}" in judged.reason


def test_mismatches_beyond_a_hundred_a_cpu_are_only_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdc_kernels, "kernels", lambda: (Kernel("float", lambda _, expected: expected ^ 1),))
    fields = result(_run(monkeypatch, rounds=130))
    assert (fields["mismatches"], len(fields["found"])) == (260, 200)


@pytest.mark.parametrize("inject", ["nothing:0:1", "float:99999:1"])
def test_a_hook_on_what_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, inject: str) -> None:
    with pytest.raises(CannotRunError, match="no such kernel"):
        _run(monkeypatch, inject=[inject])


def test_too_many_threads_are_refused() -> None:
    with pytest.raises(CannotRunError, match="CPUs may be used"):
        cpu_sdc_job.run(argparse.Namespace(threads=100_000), Console("cpu_sdc", stream=io.StringIO()))
