"""When a condition begins to count and when it ends: one torn sample convicts nobody."""

from nodeproof.clock import Instant, rfc3339, rfc3339_parse
from nodeproof.errors import Absence
from nodeproof.health import Evaluator, Readings
from nodeproof.health.latch import Latch
from nodeproof.health.limits import level
from nodeproof.health.rules import Probe
from nodeproof.health.sample import Sample
from nodeproof.model.metric import Batch, Metric
from support.node import Node, by_rule, finding, healthy, with_gpus


def running(*, every_s: float = 1.0) -> Node:
    node = healthy(Evaluator(), every_s=every_s)
    node.judge(3)
    return node


def rules(node: Node, component: str = "cpu", times: int = 1) -> list[str]:
    return [one.rule for one in node.judge(times).components[component].deductions or []]


def test_one_torn_sample_convicts_nobody() -> None:
    node = running()
    node.set("cpu", "temperature", 2112, cpu="0", sensor="Package id 0")
    assert rules(node) == []
    node.set("cpu", "temperature", 48, cpu="0", sensor="Package id 0")
    assert rules(node, times=5) == []


def test_the_third_sample_in_a_row_counts() -> None:
    node = running().set("cpu", "usage", 95, core="total")
    assert rules(node) == []
    assert rules(node) == []
    assert rules(node) == ["usage>90%"]


def test_good_samples_between_begin_the_count_anew() -> None:
    node = running()
    for value in (95, 95, 50, 95, 95):
        node.set("cpu", "usage", value, core="total")
        assert rules(node) == []
    node.set("cpu", "usage", 95, core="total")
    assert rules(node) == ["usage>90%"]


def test_one_sample_judged_ten_times_is_one_sample() -> None:
    node = running().set("cpu", "usage", 95, core="total")
    node.judge()
    for _ in range(10):
        assert node.judge_again().components["cpu"].deductions is None


def test_a_condition_ends_below_its_clear_level_and_after_a_while() -> None:
    node = running(every_s=10.0).set("cpu", "usage", 91, core="total")
    assert rules(node, times=3) == ["usage>90%"]
    node.set("cpu", "usage", 89, core="total")  # no longer bad, not yet good
    assert rules(node, times=20) == ["usage>90%"]
    node.set("cpu", "usage", 87, core="total")  # below 88
    assert rules(node, times=3) == ["usage>90%"]  # for 0, 10, 20 s
    assert rules(node) == ["usage>80%"]  # 30 s
    node.set("cpu", "usage", 50, core="total")
    assert rules(node, times=3) == ["usage>80%"]
    assert rules(node) == []


def test_a_single_good_sample_does_not_end_a_condition() -> None:
    node = running(every_s=10.0).set("cpu", "usage", 95, core="total")
    node.judge(3)
    node.set("cpu", "usage", 10, core="total").judge()
    node.set("cpu", "usage", 95, core="total").judge()
    node.set("cpu", "usage", 10, core="total")
    assert rules(node, times=3) == ["usage>90%"]
    assert rules(node) == []


def test_an_old_good_sample_does_not_end_a_condition() -> None:
    """A slow source passes the same reading on for a minute: that is one good sample, not many."""
    node = running(every_s=10.0).set("cpu", "usage", 95, core="total")
    node.judge(3)
    node.set("cpu", "usage", 10, core="total").judge()
    for _ in range(10):
        node.pass_time(10.0)
        assert node.judge_again().components["cpu"].deductions is not None


def test_the_same_reading_in_a_new_batch_is_no_new_sample() -> None:
    """Defined by the time it was read: a slow group's readings stand in every batch until it runs again."""
    evaluator = Evaluator()
    hot, cool = 1_790_000_000.0, 1_790_000_060.0

    def rules_at(mono_s: float, value: float, read_wall_s: float) -> list[str]:
        metric = Metric("cpu", "usage", value, "%", {"core": "total"}, rfc3339(read_wall_s))
        batch = Batch("cpu", rfc3339(hot + mono_s), mono_s, [metric], [])
        score = evaluator.evaluate(Readings({"cpu": batch}), Instant(hot + mono_s, mono_s))
        return [one.rule for one in score.components["cpu"].deductions or []]

    assert [rules_at(float(second), 95, hot) for second in range(1, 9)] == [[]] * 8
    assert rules_at(10.0, 95, hot + 10) == []
    assert rules_at(20.0, 95, hot + 20) == ["usage>90%"]
    assert [rules_at(60.0 + second, 10, cool) for second in range(0, 60, 10)] == [["usage>90%"]] * 6
    assert rules_at(120.0, 10, cool + 60) == []


def test_each_card_is_counted_by_itself() -> None:
    node = with_gpus(8, Evaluator())
    node.judge(3)
    for hot in ("0", "1", "2"):  # three cards, one torn sample each
        for card in ("0", "1", "2"):
            node.set("gpu", "temperature", 120 if card == hot else 50, gpu_id=card)
        assert rules(node, "gpu") == []


def test_uncorrected_errors_count_at_the_first_sample() -> None:
    node = running().set("memory", "ecc_uce_errors", 1, mc="mc0")
    assert rules(node, "memory") == ["uce_error"]


def test_corrected_errors_count_once_a_second_reading_confirms_them() -> None:
    node = running().set("memory", "ecc_ce_errors", 9e9, mc="mc0")
    assert rules(node, "memory") == []
    node.set("memory", "ecc_ce_errors", 0, mc="mc0")
    assert rules(node, "memory", times=5) == []
    node.set("memory", "ecc_ce_errors", 2, mc="mc0")
    assert rules(node, "memory", times=2) == ["ce_error"]


def test_errors_are_forgiven_after_a_day_without_new_ones() -> None:
    """Defect 28: counters since boot were a penalty for ever."""
    node = running().set("memory", "ecc_ce_errors", 2, mc="mc0")
    assert rules(node, "memory", times=2) == ["ce_error"]
    node.pass_time(86_000)
    assert rules(node, "memory") == ["ce_error"]
    node.pass_time(400)
    assert rules(node, "memory") == []
    assert finding(node.judge(), "memory.corrected_total").severity == "info"


def test_a_counter_that_restarts_takes_nothing() -> None:
    node = running().set("memory", "ecc_ce_errors", 500, mc="mc0")
    node = healthy(Evaluator()).set("memory", "ecc_ce_errors", 500, mc="mc0")
    node.judge(3)
    node.set("memory", "ecc_ce_errors", 0, mc="mc0")
    assert rules(node, "memory", times=3) == []


def test_what_was_bad_and_cannot_be_read_is_not_good() -> None:
    node = running().set("cpu", "usage", 95, core="total")
    node.judge(3)
    node.miss("cpu", "usage", Absence.READ_ERROR, "gone")
    score = node.judge(50)
    assert [one.rule for one in score.components["cpu"].deductions or []] == ["usage>90%"]
    told = finding(score, "usage>90%")
    assert told.last_seen
    assert told.age_s == 50.0
    assert score.components["cpu"].coverage == 0.8


def test_what_a_dead_collector_last_saw_stays() -> None:
    node = running()
    node.set("disk", "smart_status", 0, device="sda", status="FAILED").judge()
    node.miss_component("disk", Absence.STALE, "the last reading is 40 s old")
    score = node.judge()
    assert score.components["disk"].score == 15
    assert score.components["disk"].coverage == 0.0
    assert finding(score, "smart_failed").last_seen
    assert finding(score, "daemon.component_stale").message.startswith("component disk has had no fresh reading")
    assert score.grade == "Critical"


def test_what_is_nobodys_any_more_stays_until_it_is_read() -> None:
    node = running().set("cpu", "usage", 95, core="total")
    node.judge(3)
    node.drop("cpu", "usage")
    assert rules(node) == ["usage>90%"]


def test_a_thing_that_is_gone_takes_its_condition_with_it() -> None:
    node = running().set("disk", "smart_status", 1, device="sdb", status="PASSED")
    node.set("disk", "smart_status", 0, device="sda", status="FAILED").judge()
    for key in [key for key in node.values if ("device", "sda") in key[2]]:
        del node.values[key]
    assert rules(node, "disk") == []


def test_what_does_not_apply_any_more_is_dropped() -> None:
    node = running().set("cpu", "temperature", 99, cpu="0", sensor="Package id 0")
    node.judge(3)
    node.miss("cpu", "temperature", Absence.NOT_APPLICABLE, "no sensors")
    assert rules(node) == []


def test_since_is_the_first_sample_in_the_row() -> None:
    node = running().set("cpu", "usage", 95, core="total")
    node.judge()
    first = node.at.wall_s
    told = finding(node.judge(5), "usage>90%")
    assert told.since.startswith("20")
    assert rfc3339_parse(told.since) == first


def test_one_shot_commands_count_at_once() -> None:
    node = healthy(Evaluator(confirm=False)).set("cpu", "usage", 95, core="total")
    assert rules(node) == ["usage>90%"]
    node.set("cpu", "usage", 10, core="total")
    assert rules(node) == []


def test_a_flag_needs_two_samples_to_begin_and_one_to_end() -> None:
    node = running().set("network", "link_lost", 0, interface="eth0")
    node.judge()
    node.set("network", "link_lost", 1, interface="eth0")
    assert "network.link_lost" not in by_rule(node.judge())
    assert "network.link_lost" in by_rule(node.judge())
    node.set("network", "link_lost", 0, interface="eth0")
    assert "network.link_lost" not in by_rule(node.judge())


def test_a_good_sample_that_is_fed_twice_is_one() -> None:
    """Of two disks that one rule is about, only one was read anew: the other's old reading is no second good one."""
    limit = level(Probe("disk", ("temperature",), entity=("device",)), 60, 58)
    latch = Latch(_hot(70.0, 1))
    latch.feed(_hot(70.0, 1), limit, Instant(0.0, 100.0), confirm=False)
    latch.feed(_hot(40.0, 2), limit, Instant(0.0, 110.0), confirm=True)
    for mono_s in (140.0, 150.0):
        latch.feed(_hot(40.0, 2), limit, Instant(0.0, mono_s), confirm=True)
        assert latch.active
    latch.feed(_hot(40.0, 3), limit, Instant(0.0, 150.0), confirm=True)
    assert not latch.active


def _hot(value: float, number: int) -> Sample:
    metric = Metric("disk", "temperature", value, "°C", {"device": "sda"}, f"t{number}")
    return Sample(metric, value, ("sda",), f"t{number}")
