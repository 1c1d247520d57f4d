import gzip
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as parse_text

from nodeproof.errors import Absence
from nodeproof.host.recorded import ManualClock
from nodeproof.model.catalogue import Kind, MetricSpec
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.sinks import prometheus
from nodeproof.sinks.base import SinkStatus, StaleAfter
from nodeproof.sinks.latest import LatestStore
from nodeproof.sinks.prometheus import Format, Naming, Renderer, render
from support.batches import batch, metric, missing
from support.golden import GoldenFile

CASES = Path(__file__).parents[2] / "fixtures" / "exposition"


def row(component: str, name: str, unit: str, kind: Kind) -> MetricSpec:
    return MetricSpec(component, name, unit, kind, f"What {name} is.", "/proc/x")


ROWS = (
    row("cpu", "usage", "%", Kind.GAUGE),
    row("cpu", "user_time", "jiffies", Kind.COUNTER),
    row("cpu", "model_info", "cores", Kind.INFO),
    row("disk", "smart_status", "", Kind.STATE),
    row("disk", "space_detail", "MB", Kind.GAUGE),
    row("network", "rx_bytes_total", "bytes", Kind.COUNTER),
)
CATALOGUE: Mapping[tuple[str, str], MetricSpec] = {spec.key: spec for spec in ROWS}

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Desk:
    def __init__(self, naming: Naming = Naming.NODEPROOF, statuses: Sequence[SinkStatus] = ()) -> None:
        self.clock = ManualClock()
        self.store = LatestStore(self.clock, StaleAfter({"cpu": 1.0, "disk": 5.0}))
        self.renderer = Renderer(self.store, naming=naming, version="1.2.3", statuses=lambda: statuses, catalogue=CATALOGUE)
        self.sequence = 0

    def write(self, *metrics: Metric, absent: Sequence[Missing] = (), component: str = "cpu") -> None:
        self.sequence += 1
        self.store.write(batch(metrics, absent, component=component, at=self.clock.now(), sequence=self.sequence))

    def page(self, form: Format = Format.TEXT) -> str:
        return self.renderer.render(form).decode()


def samples(page: str) -> Samples:
    found: Samples = {}
    for family in parse_text(page):
        for sample in family.samples:
            key = (sample.name, frozenset(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def parse_openmetrics(page: str) -> list[Family]:
    return list(text_string_to_metric_families(page))  # type: ignore[no-untyped-call] # the library has no types here


def value(page: str, series: str, /, **labels: str) -> float | None:
    return samples(page).get((series, frozenset(labels.items())))


def kinds(page: str) -> dict[str, str]:
    return {family.name: family.type for family in parse_text(page)}


def test_values_in_base_units_under_true_types() -> None:
    desk = Desk()
    desk.write(
        metric("usage", 9.56, {"core": "total"}),
        metric("user_time", 338977, {"core": "total"}, unit="jiffies"),
        metric("usage", 12.0, {"core": "0"}),
        metric("model_info", 2.0, {"model_name": "EPYC"}, unit="cores"),
    )
    page = desk.page()
    assert value(page, "nodeproof_cpu_usage_ratio", core="total") == 0.0956
    assert 'nodeproof_cpu_usage_ratio{core="total"} 0.0956\n' in page
    assert value(page, "nodeproof_cpu_usage_ratio", core="0") == 0.12
    assert value(page, "nodeproof_cpu_user_time_seconds_total", core="total") == 3389.77
    assert value(page, "nodeproof_cpu_model_info", model_name="EPYC") == 1.0
    assert kinds(page)["nodeproof_cpu_usage_ratio"] == "gauge"
    assert kinds(page)["nodeproof_cpu_user_time_seconds"] == "counter"
    assert value(page, "nodeproof_build_info", version="1.2.3") == 1.0


def test_large_counters_keep_every_digit() -> None:
    desk = Desk()
    desk.write(metric("rx_bytes_total", 9007199254740991, {"interface": "eth0"}, unit="bytes"), component="network")
    desk.write(metric("space_detail", 258019.61328125, unit="MB"), component="disk")
    page = desk.page()
    assert 'nodeproof_network_rx_bytes_total{interface="eth0"} 9007199254740991\n' in page
    assert value(page, "nodeproof_disk_space_detail_bytes") == 258019.61328125 * 1048576


def test_a_family_stands_together_under_one_header() -> None:
    desk = Desk()
    desk.write(*[metric(name, 1.0, {"core": str(core)}) for core in range(3) for name in ("usage", "user_time")])
    lines = desk.page().split("\n")
    assert lines[:10] == [
        "# HELP nodeproof_cpu_usage_ratio What usage is.",
        "# TYPE nodeproof_cpu_usage_ratio gauge",
        *[f'nodeproof_cpu_usage_ratio{{core="{core}"}} 0.01' for core in range(3)],
        # These readings claim "%" for a metric of the catalogue; the reading's unit decides what its number means.
        "# HELP nodeproof_cpu_user_time_ratio_total What user_time is.",
        "# TYPE nodeproof_cpu_user_time_ratio_total counter",
        *[f'nodeproof_cpu_user_time_ratio_total{{core="{core}"}} 0.01' for core in range(3)],
    ]


def test_names_and_values_of_the_reference() -> None:
    desk = Desk(Naming.CATMONITOR)
    desk.write(metric("usage", 15.44, {"core": "total"}), metric("user_time", 340180, {"core": "total"}, unit="jiffies"))
    page = desk.page()
    assert 'catmonitor_cpu_usage{core="total"} 15.44\n' in page
    assert 'catmonitor_cpu_user_time{core="total"} 340180\n' in page
    assert "# TYPE catmonitor_cpu_user_time counter\n" in page
    families = {family.name: family.type for family in parse_openmetrics(desk.page(Format.OPENMETRICS))}
    assert families["catmonitor_cpu_user_time"] == "unknown"


def test_defect_20_absent_readings_are_counted_by_state_and_never_zero() -> None:
    desk = Desk()
    desk.write(
        metric("usage", 1.0),
        absent=[
            missing("temperature", state=Absence.UNSUPPORTED),
            missing("usage", labels={"core": "1"}),
            missing("usage", labels={"core": "2"}),
        ],
    )
    page = desk.page()
    assert value(page, "nodeproof_reading_missing", component="cpu", name="temperature", state="unsupported") == 1
    assert value(page, "nodeproof_reading_missing", component="cpu", name="usage", state="unknown") == 2
    assert "nodeproof_cpu_temperature" not in page


def test_defect_20_a_component_that_no_longer_reads_leaves_the_page_and_is_seen_to() -> None:
    desk = Desk()
    desk.write(metric("usage", 1.0, {"core": "0"}))
    desk.write(metric("smart_status", 1.0, {"device": "sda"}, unit=""), component="disk")
    before = desk.page()
    assert value(before, "nodeproof_component_fresh", component="cpu") == 1
    desk.clock.advance(6.5)
    page = desk.page()
    assert value(page, "nodeproof_cpu_usage_ratio", core="0") is None
    assert value(page, "nodeproof_disk_smart_status", device="sda") == 1
    assert value(page, "nodeproof_component_fresh", component="cpu") == 0
    assert value(page, "nodeproof_component_age_seconds", component="cpu") == 6.5
    assert value(page, "nodeproof_component_last_success_timestamp_seconds", component="cpu") == 1_790_000_000.0
    assert value(page, "nodeproof_reading_missing", component="cpu", name="usage", state="stale") == 1
    assert desk.renderer.fresh()
    desk.clock.advance(10)
    assert not desk.renderer.fresh()


def test_defect_20_an_entity_that_vanished_leaves_with_the_next_batch() -> None:
    desk = Desk()
    desk.write(*[metric("smart_status", 1.0, {"device": device}, unit="") for device in ("sda", "sdb")], component="disk")
    assert value(desk.page(), "nodeproof_disk_smart_status", device="sdb") == 1
    desk.write(metric("smart_status", 1.0, {"device": "sda"}, unit=""), component="disk")
    assert value(desk.page(), "nodeproof_disk_smart_status", device="sdb") is None


def test_numbers_are_fresh_while_the_shape_stays() -> None:
    desk = Desk()
    labels = {"core": "0"}
    for number in (1.0, 2.0, 3.0):
        desk.write(metric("usage", number, labels))
        assert value(desk.page(), "nodeproof_cpu_usage_ratio", core="0") == number / 100
    desk.write(metric("usage", 4.0, dict(labels)), metric("usage", 5.0, {"core": "1"}))
    assert value(desk.page(), "nodeproof_cpu_usage_ratio", core="0") == 0.04
    assert value(desk.page(), "nodeproof_cpu_usage_ratio", core="1") == 0.05


def test_a_component_that_is_no_longer_collected_leaves_at_once() -> None:
    desk = Desk()
    desk.write(metric("usage", 1.0))
    desk.write(metric("smart_status", 1.0, unit=""), component="disk")
    desk.page()
    desk.store.forget("disk")
    page = desk.page()
    assert "disk" not in page
    desk.write(metric("smart_status", 0.0, unit=""), component="disk")
    assert value(desk.page(), "nodeproof_disk_smart_status") == 0.0


class TestDuplicates:
    def test_case_61_the_first_stays_and_the_rest_are_counted(self) -> None:
        desk = Desk()
        desk.write(
            metric("temperature", 40.0, {"chip": "nvme", "sensor": "Composite"}, unit="°C", component="disk"),
            metric("temperature", 43.0, {"chip": "nvme", "sensor": "Composite"}, unit="°C", component="disk"),
            metric("disk_info", 1.0, {"device": "sda", "model": "unknown"}, unit="", component="disk"),
            metric("disk_info", 1.0, {"model": "unknown", "device": "sda"}, unit="", component="disk"),
            component="disk",
        )
        page = desk.page()
        assert value(page, "nodeproof_disk_temperature_celsius", chip="nvme", sensor="Composite") == 40.0
        assert value(page, "nodeproof_disk_disk_info", device="sda", model="unknown") == 1.0
        assert value(page, "nodeproof_exporter_duplicates_total") == 2
        assert value(desk.page(Format.OPENMETRICS).replace("# EOF\n", ""), "nodeproof_exporter_duplicates_total") == 2

    def test_every_batch_counts(self) -> None:
        desk = Desk()
        for _ in range(3):
            desk.write(metric("usage", 1.0), metric("usage", 2.0))
            page = desk.page()
        assert value(page, "nodeproof_exporter_duplicates_total") == 3

    def test_an_empty_label_does_not_make_another_series(self) -> None:
        desk = Desk()
        desk.write(metric("usage", 1.0, {"model": ""}), metric("usage", 2.0))
        assert value(desk.page(), "nodeproof_cpu_usage_ratio") == 0.01

    def test_two_components_cannot_share_a_family(self) -> None:
        desk = Desk()
        desk.write(metric("x_y", 1.0, unit=""))
        desk.write(metric("y", 2.0, component="cpu_x", unit=""), component="cpu_x")
        desk.write(metric("age", 2.0, component="component", unit="s"), component="component")
        page = desk.page()
        assert value(page, "nodeproof_cpu_x_y") == 1.0
        assert value(page, "nodeproof_exporter_duplicates_total") == 2
        assert value(page, "nodeproof_component_age_seconds", component="cpu") == 0.0


class TestReadingsThatComeAndGo:
    """A disk without a single read has no latency, and has one a second later: each page is made of what there is."""

    def cycle(self, desk: Desk, status: float, usage: float | None) -> str:
        readings = [metric("smart_status", status, {"device": "sda"}, unit="", component="disk")]
        if usage is not None:
            readings.append(metric("usage", usage, {"device": "sda"}, component="disk"))
        desk.write(*readings, component="disk")
        return desk.page()

    def test_every_page_is_that_of_its_readings(self, monkeypatch: pytest.MonkeyPatch) -> None:
        desk = Desk()
        made: list[str] = []
        make = desk.renderer._make

        def noted(found: Batch, shape: Any, known: Any) -> Any:
            made.append(found.component)
            return make(found, shape, known)

        monkeypatch.setattr(desk.renderer, "_make", noted)
        for number, usage in enumerate((50.0, None, 70.0, None, 90.0, 95.0, None)):
            page = self.cycle(desk, float(number), usage)
            assert value(page, "nodeproof_disk_smart_status", device="sda") == float(number)
            shown = value(page, "nodeproof_disk_usage_ratio", device="sda")
            assert shown == (None if usage is None else usage / 100)
        assert made == ["disk", "disk"], "two pages in turn are two plans"

    def test_a_family_that_another_took_meanwhile_stays_with_that_one(self) -> None:
        desk = Desk()
        self.cycle(desk, 0.0, 50.0)
        self.cycle(desk, 0.0, None)
        desk.renderer._owners["nodeproof_disk_usage_ratio"] = "a stranger"
        page = self.cycle(desk, 1.0, 60.0)
        assert value(page, "nodeproof_disk_usage_ratio", device="sda") is None
        assert value(page, "nodeproof_disk_smart_status", device="sda") == 1.0
        assert value(page, "nodeproof_exporter_duplicates_total") == 1


def test_case_60_hostile_labels_cost_no_series() -> None:
    desk = Desk()
    lines = (CASES / "hostile-labels.txt").read_bytes().decode("utf-8", "surrogateescape").split("\n")
    values = [line.partition("=")[2] for line in lines if "=" in line]
    assert len(values) == 7
    values.append("DIMM_A1\nnewline")
    desk.write(*[metric("usage", float(place), {"l": text, "place": str(place)}) for place, text in enumerate(values)])
    found = {
        dict(labels)["place"]: dict(labels)["l"] for (name, labels) in samples(desk.page()) if name == "nodeproof_cpu_usage_ratio"
    }
    assert found == {
        "0": 'WDC "Red" \\ Pro',
        "1": "/mnt/caf\ufffd",
        "2": "DIMM_A1",
        "3": "Temp|CPU{1}",
        "4": "python3 -c \"a='b'\\n\"",
        "5": "eth0",
        "6": "<img src=x onerror=alert(1)>",
        "7": "DIMM_A1\nnewline",
    }


LABELS = st.dictionaries(
    st.sampled_from(["device", "name", "a-b", "9", "__x"]), st.text(st.characters(), max_size=300), max_size=3
)
METRICS = st.lists(
    st.builds(
        # OpenMetrics allows no negative counter; user_time is the one counter here.
        lambda name, number, labels, unit: Metric("cpu", name, abs(number) if name == "user_time" else number, unit, labels, ""),
        st.sampled_from(["usage", "user_time", "model_info", "odd name", "x_total", "n_count"])
        | st.text(min_size=1, max_size=10),
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60),
        st.none() | LABELS,
        st.sampled_from(["%", "", "jiffies", "MB", "count", "bananas"]),
    ),
    max_size=30,
)


@given(METRICS, st.sampled_from(Naming))
def test_the_official_parsers_read_whatever_comes(metrics: list[Metric], naming: Naming) -> None:
    desk = Desk(naming)
    desk.write(*metrics)
    page = desk.page()
    found = samples(page)
    opened: Samples = {}
    for family in parse_openmetrics(desk.page(Format.OPENMETRICS)):
        for sample in family.samples:
            opened[sample.name, frozenset(sample.labels.items())] = sample.value
    if naming is Naming.CATMONITOR:
        # The text parser adds _total to the name of a counter that lacks it.
        assert {(name.removesuffix("_total"), labels) for name, labels in opened} == {
            (name.removesuffix("_total"), labels) for name, labels in found
        }
    else:
        assert opened == found
    dropped = value(page, "nodeproof_exporter_duplicates_total")
    mine = [name for name, _ in found if "_cpu_" in name]
    assert dropped is not None
    assert len(mine) == len(metrics) - dropped


def test_openmetrics_has_units_and_an_end() -> None:
    desk = Desk()
    desk.write(metric("user_time", 100, {"core": "0"}, unit="jiffies"), metric("usage", 1.0))
    page = desk.page(Format.OPENMETRICS)
    assert page.endswith("# EOF\n")
    assert page.count("# EOF") == 1
    families = {family.name: family for family in parse_openmetrics(page)}
    assert families["nodeproof_cpu_user_time_seconds"].unit == "seconds"
    assert families["nodeproof_cpu_user_time_seconds"].type == "counter"
    assert families["nodeproof_cpu_usage_ratio"].unit == "ratio"


@pytest.mark.parametrize("form", list(Format))
def test_the_compressed_page_is_the_page_also_between_batches(form: Format) -> None:
    desk = Desk()
    for _ in range(3):
        desk.write(*[metric("usage", float(core), {"core": str(core)}) for core in range(50)])
        for _ in range(3):
            desk.clock.advance(0.3)
            packed = desk.renderer.render_gzip(form)
            assert gzip.decompress(packed).decode() == desk.page(form)
            assert len(packed) < len(desk.page(form)) / 3


def test_an_unchanged_component_is_not_written_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    poured: list[int] = []
    real = prometheus._Plan.pour

    def pour(self: prometheus._Plan, metrics: Sequence[Metric], form: Format) -> bytes:
        poured.append(len(metrics))
        return real(self, metrics, form)

    monkeypatch.setattr(prometheus._Plan, "pour", pour)
    desk = Desk()
    desk.write(metric("usage", 1.0))
    desk.write(metric("smart_status", 1.0, unit=""), metric("smart_status", 1.0, {"d": "b"}, unit=""), component="disk")
    desk.page()
    desk.page()
    desk.write(metric("usage", 2.0))
    desk.page()
    assert poured == [1, 2, 1]


def test_truth_values_of_a_plug_in_are_numbers() -> None:
    desk = Desk()
    desk.write(metric("odd", True, unit=""))
    assert value(desk.page(), "nodeproof_cpu_odd") == 1.0


def test_failures_of_sinks_are_on_the_page() -> None:
    desk = Desk(statuses=[SinkStatus("snapshot", 3, "full"), SinkStatus("jsonl", 0, "")])
    desk.write(metric("usage", 1.0))
    assert value(desk.page(), "nodeproof_sink_errors_total", sink="snapshot") == 3
    assert value(desk.page(), "nodeproof_sink_errors_total", sink="jsonl") == 0


def test_a_batch_without_a_time_has_no_time_of_success() -> None:
    desk = Desk()
    desk.store.write(Batch("cpu", "", 1000.0, [metric("usage", 1.0)], [], 1))
    page = desk.page()
    assert "last_success_timestamp_seconds{" not in page
    assert value(page, "nodeproof_component_age_seconds", component="cpu") == 0.0


def test_a_page_of_nothing_is_still_a_page() -> None:
    desk = Desk()
    assert not desk.renderer.ready
    assert samples(desk.page()) == {
        ("nodeproof_exporter_duplicates_total", frozenset()): 0.0,
        ("nodeproof_build_info", frozenset({("version", "1.2.3")})): 1.0,
    }
    list(parse_openmetrics(desk.page(Format.OPENMETRICS)))


def test_readers_and_writers_side_by_side() -> None:
    desk = Desk()
    stop = threading.Event()
    labels = [{"core": str(core)} for core in range(20)]

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            desk.store.write(batch([metric("usage", float(number), label) for label in labels], sequence=number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            found = samples(desk.page())
            numbers = {number for (name, _), number in found.items() if name == "nodeproof_cpu_usage_ratio"}
            assert len(numbers) <= 1
            gzip.decompress(desk.renderer.render_gzip(Format.TEXT))
    finally:
        stop.set()
        writer.join()


def whole_page(naming: Naming, form: Format) -> str:
    desk = Desk(naming, [SinkStatus("snapshot", 0, "")])
    desk.write(
        *[metric(name, 10.5 + core, {"core": str(core)}) for core in range(2) for name in ("usage",)],
        *[metric("user_time", 1000 + core, {"core": str(core)}, unit="jiffies") for core in range(2)],
        metric("model_info", 2.0, {"model_name": 'Odd "name" \\ here'}, unit="cores"),
        absent=[missing("temperature", state=Absence.NOT_APPLICABLE)],
    )
    desk.write(
        metric("smart_status", 1.0, {"device": "sda", "status": "PASSED"}, unit="", component="disk"),
        metric("space_detail", 258019.61328125, {"device": "/dev/vda", "field": "total"}, unit="MB", component="disk"),
        component="disk",
    )
    desk.write(
        metric("rx_bytes_total", 123456789012, {"interface": "eth0"}, unit="bytes", component="network"), component="network"
    )
    desk.clock.advance(0.25)
    return desk.page(form)


@pytest.mark.parametrize("naming", list(Naming))
@pytest.mark.parametrize("form", list(Format))
def test_the_page_is_what_it_was_found_to_be(naming: Naming, form: Format, golden: GoldenFile) -> None:
    kind = "text" if form is Format.TEXT else "openmetrics"
    golden.check(f"exposition/{naming}.{kind}.prom", whole_page(naming, form))


def test_promtool_finds_nothing_to_complain_of(absent_here: list[str]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        absent_here.append("promtool (Debian package prometheus): the exposition was not linted")
        return
    page = whole_page(Naming.NODEPROOF, Format.TEXT)
    done = subprocess.run([promtool, "check", "metrics"], input=page.encode(), capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_one_page_for_commands() -> None:
    page = render({"cpu": batch([metric("usage", 50.0, {"core": "total"})])})
    assert value(page, "nodeproof_cpu_usage_ratio", core="total") == 0.5
    assert render({}, Format.OPENMETRICS).endswith("# EOF\n")
    assert "catmonitor_cpu_usage 50.0\n" in render({"cpu": batch([metric("usage", 50.0)])}, naming=Naming.CATMONITOR)
