import logging
import math
from decimal import Decimal
from typing import cast

import pytest

from nodeproof.clock import Instant
from nodeproof.errors import Absence
from nodeproof.model.metric import Batch
from nodeproof.sinks.base import Sinks, SinkStatus, StaleAfter, Trouble, finite
from support.batches import batch, metric


class Recorder:
    def __init__(self, name: str, *, broken: bool = False) -> None:
        self.name = name
        self.trouble = Trouble(name)
        self.broken = broken
        self.heard: list[object] = []

    def _note(self, what: object) -> None:
        if self.broken:
            raise OSError("no room")
        self.heard.append(what)

    def write(self, batch: Batch) -> None:
        self._note(batch)

    def flush(self, now: Instant) -> None:
        self._note(now)

    def close(self) -> None:
        self._note("closed")


def test_a_broken_sink_costs_the_others_nothing_and_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    broken, well = Recorder("broken", broken=True), Recorder("well")
    sinks = Sinks([broken, well])
    one = batch([metric("usage", 1.0)])
    with caplog.at_level(logging.INFO):
        for _ in range(3):
            sinks.write(one)
        sinks.flush(Instant(1.0, 2.0))
    assert well.heard == [one, one, one, Instant(1.0, 2.0)]
    assert [record.getMessage() for record in caplog.records] == ["broken: OSError: no room"]  # for both, writing and flushing
    assert sinks.statuses() == [SinkStatus("broken", 4, "OSError: no room"), SinkStatus("well", 0, "")]
    broken.broken = False
    caplog.clear()
    with caplog.at_level(logging.INFO):
        sinks.write(one)
        sinks.flush(Instant(1.0, 2.0))
        sinks.close()
    assert sinks.statuses()[0] == SinkStatus("broken", 4, "")
    assert [record.getMessage() for record in caplog.records] == [
        "broken (write cpu): works again (4 failures so far)",
    ]
    assert broken.heard[-1] == "closed"


def test_one_component_that_cannot_be_written_is_told_of_once_though_others_can(caplog: pytest.LogCaptureFixture) -> None:
    sink = Recorder("picky")
    sinks = Sinks([sink])
    for _ in range(3):
        sink.broken = True
        sinks.write(batch([metric("usage", 1.0)]))
        sink.broken = False
        sinks.write(batch([metric("usage", 1.0, component="memory")], component="memory"))
    assert [record.getMessage() for record in caplog.records] == ["picky: OSError: no room"]


def test_trouble_that_comes_and_goes_is_told_of_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 1000.0
    monkeypatch.setattr("nodeproof.sinks.base.time.monotonic", lambda: now_s)
    trouble = Trouble("x")
    for _ in range(5):
        trouble.failed("full", "a")
        trouble.healed("a")
    told = ["x: full", "x a: works again (1 failures so far)"]
    assert [record.getMessage() for record in caplog.records] == told
    now_s += 60.0
    trouble.failed("full", "a")
    assert [record.getMessage() for record in caplog.records] == [*told, "x: full"]
    assert trouble.total == 6


def test_problems_that_never_repeat_do_not_fill_the_memory() -> None:
    trouble = Trouble("x")
    for number in range(1000):
        trouble.failed(f"problem {number}")
    assert len(trouble._told) <= 256


def test_trouble_that_changes_its_face_is_told_again(caplog: pytest.LogCaptureFixture) -> None:
    trouble = Trouble("x")
    trouble.failed("full", "a")
    trouble.failed("full", "a")
    trouble.failed("read-only", "a")
    trouble.failed("full", "b")
    assert len(caplog.records) == 2, "the third time it is the first one's line again"
    assert trouble.total == 4
    trouble.healed("a")
    assert trouble.problem == "full"
    trouble.healed("b")
    assert trouble.problem == ""


def test_case_60_every_sink_gets_finite_numbers() -> None:
    """A bare NaN in a snapshot is no JSON; in an exposition it costs whoever adds it up."""
    sink = Recorder("any")
    Sinks([sink]).write(batch([metric("usage", math.nan, {"core": "0"}), metric("usage", 1.0, {"core": "1"})]))
    (heard,) = sink.heard
    assert isinstance(heard, Batch)
    assert [(one.labels, one.value) for one in heard.metrics] == [({"core": "1"}, 1.0)]
    assert [(one.labels, one.state) for one in heard.missing] == [({"core": "0"}, Absence.READ_ERROR)]


class TestFinite:
    def test_a_sound_batch_is_handed_on_as_it_is(self) -> None:
        one = batch([metric("usage", 1.0), metric("count", 7)])
        assert finite(one) is one

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_case_60_what_is_no_finite_number_becomes_missing(self, value: float) -> None:
        one = finite(batch([metric("usage", 1.0), metric("temperature", value, {"cpu": "0"})]))
        assert [found.name for found in one.metrics] == ["usage"]
        (absent,) = one.missing
        assert (absent.name, absent.state, absent.labels) == ("temperature", Absence.READ_ERROR, {"cpu": "0"})
        assert str(value) in absent.reason

    def test_infinities_that_cancel_out_are_still_seen(self) -> None:
        one = finite(batch([metric("a", math.inf), metric("b", -math.inf), metric("c", 2.0)]))
        assert [found.name for found in one.metrics] == ["c"]

    def test_a_sum_beyond_the_largest_number_convicts_nobody(self) -> None:
        one = finite(batch([metric("a", 1.7e308), metric("b", 1.7e308)]))
        assert [found.value for found in one.metrics] == [1.7e308, 1.7e308]
        assert one.missing == []

    def test_truth_values_become_numbers_and_rubbish_becomes_missing(self) -> None:
        values = [True, "N/A", None, Decimal("1.5")]
        one = finite(batch([metric(f"m{place}", cast("float", value)) for place, value in enumerate(values)]))
        assert [(found.name, found.value, type(found.value)) for found in one.metrics] == [("m0", 1, int)]
        assert [absent.name for absent in one.missing] == ["m1", "m2", "m3"]
        assert "'N/A'" in one.missing[0].reason


def test_stale_after_three_intervals_and_at_least_five_seconds() -> None:
    stale = StaleAfter({"cpu": 1.0, "disk": 5.0})
    assert (stale("cpu"), stale("disk"), stale("other")) == (5.0, 15.0, 15.0)
    stale.set_intervals({"cpu": 60.0})
    assert (stale("cpu"), stale("disk")) == (180.0, 15.0)
