"""Weights by the hardware that answered (observe.md 5.1, 5.4)."""

import pytest

from nodeproof.errors import Absence
from nodeproof.health import Evaluator
from nodeproof.health.scheme import WEIGHT_SCHEMES
from support.node import add_npu, by_rule, finding, healthy, unknown, with_gpus, with_npus

WEIGHTS = {
    "cpu_only": {"cpu": 25, "memory": 25, "disk": 30, "network": 10, "chassis": 10},
    "accelerated_2card": {"cpu": 20, "memory": 20, "disk": 20, "gpu": 20, "network": 10, "chassis": 10},
    "accelerated_4card": {"cpu": 15, "memory": 15, "disk": 20, "gpu": 30, "network": 10, "chassis": 10},
    "accelerated_8card": {"cpu": 15, "memory": 15, "disk": 15, "gpu": 35, "network": 10, "chassis": 10},
}


@pytest.mark.parametrize(
    ("cards", "scheme"),
    [
        (0, "cpu_only"),
        (1, "accelerated_2card"),
        (2, "accelerated_2card"),
        (3, "accelerated_4card"),
        (4, "accelerated_4card"),
        (5, "accelerated_8card"),
        (8, "accelerated_8card"),
        (9, "accelerated_8card"),
        (16, "accelerated_8card"),
    ],
)
def test_scheme_by_number_of_cards(cards: int, scheme: str) -> None:
    score = with_gpus(cards).judge()
    assert score.scheme == scheme
    assert {name: one.max for name, one in score.components.items()} == WEIGHTS[scheme]
    assert score.server_type == ("accelerated" if cards else "cpu_only")
    assert score.score == 100


def test_a_host_whose_npu_count_is_zero_is_no_accelerated_one() -> None:
    """Defect 12: the constant npu_num = 0 gave 60 free points."""
    score = healthy().set("npu", "npu_num", 0).judge()
    assert (score.scheme, score.server_type) == ("cpu_only", "cpu_only")
    assert "npu" not in score.components


def test_two_chips_share_a_card() -> None:
    node = with_npus(2)
    for card in ("0", "1"):
        node.set("npu", "temperature", 50, npu_id=card, chip_id="1")
    assert node.judge().scheme == "accelerated_2card"


@pytest.mark.parametrize(("chips", "scheme"), [(2, "accelerated_2card"), (7, "accelerated_4card"), (16, "accelerated_8card")])
def test_without_card_ids_two_chips_make_a_card(chips: int, scheme: str) -> None:
    node = healthy().set("npu", "npu_num", chips).set("npu", "temperature", 50)
    assert node.judge().scheme == scheme


def test_a_nameless_answer_is_one_card() -> None:
    assert healthy().set("gpu", "temperature", 50).judge().scheme == "accelerated_2card"


def test_gpus_and_npus_are_counted_together() -> None:
    node = with_gpus(2)
    add_npu(node, "0")
    assert node.judge().scheme == "accelerated_4card"


def test_of_both_kinds_the_worse_stands() -> None:
    node = with_gpus(4)
    for card in "0123":
        add_npu(node, card)
    node.set("npu", "temperature", 95, npu_id="0", chip_id="0").set("gpu", "memory_usage", 99, gpu_id="0")
    score = node.judge()
    assert score.components["gpu"].score == 28  # 35 less 20 %
    assert score.components["npu"].score == 29  # 35 less 15 % = 29.75
    assert score.score == 93  # 15 + 15 + 15 + 28 + 10 + 10
    assert score.coverage == 1.0


def test_of_both_kinds_the_less_known_counts_for_coverage() -> None:
    node = with_gpus(4)
    for card in "0123":
        add_npu(node, card)
    for card in "0123":
        node.miss("gpu", "temperature", gpu_id=card)
    score = node.judge()
    assert score.components["gpu"].coverage == 0.65
    assert score.coverage == pytest.approx(1 - 0.35 * 0.35, abs=1e-4)


def test_cards_on_the_bus_that_nothing_can_read_are_unknown_not_absent() -> None:
    node = healthy().set("gpu", "device_count", 8, vendor="nvidia")
    node.miss("gpu", "utilization", Absence.UNSUPPORTED, "cannot read the cards")
    score = node.judge()
    assert (score.scheme, score.server_type) == ("accelerated_8card", "accelerated")
    assert "gpu" not in score.components
    assert score.coverage == 0.65
    assert (score.score, score.grade) == (99, "Good")
    assert unknown(score, "gpu", "utilization").reason == "cannot read the cards"
    assert unknown(score, "gpu", "temperature").weight == 12.25


def test_cards_of_several_vendors_add_up() -> None:
    node = healthy().set("gpu", "device_count", 2, vendor="nvidia").set("gpu", "device_count", 1, vendor="amd")
    assert node.judge().scheme == "accelerated_4card"


def test_no_card_on_the_bus_is_not_applicable() -> None:
    score = healthy().miss("gpu", "device_count", Absence.NOT_APPLICABLE, "there is none").judge()
    assert (score.scheme, score.coverage, score.score) == ("cpu_only", 1.0, 100)


def test_whether_there_are_cards_may_be_unknown() -> None:
    node = healthy().miss("gpu", "utilization", Absence.READ_ERROR, "nvidia-smi failed")
    score = node.judge()
    assert score.scheme == "cpu_only"
    assert unknown(score, "gpu", "cards").reason == "nvidia-smi failed"


def test_a_bus_without_cards_settles_it() -> None:
    node = healthy().miss("gpu", "utilization", Absence.READ_ERROR, "nvidia-smi failed").set("gpu", "device_count", 0, vendor="x")
    assert [one for one in node.judge().unknown if one.concern == "cards"] == []


def test_unsupported_cards_that_are_not_there_are_no_unknown() -> None:
    node = healthy().miss("gpu", "utilization", Absence.UNSUPPORTED, "no tool")
    assert [one for one in node.judge().unknown if one.component == "gpu"] == []


def test_a_silent_card_keeps_its_scheme_and_is_lost() -> None:
    node = with_gpus(8)
    node.judge()
    for name in ("temperature", "memory_usage", "utilization", "ecc_errors"):
        node.values.pop(("gpu", name, (("gpu_id", "5"),)))
    score = node.judge()
    assert score.scheme == "accelerated_8card"
    lost = by_rule(score)["gpu.card_lost"]
    assert (lost.severity, lost.component, lost.reading.labels) == ("critical", "gpu", {"card": "5"})
    assert score.grade == "Critical"


def test_a_card_that_answers_again_is_found() -> None:
    node = with_npus(2)
    node.judge()
    node.drop("npu")
    add_npu(node, "0")
    assert "npu.card_lost" in by_rule(node.judge())
    add_npu(node, "1")
    assert "npu.card_lost" not in by_rule(node.judge())


def test_when_no_card_answers_none_is_convicted_and_none_forgotten() -> None:
    node = with_gpus(2)
    node.judge()
    node.miss_component("gpu", Absence.READ_ERROR, "nvidia-smi timed out")
    score = node.judge()
    assert (score.scheme, score.server_type) == ("accelerated_2card", "accelerated")
    assert "gpu.card_lost" not in by_rule(score)
    assert score.coverage == 0.8
    assert score.grade == "Good"


def test_an_explicit_scheme_overrides_the_hardware() -> None:
    score = with_gpus(8, Evaluator(weight_scheme="cpu_only", confirm=False)).judge()
    assert score.scheme == "cpu_only"
    assert "gpu" not in score.components
    assert score.server_type == "accelerated"


def test_a_scheme_with_cards_on_a_host_without_is_unread() -> None:
    score = healthy(Evaluator(weight_scheme="accelerated_8card", confirm=False)).judge()
    assert score.coverage == 0.65
    assert (score.grade, score.score) == ("Good", 99)
    assert unknown(score, "accelerator", "cards").weight == 35


@pytest.mark.parametrize("ruleset", ["0.3.5", "0.3.3"])
@pytest.mark.parametrize("scheme", WEIGHT_SCHEMES)
def test_every_scheme_works_with_every_rule_set(ruleset: str, scheme: str) -> None:
    assert healthy(Evaluator(ruleset, scheme, confirm=False)).judge().scheme == ("cpu_only" if scheme == "auto" else scheme)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no rule set '0\.3\.6'; there are 0\.3\.5, 0\.3\.3"):
        Evaluator("0.3.6")
    with pytest.raises(ValueError, match="no weight scheme 'gpu'; there are auto, cpu_only"):
        Evaluator(weight_scheme="gpu")


@pytest.mark.parametrize(("expected", "scheme"), [(2, "accelerated_2card"), (4, "accelerated_4card"), (5, "accelerated_8card")])
def test_a_card_lost_before_the_first_look_makes_the_node_no_smaller(expected: int, scheme: str) -> None:
    node = with_gpus(expected - 1).set("gpu", "cards", expected, vendor="nvidia", state="expected")
    node.set("gpu", "cards", expected - 1, vendor="nvidia", state="answering").set("gpu", "card_state", 3, gpu_id="9")
    score = node.judge()
    assert score.scheme == scheme
    assert finding(score, "gpu.lost").severity == "critical"


def test_a_silent_card_that_has_a_state_is_told_once() -> None:
    node = with_gpus(3)
    node.judge()
    for name in ("temperature", "memory_usage", "utilization", "ecc_errors"):
        node.miss("gpu", name, Absence.READ_ERROR, "it is lost", gpu_id="2")
    node.set("gpu", "card_state", 3, gpu_id="2")
    found = {one.rule for one in node.judge().findings}
    assert "gpu.lost" in found
    assert "gpu.card_lost" not in found


@pytest.mark.parametrize("cards", [2, 4, 8])
def test_the_worst_card_decides_and_is_named(cards: int) -> None:
    node = with_gpus(cards).set("gpu", "temperature", 84, gpu_id="1").set("gpu", "ecc_errors", 0, gpu_id="0")
    node.set("gpu", "temperature", 93, gpu_id="0")
    score = node.judge()
    weight = score.components["gpu"].max
    assert [(one.rule, one.penalty) for one in score.components["gpu"].deductions or []] == [("temp>90C", 0.35 * weight)]
    assert finding(score, "temp>90C").reading.labels == {"gpu_id": "0"}
    assert finding(score, "temp>90C").reading.value == 93
