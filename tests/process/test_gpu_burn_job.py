"""GPU burn as an item of a stress job: through the manager, contained, judged and reported, on devices that stand in for GPUs."""

import os
from pathlib import Path

import msgspec
import pytest

from nodeproof.host.machine import Machine
from nodeproof.model.job import BenchmarkResult, CheckStatus, Correctness, Execution, ExecutionProfile, PreflightResult, Status
from nodeproof.stress.adapters.base import ItemRequest, Launch
from nodeproof.stress.adapters.builtin import BuiltinAdapter
from nodeproof.stress.manager import Manager
from support.stress import ENVIRON, make_settings, make_tools

pytestmark = pytest.mark.timeout(90)

_TESTS = Path(__file__).parents[1]


class _StandIn(BuiltinAdapter):
    """The built-in workload on made-up devices; what this machine lacks for real ones is passed over."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(Machine.here())
        self._arguments = (
            "--driver",
            "support.fake_burn:FakeDriver",
            "--precisions",
            "bf16",
            "--size",
            "8",
            "--seconds",
            "2",
            *arguments,
        )

    def describe(self, request: ItemRequest) -> ExecutionProfile:
        return msgspec.structs.replace(
            super().describe(request), assets=[], preflight=PreflightResult(CheckStatus.PASS, "stand-ins")
        )

    def launch(self, request: ItemRequest) -> Launch:
        launch = super().launch(request)
        path = os.pathsep.join([launch.environment["PYTHONPATH"], str(_TESTS)])
        environment = {**launch.environment, "PYTHONPATH": path}
        return msgspec.structs.replace(launch, argv=(*launch.argv, *self._arguments), environment=environment)


def _run(folder: Path, *arguments: str) -> BenchmarkResult:
    settings = make_settings(folder, "", names=("gpu_burn",), timeout_s=60.0)
    chosen = msgspec.structs.replace(settings.benchmarks["gpu_burn"], adapter="builtin")
    settings = msgspec.structs.replace(settings, benchmarks={"gpu_burn": chosen})
    manager = Manager(settings, environ=ENVIRON, tools=make_tools(settings), adapters={"builtin": _StandIn(*arguments)})
    report = manager.start(["gpu_burn"])
    done = manager.wait(report.job_id, 80.0)
    assert done is not None
    (item,) = done.benchmarks
    return item


def test_sound_devices_are_healthy_with_their_numbers(tmp_path: Path) -> None:
    item = _run(tmp_path, "--devices", "0")
    assert item.outcome is not None
    assert (item.outcome.execution, item.outcome.correctness) == (Execution.FINISHED, Correctness.VALIDATED)
    assert item.status is Status.HEALTHY
    assert item.values["devices_reported"] == 1


def test_a_device_that_dies_fails_the_item_with_its_name(tmp_path: Path) -> None:
    item = _run(tmp_path, "--devices", "0,2")
    assert item.outcome is not None
    assert item.outcome.correctness is Correctness.FAILED
    assert item.status is Status.UNHEALTHY
    assert "fake:2: RuntimeError: uncorrectable ECC error encountered" in item.message
