"""The report of the box: derived values, and its JSON read by a strict reader written from bench.md 3.2, 3.3 and 3.10 alone."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeproof.model.hardware import (
    ComputeApp,
    Decision,
    DeviceState,
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
from support.box import Box

NUMBER = (int, float)
STATE_KEYS: dict[str, tuple[type, ...]] = {
    "captured_at": (int,),
    "machine": (dict,),
    "throttle_counters": (dict,),
    "throttle_active": (dict,),
}
STATE_OPTIONAL: dict[str, tuple[type, ...]] = {
    "gpu_temp_c": NUMBER,
    "chassis_temps_c": (list,),
    "sm_clock_mhz": NUMBER,
    "sm_clock_max_mhz": NUMBER,
    "mem_available_kb": (int,),
    "mem_total_kb": (int,),
    "page_cache_kb": (int,),
    "gpu_compute_apps": (list,),
    "cpu_governor": (str,),
    "persistence_mode": (bool,),
    "sources": (list,),
}
DELTA_OPTIONAL = ("sw_power_cap_us", "sw_thermal_us", "hw_thermal_us", "hw_power_brake_us")


def strict(value: dict[str, Any], required: dict[str, tuple[type, ...]], optional: dict[str, tuple[type, ...]]) -> None:
    """Required keys with their types, optional ones with theirs or not at all: never null."""
    for key, kinds in required.items():
        assert isinstance(value[key], kinds), key
    for key, kinds in optional.items():
        assert key not in value or isinstance(value[key], kinds), key
    assert None not in value.values()


def strict_state(value: dict[str, Any]) -> None:
    strict(value, STATE_KEYS, STATE_OPTIONAL)
    strict(value["machine"], {}, dict.fromkeys(("hostname", "machine_id", "gpu", "driver"), (str,)))
    for zone in value.get("chassis_temps_c", []):
        strict(zone, {"name": (str,), "temp_c": NUMBER}, {})
    for app in value.get("gpu_compute_apps", []):
        strict(app, {"pid": (int,)}, {"name": (str,), "used_mib": (int,)})
    assert all(isinstance(number, int) for number in value["throttle_counters"].values())
    assert all(isinstance(flag, bool) for flag in value["throttle_active"].values())


def strict_report(value: dict[str, Any]) -> None:
    strict(value, {"sensitivity": (str,), "perf_class": (str,), "before": (dict,), "precheck": (dict,)}, {})
    strict_state(value["before"])
    assert value["sensitivity"] in {"speed", "correctness", "stability"}
    assert value["precheck"]["decision"] in {"proceed", "warn", "refuse"}
    parts = [key in value for key in ("after", "delta", "postcheck")]
    assert all(parts) or not any(parts)
    for check in ("precheck", "postcheck"):
        assert value.get(check, {}).get("concerns") != []
    if "after" in value:
        strict_state(value["after"])
        strict(value["delta"], {"elapsed_s": (int,)}, dict.fromkeys(DELTA_OPTIONAL, (int,)))
        assert value["postcheck"]["validity"] in {"valid", "unknown", "invalid", "not-applicable"}


@pytest.mark.parametrize("sensitivity", list(Sensitivity))
def test_a_strict_reader_reads_open_and_closed_reports(tmp_path: Path, sensitivity: Sensitivity) -> None:
    box = Box(str(tmp_path))
    watch = box.watch()
    report = box.run(lambda here, step: here.throttle(core_events=10 + step), steps=3, sensitivity=sensitivity, watch=watch)
    encoded = msgspec.json.encode(report)
    value = json.loads(encoded)
    strict_report(value)
    assert value["after"]["chassis_temps_c"] == [{"name": "acpitz", "temp_c": 40.0}]
    assert value["before"]["cpu_governor"] == "performance"
    assert msgspec.json.decode(encoded, type=HardwareReport) == report
    opened = box.watch().open(sensitivity, _Off())
    strict_report(json.loads(msgspec.json.encode(opened)))
    fields = {(field["device"], field["name"]): field for field in value["before"]["fields"]}
    assert fields["cpu0", "throttle_events"]["value"] == 10
    assert fields["accelerators", "devices"]["state"] == "not_applicable"
    assert all(("value" in field) != ("state" in field) and field["source"] and field["at"] > 0 for field in fields.values())


class _Off:
    never_refuse = False
    temperature_gate = False


def state(**changes: object) -> HardwareState:
    base = HardwareState(
        captured_at=1, machine=MachineIdentity(), throttle_counters=ThrottleCounters(), throttle_active=ThrottleActive()
    )
    return msgspec.structs.replace(base, **changes)


def test_nothing_known_is_all_unknown() -> None:
    raw = b'{"captured_at":1,"machine":{},"throttle_counters":{},"throttle_active":{}}'
    empty = msgspec.json.decode(raw, type=HardwareState)
    assert empty == state()
    assert (empty.thermal(), empty.hottest_chassis_c(), empty.foreign_compute_apps(), empty.clock_headroom()) == (None,) * 4
    assert empty.one_line() == (
        "unknown@unknown · cpu unknown · gpu unknown · chassis unknown · sm clock unknown · "
        "foreign accelerator processes unknown · available memory unknown"
    )


def test_derived_values() -> None:
    zones = [ZoneTemperature("a", 40.5), ZoneTemperature("b", 61.0)]
    apps = [ComputeApp(1, foreign=False), ComputeApp(2)]
    full = state(
        chassis_temps_c=zones,
        gpu_compute_apps=apps,
        sm_clock_mhz=1500.0,
        sm_clock_max_mhz=2000.0,
        gpu_temp_c=50.0,
        cpu_temp_c=55.5,
        mem_available_kb=2 << 20,
        perf_class="gb10@a",
    )
    assert (full.hottest_chassis_c(), full.foreign_compute_apps(), full.clock_headroom()) == (61.0, [apps[1]], 0.75)
    assert full.one_line() == (
        "gb10@a · cpu 55.5 °C · gpu 50 °C · chassis 61 °C · sm 1500/2000 MHz · foreign accelerator processes 1 · "
        "available memory 2.0 GiB"
    )
    assert state(chassis_temps_c=[]).hottest_chassis_c() is None
    assert state(gpu_compute_apps=[]).foreign_compute_apps() == []
    assert state(sm_clock_mhz=1.0, sm_clock_max_mhz=0.0).clock_headroom() is None
    assert state(sm_clock_mhz=1.0).clock_headroom() is None


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (ThrottleActive(), None),
        (ThrottleActive(sw_power_cap=True), None),
        (ThrottleActive(sw_power_cap=True, hw_thermal=False), False),
        (ThrottleActive(sw_thermal=True), True),
        (ThrottleActive(hw_thermal=True), True),
        (ThrottleActive(hw_power_brake=True, sw_thermal=False), True),
    ],
)
def test_a_power_cap_is_not_heat(flags: ThrottleActive, expected: bool | None) -> None:  # noqa: FBT001 - a column of the table
    assert flags.thermal() is expected
    assert state(throttle_active=flags).thermal() is expected


def test_one_silent_device_is_unknown_and_one_hot_one_is_hot() -> None:
    cool = DeviceState("gpu0", throttle_active=ThrottleActive(sw_thermal=False))
    hot = DeviceState("gpu1", throttle_active=ThrottleActive(hw_thermal=True))
    silent = DeviceState("gpu2")
    assert [state(devices=list(pair)).thermal() for pair in ((cool,), (cool, silent), (cool, silent, hot))] == [False, None, True]


def test_an_open_report_is_unmeasured_not_invalid() -> None:
    opened = HardwareReport(
        sensitivity=Sensitivity.SPEED, perf_class="x@y", before=state(), precheck=Precheck(Decision.REFUSE, ["a"])
    )
    assert (opened.refuses(), opened.invalidated(), opened.concerns()) == (True, False, ["a"])
    closed = msgspec.structs.replace(opened, postcheck=Postcheck(Validity.INVALID, ["b", "c"]))
    assert (closed.invalidated(), closed.concerns()) == (True, ["a", "b", "c"])
    assert not msgspec.structs.replace(opened, postcheck=Postcheck(Validity.UNKNOWN)).invalidated()
