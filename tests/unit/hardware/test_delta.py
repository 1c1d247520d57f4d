"""What changed between two states, and whether two boxes are one."""

import msgspec
import pytest

from nodeproof.errors import Absence
from nodeproof.hardware.delta import (
    accelerator_facts,
    chassis_rise,
    counter_delta,
    governor_changes,
    hardware_delta,
    merged,
    temperature_delta,
)
from nodeproof.hardware.equivalence import mismatches
from nodeproof.hardware.limits import LIMITS
from nodeproof.model.hardware import (
    Decision,
    DeviceState,
    Fact,
    HardwareReport,
    HardwareState,
    MachineIdentity,
    Postcheck,
    Precheck,
    Sensitivity,
    ThrottleActive,
    ThrottleCounters,
    Validity,
    ZoneTemperature,
)

COOL = ThrottleActive(sw_thermal=False, hw_thermal=False, hw_power_brake=False)
LIMIT = LIMITS["gb10"]


def state(*devices: DeviceState, **changes: object) -> HardwareState:
    base = HardwareState(
        captured_at=1,
        machine=MachineIdentity(hostname="a", gpu="NVIDIA GB10", driver="580.1", cpu="X"),
        throttle_counters=ThrottleCounters(),
        throttle_active=COOL,
        sm_clock_mhz=2000.0,
        sm_clock_max_mhz=3000.0,
        mem_total_kb=1000,
        chassis_temps_c=[ZoneTemperature("a", 50.0)],
        devices=list(devices),
    )
    return msgspec.structs.replace(base, **changes)


def device(name: str = "gpu0", sw: int | None = 0, hw: int | None = 0, brake: int | None = 0, cap: int | None = 0) -> DeviceState:
    return DeviceState(name, throttle_counters=ThrottleCounters(cap, sw, hw, brake), throttle_active=COOL)


def everything(_device: str) -> bool:
    return True


@pytest.mark.parametrize(("before", "after", "expected"), [(5, 7, 2), (5, 5, 0), (7, 5, None), (None, 5, None), (5, None, None)])
def test_a_counter_moves_forwards_or_not_at_all(before: int | None, after: int | None, expected: int | None) -> None:
    assert counter_delta(before, after) == expected


def test_temperatures_need_both_sides() -> None:
    assert (temperature_delta(50.1, 49.0), temperature_delta(None, 1.0), temperature_delta(1.0, None)) == (-1.1, None, None)


def test_a_delta_keeps_the_worst_device_and_leaves_out_what_is_not_known() -> None:
    before = state(device("gpu0", 1, 1, 1, 5), device("gpu1", 10, 10, None, 5), gpu_temp_c=40.0)
    after = state(device("gpu0", 4, 1, 2, 9), device("gpu1", 11, 5, None, 7), gpu_temp_c=55.0)
    delta = hardware_delta(before, after, 692.25, [])
    assert (delta.elapsed_s, delta.duration_s) == (692, 692.25)
    assert (delta.sw_thermal_us, delta.hw_thermal_us, delta.hw_power_brake_us, delta.sw_power_cap_us) == (3, None, None, 4)
    assert (delta.gpu_temp_delta_c, delta.hottest_chassis_delta_c, delta.cpu_temp_delta_c) == (15.0, 0.0, None)
    assert "hw_thermal_us" not in msgspec.to_builtins(delta)
    assert hardware_delta(state(), state(), 0.5, []).sw_thermal_us is None


def test_throttling_of_twelve_seconds_in_692_is_1_73_percent() -> None:
    before, after = state(device(sw=0)), state(device(sw=12_000_000))
    us, share = accelerator_facts(before, after, 692.0, everything)
    assert (us.value, us.complete) == (12e6, True)
    assert share.value is not None
    assert f"{share.value:.2%}" == "1.73%"
    assert us.subject == "gpu0 sw_thermal 12000000 µs, gpu0 hw_thermal 0 µs, gpu0 hw_power_brake 0 µs"


def test_unreadable_counters_are_printed_so_and_make_a_floor() -> None:
    us, share = accelerator_facts(state(device(sw=0, hw=None)), state(device(sw=3, hw=4)), 1.0, everything)
    assert (us.value, us.complete, us.state) == (3.0, False, Absence.UNKNOWN)
    assert "hw_thermal unreadable" in us.subject
    assert not share.complete
    nothing, no_share = accelerator_facts(state(device(sw=None, hw=None, brake=None)), state(device()), 1.0, everything)
    assert (nothing.value, no_share.value) == (None, None)
    assert accelerator_facts(state(device()), state(device(sw=1)), 0.0, everything)[1].value is None
    assert accelerator_facts(state(device()), state(device()), 1.0, lambda _device: False) == []
    assert accelerator_facts(state(device("gpu0")), state(device("gpu1")), 1.0, everything) == []


def test_samples_and_states_together_are_as_bad_as_the_worse() -> None:
    between = Fact("x", 5.0, "us", subject="all")
    assert merged(None, between) is between
    assert merged(Fact("x", state=Absence.STALE), between) is between
    lacking = Fact("x", state=Absence.NOT_APPLICABLE)
    assert merged(lacking, between) is lacking
    seen = Fact("x", 7.0, complete=False, state=Absence.UNKNOWN, reason="restarted")
    assert merged(seen, Fact("x", state=Absence.UNKNOWN)) is seen
    assert merged(seen, between) == Fact("x", 7.0, "us", False, Absence.UNKNOWN, "restarted", "", "all")
    assert merged(Fact("x", 3.0), between) == between


def test_zones_and_governors_between_two_states() -> None:
    assert chassis_rise(state(), state(chassis_temps_c=[ZoneTemperature("a", 53.0)])).value == 3.0
    assert chassis_rise(state(chassis_temps_c=None), state()).state is Absence.UNKNOWN
    assert governor_changes({0: "a", 1: "b"}, {0: "a", 1: "c", 2: "d"}).value == 1.0
    assert governor_changes(None, {}).state is Absence.UNKNOWN


def report(box: HardwareState, validity: Validity | None = None) -> HardwareReport:
    post = None if validity is None else Postcheck(validity)
    precheck = Precheck(Decision.PROCEED)
    return HardwareReport(sensitivity=Sensitivity.SPEED, perf_class="x", before=box, precheck=precheck, postcheck=post)


def test_a_box_is_one_with_itself() -> None:
    assert mismatches(report(state(device())), report(state(device()), Validity.VALID), LIMIT) == []
    cpu = state(machine=MachineIdentity(cpu="X"), sm_clock_max_mhz=None)
    assert mismatches(report(cpu), report(cpu), LIMIT) == []


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"machine": MachineIdentity(gpu="NVIDIA H200", driver="580.9")}, "accelerator"),
        ({"machine": MachineIdentity(gpu="NVIDIA GB10", driver="590.1")}, "driver"),
        ({"machine": MachineIdentity(gpu="NVIDIA GB10")}, "driver"),
        ({"sm_clock_max_mhz": 2969.0}, "highest clock"),
        ({"sm_clock_max_mhz": None}, "highest clock"),
        ({"mem_total_kb": 949}, "memory"),
        ({"mem_total_kb": None}, "memory"),
        ({"chassis_temps_c": [ZoneTemperature("a", 65.5)]}, "chassis"),
        ({"chassis_temps_c": None}, "chassis"),
        ({"devices": [DeviceState("gpu0")]}, "thermal"),
        ({"devices": [DeviceState("gpu0", throttle_active=ThrottleActive(hw_thermal=True))]}, "thermal"),
    ],
)
def test_each_difference_keeps_two_boxes_apart(changes: dict[str, object], what: str) -> None:
    other = msgspec.structs.replace(state(device()), **changes)
    assert [entry.what for entry in mismatches(report(state(device())), report(other), LIMIT)] == [what]


@pytest.mark.parametrize(
    "changes", [{"sm_clock_max_mhz": 2970.0}, {"mem_total_kb": 950}, {"chassis_temps_c": [ZoneTemperature("a", 65.0)]}]
)
def test_differences_within_the_limits_do_not(changes: dict[str, object]) -> None:
    assert mismatches(report(state(device())), report(state(device(), **changes)), LIMIT) == []


def test_a_run_that_is_not_valid_and_processors_that_differ_do() -> None:
    found = mismatches(report(state(device()), Validity.UNKNOWN), report(state(device()), Validity.INVALID), LIMIT)
    assert [entry.text for entry in found] == ["the run on the first box is unknown", "the run on the second box is invalid"]
    one, other = (report(state(machine=MachineIdentity(cpu=name), sm_clock_max_mhz=None)) for name in ("X", None))
    assert [entry.what for entry in mismatches(one, other, LIMIT)] == ["processor"]
