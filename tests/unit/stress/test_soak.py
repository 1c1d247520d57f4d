"""A long run over its time: series worked by hand, and a program that leaks and slows down under the whole manager."""

from pathlib import Path

import pytest

from nodeproof.model.job import Performance, Status
from nodeproof.stress import soak
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.manager import Manager
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.sizing import Plan
from nodeproof.stress.soak import SoakSamples
from nodeproof.stress.workloads.heartbeat import Heartbeat
from support.items import LeakingAdapter, item_manager


def beat(elapsed_s: float, rate: float | None, phase: str = "run", *, done: float = 0.0, total: float | None = None) -> Heartbeat:
    return Heartbeat(
        workload="x", phase=phase, done=done or elapsed_s, total=total, rate=rate, rate_unit="x/s", elapsed_s=elapsed_s
    )


def repetitions(samples: SoakSamples, rates: list[float], phases: tuple[str, ...] = ("run",)) -> None:
    """So many repetitions, each of two heartbeats whose rate moves by nature within it."""
    at_s = 0.0
    for number, rate in enumerate(rates):
        for phase in phases:
            name = phase if number == 0 else f"{phase} {number + 1}"
            samples.rate(beat(at_s, None, name, done=1, total=9.0))
            samples.rate(beat(at_s + 1.0, 2 * rate, name, done=5, total=9.0))
            samples.rate(beat(at_s + 2.0, rate, name, done=9, total=9.0))
            at_s += 3.0


def test_an_endless_phase_gives_the_work_between_two_heartbeats() -> None:
    """10/s for ten seconds, then 5/s: the mean so far only creeps down, what was done between does not."""
    samples = SoakSamples()
    samples.rate(beat(0.0, None))
    work = 0.0
    for second in range(1, 21):
        work += 10.0 if second <= 10 else 5.0
        samples.rate(beat(float(second), work / second))
    assert [round(rate, 6) for _, rate in samples._rates] == [10.0] * 9 + [5.0] * 10
    details, concerns = samples.judge()
    assert details["rate_sank"] is True
    assert concerns == [f"its rate sank while it ran: {details['rate']}"]


def test_what_moves_within_every_repetition_is_no_trend() -> None:
    """An LU whose rate falls from 200 to 100 in each solve: the last is as quick as the first."""
    samples = SoakSamples()
    repetitions(samples, [100.0] * 12, ("factor",))
    details, concerns = samples.judge()
    assert (details["rate_samples"], details["rate_change"], details["rate_sank"], concerns) == (11, 0.0, False, [])


def test_repetitions_that_get_slower_are_found_whatever_their_phases() -> None:
    """A write phase is ten times as quick as a march: each is held against its own kind."""
    samples = SoakSamples()
    at_s = 0.0
    for number in range(10):
        for phase, usual in (("write", 1000.0), ("march-1", 100.0)):
            samples.rate(beat(at_s, None, phase, done=1, total=9.0))
            samples.rate(beat(at_s + 2.0, usual * (1 - number / 50), phase, done=9, total=9.0))
            at_s += 3.0
    details, _ = samples.judge()
    assert (details["rate_samples"], details["rate_sank"]) == (19, True)
    change = details["rate_change"]
    assert isinstance(change, float)
    assert change == pytest.approx(-0.19, abs=0.02), "0.98 to 0.82 of the usual"


def test_too_few_repetitions_show_no_trend_and_say_so() -> None:
    samples = SoakSamples()
    repetitions(samples, [100.0, 50.0, 25.0])
    details, concerns = samples.judge()
    assert (details["rate"], concerns) == ("2 samples, 8 are needed to see a trend", [])


def test_memory_that_grows_after_the_warm_up_is_a_concern() -> None:
    samples = SoakSamples()
    for second in range(100):
        samples.memory(float(second), 1_000_000 + 10_000 * second)
    details, concerns = samples.judge()
    assert [text.split(":")[0] for text in concerns] == ["its memory grew while it ran"]
    assert (details["memory_grew"], details["rate_sank"]) == (True, False)
    warm = SoakSamples()
    for second in range(100):
        warm.memory(float(second), 1_000_000 if second > 20 else 40_000 * (second + 1))
    assert warm.judge()[1] == [], "caches that fill at the start are no leak"


def test_samples_stay_bounded() -> None:
    samples = SoakSamples()
    for second in range(10_000):
        samples.rate(beat(float(second), 100.0))
        samples.memory(float(second), 1_000_000)
        samples.memory(float(second), 1_000_000)
    details, concerns = samples.judge()
    assert concerns == []
    for key in ("rate_samples", "memory_samples"):
        count = details[key]
        assert isinstance(count, int)
        assert 1000 < count <= 4096


def test_a_program_that_leaks_and_slows_down_is_told_by_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "_MEMORY_STEP_S", 0.05)
    manager: Manager = item_manager(tmp_path, LeakingAdapter(WatchPolicy(heartbeats=True)))
    report = manager.start_with_options(["cpu_sdc"], RunOptions(plan=Plan.SOAK))
    done = manager.wait(report.job_id, 20.0)
    assert done is not None
    (item,) = done.benchmarks
    assert item.status is Status.HEALTHY, "speed never changes it"
    assert item.outcome is not None
    assert item.outcome.performance is Performance.DEGRADED
    assert item.outcome.reasons["performance"].startswith("its rate sank while it ran: -")
    assert [text.split(":")[0] for text in item.outcome.concerns] == [
        "its rate sank while it ran",
        "its memory grew while it ran",
    ]
