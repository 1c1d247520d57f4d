"""Which metrics are collected, and how often."""

import itertools
from pathlib import Path

import pytest

from nodeproof.config.schema import CollectionConfig, CollectorConfig
from nodeproof.model.catalogue import CATALOGUE, Feature, Kind, Priority
from nodeproof.model.catalogue import FEATURES as FEATURES_OF_CATALOGUE
from nodeproof.scheduler.selection import MetricSelection, interval_s

FEATURES = CollectionConfig()
OWN = CollectionConfig(interval_from="collectors")


def test_features_narrow_the_choice_to_what_they_list() -> None:
    dfee = MetricSelection(["dfee"])
    assert dfee.wants("cpu", "user_time")
    assert not dfee.wants("cpu", "usage")
    assert MetricSelection(["dfee", "health"]).wants("cpu", "usage")


def test_features_add_up_whatever_their_order() -> None:
    """Defect 29: of two features the last one decided."""
    alone = {feature: {key for key in CATALOGUE if MetricSelection([feature]).wants(*key)} for feature in FEATURES_OF_CATALOGUE}
    for first, second in itertools.permutations(FEATURES_OF_CATALOGUE, 2):
        both = MetricSelection([first, second])
        assert {key for key in CATALOGUE if both.wants(*key)} == alone[first] | alone[second]
    assert alone[Feature.DFEE] - alone[Feature.HEALTH]
    assert alone[Feature.HEALTH] - alone[Feature.DFEE]


def test_the_working_directory_makes_no_difference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect 4: lists of features were looked for in the working directory, and without them the scope was another one."""
    chosen = []
    for folder in ("/", str(tmp_path)):
        (tmp_path / "features").mkdir(exist_ok=True)
        monkeypatch.chdir(folder)
        dfee = MetricSelection(["dfee"])
        chosen.append({key for key in CATALOGUE if dfee.wants(*key)})
    assert chosen[0] == chosen[1]
    assert {key for key, spec in CATALOGUE.items() if Feature.DFEE in spec.features} == chosen[0]


def test_without_features_the_catalogue_decides() -> None:
    plain = MetricSelection([])
    assert plain.wants("cpu", "usage")
    assert not plain.wants("cpu", "context_switches")


def test_priority_cuts_off_everything_below_but_statics() -> None:
    """Defect 29: the threshold dropped statics in one filter and not in the other, and compared words by case."""
    high = MetricSelection(["health", "web", "dfee"], "high")
    for spec in CATALOGUE.values():
        listed = bool(spec.features)
        assert high.wants(*spec.key) == (listed and (spec.priority is Priority.HIGH or spec.kind is Kind.STATIC)), spec


def test_what_rules_need_is_always_collected() -> None:
    assert not MetricSelection(["dfee"]).wants("cpu", "usage")
    assert MetricSelection(["dfee"], "high", [("cpu", "usage")]).wants("cpu", "usage")


def test_metrics_of_third_parties_are_collected() -> None:
    assert MetricSelection(["dfee"], "high").wants("cpu", "made_by_somebody_else")


def test_quickest_feature_decides_the_interval() -> None:
    """Even against the operator's own value, as in the reference (observe.md 3.4)."""
    entry = {"cpu": CollectorConfig(interval_s=10.0)}
    assert interval_s("cpu", 3.0, ["web", "dfee", "health"], FEATURES, entry) == 1.0
    assert interval_s("cpu", 3.0, ["web"], FEATURES, entry) == 3.0
    assert interval_s("disk", 5.0, ["web"], FEATURES, {}) == 5.0
    assert interval_s("disk", 5.0, ["web", "dfee"], FEATURES, {}) == 2.0


def test_operator_decides_where_no_feature_does() -> None:
    entry = {"cpu": CollectorConfig(interval_s=10.0), "system": CollectorConfig()}
    assert interval_s("cpu", 3.0, [], FEATURES, entry) == 10.0
    assert interval_s("cpu", 3.0, ["dfee"], OWN, entry) == 10.0
    assert interval_s("system", 7.0, ["dfee"], FEATURES, entry) == 7.0
    assert interval_s("system", 7.0, ["dfee"], OWN, {}) == 7.0
