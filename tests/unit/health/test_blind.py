"""Which rules are in the dark, why, and how many points hang on it."""

from nodeproof.errors import Absence
from support.node import bare, healthy


def test_a_healthy_node_has_no_blind_rule() -> None:
    node = healthy()
    node.judge(3)
    assert node.evaluator.blind() == []


def test_points_add_up_to_what_coverage_lacks() -> None:
    node = healthy()
    node.miss("cpu", "temperature", Absence.NO_PERMISSION, "denied")
    node.miss("memory", "usage", Absence.READ_ERROR, "broken")
    score = node.judge(3)
    blind = {one.rule: one for one in node.evaluator.blind()}
    assert {"cpu.temperature", "memory.usage"} <= blind.keys()
    assert round(sum(one.points for one in blind.values()), 2) == round(100 * (1 - score.coverage), 2)
    [absence] = blind["cpu.temperature"].absences
    assert (absence.state, absence.reason) == (Absence.NO_PERMISSION, "denied")


def test_a_rule_outside_the_tables_is_told_without_points() -> None:
    node = healthy()
    node.set("disk", "read_only_remount", 0.0, mount_point="/").miss("disk", "read_only_remount")
    node.judge()
    [blind] = [one for one in node.evaluator.blind() if one.rule == "disk.read_only"]
    assert blind.points == 0.0
    assert blind.absences[0].reason == "it broke"


def test_what_nobody_looked_at_has_neither_source_nor_time() -> None:
    node = bare()
    node.set("cpu", "core_num", 2.0)
    node.judge()
    blind = {one.rule: one for one in node.evaluator.blind()}
    assert round(sum(one.points for one in blind.values()), 1) == 100.0
    assert blind["memory.usage"].absences[0].source == ""
    assert blind["memory.usage"].absences[0].timestamp == ""
