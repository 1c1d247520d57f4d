"""Cadence and isolation of collectors, on real threads."""

import threading
import time
from collections.abc import Callable

import pytest

from nodeproof.clock import SystemClock
from nodeproof.errors import Absence
from nodeproof.model.metric import Batch, Missing
from nodeproof.scheduler.loop import CollectorLoop, CollectorPlan
from nodeproof.scheduler.scheduler import Scheduler, spread


class Scripted:
    """A collector whose cycles do what the test says."""

    default_interval_s = 1.0

    def __init__(self, act: Callable[[int], object], name: str = "cpu") -> None:
        self.name = self.component = name
        self.act = act
        self.starts: list[float] = []

    def collect(self) -> Batch:
        self.starts.append(time.monotonic())
        return self.act(len(self.starts))  # type: ignore[return-value]  # what a plug-in returns is its own affair

    def forget(self) -> None: ...


def good(number: int) -> Batch:
    return Batch("cpu", "t", 1.0, [], [], number)


def run(
    collector: Scripted, seconds: float, *, interval_s: float = 0.05, deadline_s: float = 5.0, phase_s: float = 0.0
) -> tuple[list[Batch], CollectorLoop]:
    """Drive a collector for a while; what it published, and its loop, ended."""
    published: list[Batch] = []
    scheduler = Scheduler([CollectorPlan(collector, interval_s, deadline_s, phase_s)], published.append, SystemClock())
    scheduler.start()
    time.sleep(seconds)
    assert scheduler.stop(5.0) == []
    return published, scheduler.loops[0]


def test_cycles_follow_the_grid_from_the_start() -> None:
    collector = Scripted(good)
    published, loop = run(collector, 0.5)
    assert [batch.sequence for batch in published] == list(range(1, len(published) + 1))
    assert 6 <= len(published) <= 12
    assert loop.cost().cycles == len(published)
    assert loop.cost().failures == 0
    # Ten ticks lie on one grid: being late once does not shift the rest.
    offsets = [(start - collector.starts[0] + 0.01) % 0.05 for start in collector.starts[1:]]
    assert sum(offset < 0.03 for offset in offsets) >= len(offsets) - 2


@pytest.mark.parametrize(("phase_s", "gap_s"), [(0.0, 0.2), (0.05, 0.25), (0.1, 0.1), (0.15, 0.15)])
def test_second_cycle_comes_on_the_shifted_grid(phase_s: float, gap_s: float) -> None:
    collector = Scripted(good)
    _, loop = run(collector, 0.5, interval_s=0.2, phase_s=phase_s)
    assert collector.starts[1] - collector.starts[0] == pytest.approx(gap_s, abs=0.04)
    assert collector.starts[2] - collector.starts[1] == pytest.approx(0.2, abs=0.04)
    assert loop.cost().skipped == 0


def test_a_cycle_that_raises_is_counted_and_the_next_one_runs() -> None:
    """Defect 19: any panic killed the daemon."""

    def act(number: int) -> object:
        if number == 1:
            raise RuntimeError("no such sensor")
        return good(number)

    published, loop = run(Scripted(act), 0.3)
    [absence] = published[0].missing
    assert (absence.component, absence.name, absence.state) == ("cpu", "*", Absence.READ_ERROR)
    assert absence.reason == "collector cpu failed: RuntimeError: no such sensor"
    assert published[1].sequence == 2
    assert published[1].missing == []
    assert loop.cost().failures == 1
    assert loop.cost().last_error == ""
    assert loop.cost().failing, "it failed within the last minute"


@pytest.mark.parametrize("problem", [SystemExit(0), KeyboardInterrupt(), MemoryError(), RecursionError("deep")])
def test_nothing_that_is_raised_ends_the_loop(problem: BaseException) -> None:
    def act(number: int) -> object:
        if number < 3:
            raise problem
        return good(number)

    published, loop = run(Scripted(act), 0.4)
    assert [batch.sequence for batch in published if not batch.missing][:2] == [3, 4]
    assert loop.cost().failures == 2


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def test_an_error_without_words_is_an_error_all_the_same() -> None:
    def act(_: int) -> object:
        raise UnspeakableError

    _, loop = run(Scripted(act), 0.1)
    assert loop.cost().last_error == "UnspeakableError"


def test_a_reader_that_raises_costs_one_cycle() -> None:
    heard: list[Batch] = []

    def publish(batch: Batch) -> None:
        heard.append(batch)
        if len(heard) == 1:
            raise OSError("full")

    scheduler = Scheduler([CollectorPlan(Scripted(good), 0.05, 5.0)], publish, SystemClock())
    scheduler.start()
    time.sleep(0.2)
    assert scheduler.stop(5.0) == []
    assert scheduler.costs()["cpu"].failures == 1
    assert len(heard) >= 2


def test_an_error_that_never_reads_the_same_is_told_of_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    def act(number: int) -> object:
        if number % 2:
            raise ValueError(f"at {number}")
        return good(number)

    run(Scripted(act), 0.4)
    assert [record.getMessage() for record in caplog.records] == ["collector cpu failed: ValueError: at 1"]


def test_what_comes_back_after_the_end_is_not_published() -> None:
    """A collector that hung through a reload must not write over what its successor has read."""
    began, release = threading.Event(), threading.Event()

    def act(number: int) -> object:
        began.set()
        release.wait(5.0)
        return good(number)

    published: list[Batch] = []
    scheduler = Scheduler([CollectorPlan(Scripted(act), 0.05, 5.0)], published.append, SystemClock())
    scheduler.start()
    assert began.wait(5.0)
    assert scheduler.stop(0.01) == ["cpu"]
    release.set()
    assert scheduler.stop(5.0) == []
    assert published == []


@pytest.mark.parametrize("rubbish", [None, 7, "text", [], Batch("memory", "t", 0.0, [], [])])
def test_rubbish_is_refused(rubbish: object) -> None:
    published, loop = run(Scripted(lambda _: rubbish), 0.1)
    assert all(batch.metrics == [] and batch.missing[0].state is Absence.READ_ERROR for batch in published)
    assert loop.cost().failures == loop.cost().cycles >= 1
    assert loop.cost().last_error.startswith(("TypeError: returned", "ValueError: returned a batch of component 'memory'"))


def test_a_hung_cycle_is_seen_and_never_started_twice() -> None:
    release = threading.Event()
    collector = Scripted(lambda number: good(number) if release.wait(5.0) else None)
    scheduler = Scheduler([CollectorPlan(collector, 0.05, 0.1)], lambda _: None, SystemClock())
    scheduler.start()
    time.sleep(0.4)
    assert 0.2 < scheduler.costs()["cpu"].hung_s < 1.0
    assert len(collector.starts) == 1
    assert scheduler.stop(0.05) == ["cpu"]  # the cycle in flight is not waited for beyond the limit
    release.set()
    assert scheduler.stop(2.0) == []
    assert scheduler.costs()["cpu"].hung_s == 0.0


def test_missed_ticks_are_skipped_and_counted() -> None:
    def act(number: int) -> object:
        if number == 1:
            time.sleep(0.22)
        return good(number)

    collector = Scripted(act)
    published, loop = run(collector, 0.4)
    assert loop.cost().skipped >= 3  # ticks at 0.05, 0.10, 0.15 and 0.20 passed meanwhile
    assert len(published) <= 5


def test_cpu_time_is_that_of_the_cycles() -> None:
    def act(number: int) -> object:
        end = time.thread_time() + 0.02
        while time.thread_time() < end:
            pass
        return good(number)

    _, loop = run(Scripted(act), 0.2, interval_s=0.1)
    cost = loop.cost()
    assert 0.02 * cost.cycles <= cost.cpu_s < 0.03 * cost.cycles + 0.01
    assert cost.wall_s >= cost.cpu_s * 0.9


def test_one_hung_collector_leaves_the_others_alone() -> None:
    release = threading.Event()
    hung = Scripted(lambda number: good(number) if release.wait(5.0) else None, "hung")
    well = Scripted(good)
    published: list[Batch] = []
    scheduler = Scheduler(spread([(hung, 0.05, 0.1), (well, 0.05, None)]), published.append, SystemClock())
    scheduler.start()
    time.sleep(0.4)
    assert len(published) >= 4
    assert scheduler.costs()["hung"].hung_s > 0
    assert scheduler.costs()["cpu"].hung_s == 0
    assert scheduler.stop(0.1) == ["hung"]
    release.set()
    assert scheduler.stop(2.0) == []


def test_a_collector_that_hung_once_is_well_again_on_a_thread_of_its_own() -> None:
    threads: set[int] = set()

    def act(number: int) -> object:
        threads.add(threading.get_ident())
        if number == 2:
            time.sleep(0.3)
        return good(number)

    slow = Scripted(act)
    leaders: set[int] = set()

    def lead(number: int) -> object:
        leaders.add(threading.get_ident())
        return Batch("other", "t", 1.0, [], [], number)

    published: list[Batch] = []
    scheduler = Scheduler(spread([(slow, 0.05, None), (Scripted(lead, "other"), 0.05, None)]), published.append, SystemClock())
    scheduler.start()
    time.sleep(0.8)
    assert scheduler.stop(2.0) == []
    assert len(threads) == 1, "it keeps the thread that it hung on"
    assert len(leaders) == 2, "the others went on with a new one"
    assert len([batch for batch in published if batch.component == "cpu"]) >= 6
    assert len([batch for batch in published if batch.component == "other"]) >= 10


def test_all_share_one_thread_while_all_are_well() -> None:
    threads: set[int] = set()

    def act(number: int) -> object:
        threads.add(threading.get_ident())
        return good(number)

    plans = spread([(Scripted(act), 0.05, None), (Scripted(act), 0.1, None), (Scripted(act), 0.15, None)])
    scheduler = Scheduler(plans, lambda _: None, SystemClock())
    scheduler.start()
    time.sleep(0.3)
    assert scheduler.stop(2.0) == []
    assert len(threads) == 1


def test_a_node_without_the_thing_is_asked_seldom() -> None:
    def absent(number: int) -> object:
        return Batch("cpu", "t", 1.0, [], [Missing("cpu", "usage", Absence.NOT_APPLICABLE, "none here")], number)

    def unread(number: int) -> object:
        return Batch("cpu", "t", 1.0, [], [Missing("cpu", "usage", Absence.READ_ERROR, "broken")], number)

    assert len(run(Scripted(absent), 0.4)[0]) == 1
    assert len(run(Scripted(unread), 0.4)[0]) >= 5


def test_phases_are_dealt_out_over_the_beats() -> None:
    cadences = [("a", 1.0), ("b", 1.0), ("c", 2.0), ("d", 2.0), ("e", 3.0), ("f", 3.0), ("g", 3.0), ("h", 3.0)]
    plans = spread([(Scripted(good, name), interval_s, None) for name, interval_s in cadences])
    beats = {plan.collector.name: int(plan.phase_s) for plan in plans}
    assert beats == {"a": 0, "b": 0, "c": 0, "d": 1, "e": 0, "f": 1, "g": 2, "h": 0}
    assert len({plan.phase_s for plan in plans}) == len(plans)  # never two at the same moment
    assert all(plan.phase_s < plan.interval_s for plan in plans)


def test_deadlines_follow_the_interval_unless_set() -> None:
    assert spread([(Scripted(good), 2.0, None)])[0].deadline_s == 10.0
    assert spread([(Scripted(good), 60.0, None)])[0].deadline_s == 180.0
    assert spread([(Scripted(good), 60.0, 4.0)])[0].deadline_s == 4.0
    assert spread([]) == []
