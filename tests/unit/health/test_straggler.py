"""Which device lags: planted ones are found, sound nodes are not convicted, and too little to tell is unknown."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from nodeproof.clock import Instant
from nodeproof.health.evaluator import Evaluator
from nodeproof.health.readings import Readings
from nodeproof.health.straggler import StragglerState, StragglerWatch, median, robust_z
from nodeproof.model.metric import Batch, Metric

_CLOCKS = {"npu": "aicore_freq", "gpu": "clock_frequency"}


def _sample(component: str, second: int, devices: dict[int, dict[str, float]]) -> Batch:
    stamp = f"t{second}"
    label = f"{component}_id"
    metrics = [
        Metric(component, name, value, "", {label: str(device)}, stamp)
        for device, readings in devices.items()
        for name, value in readings.items()
    ]
    return Batch(component, stamp, float(second), metrics, [])


def _fleet(component: str, dice: random.Random, size: int = 8) -> dict[int, dict[str, float]]:
    """Devices at work, each a little different from the others."""
    return {
        device: {
            "utilization": 90 + dice.uniform(-4, 4),
            _CLOCKS[component]: 1800 + dice.uniform(-10, 10),
            "temperature": 60 + 1.5 * device + dice.uniform(-1, 1),
            "power_draw": 350 + dice.uniform(-10, 10),
        }
        for device in range(size)
    }


def _run(
    component: str = "npu", minutes: int = 6, size: int = 8, every_s: int = 10, seed: int = 1, **slow: float
) -> StragglerWatch:
    """``slow``: what device 3 has instead."""
    dice = random.Random(seed)  # noqa: S311 - a test's noise, always the same
    watch = StragglerWatch(component)
    for second in range(0, minutes * 60 + every_s, every_s):
        devices = _fleet(component, dice, size)
        if slow:
            devices[3] |= slow
        watch.take(_sample(component, second, devices))
    return watch


@pytest.mark.parametrize("component", ["npu", "gpu"])
def test_a_device_with_a_lower_clock_is_found_with_its_evidence(component: str) -> None:
    verdict = _run(component, **{_CLOCKS[component]: 1300.0}).verdict()  # type: ignore[arg-type] # readings, no counts
    assert verdict.state is StragglerState.FOUND
    worst = verdict.stragglers[0]
    assert (worst.device, worst.kind.metric, worst.value) == (f"{component} 3", _CLOCKS[component], 1300.0)
    assert 1790 <= worst.peers <= 1810
    assert worst.z > 30
    assert worst.windows == 5
    assert (
        f"clock of {'the AI cores of ' if component == 'npu' else ''}{component} 3".replace(
            "of the AI cores of", "of the AI cores of"
        )
        in verdict.reason
    )


@pytest.mark.parametrize("slow", [{"temperature": 95.0}, {"power_draw": 200.0}, {"utilization": 99.9, "aicore_freq": 1500.0}])
def test_other_ways_to_lag(slow: dict[str, float]) -> None:
    verdict = _run(**slow).verdict()  # type: ignore[arg-type] # readings, no counts
    assert verdict.state is StragglerState.FOUND
    assert {one.device for one in verdict.stragglers} == {"npu 3"}


@pytest.mark.parametrize("seed", range(10))
def test_a_sound_node_is_not_convicted(seed: int) -> None:
    verdict = _run(seed=seed, minutes=12).verdict()
    assert (verdict.state, verdict.stragglers, verdict.devices) == (StragglerState.NONE, (), 8)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"minutes": 2}, "2 of the 3 windows"),
        ({"size": 2}, "2 devices tell how busy they are, and it takes 3"),
        ({"every_s": 40}, "in the window, and it takes 3"),
    ],
)
def test_not_enough_to_tell_is_unknown(options: dict[str, int], reason: str) -> None:
    verdict = _run(**options).verdict()  # type: ignore[arg-type] # counts, no readings
    assert verdict.state is StragglerState.UNKNOWN
    assert reason in verdict.reason


def test_an_idle_node_and_one_with_several_jobs_are_unknown() -> None:
    watch, mixed = StragglerWatch("npu"), StragglerWatch("npu")
    for second in range(0, 400, 10):
        watch.take(_sample("npu", second, {device: {"utilization": 1.0, "aicore_freq": 800.0} for device in range(8)}))
        mixed.take(_sample("npu", second, {device: {"utilization": 95.0 if device < 5 else 5.0} for device in range(8)}))
    assert "the devices are idle" in watch.verdict().reason
    assert "do other work than the rest" in mixed.verdict().reason
    assert watch.verdict().state is mixed.verdict().state is StragglerState.UNKNOWN


def test_an_idle_device_among_busy_ones_is_no_straggler() -> None:
    verdict = _run(utilization=0.0, aicore_freq=800.0, power_draw=90.0).verdict()
    assert verdict.state is StragglerState.NONE


def test_one_bad_window_convicts_nobody_and_a_straggler_is_let_go_after_three_good_ones() -> None:
    dice = random.Random(2)  # noqa: S311 - a test's noise, always the same
    watch = StragglerWatch("npu")
    states = []
    for minute in range(16):
        slow = minute == 1 or 7 <= minute < 11
        for second in range(minute * 60, minute * 60 + 60, 10):
            devices = _fleet("npu", dice)
            if slow:
                devices[3]["aicore_freq"] = 1200.0
            watch.take(_sample("npu", second, devices))
        states.append(watch.verdict().state.value)
    assert states[:10] == ["unknown"] * 3 + ["none"] * 7
    assert states[10:13] == ["found"] * 3
    assert states[-1] == "none"


def test_a_reading_told_again_counts_once() -> None:
    watch = StragglerWatch("npu")
    for second in range(0, 400, 10):
        batch = _sample("npu", 0, {device: {"utilization": 90.0} for device in range(4)})
        watch.take(Batch("npu", "t", float(second), batch.metrics, []))
    assert watch.verdict().state is StragglerState.UNKNOWN


def test_health_tells_of_it_and_takes_no_points() -> None:
    evaluator = Evaluator(confirm=False)
    dice = random.Random(3)  # noqa: S311 - a test's noise, always the same
    for second in range(0, 400, 10):
        devices = _fleet("npu", dice)
        devices[3]["aicore_freq"] = 1200.0
        batch = _sample("npu", second, devices)
        evaluator.note(batch)
        score = evaluator.evaluate(Readings({"npu": batch}), Instant(1000.0 + second, float(second)))
    found = [one for one in score.findings if one.rule == "npu.straggler"]
    assert len(found) == 1
    assert found[0].message.startswith("npu 3 lags behind its peers: clock of the AI cores is 1200, theirs 1")
    assert (found[0].component, found[0].penalty) == ("npu", 0.0)
    assert score.grade != "Excellent"
    assert evaluator.straggler("npu").state is StragglerState.FOUND
    assert evaluator.straggler("gpu").state is StragglerState.UNKNOWN


def test_batches_of_other_components_are_none_of_its_business() -> None:
    watch = StragglerWatch("gpu")
    watch.take(_sample("npu", 0, {0: {"utilization": 90.0}}))
    assert watch.verdict().devices == 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(-1e6, 1e6), st.floats(0.1, 100))
def test_the_score_is_that_of_the_definition(peers: list[float], value: float, floor: float) -> None:
    middle = (
        sorted(peers)[len(peers) // 2] if len(peers) % 2 else sum(sorted(peers)[len(peers) // 2 - 1 : len(peers) // 2 + 1]) / 2
    )
    assert median(peers) == middle
    assume(value == middle or abs(value - middle) > 1e-300)  # what is less than that is lost when it is divided
    score = robust_z(value, peers, floor)
    assert abs(score) * (floor / 3.5) <= abs(value - middle) * 1.0000001
    assert (score > 0) == (value > middle)


def test_a_sound_fleet_is_told_to_be_sound() -> None:
    """What was compared and is alike reads well; what could not be compared does not."""
    evaluator = Evaluator(confirm=False)
    dice = random.Random(5)  # noqa: S311 - a test's noise, always the same
    for second in range(0, 400, 10):
        batch = _sample("gpu", second, _fleet("gpu", dice))
        evaluator.note(batch)
        evaluator.evaluate(Readings({"gpu": batch}), Instant(1000.0 + second, float(second)))
    assert evaluator.straggler("gpu").state is StragglerState.NONE
    assert evaluator.reads_well("gpu.straggler", lambda _: True) is True
    assert evaluator.reads_well("npu.straggler", lambda _: True) is None
