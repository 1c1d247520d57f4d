"""Whatever a third party's collector returns, only sound batches pass."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.clock import Instant, rfc3339, rfc3339_parse
from nodeproof.collectors.base import Collector, Group, GroupCollector
from nodeproof.errors import Absence
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.metric import Batch, Metric, Missing
from nodeproof.scheduler.intake import MOST_READINGS, accepted, failed_batch
from support.bmc import EVERYTHING

AT = Instant(1_790_000_000.0, 500.0)
STAMP = rfc3339(AT.wall_s)


class Plugin:
    name = component = "fans"
    default_interval_s = 1.0

    def collect(self) -> Batch:
        raise NotImplementedError

    def forget(self) -> None: ...


def take(metrics: object, missing: object = (), component: str = "fans") -> Batch:
    listed = list(missing) if isinstance(missing, tuple) else missing
    return accepted(Batch(component, "long ago", -5.0, metrics, listed, 0), Plugin(), AT, 7)  # type: ignore[arg-type]


def speed(value: object = 1.0, *, labels: object = None, timestamp: object = STAMP, unit: object = "RPM") -> Metric:
    return Metric("fans", "speed", value, unit, labels, timestamp)  # type: ignore[arg-type]


def test_the_envelope_is_ours_and_the_content_theirs() -> None:
    batch = take([speed(900.0, labels={"fan": "1"})])
    assert batch == Batch("fans", STAMP, 500.0, [Metric("fans", "speed", 900.0, "RPM", {"fan": "1"}, STAMP)], [], 7)


def test_it_is_a_copy() -> None:
    labels = {"fan": "1"}
    metrics = [speed(labels=labels)]
    batch = take(metrics)
    metrics.clear()
    labels["fan"] = "2"
    assert batch.metrics[0].labels == {"fan": "1"}


def test_collectors_of_our_frame_are_taken_at_their_word() -> None:
    collector = GroupCollector("cpu", [Group(("usage",), lambda _: None)], recorded_machine("/nonexistent"), EVERYTHING)
    batch = collector.collect()
    assert accepted(batch, collector, AT, 1) is batch


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_becomes_an_absence(value: float) -> None:
    batch = take([speed(value), speed(2.0)])
    assert [metric.value for metric in batch.metrics] == [2.0]
    assert [(entry.name, entry.state) for entry in batch.missing] == [("speed", Absence.READ_ERROR)]


def test_a_reading_without_a_time_gets_ours() -> None:
    earlier = rfc3339(AT.wall_s - 30)
    batch = take([speed(timestamp=""), speed(timestamp="yesterday"), speed(timestamp=earlier)])
    assert [metric.timestamp for metric in batch.metrics] == [STAMP, STAMP, earlier]
    absence = Missing("fans", "speed", Absence.UNKNOWN, "no fan")
    assert take([], (absence,)).missing[0].timestamp == STAMP


def test_empty_labels_are_none() -> None:
    assert take([speed(labels={})]).metrics[0].labels is None


@pytest.mark.parametrize(
    ("metrics", "problem"),
    [
        (None, "NoneType where a list of Metric belongs"),
        ({}, "dict where a list of Metric belongs"),
        ([1], "int where a Metric belongs"),
        ([Missing("fans", "speed", Absence.UNKNOWN, "")], "Missing where a Metric belongs"),
        ([Metric("cpu", "usage", 1.0, "%")], "Metric of component 'cpu'"),
        ([Metric("fans", "", 1.0, "")], "Metric without a name"),
        ([speed(labels={"fan": 1})], "Expected `str`"),
        ([speed(labels=[1])], "Expected `object | null`"),
        ([speed(unit=None)], "Expected `str`"),
        ([speed(10**400)], "out of range"),
        ([speed(labels={"fan": "\udc80"})], "surrogates"),
        ([speed(labels={"fan": object()})], "object"),
        ([speed()] * (MOST_READINGS + 1), f"more than {MOST_READINGS} are refused"),
        ([speed(labels={"fan": "x" * 20_000_000})], "bytes of readings"),
    ],
)
def test_rubbish_is_refused_in_words(metrics: object, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem.replace("|", r"\|")):
        take(metrics)


def test_absences_are_held_to_the_same() -> None:
    with pytest.raises(TypeError, match="int where a Missing belongs"):
        take([], (3,))
    with pytest.raises(ValueError, match="Invalid enum value 'gone'"):
        take([], (Missing("fans", "speed", "gone", ""),))  # type: ignore[arg-type]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.builds(Metric, st.just("fans") | anything, anything, anything, anything, anything, anything), max_size=3))
def test_only_sound_batches_pass(metrics: Sequence[Metric]) -> None:
    try:
        batch = take(list(metrics))
    except Exception:  # noqa: BLE001 - refused, whatever the reason: the loop counts it
        return
    for metric in batch.metrics:
        assert isinstance(metric.name, str)
        assert isinstance(metric.unit, str)
        assert math.isfinite(metric.value)
        assert rfc3339_parse(metric.timestamp)
        assert all(isinstance(text, str) for pair in (metric.labels or {}).items() for text in pair)


def test_a_failed_cycle_in_words() -> None:
    plugin: Collector = Plugin()
    [absence] = failed_batch(plugin, "E" * 9999, AT).missing
    assert absence.reason == "collector fans failed: " + "E" * 500
    assert absence.source == "collector fans"
