"""The catalogue as data: every row whole, every unit known."""

import re

import pytest

from nodeproof.model import catalogue
from nodeproof.model.catalogue import CATALOGUE, FEATURE_INTERVALS_S, FEATURES, UNITS, Kind, MetricSpec, component_specs

ROWS = list(CATALOGUE.values())


def test_rows_are_found_by_component_and_name() -> None:
    assert CATALOGUE["cpu", "usage"].unit == "%"
    assert CATALOGUE["cpu", "usage"].key == ("cpu", "usage")
    assert set(component_specs("cpu")) == {name for component, name in CATALOGUE if component == "cpu"}
    assert component_specs("nothing") == {}


@pytest.mark.parametrize("spec", ROWS, ids=lambda spec: f"{spec.component}.{spec.name}")
def test_every_row_is_whole(spec: MetricSpec) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", spec.name)
    assert spec.unit in UNITS
    assert spec.help.endswith(".")
    assert spec.source
    assert len(set(spec.labels)) == len(spec.labels)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", label) for label in spec.labels)
    assert spec.period_s >= 0
    assert set(spec.features) <= set(FEATURES)
    assert spec.unit.isascii() or spec.unit == "°C"


def test_a_unit_always_scales_the_same_way() -> None:
    assert (UNITS["%"].suffix, UNITS["%"].scale) == ("ratio", 0.01)
    assert UNITS["MB"].scale == 1024**2
    assert UNITS["GB"].scale == 1e9
    assert UNITS["jiffies"].scale == 0.01
    assert UNITS["Mb/s"].scale == 1e6 / 8


def test_intervals_of_features_are_those_of_the_reference() -> None:
    """observe.md 3.4."""
    assert FEATURE_INTERVALS_S["dfee"] == {"cpu": 1, "memory": 2, "disk": 2, "network": 1, "npu": 1, "chassis": 3}  # type: ignore[index] # a StrEnum is its string
    for feature in ("web", "health"):
        intervals = FEATURE_INTERVALS_S[feature]  # type: ignore[index] # a StrEnum is its string
        assert intervals["disk"] == 5
        assert {intervals[name] for name in intervals if name != "disk"} == {3}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("usage", "%"), ("usage", "%")], "metric x.usage stands twice in the catalogue"),
        ([("usage", "furlongs")], "metric x.usage has the unknown unit 'furlongs'"),
    ],
)
def test_a_wrong_catalogue_is_refused(rows: list[tuple[str, str]], problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tuple(MetricSpec("x", name, unit, Kind.GAUGE, "A test.", "/x") for name, unit in rows)
    monkeypatch.setattr(catalogue, "_TABLES", (table,))
    with pytest.raises(ValueError, match=re.escape(problem)):
        catalogue._gather()
