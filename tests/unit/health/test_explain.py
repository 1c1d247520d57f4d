"""What ``nodeproof explain RULE`` has to tell."""

import pytest

from nodeproof.errors import Absence, UsageError
from nodeproof.health import Evaluator
from nodeproof.model.catalogue import CATALOGUE
from nodeproof.model.health import Condition, Explanation
from support.node import Node, healthy, with_gpus


def only(node: Node, rule: str) -> Explanation:
    found = node.explain(rule)
    assert len(found) == 1
    return found[0]


def conditions(told: Explanation) -> list[str]:
    return [tier.condition.value for tier in told.tiers]


def test_a_clear_rule_shows_the_live_reading() -> None:
    node = healthy()
    node.judge()
    node.pass_time(2.0)
    told = only(node, "cpu.usage")
    assert (told.rule, told.component, told.condition, told.weight) == ("cpu.usage", "cpu", "clear", 5.0)
    assert [(one.value, one.unit, one.labels) for one in told.readings] == [(12.0, "%", {"core": "total"})]
    assert told.age_s == 2.0
    assert told.source == "/proc/stat"
    assert [(tier.rule, tier.threshold, tier.penalty, tier.clears_when) for tier in told.tiers] == [
        ("usage>90%", "> 90 %", 5.0, "<= 88 % for 30 s"),
        ("usage>80%", "> 80 %", 2.5, "<= 78 % for 30 s"),
    ]
    assert told.absences == []
    assert told.meaning
    assert told.remedy


def test_a_triggered_tier_and_one_that_waits() -> None:
    node = healthy(Evaluator()).set("cpu", "usage", 85, core="total")
    node.judge(3)
    assert conditions(only(node, "cpu.usage")) == ["clear", "triggered"]
    node.set("cpu", "usage", 95, core="total").judge()
    told = only(node, "cpu.usage")
    assert conditions(told) == ["pending", "triggered"]
    assert told.condition is Condition.TRIGGERED
    assert told.tiers[1].since < told.tiers[0].since


def test_a_threshold_reckoned_from_another_reading() -> None:
    node = healthy()
    node.judge()
    told = only(node, "load>cores*2")
    assert (told.tiers[0].threshold, told.tiers[0].clears_when) == ("> 8", "<= 7.2 for 30 s")


def test_without_that_reading_it_says_what_it_would_be() -> None:
    node = healthy().drop("cpu", "core_num")
    node.judge()
    told = only(node, "cpu.load")
    assert (told.condition, told.tiers[0].threshold) == ("unknown", "> 2 * core_num")
    assert told.absences[0].reason == "what the threshold is reckoned from could not be read"
    assert told.age_s is None


def test_an_unread_rule_says_why_and_what_would_help() -> None:
    node = healthy().miss("disk", "smart_status", Absence.NO_PERMISSION, "smartctl needs root")
    node.judge()
    told = only(node, "disk.smart")
    assert (told.condition, told.readings, told.age_s) == ("unknown", [], None)
    assert [(one.state, one.reason, one.remedy) for one in told.absences] == [
        ("no_permission", "smartctl needs root", "do something")
    ]
    assert told.source == CATALOGUE["disk", "smart_status"].source


def test_a_rule_about_something_this_node_lacks() -> None:
    node = healthy().miss("disk", "smart_status", Absence.NOT_APPLICABLE, "virtual disks only")
    node.judge()
    assert only(node, "disk.smart").condition == "not_applicable"


@pytest.mark.parametrize("rule", ["gpu.temperature", "npu.hbm_ecc"])
def test_a_component_that_is_not_scored_here(rule: str) -> None:
    node = healthy()
    node.judge()
    told = only(node, rule)
    assert (told.condition, told.weight) == ("not_applicable", 0.0)


def test_one_of_eight_cards_unread_is_not_clear() -> None:
    node = with_gpus(8)
    node.judge()
    node.miss("gpu", "temperature", Absence.READ_ERROR, "GPU is lost", gpu_id="7").judge()
    told = only(node, "gpu.temperature")
    assert told.condition == "unknown"
    assert len(told.readings) == 5  # a few, not all


def test_the_worst_reading_comes_first() -> None:
    node = with_gpus(3).set("gpu", "temperature", 70, gpu_id="1")
    node.judge()
    assert [one.value for one in only(node, "gpu.temperature").readings] == [70, 50, 50]
    node.set("disk", "smart_status", 0, device="sdb", status="FAILED").judge()
    assert [one.value for one in only(node, "disk.smart").readings] == [0, 1]


def test_the_text_of_a_deduction_may_stand_for_several_components() -> None:
    node = healthy()
    node.judge()
    assert [one.rule for one in node.explain("usage>90%")] == ["cpu.usage", "memory.usage"]
    assert only(node, "memory.usage>90%").rule == "memory.usage"


def test_a_finding() -> None:
    node = healthy().set("system", "clock_synced", 0)
    node.judge()
    told = only(node, "system.clock_not_synchronised")
    assert (told.condition, told.weight, told.source) == ("triggered", 0.0, "adjtimex(2)")
    assert [(one.value, one.name) for one in told.readings] == [(0.0, "clock_synced")]
    assert (told.tiers[0].severity, told.tiers[0].threshold, told.tiers[0].clears_when) == ("warning", "< 1", ">= 1")
    node.set("system", "clock_synced", 1).judge()
    assert only(node, "system.clock_not_synchronised").condition == "clear"


def test_a_finding_that_cannot_be_read_and_one_that_nobody_looked_for() -> None:
    node = healthy().miss("disk", "raid_state", Absence.READ_ERROR, "sysfs is closed")
    node.judge()
    assert only(node, "disk.raid_failed").condition == "unknown"
    assert only(node, "disk.read_only").condition == "not_applicable"


def test_a_rule_that_sees_two_metrics_shows_both() -> None:
    from support.node import add_npu  # noqa: PLC0415 - only here

    node = healthy()
    add_npu(node, "0")
    node.judge()
    told = only(node, "npu.hbm_ecc")
    assert [one.name for one in told.readings] == ["hbm_double_ecc", "hbm_single_ecc"]


def test_before_any_evaluation_nothing_is_known() -> None:
    node = healthy()
    assert only(node, "cpu.usage").condition == "not_applicable"
    assert only(node, "disk.read_only").condition == "not_applicable"


def test_a_rule_without_a_catalogue_row_has_no_source() -> None:
    node = healthy()
    node.judge()
    assert only(node, "gpu.card_lost").source == ""


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("cpu.usge", "no rule 'cpu.usge', did you mean cpu.usage"),
        ("wholly else", "no rule 'wholly else'; `nodeproof explain` lists them"),
        ("degraded", "did you mean network.bond_degraded or disk.raid_degraded|did you mean disk.raid_degraded"),
    ],
)
def test_an_unknown_rule_is_an_error_with_suggestions(rule: str, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        healthy().explain(rule)


def test_every_rule_can_be_explained() -> None:
    node = healthy()
    node.judge()
    for rule in node.evaluator.rule_ids():
        told = only(node, rule)
        assert told.rule == rule
        assert told.tiers
