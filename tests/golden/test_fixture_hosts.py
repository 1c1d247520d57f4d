"""Every fixture host through the whole program: exposition and snapshot files, as they were looked at and found right."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from nodeproof.config.resolve import defaults
from nodeproof.health.evaluator import needed_metrics
from nodeproof.scheduler.selection import MetricSelection
from nodeproof.sinks.exposition_names import Format, Naming
from support.digest import page_outline, snapshot_listing, snapshot_outline
from support.golden import GoldenFile
from support.strict_reader import read_directory
from support.whole_host import HOSTS, WholeHost

pytestmark = pytest.mark.timeout(60)

LARGE = frozenset({"aarch64-kunpeng", "bare-x86-256cpu"})
"""Pages and files of these would be megabytes of the same; a checksum and an outline are kept."""

CONTRACT_NAMES = {
    "nodeproof_cpu_process_count": "name of the reference (observe.md 1.2)",
    "nodeproof_gpu_device_count": "counts devices, and is what the scheme of health is chosen by",
    "nodeproof_npu_device_count": "counts devices, and is what the scheme of health is chosen by",
    "nodeproof_network_connection_count": "name of the reference (observe.md 1.7)",
    "nodeproof_network_error_count": "name of the reference (observe.md 1.7)",
}
"""Gauges that promtool would rather not see end in _count, and why they do."""
COMPLAINT = re.compile(r'(\S+) (non-histogram and non-summary metrics should not have "_count" suffix)')

CATMONITOR_COMPLAINTS = (
    re.compile(r'catmonitor_\w+ counter metrics should have "_total" suffix'),
    re.compile(r'catmonitor_\w+_count non-histogram and non-summary metrics should not have "_count" suffix'),
)
"""The names of the reference have no suffixes; dashboards are built on them, so they stay as they are."""


@pytest.fixture(scope="module", autouse=True)
def utc() -> Iterator[None]:
    """Times of files are local; these files were made in UTC."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, Naming], WholeHost]:
    """Hosts that were observed already."""
    return {}


@pytest.fixture
def observed(
    request: pytest.FixtureRequest, hosts: dict[tuple[str, Naming], WholeHost], tmp_path_factory: pytest.TempPathFactory
) -> WholeHost:
    """The host named by the test's parameter, with the metrics that the daemon collects by default."""
    key: tuple[str, Naming] = request.param
    if key not in hosts:
        config = defaults({})
        selection = MetricSelection(config.features, config.collection.min_priority, needed_metrics(config.health.ruleset))
        hosts[key] = WholeHost(key[0], tmp_path_factory.mktemp("host"), selection, key[1])
        hosts[key].observe()
    return hosts[key]


by_name = pytest.mark.parametrize("observed", [(name, Naming.NODEPROOF) for name in HOSTS], ids=HOSTS, indirect=True)
with_reference_names = pytest.mark.parametrize("observed", [("vm-2cpu", Naming.CATMONITOR)], ids=["vm-2cpu"], indirect=True)


@by_name
def test_the_page_is_what_it_was_found_to_be(observed: WholeHost, golden: GoldenFile) -> None:
    page = observed.page(Format.TEXT)
    if observed.name in LARGE:
        golden.check(f"hosts/{observed.name}.outline.txt", page_outline(page))
    else:
        golden.check(f"hosts/{observed.name}.prom", page)


@with_reference_names
def test_the_page_with_names_of_the_reference_is_what_it_was_found_to_be(observed: WholeHost, golden: GoldenFile) -> None:
    golden.check(f"hosts/{observed.name}.catmonitor.prom", observed.page(Format.TEXT))


@by_name
def test_the_snapshot_files_are_what_they_were_found_to_be(observed: WholeHost, golden: GoldenFile) -> None:
    if observed.name in LARGE:
        golden.check(f"hosts/{observed.name}.snapshot.outline.txt", snapshot_outline(observed.snapshots))
    else:
        golden.check(f"hosts/{observed.name}.snapshot.txt", snapshot_listing(observed.snapshots))


@by_name
def test_a_strict_reader_of_the_reference_reads_the_snapshot_files(observed: WholeHost) -> None:
    directory = read_directory(observed.snapshots, also={"system"})
    assert set(directory.components) == set(observed.batches)


@by_name
def test_the_official_parsers_read_the_same_samples_from_both_formats(observed: WholeHost) -> None:
    text = _samples(parse_text(observed.page(Format.TEXT)))
    openmetrics = _samples(parse_openmetrics(observed.page(Format.OPENMETRICS)))  # type: ignore[no-untyped-call] # no types there
    assert openmetrics == text
    assert len(text) > 100


@by_name
def test_promtool_complains_of_contract_names_only(observed: WholeHost, absent_here: list[str]) -> None:
    complaints = _promtool(observed.page(Format.TEXT), absent_here)
    assert [line for line in complaints if not ((found := COMPLAINT.fullmatch(line)) and found[1] in CONTRACT_NAMES)] == []


@with_reference_names
def test_promtool_complains_of_the_names_of_the_reference_as_expected(observed: WholeHost, absent_here: list[str]) -> None:
    complaints = _promtool(observed.page(Format.TEXT), absent_here)
    assert [line for line in complaints if not any(known.fullmatch(line) for known in CATMONITOR_COMPLAINTS)] == []


@by_name
def test_no_reading_is_both_there_and_missing_and_none_stands_twice(observed: WholeHost) -> None:
    for batch in observed.batches.values():
        there = [(metric.name, tuple(sorted((metric.labels or {}).items()))) for metric in batch.metrics]
        assert len(there) == len(set(there))
        absent = {(entry.name, tuple(sorted((entry.labels or {}).items()))) for entry in batch.missing}
        assert absent.isdisjoint(there)


def _samples(families: object) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    found = {}
    for family in families:  # type: ignore[attr-defined] # the library has no types
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def _promtool(page: str, absent_here: list[str]) -> list[str]:
    """What promtool says of a page; nothing where it is not installed, which the run tells at its end."""
    program = shutil.which("promtool")
    if program is None:
        absent_here.append("promtool (Debian package prometheus): no page of a fixture host was linted")
        return []
    done = subprocess.run([program, "check", "metrics"], input=page.encode(), capture_output=True, check=False)
    assert done.returncode in {0, 3}, done.stderr.decode()
    return done.stderr.decode().splitlines()
