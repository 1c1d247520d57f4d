"""``gpu_burn`` on torch's own device interface, with the processor in the place of a GPU.

torch is no dependency of the tests: ``tools/torch_for_tests.sh`` puts it into an environment of its own where it costs little.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nodeproof.model.job import Correctness
from nodeproof.stress.judging import judge_output

pytestmark = pytest.mark.timeout(120)

_PYTHON = Path(sys.prefix + "-torch") / "bin" / "python"
_ROOT = Path(__file__).parents[2]
_CHECKS = """
import json
from nodeproof.stress.workloads.burn_device import Unsupported
from nodeproof.stress.workloads.burn_torch import TorchDriver

driver = TorchDriver()
device = driver.open("cpu:0")
found = {"version": driver.version, "auto": len(driver.devices("auto")), "cpu": [list(one) for one in driver.devices("cpu")]}
found["free"] = device.free_bytes()
for precision in ("fp64", "fp32", "tf32", "bf16", "fp8"):
    row = found[precision] = {}
    try:
        row["relation"] = device.prepare(precision, 256)
    except Unsupported as reason:
        row["unsupported"] = str(reason)
        continue
    device.multiply(3)
    row["clean"] = device.verify(4)
    bits = 1 << (15 if precision in ("bf16", "fp8") else 31)
    device.flip(precision, 777, bits)
    row["planted"] = device.verify(4)
    device.multiply(1)
    row["again"] = device.verify(4)
    if precision == "fp64":
        row["exact"] = (device._reference - device._factors[0] @ device._factors[1]).abs().max().item()
        device._reference[5, 7] += 1e-3
        row["wrong_reference"] = device._checksum(256)
    device.release()
found["taken"] = device.fill(1 << 20, 0x5555555555555555)
device.flip("memory", 4321, 1 << 63)
found["memory"] = device.sweep(0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 4)
found["memory_after"] = device.sweep(0xAAAAAAAAAAAAAAAA, 0xAAAAAAAAAAAAAAAA, 4)
device.flip("memory", 1, 1)
device.flip("memory", 2, 1)
found["memory_most"] = device.sweep(0xAAAAAAAAAAAAAAAA, 0xAAAAAAAAAAAAAAAA, 1)
try:
    driver.open("cpu:9")
except ValueError as error:
    found["unknown"] = str(error)
print(json.dumps(found))
"""


@pytest.fixture
def torch_python(absent_here: list[str]) -> str:
    if not _PYTHON.exists():
        absent_here.append(f"torch ({_PYTHON.parents[1].name}): gpu_burn was not run on torch, only on stand-ins for its devices")
        pytest.skip("no torch")
    return str(_PYTHON)


def _run(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(_ROOT / "src")}
    return subprocess.run([python, *arguments], capture_output=True, text=True, env=env, timeout=110, check=False)


def test_products_are_proven_and_planted_faults_found_in_every_number_format(torch_python: str) -> None:
    done = _run(torch_python, "-c", _CHECKS)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["auto"] == 0, "the processor is never taken for an accelerator"
    assert found["tf32"] == {"unsupported": "this device has no tf32"}
    assert found["unknown"] == "torch knows no device cpu:9"
    for precision in ("fp64", "fp32", "bf16"):
        row = found[precision]
        assert 0 < row["relation"] < 1, precision
        assert (row["clean"], row["again"]) == ([0, []], [0, []])
        count, faults = row["planted"]
        bits = 1 << (15 if precision == "bf16" else 31)
        assert count == 1
        assert faults[0][:2] == [precision, 777]
        assert faults[0][2] ^ faults[0][3] == bits
    assert found["fp64"]["exact"] == 0
    assert found["fp64"]["wrong_reference"] > 1
    assert found["fp8"].get("unsupported") or found["fp8"]["relation"] < 1
    assert found["taken"] == 1 << 20
    count, faults = found["memory"]
    assert (count, faults[0][:2]) == (1, ["memory", 4321])
    assert faults[0][2] ^ faults[0][3] == 1 << 63
    assert found["memory_after"] == [0, []]
    assert (found["memory_most"][0], len(found["memory_most"][1])) == (2, 1)


def test_the_program_names_device_offset_and_expected_word_of_a_planted_fault(torch_python: str) -> None:
    sizes = ("--seconds", "1", "--precisions", "fp32", "--size", "128", "--mib", "1")
    arguments = ("--kind", "cpu", *sizes, "--inject", "cpu:0/fp32/77/0x400")
    done = _run(torch_python, "-m", "nodeproof.stress.workloads.gpu_burn", *arguments)
    assert done.returncode == 0, done.stderr
    judged = judge_output("gpu_burn", done.stdout.encode())
    assert judged.correctness is Correctness.FAILED
    assert "cpu:0 fp32: word 77 is 0x" in judged.reason
    assert "(differing bits 0x400)" in judged.reason
    assert judged.details["devices"][0]["memory_bytes"] == 1 << 20
