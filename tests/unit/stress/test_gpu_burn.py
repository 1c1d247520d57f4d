"""``gpu_burn`` without torch: plan, loop, verdicts and messages, on made-up devices; with real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.collectors.services.gpu_fleet import FleetCard, FleetReading, GpuFleet, VendorReading
from nodeproof.errors import Absence, NoData
from nodeproof.model.gpu import CardReading
from nodeproof.model.job import Correctness
from nodeproof.stress.judging import judge_output
from nodeproof.stress.workloads import heartbeat
from nodeproof.stress.workloads.burn_device import DeviceFacts, Inject, WordFault, load_driver, parse_inject
from nodeproof.stress.workloads.burn_plan import batch_times, matrix_size, memory_bytes, plan_of
from nodeproof.stress.workloads.burn_watch import DeviceWatch
from nodeproof.stress.workloads.burn_worker import DeviceRun
from support.fake_burn import FakeDevice

_TESTS = Path(__file__).parents[2]
_FAST = plan_of("quick", 1, ("bf16", "fp8"))._replace(precision_s=0.01, memory_s=0.0)


def _device(number: int) -> FakeDevice:
    return FakeDevice(DeviceFacts(f"fake:{number}", f"Fake {number}", "", 1 << 20))


def _run(number: int, inject: Inject | None = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    said: list[dict[str, Any]] = []
    result = DeviceRun(_device(number), _FAST, said.append, inject=inject, size=8).run(None)
    return result, said


def test_a_sound_device_reports_rates_memory_and_what_it_has_not() -> None:
    result, said = _run(0)
    assert (result["errors"], result["faults"]) == (0, [])
    assert result["memory_bytes"] == 8000
    assert set(result["tflops"]) == {"bf16"}
    assert result["skipped"] == {"fp8": "these devices have no fp8"}
    assert [message["phase"] for message in said if message["done"] == 0] == ["bf16", "fp8", "memory"]
    assert said[-1] == {"phase": "memory", "done": 1, "errors": 0}


@pytest.mark.parametrize(
    ("where", "offset", "told"),
    [
        ("bf16", 5, "fake:0 bf16: word 5 is 0x31712, expected 0x31713 (differing bits 0x1)"),
        ("memory", 9, "fake:0 memory: word 9 is 0x555555555555555d, expected 0x555555555555555c (differing bits 0x1)"),
    ],
)
def test_one_word_changed_between_computing_and_verifying_is_named(where: str, offset: int, told: str) -> None:
    result, _ = _run(0, Inject("fake:0", where, offset, 1))
    assert (result["errors"], result["faults"]) == (1, [told])
    assert _run(0, Inject("fake:1", where, offset, 1))[0]["errors"] == 0, "and only of the device it was planted in"


def test_a_device_that_computes_wrong_or_forgets_is_told_so() -> None:
    wrong, _ = _run(1)
    assert wrong["errors"] >= 1
    assert wrong["faults"][0] == "fake:1 bf16: word 3 is 0x1dab5, expected 0x1daa5 (differing bits 0x10)"
    reference, _ = _run(5)
    assert reference["faults"] == ["fake:5 bf16: the checksum of the first product is off by 3.5 times its bound"]
    forgets, _ = _run(6)
    assert forgets["faults"] == ["fake:6 memory: word 17 is 0x0, expected 0x5555555555555544 (differing bits 0x5555555555555544)"]


def test_plans() -> None:
    quick = plan_of("quick", None, ("fp64", "bf16"))
    assert (quick.precision_s, quick.memory_passes, quick.memory_s) == (24, 1, 12)
    assert plan_of("soak", None, ("bf16",)).memory_passes == 0
    assert plan_of("standard", 100, ("bf16",)).precision_s == 80


def test_sizes() -> None:
    assert matrix_size("bf16", 80 << 30) == 16384
    assert matrix_size("fp64", 1 << 30) == 3328  # (0.5 * 2^30 / 48)^0.5 = 3344.4, in steps of 256
    assert matrix_size("fp64", 0) == 256
    assert matrix_size("fp64", 0, 33) == 33
    assert memory_bytes(1000) == 900
    assert memory_bytes(1000, 5) == 5


@given(st.floats(0, 100, allow_nan=False), st.integers(1, 4096))
def test_batches_stay_within_bounds(took_s: float, times: int) -> None:
    assert 1 <= batch_times(took_s, times) <= 4096


def test_batches_take_about_a_second() -> None:
    assert batch_times(0.1, 10) == 40  # no more than four times as many at once
    assert batch_times(0.5, 10) == 20
    assert batch_times(4.0, 8) == 2
    assert batch_times(0.0, 3) == 12


def test_what_is_planted_is_read_from_its_text() -> None:
    assert parse_inject("cuda:0/bf16/12/0x10") == Inject("cuda:0", "bf16", 12, 16)
    assert WordFault("fp64", 1, 3, 7).text("cuda:2") == "cuda:2 fp64: word 1 is 0x7, expected 0x3 (differing bits 0x4)"
    assert load_driver("support.fake_burn:FakeDriver").version == "0-fake"


class _Fleet(GpuFleet):
    def __init__(self, answers: list[CardReading | NoData]) -> None:
        self._answers = answers

    def read(self, *, deep: bool = False) -> FleetReading:
        answer = self._answers.pop(0 if not deep else -1)
        if isinstance(answer, NoData):
            raise answer
        card = FleetCard("0", answer, "NVML")
        return FleetReading((VendorReading("nvidia", (card,), None, None),))


def _card(temperature: float, slowed_s: float) -> CardReading:
    values = {("temperature",): temperature, ("throttle_time", "hw_thermal"): slowed_s}
    return CardReading(address="0000:17:00.0", vendor="nvidia", values=values)


def test_heat_and_throttling_are_those_of_the_time_of_the_run() -> None:
    facts = [DeviceFacts("cuda:0", "X", "0000:17:00.0", 1), DeviceFacts("cuda:1", "X", "0000:65:00.0", 1)]
    fleet = _Fleet([_card(60, 5.0), NoData(Absence.STALE, "hangs"), _card(81, 7.5), _card(70, 8.0)])
    watch = DeviceWatch(facts, fleet)
    for _ in range(8):
        watch.look()
    assert watch.of("cuda:0") == {"max_temp_c": 81, "throttled_s": {"hw_thermal": 3.0}}
    assert watch.of("cuda:1") == {}
    DeviceWatch([DeviceFacts("cpu:0", "", "", 0)]).look()


def _program(*arguments: str, driver: str = "FakeDriver") -> tuple[int, str, str]:
    command = [sys.executable, "-m", "nodeproof.stress.workloads.gpu_burn", "--driver", f"support.fake_burn:{driver}", *arguments]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(_TESTS), str(_TESTS.parent / "src")])}
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def _result(output: str) -> dict[str, Any]:
    line = next(line for line in output.splitlines() if line.startswith(heartbeat.RESULT_PREFIX))
    fields: dict[str, Any] = json.loads(line.removeprefix(heartbeat.RESULT_PREFIX))
    return fields


@pytest.mark.timeout(60)
def test_every_requested_device_reports_and_sick_ones_are_failures_with_their_names() -> None:
    code, out, err = _program(
        "--devices", "0,1,2,3,4,fake:9", "--seconds", "1", "--precisions", "bf16", "--size", "8", "--silence", "3"
    )
    assert (code, err) == (0, "")
    result = _result(out)
    verdicts = {row["device"]: row["verdict"] for row in result["devices"]}
    assert verdicts == {
        "fake:0": "pass",
        "fake:1": "fail",
        "fake:2": "fail",
        "fake:3": "fail",
        "fake:4": "fail",
        "fake:9": "fail",
    }
    assert (result["devices_requested"], result["devices_reported"]) == (6, 2)
    causes = {row["device"]: row.get("cause", "") for row in result["devices"]}
    assert causes["fake:2"] == "RuntimeError: uncorrectable ECC error encountered"
    assert causes["fake:3"] == "its process ended without a result (exit status -9)"
    assert causes["fake:4"] == "it gave no sign of life for 3 s in phase bf16"
    assert causes["fake:9"] == "there is no such device"
    assert any(line.startswith("fake:0: pass bf16") for line in out.splitlines())
    judged = judge_output("gpu_burn", out.encode())
    assert judged.correctness is Correctness.FAILED
    assert "fake:1 bf16: word 3" in judged.reason


@pytest.mark.timeout(60)
def test_a_sound_machine_passes_with_numbers_and_signs_of_life() -> None:
    code, out, _ = _program("--devices", "0", "--seconds", "3", "--precisions", "bf16,fp8", "--size", "8")
    assert code == 0
    judged = judge_output("gpu_burn", out.encode())
    assert judged.correctness is Correctness.VALIDATED
    assert (judged.values["devices_requested"], judged.values["devices_reported"], judged.values["errors"]) == (1, 1, 0)
    assert judged.values["bf16_tflops_min"] >= 0
    beats = [beat for line in out.splitlines() if (beat := heartbeat.parse(line)) is not None]
    assert {"bf16", "memory"} & {beat.phase for beat in beats}


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("driver", "part"),
    [
        ("NoDriver", "torch 0-fake sees no accelerator of kind auto"),
        ("BrokenDriver", "RuntimeError: no driver of auto is loaded"),
        ("DyingDriver", "the process ended (exit status -9)"),
        ("Nowhere", "AttributeError"),
    ],
)
def test_without_a_device_it_says_that_it_cannot_run(driver: str, part: str) -> None:
    code, _, err = _program(driver=driver)
    assert code == 69
    assert part in err


def test_unknown_number_formats_are_refused() -> None:
    code, _, err = _program("--precisions", "bf16,fp7")
    assert code == 2
    assert "fp7 not among fp64, fp32, tf32, bf16, fp8" in err


def test_a_watch_of_its_own_reads_this_machine_and_ends_what_it_started() -> None:
    watch = DeviceWatch([DeviceFacts("cuda:0", "X", "0000:ff:1f.0", 1)])
    watch.look()
    watch.look()
    assert watch.of("cuda:0") == {}
    watch.close()
