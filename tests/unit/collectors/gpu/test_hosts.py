"""Readings of the fixture hosts with GPUs, each worked out by hand from what the host holds."""

from pathlib import Path

import pytest

from nodeproof.model.metric import Batch
from support.bmc import EVERYTHING
from support.gpu_host import value
from support.whole_host import WholeHost

pytestmark = pytest.mark.timeout(60)


def _gpu(name: str, folder: Path) -> Batch:
    host = WholeHost(name, folder, EVERYTHING)
    host.observe()
    return host.batches["gpu"]


def test_eight_nvidia_cards_one_of_them_lost(tmp_path: Path) -> None:
    batch = _gpu("gpu-nvidia-8", tmp_path)
    # On the bus are 18, 2a, 3a, 5d, 9a, ab, ba, db; nvidia-smi refuses ab, which is the sixth: number 5.
    assert value(batch, "device_count", "nvidia") == 8
    assert value(batch, "cards", "nvidia", "expected") == 8
    assert value(batch, "cards", "nvidia", "answering") == 7
    assert value(batch, "driver_up", "nvidia") == 1
    assert [value(batch, "card_state", str(number)) for number in range(8)] == [0, 0, 0, 0, 0, 3, 0, 0]
    # temperature.gpu is 34 and the number, but 84 on number 2.
    assert value(batch, "temperature", "0") == 34
    assert value(batch, "temperature", "2") == 84
    assert value(batch, "temperature", "7") == 41
    # memory.used is 1000 MiB times the number of 81559; 81000 on number 7.
    assert value(batch, "memory_usage", "4") == 4.9  # 100 * 4000 / 81559 = 4.9044
    assert value(batch, "memory_usage", "7") == 99.31  # 100 * 81000 / 81559 = 99.3146
    assert value(batch, "memory_detail", "1", "used") == 1000
    # power.draw is 70 W and ten times the number; 699.80 W on number 6.
    assert value(batch, "power_draw", "3") == 100
    assert value(batch, "power_draw", "6") == 699.8
    assert value(batch, "power_limit", "6") == 700
    assert value(batch, "utilization", "6") == 60
    assert value(batch, "throttle_reason", "2", "hw_thermal") == 1
    assert value(batch, "throttle_reason", "6", "sw_power_cap") == 1
    assert value(batch, "throttle_reason", "6", "hw_thermal") == 0
    assert value(batch, "ecc_errors", "3") == 2
    assert value(batch, "row_remap_pending", "3") == 1
    assert value(batch, "pcie_degraded", "4", "width") == 1  # 8 lanes of 16
    assert value(batch, "pcie_degraded", "6", "width") == 0
    # Number 7 idles at generation 1 of 5: not told. Number 0 has no load either, and runs at 5 of 5.
    assert [entry.labels for entry in batch.missing if entry.name == "pcie_degraded" and "idles" in entry.reason] == [
        {"gpu_id": "7", "aspect": "generation"}
    ]
    assert value(batch, "pcie_degraded", "0", "generation") == 0
    assert value(batch, "processes", "1") == 1
    assert value(batch, "process_memory", "2", "4002", "/opt/train --card 2") == 2000


def test_eight_amd_cards(tmp_path: Path) -> None:
    batch = _gpu("gpu-amd-8", tmp_path)
    assert value(batch, "cards", "amd", "answering") == 8
    # The junction is 41 degrees and the number; 93 on number 2, and 2112 on number 6, which cannot be.
    assert value(batch, "temperature", "3") == 44
    assert value(batch, "temperature", "2") == 93
    assert [entry.labels for entry in batch.missing if entry.name == "temperature"] == [{"gpu_id": "6"}]
    # 196592 MiB in all (206141652992 / 1048576 = 196592); used 1965.92 MiB times the number.
    assert value(batch, "memory_detail", "0", "total") == 196592
    assert value(batch, "memory_usage", "5") == 5
    assert value(batch, "power_draw", "7") == 147
    assert value(batch, "power_limit_default", "7") == 750
    assert value(batch, "utilization", "4") == 40
    assert value(batch, "memory_utilization", "4") == 4
    assert value(batch, "clock_frequency", "1") == 132
    assert value(batch, "clock_max_frequency", "1", "memory") == 1300
    assert value(batch, "ecc_errors", "4") == 1
    assert value(batch, "ecc_volatile_errors", "4", "corrected", "total") == 12
    assert value(batch, "ecc_volatile_errors", "4", "uncorrected", "gfx") == 0
    assert value(batch, "ecc_mode", "0") == 1
    assert value(batch, "temperature_limit", "0", "shutdown") == 105
    assert value(batch, "pcie_generation", "0") == 5  # 32 GT/s
    assert value(batch, "pcie_width_max", "0") == 16
    assert value(batch, "pcie_replays", "0") == 0
    assert value(batch, "memory_detail", "3", "shared_used") == 17  # 17825792 / 1048576


def test_cards_of_two_vendors(tmp_path: Path) -> None:
    batch = _gpu("gpu-mixed", tmp_path)
    assert value(batch, "cards", "nvidia", "expected") == 1
    assert value(batch, "cards", "amd", "expected") == 2
    assert value(batch, "temperature", "0") == 34
    assert value(batch, "temperature", "amd0") == 41
    assert value(batch, "temperature", "amd1") == 42
    assert value(batch, "power_draw", "amd1") == 141
    assert value(batch, "device_count", "amd") == 2


@pytest.mark.parametrize(
    ("name", "grade", "scheme", "rules"),
    [
        (
            "gpu-nvidia-8",
            "Critical",
            "accelerated_8card",
            {"gpu.lost", "gpu.pcie_width", "gpu.thermal_slowdown", "gpu.row_remap_pending", "temp>80C", "mem>95%"},
        ),
        ("gpu-mixed", "Good", "accelerated_4card", set()),
    ],
)
def test_verdicts(tmp_path: Path, name: str, grade: str, scheme: str, rules: set[str]) -> None:
    health = WholeHost(name, tmp_path, EVERYTHING).observe()
    assert {finding.rule for finding in health.findings if finding.component == "gpu"} == rules
    assert health.scheme == scheme
    if name == "gpu-nvidia-8":
        assert str(health.grade) == grade
        taken = {deduction.rule for deduction in health.components["gpu"].deductions or []}
        assert taken == {"temp>80C", "mem>95%"}
