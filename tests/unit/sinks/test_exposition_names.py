import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.model.catalogue import CATALOGUE, UNITS, Kind, MetricSpec
from nodeproof.sinks.exposition_names import Family, Format, Naming, family, header, series


def spec(name: str, unit: str, kind: Kind = Kind.GAUGE, component: str = "cpu") -> MetricSpec:
    return MetricSpec(component, name, unit, kind, "What it is.", "/proc/x")


def ours(name: str, unit: str, kind: Kind = Kind.GAUGE) -> Family:
    return family("cpu", name, unit, spec(name, unit, kind), Naming.NODEPROOF)


class TestOurNames:
    @pytest.mark.parametrize(
        ("name", "unit", "kind", "expected"),
        [
            ("usage", "%", Kind.GAUGE, "nodeproof_cpu_usage_ratio"),
            ("busy_percent", "%", Kind.GAUGE, "nodeproof_cpu_busy_ratio"),
            ("load_average", "", Kind.GAUGE, "nodeproof_cpu_load_average"),
            ("user_time", "jiffies", Kind.COUNTER, "nodeproof_cpu_user_time_seconds_total"),
            ("temperature", "°C", Kind.GAUGE, "nodeproof_cpu_temperature_celsius"),
            ("frequency", "MHz", Kind.GAUGE, "nodeproof_cpu_frequency_hertz"),
            ("power", "W", Kind.GAUGE, "nodeproof_cpu_power_watts"),
            ("energy", "J", Kind.COUNTER, "nodeproof_cpu_energy_joules_total"),
            ("usage_detail", "MB", Kind.GAUGE, "nodeproof_cpu_usage_detail_bytes"),
            ("size_mb", "MB", Kind.GAUGE, "nodeproof_cpu_size_bytes"),
            ("throughput", "MB/s", Kind.GAUGE, "nodeproof_cpu_throughput_bytes_per_second"),
            ("speed", "Mb/s", Kind.GAUGE, "nodeproof_cpu_speed_bytes_per_second"),
            ("context_switches", "count/s", Kind.GAUGE, "nodeproof_cpu_context_switches_per_second"),
            ("drop_rate", "count/s", Kind.GAUGE, "nodeproof_cpu_drop_per_second"),
            ("x_bytes_total", "bytes", Kind.COUNTER, "nodeproof_cpu_x_bytes_total"),
            ("rx_bytes", "bytes", Kind.COUNTER, "nodeproof_cpu_rx_bytes_total"),
            ("errors_total", "count", Kind.COUNTER, "nodeproof_cpu_errors_total"),
            ("errors", "count", Kind.COUNTER, "nodeproof_cpu_errors_total"),
            ("process_total", "count", Kind.GAUGE, "nodeproof_cpu_process"),
            ("wait_ms", "ms", Kind.GAUGE, "nodeproof_cpu_wait_seconds"),
            ("wait_seconds_total", "s", Kind.COUNTER, "nodeproof_cpu_wait_seconds_total"),
            ("power_on_hours", "h", Kind.COUNTER, "nodeproof_cpu_power_on_seconds_total"),
            ("fan_speed", "RPM", Kind.GAUGE, "nodeproof_cpu_fan_speed_rpm"),
            ("model", "cores", Kind.INFO, "nodeproof_cpu_model_info"),
            ("model_info", "cores", Kind.INFO, "nodeproof_cpu_model_info"),
            ("core_num", "count", Kind.STATIC, "nodeproof_cpu_core_num"),
            ("smart_status", "", Kind.STATE, "nodeproof_cpu_smart_status"),
            ("odd-name/x.y", "", Kind.GAUGE, "nodeproof_cpu_odd_name_x_y"),
        ],
    )
    def test_base_units_once_and_total_on_counters_only(self, name: str, unit: str, kind: Kind, expected: str) -> None:
        assert ours(name, unit, kind).name == expected

    @pytest.mark.parametrize(
        ("unit", "value", "expected"),
        [
            ("%", 9.56, 0.0956),
            ("MB", 2.5, 2_621_440.0),
            ("KB", 3.0, 3072.0),
            ("GB", 274.9, 274.9e9),
            ("MHz", 2500.0, 2.5e9),
            ("ms", 1.5, 0.0015),
            ("jiffies", 338977.0, 3389.77),
            ("h", 2.0, 7200.0),
            ("Mb/s", 1000.0, 125_000_000.0),
            ("°C", 45.5, 45.5),
        ],
    )
    def test_values_in_base_units(self, unit: str, value: float, expected: float) -> None:
        of = ours("x", unit)
        assert value * of.multiply / of.divide == pytest.approx(expected, rel=1e-15)
        assert of.multiply == 1 or of.divide == 1

    def test_every_unit_of_the_catalogue_scales_by_a_number_or_its_inverse(self) -> None:
        for unit, base in UNITS.items():
            of = ours("x", unit)
            assert of.multiply / of.divide == pytest.approx(base.scale, rel=1e-12)

    def test_an_unknown_metric_is_of_unknown_type_and_keeps_its_name(self) -> None:
        of = family("raid", "rebuild_total", "bananas", None, Naming.NODEPROOF)
        assert (of.name, of.kind, of.unit, of.multiply) == ("nodeproof_raid_rebuild_total", "unknown", "", 1.0)
        assert family("raid", "x_bytes_total", "bytes", None, Naming.NODEPROOF).name == "nodeproof_raid_x_bytes_total"

    def test_the_whole_catalogue_has_names_of_its_own(self) -> None:
        names = [family(s.component, s.name, s.unit, s, Naming.NODEPROOF).name for s in CATALOGUE.values()]
        assert len(set(names)) == len(names)
        assert all(re.fullmatch(r"nodeproof_[a-z0-9_]+", name) for name in names)
        for name in names:
            words = name.split("_")[2:]  # a name may begin with its component's: cpu_num
            assert all(one != other for one, other in pairwise(words)), name


class TestNamesOfTheReference:
    @pytest.mark.parametrize(
        ("name", "unit", "kind", "expected", "type_line"),
        [
            ("usage", "%", Kind.GAUGE, "catmonitor_cpu_usage", "gauge"),
            ("user_time", "jiffies", Kind.COUNTER, "catmonitor_cpu_user_time", "counter"),
            ("process_total", "count", Kind.GAUGE, "catmonitor_cpu_process_total", "gauge"),
            ("fan-1/x.y", "RPM", Kind.GAUGE, "catmonitor_cpu_fan_1_x_y", "gauge"),
        ],
    )
    def test_its_names_and_units_with_true_types(self, name: str, unit: str, kind: Kind, expected: str, type_line: str) -> None:
        of = family("cpu", name, unit, spec(name, unit, kind), Naming.CATMONITOR)
        assert (of.name, of.multiply, of.divide, of.constant) == (expected, 1.0, 1.0, False)
        assert header(of, Format.TEXT).endswith(f"# TYPE {expected} {type_line}\n")

    def test_openmetrics_has_no_counter_without_total(self) -> None:
        of = family("cpu", "user_time", "jiffies", spec("user_time", "jiffies", Kind.COUNTER), Naming.CATMONITOR)
        assert header(of, Format.OPENMETRICS).startswith("# TYPE catmonitor_cpu_user_time unknown\n")


class TestHeader:
    def test_text(self) -> None:
        assert header(ours("user_time", "jiffies", Kind.COUNTER), Format.TEXT) == (
            "# HELP nodeproof_cpu_user_time_seconds_total What it is.\n# TYPE nodeproof_cpu_user_time_seconds_total counter\n"
        )
        assert "untyped" in header(family("x", "y", "", None, Naming.NODEPROOF), Format.TEXT)

    def test_openmetrics_names_the_family_without_total_and_its_unit(self) -> None:
        assert header(ours("user_time", "jiffies", Kind.COUNTER), Format.OPENMETRICS) == (
            "# TYPE nodeproof_cpu_user_time_seconds counter\n"
            "# UNIT nodeproof_cpu_user_time_seconds seconds\n"
            "# HELP nodeproof_cpu_user_time_seconds What it is.\n"
        )
        assert "UNIT" not in header(ours("load_average", ""), Format.OPENMETRICS)

    def test_help_is_escaped(self) -> None:
        of = ours("x", "")._replace(help='a\\b\n"c"\ud800')
        assert header(of, Format.TEXT).split("\n")[0] == '# HELP nodeproof_cpu_x a\\\\b\\n"c"\ufffd'
        assert header(of, Format.OPENMETRICS).split("\n")[1] == '# HELP nodeproof_cpu_x a\\\\b\\n\\"c\\"\ufffd'


class TestSeries:
    def test_sorted(self) -> None:
        assert series("m", {"b": "2", "a": "1"}) == 'm{a="1",b="2"}'
        assert series("m", None) == series("m", {}) == "m"

    @pytest.mark.parametrize(
        ("value", "expected"),
        [
            ('WDC "Red" \\ Pro', 'WDC \\"Red\\" \\\\ Pro'),
            ("line\nbreak", "line\\nbreak"),
            ("tab\there\r\x00\x1b[31m\x7f\x85", "tabhere[31m"),
            ("\udce9caf\ud800", "\ufffdcaf\ufffd"),
            ("é 漢 😀", "é 漢 😀"),
            ("N/A", "N/A"),
        ],
    )
    def test_defect_20_exactly_the_escapes_of_the_format(self, value: str, expected: str) -> None:
        assert series("m", {"l": value}) == f'm{{l="{expected}"}}'

    def test_an_empty_label_is_no_label(self) -> None:
        assert series("m", {"model": "", "x": "1", "y": "\x00"}) == 'm{x="1"}'
        assert series("m", {"model": ""}) == "m"

    def test_long_values_are_cut_and_stay_apart(self) -> None:
        one, other = series("m", {"l": "x" * 65536}), series("m", {"l": "x" * 65535 + "y"})
        assert one != other
        assert len(one) < 210
        assert one.startswith('m{l="' + "x" * 180 + "…")

    @pytest.mark.parametrize(
        ("key", "expected"),
        [("a-b", "a_b"), ("1st", "label_1st"), ("__name__", "label_name__"), ("", "label_"), ("mount point", "mount_point")],
    )
    def test_label_names(self, key: str, expected: str) -> None:
        assert series("m", {key: "v"}) == f'm{{{expected}="v"}}'

    def test_two_keys_that_become_one_leave_the_first(self) -> None:
        assert series("m", {"a-b": "1", "a.b": "2"}) == 'm{a_b="1"}'

    @given(st.dictionaries(st.text(max_size=20), st.text(st.characters(), max_size=400), max_size=5))
    def test_any_labels_make_one_well_formed_line(self, labels: dict[str, str]) -> None:
        text = series("m", labels)
        assert "\n" not in text
        assert re.fullmatch(
            r'm(\{[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"(?:,[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*")*\})?', text
        )
        text.encode()


def test_a_long_name_keeps_a_checksum() -> None:
    one = family("c", "n" * 500, "", None, Naming.NODEPROOF).name
    other = family("c", "n" * 501, "", None, Naming.NODEPROOF).name
    assert one != other
    assert len(one) < 200
