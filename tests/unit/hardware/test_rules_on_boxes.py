"""Each rule during a run, just at its limit and just beyond it, on a made-up machine whose files change between looks.

Twenty looks half a second apart on four processors: 10 s of run, 40 s of allowed CPU time, 4000 ticks.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.hardware.probe import Settings
from nodeproof.hardware.providers import RecordedProvider, Survey
from nodeproof.model.hardware import (
    ComputeApp,
    Decision,
    DeviceState,
    Effect,
    HardwareReport,
    Sensitivity,
    ThrottleActive,
    ThrottleCounters,
    Validity,
)
from support.box import Box

SPEED, STABILITY, CORRECTNESS = Sensitivity.SPEED, Sensitivity.STABILITY, Sensitivity.CORRECTNESS


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(str(tmp_path))


def rules(report: HardwareReport) -> dict[str, Effect]:
    assert report.postcheck is not None
    return {finding.rule: finding.effect for finding in report.postcheck.findings}


def validity(report: HardwareReport) -> Validity:
    assert report.postcheck is not None
    return report.postcheck.validity


def at(step: int, action: Callable[[Box], None]) -> Callable[[Box, int], None]:
    def happens(box: Box, now: int) -> None:
        if now == step:
            action(box)

    return happens


def test_a_healthy_box_says_nothing_and_its_run_is_valid(box: Box) -> None:
    report = box.run()
    assert (report.precheck.decision, report.precheck.concerns) == (Decision.PROCEED, [])
    assert (validity(report), report.concerns()) == (Validity.VALID, [])
    assert report.sampler is not None
    assert (report.sampler.samples, report.sampler.unread) == (23, {})  # two before, twenty, one after


@pytest.mark.parametrize(
    ("sensitivity", "expected"),
    [(SPEED, Validity.INVALID), (STABILITY, Validity.INVALID), (CORRECTNESS, Validity.NOT_APPLICABLE)],
)
def test_one_millisecond_of_heat_spoils_speed_and_stability(box: Box, sensitivity: Sensitivity, expected: Validity) -> None:
    report = box.run(at(9, lambda here: here.throttle(core_ms=101, core_events=11)), sensitivity=sensitivity)
    assert validity(report) is expected
    assert {"D1", "D1e", "D1s"} <= rules(report).keys()
    assert report.postcheck is not None
    assert "processors slowed by heat for 1000 µs: cpu0" in report.postcheck.concerns
    assert "slowed by heat 0.01 % of the time" in report.postcheck.concerns  # 1 ms of 10 s


def test_a_slow_down_that_is_only_counted_spoils_speed(box: Box) -> None:
    report = box.run(at(9, lambda here: here.throttle(package_events=8)))
    assert (validity(report), rules(report)) == (Validity.INVALID, {"D1e": Effect.INVALID})
    assert report.concerns() == ["1 slow-downs by heat began: package0"]


def test_kernels_that_count_without_time_still_tell(box: Box) -> None:
    for cpu in range(4):
        for kind in ("core", "package"):
            box.remove(f"/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{kind}_throttle_total_time_ms")
    report = box.run()
    assert validity(report) is Validity.VALID
    fact = next(fact for fact in report.delta.facts if fact.name == "throttle_us") if report.delta else None
    assert fact is not None
    assert (fact.value, fact.state) == (None, Absence.NOT_APPLICABLE)


def test_a_counter_that_begins_anew_is_unknown_not_zero(box: Box) -> None:
    report = box.run(at(9, lambda here: here.throttle(core_events=0, core_ms=0)))
    assert validity(report) is Validity.UNKNOWN
    assert rules(report) == {"D1u": Effect.WARN, "D1eu": Effect.WARN}
    assert "throttle events: the counter of cpu0 went backwards" in report.concerns()[1]


@pytest.mark.parametrize("sensitivity", [SPEED, STABILITY, CORRECTNESS])
@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("D3", lambda here: here.edac(ue=1)),
        ("D5", lambda here: here.aer(nonfatal=1)),
        ("D5", lambda here: here.aer(fatal=1)),
        ("D4", lambda here: here.log("Memory failure: 0x12345: recovery action for dirty LRU page: Recovered")),
    ],
)
def test_a_new_uncorrected_error_spoils_every_kind_of_run(
    box: Box, sensitivity: Sensitivity, rule: str, action: Callable[[Box], None]
) -> None:
    report = box.run(at(5, action), sensitivity=sensitivity)
    assert report.postcheck is not None
    assert (validity(report), report.postcheck.failed) == (Validity.INVALID, True)
    assert rules(report)[rule] is Effect.INVALID


def test_old_errors_and_new_corrected_ones_only_warn(box: Box) -> None:
    box.edac(ue=2)
    report = box.run(at(5, lambda here: here.edac(ue=2, ce=3)))
    assert report.precheck.concerns == ["2 uncorrected errors since this system started: mc0 2"]
    assert report.precheck.decision is Decision.WARN
    assert (validity(report), rules(report)) == (Validity.VALID, {"D7": Effect.WARN})
    assert report.postcheck is not None
    assert report.postcheck.concerns == ["3 new corrected errors: edac 3"]
    assert not report.postcheck.failed


@pytest.mark.parametrize(("mhz", "expected"), [(2850.0, Validity.VALID), (2849.0, Validity.INVALID)])
def test_busy_processors_may_lose_a_twentieth_of_their_clock(box: Box, mhz: float, expected: Validity) -> None:
    def happens(here: Box, step: int) -> None:
        here.mhz = 3000.0 if step < 10 else mhz  # 2850 / 3000 = 0.95

    report = box.run(happens)
    assert validity(report) is expected
    assert (rules(report).get("D8") is Effect.INVALID) == (expected is Validity.INVALID)


def test_idle_processors_may_clock_down(box: Box) -> None:
    def happens(here: Box, step: int) -> None:
        here.busy, here.mhz = (1.0, 3000.0) if step < 10 else (0.4, 800.0)

    assert validity(box.run(happens)) is Validity.VALID


@pytest.mark.parametrize(("ticks", "expected"), [(80, Validity.VALID), (84, Validity.INVALID)])
def test_stolen_time_up_to_two_percent_is_borne(box: Box, ticks: int, expected: Validity) -> None:
    def happens(here: Box, step: int) -> None:
        # 80 of 4000 ticks: 20 on each processor in one interval of 50.
        here.steal, here.busy = (ticks / 200, 0.5) if step == 3 else (0.0, 1.0)

    report = box.run(happens)
    assert validity(report) is expected
    assert (rules(report).get("D9") is Effect.INVALID) == (expected is Validity.INVALID)


@pytest.mark.parametrize(("ticks", "expected"), [(200, Validity.VALID), (202, Validity.INVALID)])
def test_foreign_load_up_to_five_percent_is_borne(box: Box, ticks: int, expected: Validity) -> None:
    def happens(here: Box, step: int) -> None:
        here.foreign, here.busy = (ticks / 200, 0.0) if step == 3 else (0.0, 1.0)

    report = box.run(happens)
    assert validity(report) is expected
    if expected is Validity.INVALID:
        assert report.concerns() == ["other processes used 5.05 % of the allowed CPU time, more than 5.00 %: 900 make"]


def test_one_page_from_swap_spoils_speed_alone(box: Box) -> None:
    def swap(here: Box) -> None:
        here.swapped = 1

    report = box.run(at(4, swap))
    assert (validity(report), rules(report)) == (Validity.INVALID, {"D11": Effect.INVALID})


def test_swapping_is_told_to_a_stability_run_and_spoils_it_not(box: Box) -> None:
    def swap(here: Box) -> None:
        here.swapped = 1

    report = box.run(at(4, swap), sensitivity=STABILITY)
    assert (validity(report), rules(report)) == (Validity.VALID, {"D11": Effect.NOTE})


def test_a_process_killed_for_want_of_memory_spoils_speed(box: Box) -> None:
    def kill(here: Box) -> None:
        here.killed = 1

    assert rules(box.run(at(4, kill))) == {"D12": Effect.INVALID}


@pytest.mark.parametrize(("share", "found"), [(0.01, False), (0.02, True)])
def test_waiting_for_memory_warns(box: Box, share: float, found: bool) -> None:  # noqa: FBT001 - a column of the table
    box.waits = [0.5, share, 0.0]
    report = box.run()
    assert rules(report) == ({"D16": Effect.WARN} if found else {})
    assert validity(report) is Validity.VALID
    assert (report.precheck.decision is Decision.WARN) == found


@pytest.mark.parametrize(("share", "found"), [(0.1, False), (0.12, True)])
def test_waiting_for_disks_warns(box: Box, share: float, found: bool) -> None:  # noqa: FBT001 - a column of the table
    box.waits = [0.0, 0.0, share]
    assert rules(box.run()) == ({"D17": Effect.WARN} if found else {})


def test_suspend_and_a_step_of_the_wall_clock_spoil_speed(box: Box) -> None:
    def sleep(here: Box) -> None:
        here.slept_s = 60.0
        here.clock.advance(60.0)

    def step(here: Box) -> None:
        here.clock.wall_s -= 3600.0

    slept = box.run(at(4, sleep))
    assert rules(slept)["D14"] is Effect.INVALID
    stepped = box.run(at(4, step))
    assert rules(stepped) == {"D15": Effect.INVALID}
    assert stepped.concerns() == ["the wall clock was set by 3600 s"]


def test_a_slewed_wall_clock_is_no_step(box: Box) -> None:
    def slew(here: Box, _step: int) -> None:
        here.clock.wall_s += 0.05

    assert validity(box.run(slew)) is Validity.VALID


def test_a_changed_governor_is_told(box: Box) -> None:
    report = box.run(at(4, lambda here: here.governor("powersave", cpus=range(1, 2))))
    assert rules(report) == {"D18": Effect.WARN}
    assert report.concerns() == ["the governor of 1 processors was changed: cpu1 performance -> powersave"]


def test_what_the_kernel_logs_meanwhile_is_told(box: Box) -> None:
    box.log("watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [old:1]")
    report = box.run(at(4, lambda here: here.log("watchdog: BUG: soft lockup - CPU#2 stuck for 23s! [xhpl:500]", after_s=0.1)))
    assert rules(report) == {"D19": Effect.WARN}
    assert [(note.kind, note.device) for note in report.kernel_events] == [("soft_lockup", "cpu2")]


def test_heat_that_only_the_kernel_log_tells_of_spoils_speed(box: Box) -> None:
    line = "CPU1: Core temperature above threshold, cpu clock throttled (total events = 1)"
    assert rules(box.run(at(4, lambda here: here.log(line))))["D1k"] is Effect.INVALID


def test_a_critical_sensor_is_told_and_seen_live(box: Box) -> None:
    watch = box.watch()
    report = box.run(at(4, lambda here: here.temperature(cpu_c=100, zone_c=50)), watch=watch)
    assert rules(report)["D20"] is Effect.WARN
    live = watch.live()
    assert live is not None
    assert live.critical == ["hwmon0 coretemp Package id 0"]
    assert (live.cpu_temp_c, live.chassis_temp_c) == (100.0, 50.0)
    assert "hottest zone changed by +10 °C" in report.concerns()


def test_an_unreadable_controller_makes_validity_unknown(box: Box) -> None:
    report = box.run(at(4, lambda here: here.write("/sys/devices/system/edac/mc/mc0/ue_count", "rubbish")))
    assert (validity(report), rules(report)) == (Validity.UNKNOWN, {"D3u": Effect.WARN})


GPU = DeviceState(
    "gpu0",
    name="NVIDIA H100",
    driver="550.1",
    temp_c=50.0,
    critical_c=90.0,
    uncorrected_errors=0,
    corrected_errors=0,
    throttle_counters=ThrottleCounters(sw_power_cap_us=5, sw_thermal_us=0, hw_thermal_us=0, hw_power_brake_us=0),
    throttle_active=ThrottleActive(sw_power_cap=True, sw_thermal=False, hw_thermal=False, hw_power_brake=False),
)


def gpu(**changes: object) -> DeviceState:
    return msgspec.structs.replace(GPU, **changes)


def survey(*devices: DeviceState, apps: tuple[ComputeApp, ...] | None = ()) -> Survey:
    return Survey(devices, apps, "nvidia-smi")


def with_gpu(box: Box, *answers: Survey | NoData, devices: tuple[str, ...] | None = None) -> HardwareReport:
    provider = RecordedProvider(answers)
    watch = box.watch(settings=Settings(devices=devices), providers=(provider,))
    return box.run(watch=watch, steps=4)


def test_a_power_cap_alone_is_normal(box: Box) -> None:
    later = gpu(throttle_counters=ThrottleCounters(900_000, 0, 0, 0), clock_mhz=1000.0, clock_max_mhz=2000.0)
    report = with_gpu(box, survey(gpu()), survey(gpu()), survey(later))
    assert (report.precheck.decision, validity(report)) == (Decision.PROCEED, Validity.VALID)
    assert report.perf_class == "h100@box"


def test_an_accelerator_slowed_by_heat_spoils_speed_and_prints_all_counters(box: Box) -> None:
    later = gpu(throttle_counters=ThrottleCounters(5, 0, 1, None))
    report = with_gpu(box, survey(gpu()), survey(gpu()), survey(later))
    assert validity(report) is Validity.INVALID
    text = "accelerators slowed by heat: gpu0 sw_thermal 0 µs, gpu0 hw_thermal 1 µs, gpu0 hw_power_brake unreadable"
    assert text in report.concerns()
    assert any(concern.startswith("accelerators slowed by heat at least") for concern in report.concerns())


def test_accelerators_that_cannot_be_asked_make_validity_unknown(box: Box) -> None:
    report = with_gpu(box, NoData(Absence.READ_ERROR, "driver/library version mismatch"))
    assert report.precheck.decision is Decision.WARN
    assert {finding.rule for finding in report.precheck.findings} == {"R1u", "R2u", "R34n"}
    assert validity(report) is Validity.UNKNOWN
    assert {"D2u", "D6u", "D13u"} == rules(report).keys()


def test_a_foreign_process_that_comes_later_spoils_speed(box: Box) -> None:
    mine = ComputeApp(500, "server", device="gpu0")
    foreign = ComputeApp(900, "other", device="gpu0")
    report = with_gpu(box, survey(gpu(), apps=(mine,)), survey(gpu(), apps=(mine,)), survey(gpu(), apps=(mine, foreign)))
    assert report.precheck.decision is Decision.PROCEED
    assert rules(report) == {"D13": Effect.INVALID}
    assert "foreign processes used the accelerators: 900 other" in report.concerns()


def test_new_uncorrected_errors_of_an_accelerator_fail(box: Box) -> None:
    report = with_gpu(box, survey(gpu()), survey(gpu()), survey(gpu(uncorrected_errors=1)))
    assert report.postcheck is not None
    assert (rules(report), report.postcheck.failed) == ({"D6": Effect.INVALID}, True)


def test_devices_that_the_run_does_not_use_are_left_out(box: Box) -> None:
    foreign = ComputeApp(900, "other", device="gpu0")
    hot = gpu(throttle_counters=ThrottleCounters(5, 7, 7, 7), uncorrected_errors=3)
    report = with_gpu(box, survey(gpu()), survey(gpu(), apps=(foreign,)), survey(hot), devices=("gpu7",))
    assert report.precheck.decision is Decision.WARN  # the device it uses was not seen
    assert validity(report) is Validity.UNKNOWN
    none = with_gpu(box, survey(gpu()), survey(gpu(), apps=(foreign,)), survey(hot), devices=())
    assert (none.precheck.decision, validity(none)) == (Decision.PROCEED, Validity.VALID)
