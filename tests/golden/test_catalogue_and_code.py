"""The catalogue held against what the collectors really bring on every fixture host, and when they bring it."""

from itertools import pairwise
from pathlib import Path

import pytest

from nodeproof.clock import rfc3339_parse
from nodeproof.collectors.base import Collector, Group, GroupCollector
from nodeproof.collectors.when_present import WhenPresent
from nodeproof.health.evaluator import needed_metrics
from nodeproof.host.recorded import ManualClock
from nodeproof.model.catalogue import CATALOGUE, Feature, Kind, MetricSpec, Priority
from nodeproof.model.metric import Metric, Missing
from nodeproof.scheduler.loop import CollectorCost
from nodeproof.scheduler.self_cost import SelfCost
from nodeproof.sinks.base import SinkStatus
from support.bmc import EVERYTHING
from support.verdict import HEALTH
from support.whole_host import HOSTS, WholeHost

pytestmark = pytest.mark.timeout(90)

ROOT = Path(__file__).parents[2]
Key = tuple[str, str]

ABSENT_WHEN_ALL_IS_WELL = {
    ("chassis", "sensor_status"): "only sensors beyond their limits are listed",
    ("disk", "raid_sync_progress"): "only what is being synchronised has progress",
    ("system", "disk_sleep_task"): "only a task that has slept through two looks is listed",
    ("network", "ib_saturated"): "only saturated counters are listed",
    ("disk", "smart_note"): "only remarks that were made are listed",
}
"""Rows whose absence is the good case, so that they need not be reported missing."""

SLOWER_WITHOUT_A_KERNEL_DRIVER = {
    ("disk", "smart_temperature"): "without a sensor of the kernel it is as old as smartctl's answer"
}


@pytest.fixture(scope="module")
def observed(tmp_path_factory: pytest.TempPathFactory) -> list[WholeHost]:
    """Every host, all metrics wanted."""
    hosts = [WholeHost(name, tmp_path_factory.mktemp("host"), EVERYTHING) for name in HOSTS]
    for host in hosts:
        host.observe()
    return hosts


def _readings(host: WholeHost) -> list[Metric]:
    return [*(metric for batch in host.batches.values() for metric in batch.metrics), *host.identity]


def _told(host: WholeHost) -> set[Key]:
    return {(metric.component, metric.name) for metric in _readings(host)} | {
        (entry.component, entry.name) for entry in _absences(host)
    }


def _absences(host: WholeHost) -> list[Missing]:
    return [entry for batch in host.batches.values() for entry in batch.missing]


def test_whatever_is_emitted_has_a_row_with_its_unit_and_labels(observed: list[WholeHost]) -> None:
    wrong = []
    for host in observed:
        for metric in _readings(host):
            spec = CATALOGUE.get((metric.component, metric.name))
            labels = set(metric.labels or {})
            if spec is None or metric.unit != spec.unit or not labels <= set(spec.labels):
                wrong.append((host.name, metric, spec))
    assert wrong == []


def test_whatever_is_missing_has_a_row_with_its_labels(observed: list[WholeHost]) -> None:
    wrong = []
    for host in observed:
        for entry in _absences(host):
            spec = CATALOGUE.get((entry.component, entry.name))
            if spec is None or not set(entry.labels or {}) <= set(spec.labels):
                wrong.append((host.name, entry))
    assert wrong == []


def test_every_row_is_brought_or_reported_missing_by_some_host(observed: list[WholeHost]) -> None:
    seen = {key for host in observed for key in _told(host)}
    own = {spec.key for spec in CATALOGUE.values() if spec.component == "daemon"}
    unseen = set(CATALOGUE) - seen - own
    assert unseen == set()


def test_every_wanted_row_of_a_component_is_there_or_missing_on_every_host(observed: list[WholeHost]) -> None:
    """Nothing is passed over in silence: on each host each metric is a number or an absence; no cards are one absence."""
    silent = {}
    for host in observed:
        told = _told(host)
        grouped = {
            (component, name)
            for component, collector in host.collectors.items()
            for group in _groups(collector)
            for name in group.names
        }
        without = {entry.component for entry in _absences(host) if entry.name == "device_count"}
        left = {key for key in grouped - told if key not in ABSENT_WHEN_ALL_IS_WELL}
        left = {key for key in left if key[0] not in without}
        if left:
            silent[host.name] = sorted(left)
    assert silent == {}


def test_the_daemons_own_rows_are_what_it_brings_of_itself() -> None:
    cost = CollectorCost(7, 1, 0, 0.5, 0.6, 0.1, 0.0, "")
    batch = SelfCost(
        ManualClock(), lambda: {"cpu": cost}, lambda: 3, lambda: HEALTH, lambda: [SinkStatus("jsonl", 0, "")]
    ).collect()
    for metric in batch.metrics:
        spec = CATALOGUE["daemon", metric.name]
        assert (metric.unit, set(metric.labels or {})) == (spec.unit, set(spec.labels)), metric
    assert {metric.name for metric in batch.metrics} == {key[1] for key in CATALOGUE if key[0] == "daemon"}


def _groups(collector: Collector) -> list[Group]:
    """Of the collector itself, where it is one that is loaded when its devices are there."""
    if isinstance(collector, WhenPresent):
        collector = collector._real or collector._empty
    assert isinstance(collector, GroupCollector)
    return collector._groups


def test_a_group_with_a_cadence_has_the_period_that_the_catalogue_states(observed: list[WholeHost]) -> None:
    """Groups whose cadence lies in their slow source have no cadence of their own: the next test watches when they are read."""
    wrong = {}
    for component, collector in observed[0].collectors.items():
        for group in _groups(collector):
            for name in group.names if group.every_s and component not in {"gpu", "npu"} else ():
                if CATALOGUE[component, name].period_s != group.every_s:
                    wrong[component, name] = group.every_s
    assert wrong == {}


@pytest.mark.parametrize("name", ["bmc-supermicro", "ib-hca", "storage-sick", "vm-2cpu"])
def test_readings_are_as_old_as_the_catalogue_says_and_no_older(name: str, tmp_path: Path) -> None:
    """Cycles of 1 s for 150 s: the times of a metric's readings lie its period apart, once the slow sources have settled."""
    host = WholeHost(name, tmp_path, EVERYTHING)
    times: dict[Key, list[float]] = {}
    for cycle in range(150):
        host.cycle()
        if cycle >= 12:
            for metric in (metric for batch in host.batches.values() for metric in batch.metrics):
                seen = times.setdefault((metric.component, metric.name), [])
                at = rfc3339_parse(metric.timestamp)
                if at not in seen:
                    seen.append(at)
        host.clock.advance(1.0)
    host.machine.close()
    wrong = {}
    for key, seen in times.items():
        if key in SLOWER_WITHOUT_A_KERNEL_DRIVER:
            continue
        period = CATALOGUE[key].period_s or 1.0
        gaps = {round(after - before, 3) for before, after in pairwise(seen)}
        if (not gaps and period < 60) or any(not period - 0.5 <= gap <= period + 1.0 for gap in gaps):
            wrong[key] = (period, gaps)
    assert wrong == {}


@pytest.mark.parametrize("ruleset", ["0.3.3", "0.3.5"])
def test_what_rules_look_at_is_in_the_list_of_health(ruleset: str) -> None:
    needed = set(needed_metrics(ruleset))
    assert {key for key in needed if key not in CATALOGUE} == set()
    assert [key for key in needed if key in CATALOGUE and Feature.HEALTH not in CATALOGUE[key].features] == []


@pytest.mark.parametrize("spec", CATALOGUE.values(), ids=lambda spec: f"{spec.component}.{spec.name}")
def test_priority_and_features_are_plausible(spec: MetricSpec) -> None:
    if spec.priority is Priority.HIGH:
        assert spec.default
        assert spec.features
    if spec.kind is Kind.INFO:
        assert spec.labels, "content in labels needs labels"
    if spec.name.endswith("_total") and spec.key != ("npu", "process_total"):  # the reference's name of a gauge (observe.md 1.6)
        assert spec.kind is Kind.COUNTER


def test_all_that_is_shipped_speaks_english() -> None:
    """No character of a foreign script in the source, but for the page, which has two languages."""
    foreign = [
        f"{path.relative_to(ROOT)}:{number}: {character!r}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if "web" not in path.relative_to(ROOT).parts
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        for character in line
        if _is_cjk(character)
    ]
    assert foreign == []


def _is_cjk(character: str) -> bool:
    return any(low <= character <= high for low, high in _CJK)


_CJK = (
    ("\u1100", "\u11ff"),
    ("\u2e80", "\u9fff"),
    ("\ua960", "\ua97f"),
    ("\uac00", "\ud7ff"),
    ("\uf900", "\ufaff"),
    ("\uff00", "\uffef"),
)
"""Blocks of the Unicode standard for Chinese, Japanese and Korean, punctuation and full-width forms included."""


def test_every_absence_has_its_reason(observed: list[WholeHost]) -> None:
    assert [entry for host in observed for entry in _absences(host) if not entry.reason.strip()] == []
