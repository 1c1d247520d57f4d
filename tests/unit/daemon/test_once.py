"""Two looks at a node, for commands that print and end."""

import threading
import time
from collections.abc import Callable

import pytest

from nodeproof.clock import Instant, rfc3339
from nodeproof.daemon import once
from nodeproof.daemon.once import observe_once
from nodeproof.errors import Absence
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.metric import Batch, Metric

STAMP = rfc3339(1_790_000_000.0)


class Scripted:
    default_interval_s = 1.0

    def __init__(self, name: str, act: Callable[[int], object]) -> None:
        self.name = self.component = name
        self.act = act
        self.looks = 0
        self.forgotten = 0

    def collect(self) -> Batch:
        self.looks += 1
        return self.act(self.looks)  # type: ignore[return-value]  # what a plug-in returns is its own affair

    def forget(self) -> None:
        self.forgotten += 1


def counting(name: str = "cpu") -> Scripted:
    return Scripted(name, lambda look: Batch(name, STAMP, 0.0, [Metric(name, "ticks", look, "count", None, STAMP)], []))


def test_both_looks_are_given_and_lie_apart() -> None:
    machine = recorded_machine("/nonexistent")
    began = machine.clock.now().mono_s
    collector = counting()
    seen = observe_once([collector], machine, settle_s=0.0, apart_s=1.0)
    assert [look["cpu"].metrics[0].value for look in (seen.first, seen.batches)] == [1.0, 2.0]
    assert seen.batches["cpu"].mono_s - seen.first["cpu"].mono_s == 1.0
    assert machine.clock.now().mono_s - began == 1.0
    assert collector.forgotten == 2, "slow groups run at both"
    assert seen.failures == {}


def test_one_that_raises_costs_only_itself() -> None:
    def fail(_: int) -> object:
        raise SystemExit("no")

    seen = observe_once([Scripted("fans", fail), counting()], recorded_machine("/nonexistent"), settle_s=0.0)
    assert seen.failures == {"fans": "SystemExit: no"}
    [absence] = seen.batches["fans"].missing
    assert (absence.name, absence.state, absence.reason) == ("*", Absence.READ_ERROR, "collector fans failed: SystemExit: no")
    assert seen.batches["cpu"].metrics[0].value == 2.0


def test_one_that_recovers_is_no_failure() -> None:
    def once_bad(look: int) -> object:
        if look == 1:
            raise OSError("not yet")
        return Batch("fans", STAMP, 0.0, [], [])

    seen = observe_once([Scripted("fans", once_bad)], recorded_machine("/nonexistent"), settle_s=0.0)
    assert seen.failures == {}
    assert seen.first["fans"].missing[0].state is Absence.READ_ERROR


@pytest.mark.parametrize("rubbish", [None, 7, [], Batch("cpu", "", 0.0, [], [])])
def test_rubbish_is_a_failure(rubbish: object) -> None:
    seen = observe_once([Scripted("fans", lambda _: rubbish)], recorded_machine("/nonexistent"), settle_s=0.0)
    assert seen.failures["fans"].startswith(("TypeError: returned", "ValueError: returned a batch of component 'cpu'"))


def test_those_that_hang_are_waited_for_together_and_never_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "_DEADLINE_S", 0.2)
    release = threading.Event()
    hung = [Scripted(f"fan{number}", lambda _: release.wait(10.0)) for number in range(6)]
    began = time.monotonic()
    seen = observe_once([*hung, counting()], recorded_machine("/nonexistent"), settle_s=0.0)
    assert time.monotonic() - began < 2.0
    release.set()
    assert set(seen.failures) == {one.name for one in hung}
    assert seen.failures["fan0"] == "has not come back in 0.2 s"
    assert [one.looks for one in hung] == [1] * 6
    assert seen.batches["cpu"].metrics[0].value == 2.0


def test_a_number_that_is_none_is_an_absence() -> None:
    def act(_: int) -> object:
        return Batch("fans", STAMP, 0.0, [Metric("fans", "speed", float("nan"), "RPM", None, STAMP)], [])

    seen = observe_once([Scripted("fans", act)], recorded_machine("/nonexistent"), settle_s=0.0)
    assert seen.batches["fans"].metrics == []
    assert seen.batches["fans"].missing[0].state is Absence.READ_ERROR


def test_the_time_of_a_look_is_that_of_the_machine() -> None:
    machine = recorded_machine("/nonexistent")
    seen = observe_once([counting()], machine, settle_s=0.0)
    assert isinstance(machine.clock.now(), Instant)
    assert seen.batches["cpu"].mono_s == machine.clock.now().mono_s
