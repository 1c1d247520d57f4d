"""The table of observe.md 5.3. Points are worked out by hand: cpu is worth 30, memory 40, disk 30; with cards 10, 20, 10, 60."""

import pytest

from nodeproof.health import Evaluator
from nodeproof.model.health import HealthScore
from support.node import Node, healthy, with_gpus, with_npus


def old() -> Evaluator:
    return Evaluator("0.3.3", confirm=False)


def taken(score: HealthScore, component: str) -> list[tuple[str, float]]:
    return [(one.rule, one.penalty) for one in score.components[component].deductions or []]


@pytest.mark.parametrize(
    ("component", "name", "labels", "value", "expected"),
    [
        ("cpu", "usage", {"core": "total"}, 80, []),
        ("cpu", "usage", {"core": "total"}, 80.1, [("usage>80%", 3.0)]),
        ("cpu", "usage", {"core": "total"}, 90.1, [("usage>90%", 6.0)]),
        ("cpu", "temperature", {"cpu": "0", "sensor": "x"}, 75.1, [("temp>75C", 4.5)]),
        ("cpu", "temperature", {"cpu": "0", "sensor": "x"}, 85.1, [("temp>85C", 9.0)]),
        ("cpu", "load_average", {"interval": "1m"}, 8, []),
        ("cpu", "load_average", {"interval": "1m"}, 8.1, [("load>cores*2", 3.0)]),
        ("memory", "usage", {}, 80.1, [("usage>80%", 6.0)]),
        ("memory", "usage", {}, 90.1, [("usage>90%", 12.0)]),
        ("memory", "swap_usage", {}, 50.1, [("swap>50%", 4.0)]),
        ("memory", "saturation", {"interval": "avg10"}, 80.1, [("saturation>80%", 6.0)]),
        ("memory", "fragmentation", {"node": "0", "zone": "Normal"}, 80.1, [("fragmentation>80%", 4.0)]),
        ("memory", "ecc_ce_errors", {"mc": "mc0"}, 3, [("ce_error", 6.0)]),  # 2 each
        ("memory", "ecc_uce_errors", {"mc": "mc0"}, 2, [("uce_error", 20.0)]),  # 10 each
        ("cpu", "cpu_ce_errors", {"cpu": "0"}, 2, [("cpu_ce_error", 4.0)]),
        ("cpu", "cpu_uce_errors", {"cpu": "0"}, 1, [("cpu_uce_error", 10.0)]),
        ("disk", "space_usage", {"device": "/dev/sdb", "mount_point": "/data", "fstype": "xfs"}, 80.1, [("space>80%", 6.0)]),
        ("disk", "space_usage", {"device": "/dev/sdb", "mount_point": "/data", "fstype": "xfs"}, 90.1, [("space>90%", 12.0)]),
        ("disk", "io_wait", {}, 20.1, [("io_wait>20%", 3.0)]),
        ("disk", "smart_status", {"device": "sda", "status": "FAILED"}, 0, [("smart_failed", 9.0)]),
    ],
)
def test_each_rule_of_a_host(
    component: str, name: str, labels: dict[str, str], value: float, expected: list[tuple[str, float]]
) -> None:
    node = healthy(old())
    node.judge()
    node.set(component, name, value, **labels)
    assert taken(node.judge(), component) == expected


CARD = {"npu_id": "0", "chip_id": "0"}


@pytest.mark.parametrize(
    ("component", "name", "labels", "value", "expected"),
    [
        ("gpu", "temperature", {"gpu_id": "0"}, 80.1, [("temp>80C", 9.0)]),
        ("gpu", "temperature", {"gpu_id": "0"}, 90.1, [("temp>90C", 18.0)]),
        ("gpu", "memory_usage", {"gpu_id": "0"}, 95.1, [("mem>95%", 6.0)]),
        ("gpu", "utilization", {"gpu_id": "0"}, 95.1, [("util>95%", 6.0)]),
        ("gpu", "ecc_errors", {"gpu_id": "0"}, 1, [("ecc_error", 12.0)]),
        ("npu", "fp_max_temp", CARD, 80.1, [("temp>80C", 9.0)]),
        ("npu", "soc_max_temp", CARD, 90.1, [("temp>90C", 18.0)]),
        ("npu", "memory_usage", CARD, 95.1, [("mem>95%", 6.0)]),
        ("npu", "health_status", CARD, 2, [("health_warning", 9.0)]),
        ("npu", "health_status", CARD, 3, [("health_alarm", 18.0)]),
        ("npu", "utilization", CARD, 95.1, [("util>95%", 6.0)]),
        ("npu", "hbm_double_ecc", CARD, 1, [("hbm_double_ecc", 12.0)]),
        ("npu", "ddr_double_ecc", CARD, 1, [("ddr_double_ecc", 12.0)]),
        ("npu", "hbm_single_ecc", CARD, 1, [("hbm_single_ecc", 6.0)]),
        ("npu", "ddr_single_ecc", CARD, 1, [("ddr_single_ecc", 6.0)]),
        ("npu", "error_code", CARD, 1, [("error_code", 6.0)]),
        ("npu", "card_drop", CARD, 1, []),  # not in that table
    ],
)
def test_each_rule_of_cards(
    component: str, name: str, labels: dict[str, str], value: float, expected: list[tuple[str, float]]
) -> None:
    node = with_gpus(1, old()) if component == "gpu" else with_npus(1, old())
    node.judge()
    node.set(component, name, value, **labels)
    assert taken(node.judge(), component) == expected


def test_errors_are_counted_controller_by_controller() -> None:
    node = healthy(old()).set("memory", "ecc_ce_errors", 0, mc="mc1")
    node.judge()
    node.set("memory", "ecc_ce_errors", 1, mc="mc0").set("memory", "ecc_ce_errors", 2, mc="mc1")
    assert taken(node.judge(), "memory") == [("ce_error", 2.0), ("ce_error", 4.0)]


def test_network_and_chassis_are_not_scored() -> None:
    node = healthy(old()).set("chassis", "inlet_temp", 99)
    score = node.judge()
    assert set(score.components) == {"cpu", "memory", "disk"}
    assert (score.score, score.ruleset, score.scheme) == (100, "0.3.3", "cpu_only")


def test_cards_are_worth_60_and_both_kinds_count_once() -> None:
    """Defect 28: with GPUs and NPUs the total reached 160."""
    node = with_gpus(1, old())
    for name, value in (("temperature", 95), ("memory_usage", 10), ("utilization", 5), ("health_status", 1), ("error_code", 0)):
        node.set("npu", name, value, npu_id="0", chip_id="0")
    for name in ("hbm_single_ecc", "hbm_double_ecc", "ddr_single_ecc", "ddr_double_ecc"):
        node.set("npu", name, 0, npu_id="0", chip_id="0")
    score = node.judge()
    assert (score.components["gpu"].score, score.components["npu"].score) == (60, 42)  # 30 % of 60 for the heat
    assert score.score == 82  # 10 + 20 + 10 + 42
    assert score.scheme == "accelerated_8card"


def test_a_busy_accelerator_loses_the_points_of_the_table() -> None:
    node = with_gpus(1, old()).set("gpu", "utilization", 100, gpu_id="0")
    assert node.judge().score == 94


def test_without_a_core_count_the_load_is_unknown_and_not_held_against_8() -> None:
    """Defect 28: core_num left the cache, and every host was judged by the load 8."""
    node: Node = healthy(old()).drop("cpu", "core_num").set("cpu", "load_average", 20, interval="1m")
    score = node.judge()
    assert score.components["cpu"].deductions is None
    assert [one.concern for one in score.unknown if one.component == "cpu"] == ["load"]
