"""The table of observe.md 5.4, each rule at, below and above its threshold. Points are worked out by hand."""

import pytest

from nodeproof.health.rules_035 import CONCERNS
from nodeproof.health.scheme import SCHEMES
from support.node import Node, healthy, with_gpus, with_npus

TOTAL = {"core": "total"}
PACKAGE = {"cpu": "0", "sensor": "Package id 0"}
ONE_MINUTE = {"interval": "1m"}
MC0 = {"mc": "mc0"}
USED = {"device": "/dev/sda1", "mount_point": "/", "fstype": "ext4", "field": "used"}
SDA = {"device": "sda", "status": "FAILED"}

# (component, metric, labels, value, [(rule, points)]); components are worth cpu 25, memory 25, disk 30, network 10, chassis 10.
GAUGES = [
    ("cpu", "temperature", PACKAGE, 75, []),
    ("cpu", "temperature", PACKAGE, 75.1, [("temp>75C", 3.75)]),  # 15 % of 25
    ("cpu", "temperature", PACKAGE, 85, [("temp>75C", 3.75)]),
    ("cpu", "temperature", PACKAGE, 85.1, [("temp>85C", 7.5)]),  # 30 % of 25, the lower tier no longer
    ("cpu", "usage", TOTAL, 80, []),
    ("cpu", "usage", TOTAL, 80.01, [("usage>80%", 2.5)]),
    ("cpu", "usage", TOTAL, 90, [("usage>80%", 2.5)]),
    ("cpu", "usage", TOTAL, 90.01, [("usage>90%", 5.0)]),
    ("cpu", "usage", {"core": "0"}, 100, []),  # one busy processor is no busy machine
    ("cpu", "load_average", ONE_MINUTE, 8, []),  # 4 processors * 2
    ("cpu", "load_average", ONE_MINUTE, 8.01, [("load>cores*2", 5.0)]),
    ("cpu", "load_average", {"interval": "5m"}, 50, []),
    ("memory", "usage", {}, 80, []),
    ("memory", "usage", {}, 80.01, [("usage>80%", 3.0)]),  # 12 % of 25
    ("memory", "usage", {}, 90, [("usage>80%", 3.0)]),
    ("memory", "usage", {}, 90.01, [("usage>90%", 6.25)]),
    ("memory", "swap_usage", {}, 50, []),
    ("memory", "swap_usage", {}, 50.01, [("swap>50%", 2.5)]),
    ("memory", "saturation", {"interval": "avg10"}, 80, []),
    ("memory", "saturation", {"interval": "avg10"}, 80.01, [("saturation>80%", 3.75)]),
    ("memory", "saturation", {"interval": "avg60"}, 99, []),
    ("memory", "fragmentation", {"node": "0", "zone": "Normal"}, 80, []),
    ("memory", "fragmentation", {"node": "1", "zone": "DMA32"}, 80.01, [("fragmentation>80%", 2.5)]),
    ("disk", "space_detail", USED, 800, []),  # of 1000
    ("disk", "space_detail", USED, 801, [("space>80%", 4.5)]),  # 15 % of 30
    ("disk", "space_detail", USED, 900, [("space>80%", 4.5)]),
    ("disk", "space_detail", USED, 901, [("space>90%", 10.5)]),
    ("disk", "io_wait", {}, 20, []),
    ("disk", "io_wait", {}, 20.01, [("io_wait>20%", 4.5)]),
    ("disk", "smart_status", SDA, 1, []),
    ("disk", "smart_status", SDA, 0, [("smart_failed", 15.0)]),
    ("network", "connection_count", {"state": "TIME_WAIT"}, 2000, []),
    ("network", "connection_count", {"state": "TIME_WAIT"}, 2001, [("time_wait>2000", 3.0)]),
    ("network", "connection_count", {"state": "ESTABLISHED"}, 3000, []),
    ("network", "connection_count", {"state": "ESTABLISHED"}, 3001, [("established>3000", 1.0)]),
    ("network", "connection_count", {"state": "ESTABLISHED"}, 5000, [("established>3000", 1.0)]),
    ("network", "connection_count", {"state": "ESTABLISHED"}, 5001, [("established>5000", 2.5)]),
    ("network", "connection_count", {"state": "LISTEN"}, 9999, []),
    ("network", "error_count", {"interface": "eth0", "type": "rx_err"}, 10, []),
    ("network", "error_count", {"interface": "eth0", "type": "rx_err"}, 11, [("errors>10", 1.5)]),
    ("network", "error_count", {"interface": "eth1", "type": "tx_drop"}, 100, [("errors>10", 1.5)]),
    ("network", "error_count", {"interface": "eth1", "type": "tx_drop"}, 101, [("errors>100", 4.5)]),
    ("chassis", "inlet_temp", {}, 35, []),
    ("chassis", "inlet_temp", {}, 35.1, [("inlet>35C", 2.5)]),
    ("chassis", "inlet_temp", {}, 40, [("inlet>35C", 2.5)]),
    ("chassis", "inlet_temp", {}, 40.1, [("inlet>40C", 5.0)]),
    ("chassis", "outlet_temp", {}, 50, []),
    ("chassis", "outlet_temp", {}, 50.1, [("outlet>50C", 2.5)]),
    ("chassis", "outlet_temp", {}, 60, [("outlet>50C", 2.5)]),
    ("chassis", "outlet_temp", {}, 60.1, [("outlet>60C", 5.0)]),
]

CARD = {"npu_id": "0", "chip_id": "0"}

# 8 cards: the component is worth 35.
CARDS = [
    ("gpu", "temperature", {"gpu_id": "3"}, 80, []),
    ("gpu", "temperature", {"gpu_id": "3"}, 80.1, [("temp>80C", 5.25)]),  # 15 % of 35
    ("gpu", "temperature", {"gpu_id": "3"}, 90.1, [("temp>90C", 12.25)]),  # 35 % of 35
    ("gpu", "memory_usage", {"gpu_id": "3"}, 95, []),
    ("gpu", "memory_usage", {"gpu_id": "3"}, 95.1, [("mem>95%", 7.0)]),
    ("gpu", "utilization", {"gpu_id": "3"}, 95, []),
    ("gpu", "utilization", {"gpu_id": "3"}, 95.1, [("util>95%", 5.25)]),
    ("npu", "card_drop", CARD, 1, [("card_drop", 7.0)]),
    ("npu", "temperature", CARD, 80, []),
    ("npu", "temperature", CARD, 80.1, [("temp>80C", 2.8)]),
    ("npu", "aicore1_temp", CARD, 90.1, [("temp>90C", 5.25)]),
    ("npu", "hbm_max_temp", CARD, 90, [("temp>80C", 2.8)]),
    ("npu", "ntc1_temp", CARD, 120, []),  # not one of the ten
    ("npu", "health_status", CARD, 2, [("health_warning", 2.8)]),
    ("npu", "health_status", CARD, 3, [("health_alarm", 5.25)]),
    ("npu", "health_status", CARD, 4, [("health_alarm", 5.25)]),
    ("npu", "memory_usage", CARD, 95, []),
    ("npu", "memory_usage", CARD, 95.1, [("mem>95%", 2.8)]),
    ("npu", "npu_util", CARD, 95, []),
    ("npu", "npu_util", CARD, 95.1, [("util>95%", 1.75)]),
    ("npu", "error_code", CARD, 1, [("error_code", 2.45)]),
    ("npu", "hbm_single_ecc", CARD, 1, [("hbm_single_ecc", 1.75)]),
    ("npu", "hbm_double_ecc", CARD, 1, [("hbm_double_ecc", 5.25)]),
    ("npu", "ddr_single_ecc", CARD, 1, [("ddr_single_ecc", 1.75)]),
    ("npu", "ddr_double_ecc", CARD, 1, [("ddr_double_ecc", 5.25)]),
]


def taken(node: Node, component: str) -> list[tuple[str, float]]:
    deductions = node.judge().components[component].deductions or []
    return [(one.rule, one.penalty) for one in deductions]


@pytest.mark.parametrize(("component", "name", "labels", "value", "expected"), GAUGES)
def test_each_rule_of_a_host_at_its_threshold(
    component: str, name: str, labels: dict[str, str], value: float, expected: list[tuple[str, float]]
) -> None:
    node = healthy()
    node.judge()
    node.set(component, name, value, **labels)
    assert taken(node, component) == expected


@pytest.mark.parametrize(("component", "name", "labels", "value", "expected"), CARDS)
def test_each_rule_of_cards_at_its_threshold(
    component: str, name: str, labels: dict[str, str], value: float, expected: list[tuple[str, float]]
) -> None:
    node = with_gpus(8) if component == "gpu" else with_npus(8)
    node.judge()
    node.set(component, name, value, **labels)
    assert taken(node, component) == expected


@pytest.mark.parametrize(
    ("more", "rules"),
    [
        (0, []),
        (1, [("ce_error", 1.25)]),  # 5 % of 25
        (2, [("ce_error", 1.25)]),
        (3, [("ce_error>=3", 2.5)]),  # 10 % of 25
        (900, [("ce_error>=3", 2.5)]),
    ],
)
def test_corrected_memory_errors_count_by_their_growth(more: int, rules: list[tuple[str, float]]) -> None:
    node = healthy().set("memory", "ecc_ce_errors", 500, mc="mc0")
    node.judge()
    node.set("memory", "ecc_ce_errors", 500 + more, mc="mc0")
    assert taken(node, "memory") == rules


@pytest.mark.parametrize(
    ("gains", "rules"),
    [([0, 0], []), ([1, 0], [("cpu_ce_error", 1.25)]), ([1, 1, 1], [("cpu_ce_error>=3", 2.5)])],
)
def test_corrected_processor_errors_are_gains_that_add_up(gains: list[float], rules: list[tuple[str, float]]) -> None:
    node = healthy()
    for gain in gains[:-1]:
        node.set("cpu", "cpu_ce_errors", gain, cpu="0").judge()
    node.set("cpu", "cpu_ce_errors", gains[-1], cpu="0")
    assert taken(node, "cpu") == rules


def test_uncorrected_errors_count_at_once_and_are_critical() -> None:
    node = healthy()
    node.judge()
    node.set("memory", "ecc_uce_errors", 1, mc="mc0").set("cpu", "cpu_uce_errors", 1, cpu="0")
    score = node.judge()
    assert [(one.rule, one.penalty) for one in score.components["memory"].deductions or []] == [("uce_error", 7.5)]
    assert [(one.rule, one.penalty) for one in score.components["cpu"].deductions or []] == [("cpu_uce_error", 5.0)]
    assert score.grade == "Critical"


def test_gpu_memory_errors_before_the_start_take_nothing_and_new_ones_do() -> None:
    node = with_gpus(8).set("gpu", "ecc_errors", 7, gpu_id="2")
    assert taken(node, "gpu") == []
    assert taken(node, "gpu") == []
    node.set("gpu", "ecc_errors", 8, gpu_id="2")
    assert taken(node, "gpu") == [("ecc_error", 10.5)]  # 30 % of 35


def test_space_is_that_of_all_local_file_systems_together() -> None:
    node = healthy()
    home = {"device": "/dev/sdb1", "mount_point": "/home", "fstype": "xfs"}
    node.set("disk", "space_detail", 9000, **home, field="total").set("disk", "space_detail", 8000, **home, field="used")
    share = {"device": "server:/export", "mount_point": "/mnt", "fstype": "nfs4"}
    node.set("disk", "space_detail", 100, **share, field="total").set("disk", "space_detail", 100, **share, field="used")
    # (300 + 8000) / (1000 + 9000) = 83 %; the file server's own does not count
    assert taken(node, "disk") == [("space>80%", 4.5)]


def test_a_device_mounted_twice_counts_once() -> None:
    node = healthy()
    again = {"device": "/dev/sda1", "mount_point": "/var", "fstype": "ext4"}
    node.set("disk", "space_detail", 1000, **again, field="total").set("disk", "space_detail", 990, **again, field="used")
    assert taken(node, "disk") == []


@pytest.mark.parametrize("component", sorted({concern.component for concern in CONCERNS}))
def test_shares_of_a_component_add_to_100(component: str) -> None:
    assert sum(concern.share for concern in CONCERNS if concern.component == component) == 100


def test_the_gravest_tier_of_a_concern_takes_its_whole_share() -> None:
    assert {concern.key for concern in CONCERNS if concern.tiers[0].share != concern.share} == set()


@pytest.mark.parametrize("scheme", sorted(SCHEMES["0.3.5"]))
def test_points_of_a_scheme_add_to_100(scheme: str) -> None:
    assert sum(SCHEMES["0.3.5"][scheme].values()) == 100


def test_everything_bad_at_once_leaves_nothing() -> None:
    node = healthy()
    node.judge()
    for component, name, labels, value, _ in GAUGES:
        node.set(component, name, value, **labels)
    node.set("cpu", "cpu_ce_errors", 3, cpu="0").set("cpu", "cpu_uce_errors", 1, cpu="0")
    node.set("memory", "ecc_ce_errors", 3, mc="mc0").set("memory", "ecc_uce_errors", 1, mc="mc0")
    node.set("cpu", "usage", 100, core="total").set("cpu", "load_average", 100, interval="1m")
    score = node.judge()
    assert {name: one.score for name, one in score.components.items()} == {
        "cpu": 0,
        "memory": 0,
        "disk": 0,
        "network": 0,
        "chassis": 0,
    }
    assert (score.score, score.grade) == (0, "Critical")
