"""The daemon's own cost, held against what the kernel says of this process."""

import os

import psutil
import pytest

from nodeproof.clock import SystemClock
from nodeproof.host import own_process
from nodeproof.model.catalogue import component_specs
from nodeproof.scheduler.loop import CollectorCost
from nodeproof.scheduler.self_cost import COMPONENT, SelfCost
from nodeproof.sinks.base import SinkStatus
from support.verdict import HEALTH

COST = CollectorCost(
    cycles=7, failures=2, skipped=1, cpu_s=0.5, wall_s=1.25, last_wall_s=0.125, hung_s=3.0, last_error="x", failing=True
)


SINKS = [SinkStatus("jsonl", 3, "no space"), SinkStatus("snapshot", 2, "")]


def test_every_figure_of_a_collector_is_there() -> None:
    batch = SelfCost(SystemClock(), lambda: {"cpu": COST}, lambda: 4, lambda: HEALTH, lambda: SINKS).collect()
    found = {metric.name: (metric.value, metric.unit) for metric in batch.metrics if metric.labels == {"collector": "cpu"}}
    assert found == {
        "collector_cycles_total": (7, "count"),
        "collector_failures_total": (2, "count"),
        "collector_skipped_total": (1, "count"),
        "collector_cpu_total": (0.5, "s"),
        "collector_wall_total": (1.25, "s"),
        "collector_last_wall": (0.125, "s"),
        "collector_hung": (3.0, "s"),
        "collector_failing": (1, ""),
    }
    assert {metric.name for metric in batch.metrics} == set(component_specs(COMPONENT))
    failing = {metric.labels["sink"]: metric.value for metric in batch.metrics if metric.name == "sink_failing" and metric.labels}
    assert failing == {"jsonl": 1, "snapshot": 0}
    assert next(metric.value for metric in batch.metrics if metric.name == "commands_total") == 4


def test_the_verdict_is_a_set_of_series() -> None:
    batch = SelfCost(SystemClock(), dict, lambda: 0, lambda: HEALTH).collect()
    found = {
        (metric.name, *(metric.labels or {}).values()): metric.value
        for metric in batch.metrics
        if metric.name.startswith("health")
    }
    assert found == {
        ("health_score",): 83,
        ("health_coverage",): 97.5,
        ("health_grade", "Good"): 1,
        ("health_findings", "info"): 0,
        ("health_findings", "warning"): 1,
        ("health_findings", "critical"): 0,
        ("health_component_score", "cpu"): 20,
        ("health_component_max", "cpu"): 25,
    }


def test_without_a_verdict_there_is_none() -> None:
    batch = SelfCost(SystemClock(), dict, lambda: 0).collect()
    assert not [metric for metric in batch.metrics if metric.name.startswith("health")]


def test_sequence_counts_and_labels_are_shared() -> None:
    source = SelfCost(SystemClock(), lambda: {"cpu": COST}, lambda: 0)
    first, second = source.collect(), source.collect()
    assert (first.sequence, second.sequence) == (1, 2)
    assert first.metrics[0].labels is second.metrics[0].labels


def test_own_figures_agree_with_psutil() -> None:
    process = psutil.Process()
    assert own_process.resident_bytes() == pytest.approx(process.memory_info().rss, rel=0.05)
    assert own_process.descriptors() == process.num_fds() - 1  # psutil counts the one it lists with
    times = os.times()
    assert own_process.cpu_s() == pytest.approx(times.user + times.system + times.children_user + times.children_system, abs=0.2)
