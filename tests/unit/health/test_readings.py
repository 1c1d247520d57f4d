"""Readings by component and name."""

import msgspec

from nodeproof.clock import Instant, rfc3339
from nodeproof.errors import Absence
from nodeproof.health import Readings
from nodeproof.health.readings import touched_names
from nodeproof.model.metric import Batch, Metric, Missing

AT = Instant(1_790_000_000.0, 1_000.0)


def metric(name: str, value: float, stamp: str = "") -> Metric:
    return Metric("cpu", name, value, "", None, stamp)


def test_look_up() -> None:
    one, two, three = metric("usage", 1), metric("load_average", 2), metric("usage", 3)
    gone = Missing("cpu", "temperature", Absence.UNSUPPORTED, "no sensor")
    batch = Batch("cpu", "t", 1.0, [one, two, three], [gone])
    readings = Readings({"cpu": batch})
    assert list(readings.missing("cpu", "temperature")) == [gone]
    assert list(readings.metrics("cpu", "usage")) == [one, three]
    assert list(readings.metrics("cpu", "temperature")) == []
    assert list(readings.missing("cpu", "usage")) == []
    assert readings.batch("cpu") is batch
    assert dict(readings.components()) == {"cpu": batch}


def test_a_component_that_nobody_collects() -> None:
    readings = Readings({})
    assert list(readings.metrics("gpu", "temperature")) == []
    assert list(readings.missing("gpu", "temperature")) == []
    assert readings.batch("gpu") is None
    assert readings.age_of(Metric("gpu", "temperature", 1.0, ""), AT) == 0.0


def test_age_is_measured_on_the_clock_that_does_not_step() -> None:
    stamp = rfc3339(AT.wall_s - 5_000)  # the wall clock stepped since
    batch = Batch("cpu", stamp, 997.0, [], [])
    assert Readings({"cpu": batch}).age_of(metric("usage", 1, stamp), AT) == 3.0


def test_a_reading_passed_on_is_older_than_its_batch() -> None:
    batch = Batch("cpu", rfc3339(AT.wall_s), 997.0, [], [])
    assert Readings({"cpu": batch}).age_of(metric("usage", 1, rfc3339(AT.wall_s - 60)), AT) == 63.0


def test_an_unreadable_time_counts_as_that_of_the_batch() -> None:
    batch = Batch("cpu", "yesterday", 997.0, [], [])
    assert Readings({"cpu": batch}).age_of(metric("usage", 1, "today"), AT) == 3.0


def test_age_is_never_negative() -> None:
    batch = Batch("cpu", "t", 1_005.0, [], [])
    assert Readings({"cpu": batch}).age_of(metric("usage", 1), AT) == 0.0


def test_conclusions_are_looked_up_like_readings() -> None:
    readings = Readings({})
    readings.derive("derived", [metric("a", 1), metric("b", 2), metric("a", 3)])
    assert [one.value for one in readings.metrics("derived", "a")] == [1, 3]
    assert list(readings.missing("derived", "a")) == []


def test_an_absence_of_all_of_a_component_stands_for_each_metric_not_told_of_by_itself() -> None:
    every = Missing("cpu", "*", Absence.READ_ERROR, "collector cpu failed: OSError: gone")
    one = Missing("cpu", "usage", Absence.UNKNOWN, "no second sample")
    readings = Readings({"cpu": Batch("cpu", "", 0.0, [], [every, one])})
    assert readings.missing("cpu", "temperature") == [every]
    assert readings.missing("cpu", "usage") == [one]
    assert readings.missing("memory", "usage") == ()


def _batch(metrics: list[Metric], missing: list[Missing]) -> Batch:
    return Batch("disk", "t", 1.0, metrics, missing)


def test_names_that_are_told_anew() -> None:
    """What a slow group hands out again, or a quick one says again with another time, is nothing new; a value that moved is."""
    kept, moved = Metric("disk", "iops", 1.0, "", None, "t"), Metric("disk", "io_wait", 1.0, "", None, "t")
    absent = Missing("disk", "raid_state", Absence.NOT_APPLICABLE, "no arrays", timestamp="t")
    before = _batch([kept, moved], [absent])
    again = msgspec.structs.replace(absent, timestamp="u")
    now = _batch([kept, msgspec.structs.replace(moved, value=2.0)], [again])
    assert touched_names(before, now) == frozenset({"io_wait"})
    assert touched_names(before, _batch([msgspec.structs.replace(kept, timestamp="u"), moved], [absent])) == frozenset({"iops"})
    assert touched_names(before, _batch([kept], [absent])) == frozenset({"io_wait"})
    assert touched_names(before, _batch([kept, moved], [msgspec.structs.replace(absent, reason="no mdstat")])) == frozenset(
        {"raid_state"}
    )
    assert touched_names(before, _batch([kept, moved], [])) == frozenset({"raid_state"})
    assert touched_names(before, _batch([kept, moved], [msgspec.structs.replace(absent, name="*")])) is None
    assert touched_names(None, now) is None
    assert touched_names(before, None) is None
