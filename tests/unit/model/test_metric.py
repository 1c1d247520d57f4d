"""JSON of readings and absences (observe.md 2.1)."""

import json

import msgspec
import pytest

from nodeproof.errors import Absence
from nodeproof.model.metric import COMPONENTS, Batch, Metric, Missing


def test_keys_are_those_of_the_reference() -> None:
    metric = Metric("cpu", "usage", 12.5, "%", {"core": "total"}, "2026-11-30T12:00:00.000000+00:00")
    assert json.loads(msgspec.json.encode(metric)) == {
        "component": "cpu",
        "name": "usage",
        "value": 12.5,
        "unit": "%",
        "labels": {"core": "total"},
        "timestamp": "2026-11-30T12:00:00.000000+00:00",
    }


def test_value_and_unit_are_always_there_and_empty_labels_never() -> None:
    assert json.loads(msgspec.json.encode(Metric("cpu", "load_average", 0.0, ""))) == {
        "component": "cpu",
        "name": "load_average",
        "value": 0.0,
        "unit": "",
    }


def test_an_absence_says_its_state_and_reason() -> None:
    gone = Missing("disk", "smart_status", Absence.NO_PERMISSION, "needs root", {"device": "sda"}, "smartctl", "run as root")
    assert json.loads(msgspec.json.encode(gone)) == {
        "component": "disk",
        "name": "smart_status",
        "state": "no_permission",
        "reason": "needs root",
        "labels": {"device": "sda"},
        "source": "smartctl",
        "remedy": "run as root",
    }


def test_readings_cannot_be_changed() -> None:
    metric = Metric("cpu", "usage", 1.0, "%")
    with pytest.raises(AttributeError):
        metric.value = 2.0  # type: ignore[misc] # that is what must fail


def test_a_batch_survives_the_round_trip() -> None:
    batch = Batch("cpu", "t", 5.0, [Metric("cpu", "usage", 1.0, "%")], [Missing("cpu", "power", Absence.UNKNOWN, "why")], 3)
    assert msgspec.json.decode(msgspec.json.encode(batch), type=Batch) == batch


def test_components_are_the_seven_of_the_reference() -> None:
    assert COMPONENTS == ("chassis", "cpu", "disk", "gpu", "memory", "network", "npu")


def test_metrics_by_name_keep_their_order_and_are_no_part_of_the_written_form() -> None:
    metrics = [Metric("cpu", name, value, "%") for name, value in (("usage", 1.0), ("idle", 2.0), ("usage", 3.0))]
    batch = Batch("cpu", "2026-11-30T12:00:00+00:00", 7.0, metrics, [])
    assert {name: [one.value for one in found] for name, found in batch.by_name.items()} == {"usage": [1.0, 3.0], "idle": [2.0]}
    assert list(batch.by_name) == ["usage", "idle"]
    assert batch.by_name is batch.by_name
    assert batch.by_name.get("nothing") is None
    assert "by_name" not in json.loads(msgspec.json.encode(batch))
    assert batch == Batch("cpu", "2026-11-30T12:00:00+00:00", 7.0, list(metrics), [])
