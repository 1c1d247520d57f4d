"""Score, coverage and what could not be told."""

import threading

import pytest

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import Absence
from nodeproof.health import RULESETS, Evaluator, Readings, needed_metrics
from nodeproof.model.catalogue import CATALOGUE
from nodeproof.model.metric import Batch, Labels, Metric
from support.node import Node, bare, by_rule, finding, healthy, unknown, with_gpus

NOT_HERE = Absence.NOT_APPLICABLE


def test_a_sound_host() -> None:
    score = healthy().judge()
    assert (score.score, score.grade, score.server_type) == (100, "Excellent", "cpu_only")
    assert (score.scheme, score.ruleset, score.coverage) == ("cpu_only", "0.3.5", 1.0)
    assert score.unknown == []
    assert score.findings == []
    assert {name: (one.score, one.max, one.deductions, one.coverage) for name, one in score.components.items()} == {
        "cpu": (25, 25, None, 1.0),
        "memory": (25, 25, None, 1.0),
        "disk": (30, 30, None, 1.0),
        "network": (10, 10, None, 1.0),
        "chassis": (10, 10, None, 1.0),
    }


def test_points_are_cut_to_their_integer_part() -> None:
    score = healthy().set("cpu", "usage", 85, core="total").judge()
    assert score.components["cpu"].score == 22  # 25 - 2.5
    assert score.score == 97


def test_nothing_read_is_unknown_and_scores_nothing() -> None:
    score = bare().judge()
    assert (score.score, score.grade, score.coverage, score.components) == (0, "Unknown", 0.0, {})


def test_a_virtual_machine_is_judged_by_what_it_has() -> None:
    """No temperature, no memory controllers, no SMART, no BMC: none of them applies, and nothing is missing."""
    node = healthy()
    node.miss("cpu", "temperature", NOT_HERE).miss("memory", "ecc_ce_errors", NOT_HERE).miss("memory", "ecc_uce_errors", NOT_HERE)
    node.miss("disk", "smart_status", NOT_HERE).miss_component("chassis", NOT_HERE)
    score = node.judge()
    assert (score.score, score.grade, score.coverage, score.unknown) == (100, "Excellent", 1.0, [])
    assert "chassis" not in score.components


def test_a_component_without_readings_leaves_the_sum_which_is_scaled() -> None:
    """The reference let a host without its disk collector top out at 70."""
    node = healthy().miss_component("chassis", NOT_HERE).set("cpu", "usage", 95, core="total")
    score = node.judge()
    assert score.score == 94  # (20 + 25 + 30 + 10) of 90 = 94.4
    assert sum(one.max for one in score.components.values()) == 90


def test_a_component_that_applies_and_is_unread_leaves_the_sum_and_lowers_coverage() -> None:
    node = healthy().miss_component("chassis", Absence.NO_PERMISSION, "ipmitool needs root")
    score = node.judge()
    assert "chassis" not in score.components
    assert score.coverage == 0.9
    assert (score.score, score.grade) == (99, "Excellent")
    told = unknown(score, "chassis", "inlet")
    assert (told.state, told.reason, told.remedy, told.source, told.weight) == (
        "no_permission",
        "ipmitool needs root",
        "do something",
        "/some/file",
        5.0,
    )


def test_coverage_by_hand() -> None:
    node = healthy()
    node.miss("cpu", "temperature", Absence.UNSUPPORTED)  # 30 % of 25 = 7.5
    node.miss("disk", "smart_status", Absence.NO_PERMISSION)  # 50 % of 30 = 15
    node.miss_component("chassis", NOT_HERE)  # 10 leave
    score = node.judge()
    assert score.coverage == 0.75  # (90 - 22.5) / 90
    assert score.components["cpu"].coverage == 0.7
    assert score.components["disk"].coverage == 0.5
    assert (score.score, score.grade) == (97, "Good")  # 24 + 25 + 29 + 10 of 90


@pytest.mark.parametrize("state", [one for one in Absence if one is not NOT_HERE])
def test_every_kind_of_absence_but_not_applicable_counts_as_unread(state: Absence) -> None:
    score = healthy().miss("cpu", "usage", state).judge()
    assert score.components["cpu"].coverage == 0.8
    assert unknown(score, "cpu", "usage").state == state


def test_what_nobody_tells_counts_as_unread() -> None:
    score = healthy().drop("cpu", "usage").judge()
    assert score.components["cpu"].coverage == 0.8
    assert unknown(score, "cpu", "usage").reason == "no collector brought it"


def test_unknown_never_scores_full() -> None:
    score = healthy().miss("network", "error_count").judge()
    assert score.components["network"].score == 9
    assert score.score == 99


def test_less_than_nine_tenths_is_at_most_good() -> None:
    node = healthy().miss_component("chassis")
    assert node.judge().grade == "Excellent"  # 0.9
    node.miss("network", "connection_count", state="TIME_WAIT")
    score = node.judge()
    assert (score.coverage, score.grade) == (0.87, "Good")


def test_less_than_half_is_unknown() -> None:
    node = healthy().miss_component("disk").miss_component("chassis").miss_component("network")
    assert (node.judge().coverage, node.judge().grade) == (0.5, "Good")
    node.miss("cpu", "usage")
    score = node.judge()
    assert (score.coverage, score.grade) == (0.45, "Unknown")


def test_a_missing_smart_tool_is_no_deduction_and_no_pass() -> None:
    """Defect 13: a host without smartctl lost 30 % of its disk points."""
    score = healthy().miss("disk", "smart_status", Absence.UNSUPPORTED, "smartctl is not installed").judge()
    assert score.components["disk"].deductions is None
    assert score.components["disk"].coverage == 0.5
    assert unknown(score, "disk", "smart").weight == 15.0


def test_usage_that_needs_a_second_sample_is_unknown_not_zero() -> None:
    """Defect 28: one-shot health was blind to usage."""
    node = healthy().miss("cpu", "usage", Absence.UNKNOWN, "needs a second reading")
    assert unknown(node.judge(), "cpu", "usage").reason == "needs a second reading"
    node.set("cpu", "usage", 95, core="total")
    assert "usage>90%" in by_rule(node.judge())


def test_the_load_is_held_against_the_cores_of_the_machine() -> None:
    """Defect 28: a host of 128 processors was penalised from a load of 8 on."""
    node = healthy().set("cpu", "core_num", 128).set("cpu", "load_average", 200, interval="1m")
    assert node.judge().components["cpu"].deductions is None
    node.set("cpu", "load_average", 257, interval="1m")
    assert finding(node.judge(), "load>cores*2").threshold == "> 256"


def test_processors_on_line_stand_in_for_the_core_count() -> None:
    node = healthy().drop("cpu", "core_num").set("cpu", "online_core_num", 2).set("cpu", "load_average", 5, interval="1m")
    assert "load>cores*2" in by_rule(node.judge())


def test_a_narrow_scope_does_not_look_excellent() -> None:
    """Defect 28: with the shipped scope only load_average survived, and health reported 100 Excellent."""
    node = bare().set("cpu", "load_average", 0.1, interval="1m").set("cpu", "core_num", 2)
    score = node.judge()
    assert score.grade == "Unknown"
    assert score.coverage == 0.05  # 20 % of 25


def test_one_card_of_eight_unread_is_an_eighth_of_its_weight() -> None:
    node = with_gpus(8)
    node.judge()
    node.miss("gpu", "temperature", Absence.READ_ERROR, "GPU is lost", gpu_id="7")
    score = node.judge()
    assert score.components["gpu"].coverage == pytest.approx(1 - 0.35 / 8, abs=1e-4)
    assert unknown(score, "gpu", "temperature").reason == "GPU is lost"


def test_a_sensor_that_a_card_lacks_is_no_loss_while_another_tells() -> None:
    node = with_gpus(0)
    from support.node import add_npu  # noqa: PLC0415 - only here

    add_npu(node, "0")
    node.miss("npu", "aicore1_temp", Absence.UNSUPPORTED, npu_id="0", chip_id="0").miss("npu", "ndie_temp", Absence.UNSUPPORTED)
    score = node.judge()
    assert score.components["npu"].coverage == 1.0


def test_an_absence_about_the_rest_of_a_table_is_no_loss() -> None:
    node = healthy().miss("network", "connection_count", Absence.UNSUPPORTED, state="LISTEN")
    assert node.judge().coverage == 1.0


def test_a_dead_file_server_is_no_matter_of_the_space_rule() -> None:
    node = healthy().miss("disk", "space_detail", Absence.STALE, device="server:/x", mount_point="/mnt")
    node.set("disk", "space_detail", 1000, device="/dev/sda1", mount_point="/", fstype="ext4", field="total")
    node.set("disk", "space_detail", 300, device="/dev/sda1", mount_point="/", fstype="ext4", field="used")
    assert node.judge().components["disk"].coverage == 1.0


def test_a_local_device_that_cannot_be_read_is_a_part_of_the_space_rule() -> None:
    node = healthy().miss("disk", "space_detail", Absence.STALE, device="/dev/sdb1", mount_point="/data")
    assert node.judge().components["disk"].coverage == 0.825  # half of 35 %


def test_a_host_without_local_file_systems_has_no_space_rule() -> None:
    node = healthy().drop("disk", "space_detail")
    node.set("disk", "space_detail", 10, device="overlay", mount_point="/", fstype="overlay", field="total")
    score = node.judge()
    assert score.components["disk"].coverage == 1.0


@pytest.mark.parametrize("field", ["total", "used", "available"])
def test_space_that_does_not_add_up_is_unknown(field: str) -> None:
    node = healthy().drop("disk", "space_detail")
    node.set("disk", "space_detail", 0, device="/dev/sda1", mount_point="/", fstype="ext4", field=field)
    told = unknown(node.judge(), "disk", "space")
    assert told.reason == "no device tells both its size and how much of it is in use"


def test_several_causes_are_counted_and_the_most_telling_is_named() -> None:
    node = healthy().drop("disk", "smart_status")
    node.miss("disk", "smart_status", Absence.UNSUPPORTED, "behind a controller", device="sda")
    node.miss("disk", "smart_status", Absence.NO_PERMISSION, "needs root", device="sdb")
    told = unknown(node.judge(), "disk", "smart")
    assert (told.state, told.reason) == ("no_permission", "needs root (and 1 more)")


def test_the_list_of_unknowns_is_bounded_and_weightiest_first() -> None:
    node = bare()
    for number, (component, name) in enumerate(sorted(needed_metrics())):
        if component not in {"gpu", "npu"}:
            node.miss(component, name, Absence.READ_ERROR, f"reason {number}")
    score = node.judge()
    assert len(score.unknown) == 41
    weights = [one.weight for one in score.unknown]
    assert weights == sorted(weights, reverse=True)
    assert score.unknown[0].concern == "smart"
    assert score.unknown[-1].reason.endswith("more could not be told")


def test_an_absence_that_names_nothing_is_one_thing_more_unread() -> None:
    node = healthy().miss("network", "error_count", Absence.READ_ERROR, "two interfaces failed")
    node.set("network", "error_count", 0, interface="eth0", type="rx_err")
    assert node.judge().components["network"].coverage == pytest.approx(1 - 0.45 / 2)


def test_one_cause_for_many_things_of_a_rule_is_told_once() -> None:
    node = healthy()
    for name in ("sda", "sdb"):
        node.miss("disk", "smart_pending_sectors", Absence.NO_PERMISSION, "needs root", device=name)
    told = [one for one in node.judge().unknown if one.component == "disk"]
    assert [(one.concern, one.reason) for one in told] == [("pending_sectors", "needs root")]


def test_causes_that_rules_share_are_told_once() -> None:
    node = healthy().miss("disk", "inode_usage", Absence.STALE, "old").miss("disk", "read_only_remount", Absence.STALE, "old")
    told = [one for one in node.judge().unknown if one.component == "disk"]
    assert [(one.concern, one.reason) for one in told] == [("read_only, inodes_short, inodes_full", "old")]


def test_findings_are_sorted_by_gravity_and_points() -> None:
    node = healthy().set("cpu", "usage", 95, core="total").set("memory", "usage", 95).set("system", "clock_synced", 0)
    node.set("disk", "read_only_remount", 1, device="/dev/sda1", mount_point="/", fstype="ext4")
    score = node.judge()
    assert [one.rule for one in score.findings] == ["disk.read_only", "system.clock_not_synchronised", "usage>90%", "usage>90%"]
    assert [one.penalty for one in score.findings] == [0, 0, 6.25, 5.0]


def test_evidence_of_a_deduction() -> None:
    node = healthy().set("cpu", "temperature", 91.5, cpu="1", sensor="Package id 1")
    node.set("cpu", "temperature", 88, cpu="0", sensor="Package id 0")
    told = finding(node.judge(), "temp>85C")
    assert told.reading.value == 91.5
    assert told.reading.unit == "°C"
    assert told.reading.labels == {"cpu": "1", "sensor": "Package id 1"}
    assert told.message.startswith("cpu temperature of cpu 1, sensor Package id 1 and 1 more: ")
    assert (told.threshold, told.clears_when, told.penalty, told.severity) == ("> 85 °C", "<= 82 °C for 30 s", 7.5, "info")
    assert told.source == CATALOGUE["cpu", "temperature"].source
    assert told.age_s == 0.0


def test_evidence_of_growth_shows_total_and_gain() -> None:
    node = healthy().set("memory", "ecc_ce_errors", 500, mc="mc0")
    node.judge()
    node.set("memory", "ecc_ce_errors", 504, mc="mc0")
    told = finding(node.judge(), "ce_error>=3")
    assert (told.reading.value, told.reading.judged, told.reading.judged_as) == (504, 4, "growth within 24 h")
    assert (told.threshold, told.clears_when) == (">= 3 count (growth within 24 h)", "< 3 count (growth within 24 h)")


def test_hostile_labels_stay_harmless_in_messages() -> None:
    node = healthy().set("disk", "smart_status", 0, device="s\x1b[31m{da}\n" + "x" * 500, status="FAILED")
    told = finding(node.judge(), "smart_failed")
    assert "\x1b" not in told.message
    assert "\n" not in told.message
    assert "{da}" in told.message
    assert len(told.message) < 400


def test_age_of_a_reading_that_a_slow_source_passes_on() -> None:
    at = Instant(1_790_000_100.0, 1_100.0)
    read = Metric("cpu", "usage", 95.0, "%", {"core": "total"}, rfc3339(at.wall_s - 40))
    batch = Batch("cpu", rfc3339(at.wall_s - 2), at.mono_s - 2, [read], [])
    score = Evaluator(confirm=False).evaluate(Readings({"cpu": batch}), at)
    assert finding(score, "usage>90%").age_s == 40.0


def test_errors_between_two_evaluations_are_not_lost() -> None:
    """A gain per cycle is gone a second later; the evaluator is told of every batch, and asked now and then."""
    node = healthy(Evaluator())
    node.judge(2)
    for gain in (0, 1, 0, 0):
        node.pass_time(1.0).set("cpu", "cpu_uce_errors", gain, cpu="0")
        for batch in node.batches().values():
            node.evaluator.note(batch)
    told = finding(node.judge(), "cpu_uce_error")
    assert told.reading.judged == 1


def test_a_gain_that_was_noted_and_is_evaluated_counts_once() -> None:
    node = healthy(Evaluator(confirm=False))
    node.judge(2)
    node.set("cpu", "cpu_ce_errors", 2, cpu="0").pass_time(1.0)
    batches = node.batches()
    for batch in batches.values():
        node.evaluator.note(batch)
    score = node.evaluator.evaluate(Readings(batches), node.at)
    assert finding(score, "cpu_ce_error").reading.judged == 2


def test_a_batch_newer_than_the_readings_waits_for_the_next_evaluation() -> None:
    node = healthy(Evaluator(confirm=False))
    node.judge()
    old = node.batches()
    node.pass_time(1.0).set("cpu", "cpu_ce_errors", 1, cpu="0")
    node.evaluator.note(node.batches()["cpu"])
    assert "cpu_ce_error" not in by_rule(node.evaluator.evaluate(Readings(old), node.at))
    score = node.evaluator.evaluate(Readings(node.batches()), node.at)
    assert finding(score, "cpu_ce_error").reading.judged == 1


def test_notes_of_components_that_no_rule_counts_are_ignored() -> None:
    evaluator = Evaluator()
    evaluator.note(Batch("somebody", "t", 1.0, [Metric("somebody", "else", 1.0, "W")], []))
    evaluator.note(Batch("memory", "t", 1.0, [Metric("memory", "ecc_ce_errors", 9.0, "count", {"mc": "mc0"})], []))
    score = evaluator.evaluate(Readings({"memory": Batch("memory", "t", 1.0, [], [])}), Instant(1.0, 1.0))
    assert score.findings == []


def test_notes_may_come_from_any_thread() -> None:
    node = healthy(Evaluator(confirm=False))
    node.judge()
    batches = []
    for _ in range(50):
        node.pass_time(1.0).set("cpu", "cpu_ce_errors", 1, cpu="0")
        batches.append(node.batches()["cpu"])
    threads = [threading.Thread(target=node.evaluator.note, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
        thread.join()
    assert finding(node.judge(), "cpu_ce_error>=3").reading.judged == 51


def test_unchanged_batches_give_the_same_answer() -> None:
    node = healthy().set("cpu", "usage", 95, core="total").set("system", "clock_synced", 0)
    first = node.judge()
    assert node.judge_again() == first


def test_a_component_that_goes_is_judged_anew() -> None:
    node = healthy()
    node.judge()
    node.components.discard("chassis")
    node.drop("chassis")
    score = node.judge()
    assert "chassis" not in score.components
    assert score.coverage == 0.9


def test_a_third_party_metric_without_catalogue_row_is_judged_too() -> None:
    batch = Batch("cpu", "t", 1.0, [Metric("cpu", "usage", 95.0, "%", {"core": "total"}, "t")], [])
    score = Evaluator(confirm=False).evaluate(Readings({"cpu": batch}, {}), Instant(1.0, 1.0))
    told = finding(score, "usage>90%")
    assert (told.source, told.threshold) == ("", "> 90")


@pytest.mark.parametrize("ruleset", RULESETS)
def test_every_metric_that_a_rule_looks_at_is_catalogued_or_comes_with_its_cards(ruleset: str) -> None:
    missing = {pair for pair in needed_metrics(ruleset) if pair not in CATALOGUE}
    assert {component for component, _ in missing} <= {"gpu", "npu"}


def test_labels_that_rules_ask_for_are_those_of_the_catalogue() -> None:
    from nodeproof.health.evaluator import _probes  # noqa: PLC0415 - only here

    for ruleset in RULESETS:
        for probe in _probes(ruleset):
            for name in probe.names:
                spec = CATALOGUE.get((probe.component, name))
                if spec is not None and probe.component not in {"npu", "gpu"}:
                    asked = {key for key, _ in probe.where} | set(probe.entity)
                    assert asked <= set(spec.labels), f"{probe.component}.{name}"


def test_rule_ids_are_unique() -> None:
    for ruleset in RULESETS:
        ids = Evaluator(ruleset).rule_ids()
        assert len(ids) == len(set(ids))


def test_node_helper_is_honest() -> None:
    node: Node = healthy()
    assert sum(len(batch.metrics) for batch in node.batches().values()) == len(node.values)


def test_which_side_of_a_rule_a_thing_is_on() -> None:
    """What ends a fault: its own reading on the good side, and never that there is none."""
    node = healthy()
    node.set("disk", "read_only_remount", 0, device="/dev/sda1", mount_point="/", fstype="ext4").judge()

    def total(labels: Labels) -> bool:
        return labels.get("core") == "total"

    def root(labels: Labels) -> bool:
        return labels.get("mount_point") == "/"

    def elsewhere(labels: Labels) -> bool:
        return labels.get("mount_point") == "/elsewhere"

    reads_well = node.evaluator.reads_well
    assert reads_well("cpu.usage", total) is True
    assert reads_well("disk.read_only", root) is True
    assert reads_well("disk.read_only", elsewhere) is None, "there is no such thing"
    assert reads_well("npu.card_drop", root) is None, "it does not apply"
    assert reads_well("gpu.reset_required", root) is None, "nothing was seen of it"
    assert reads_well("no.such_rule", root) is None
    node.set("cpu", "usage", 95, core="total").set(
        "disk", "read_only_remount", 1, device="/dev/sda1", mount_point="/", fstype="ext4"
    ).judge()
    assert reads_well("cpu.usage", total) is False
    assert reads_well("disk.read_only", root) is False
    node.set("cpu", "usage", 79, core="total").judge()
    assert reads_well("cpu.usage", total) is False, "no longer over 80, not yet under 78"
    node.miss("disk", "read_only_remount").judge()
    assert reads_well("disk.read_only", root) is None, "a reading that is gone is no good one"
