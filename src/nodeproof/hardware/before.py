"""Facts for the decision whether a run may start: two looks a moment apart, and what they show."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from nodeproof.errors import Absence, NoData
from nodeproof.hardware.looks import Look
from nodeproof.hardware.policy import Ceilings
from nodeproof.hardware.providers import Accelerators, Relevant
from nodeproof.hardware.readers.temperatures import Temperature
from nodeproof.model.hardware import DeviceState, Fact

__all__ = ["before_facts"]

_Devices: TypeAlias = tuple[DeviceState, ...] | NoData

_SAME_NAME = ("foreign_share", "steal_share", "swap_in_pages", "memory_stall_share")
"""Facts of the window between the two looks that are judged as they are."""


def before_facts(
    look: Look, window: Mapping[str, Fact], accelerators: Accelerators, ceilings: Ceilings, slow_cpus: Sequence[int] | NoData
) -> dict[str, Fact]:
    """Everything that the rules before a run ask for. ``window`` = facts between the two looks, ``look`` the second of them."""
    seen = accelerators.relevant(look.surveys)
    sensors: list[Temperature] | NoData = (
        look.temperatures if look.temperatures is not None else NoData(Absence.UNKNOWN, "not read")
    )
    facts = [window[name] for name in _SAME_NAME if name in window]
    devices: _Devices = seen if isinstance(seen, NoData) else seen.devices
    temperatures = (
        _hottest_device(devices),
        _hottest("cpu_temp_c", "cpu", sensors),
        _hottest("chassis_temp_c", "chassis", sensors),
    )
    facts += [
        _asserted(window, devices),
        _foreign(seen),
        *temperatures,
        _critical(sensors, devices),
        _undeclared(temperatures, sensors, devices, ceilings),
        _slow(slow_cpus),
        _past(look, devices),
        _unwell(devices),
    ]
    return {fact.name: fact for fact in facts}


def _absent(name: str, absence: NoData, source: str = "") -> Fact:
    return Fact(name, state=absence.state, reason=absence.reason, source=source)


def _asserted(window: Mapping[str, Fact], devices: _Devices) -> Fact:
    """Parts that heat slows now: processors whose counters moved between the looks, accelerators that say so."""
    name = "thermal_asserted"
    throttled = window.get("throttle_events", Fact("throttle_events", state=Absence.UNKNOWN, reason="not read"))
    timed = window.get("throttle_us")
    slowed: list[str] = []
    unknown: list[Fact] = []
    if throttled.value or (timed is not None and timed.value):
        slowed.append(throttled.subject or (timed.subject if timed is not None else ""))
    elif (throttled.value is None or not throttled.complete) and throttled.state is not Absence.NOT_APPLICABLE:
        unknown.append(throttled)
    if isinstance(devices, NoData):
        if devices.state is not Absence.NOT_APPLICABLE:
            unknown.append(_absent(name, devices))
    else:
        slowed += [device.device for device in devices if device.throttle_active.thermal()]
        silent = [device.device for device in devices if device.throttle_active.thermal() is None]
        if silent:
            unknown.append(Fact(name, state=Absence.UNKNOWN, reason=f"{', '.join(silent)} does not tell what slows it"))
    if slowed:
        return Fact(name, float(len(slowed)), subject=", ".join(slowed))
    if unknown:
        return Fact(name, state=unknown[0].state, reason="; ".join(fact.reason for fact in unknown))
    if throttled.state is Absence.NOT_APPLICABLE and isinstance(devices, NoData):
        return Fact(name, state=Absence.NOT_APPLICABLE, reason=throttled.reason)
    return Fact(name, 0.0)


def _foreign(seen: Relevant | NoData) -> Fact:
    name = "foreign_accelerator_processes"
    if isinstance(seen, NoData):
        return _absent(name, seen)
    sources = ", ".join(survey.source for survey in seen.surveys)
    unlisted = seen.unlisted()
    if unlisted is not None:
        return _absent(name, unlisted, sources)
    foreign = seen.foreign()
    shown = ", ".join(f"{app.pid} {app.name}".strip() for app in foreign[:4])
    return Fact(name, float(len(foreign)), subject=shown, source=sources)


def _hottest(name: str, kind: str, sensors: list[Temperature] | NoData) -> Fact:
    if isinstance(sensors, NoData):
        return _absent(name, sensors)
    mine = [sensor for sensor in sensors if sensor.kind == kind]
    read = [(sensor.value_c, sensor) for sensor in mine if sensor.value_c is not None]
    if not mine:
        return Fact(name, state=Absence.UNSUPPORTED, reason=f"no {kind} sensor")
    if not read:
        return Fact(name, state=Absence.READ_ERROR, reason=f"no {kind} sensor answers", source=mine[0].source)
    value_c, sensor = max(read, key=lambda pair: pair[0])
    return Fact(name, value_c, "°C", source=sensor.source, subject=sensor.name)


def _hottest_device(devices: _Devices) -> Fact:
    name = "gpu_temp_c"
    if isinstance(devices, NoData):
        return _absent(name, devices)
    read = [(device.temp_c, device.device) for device in devices if device.temp_c is not None]
    if not read:
        return Fact(name, state=Absence.UNKNOWN, reason="no accelerator tells its temperature")
    value_c, device = max(read)
    return Fact(name, value_c, "°C", subject=device)


def _critical(sensors: list[Temperature] | NoData, devices: _Devices) -> Fact:
    name = "critical_sensors"
    named = [] if isinstance(sensors, NoData) else [sensor.name for sensor in sensors if sensor.is_critical()]
    if not isinstance(devices, NoData):
        named += [
            device.device
            for device in devices
            if device.temp_c is not None and device.critical_c is not None and device.temp_c >= device.critical_c
        ]
    if isinstance(sensors, NoData) and isinstance(devices, NoData):
        return _absent(name, sensors)
    return Fact(name, float(len(named)), subject=", ".join(named))


def _undeclared(temperatures: Iterable[Fact], sensors: list[Temperature] | NoData, devices: _Devices, ceilings: Ceilings) -> Fact:
    """Kinds of temperature that this machine has, and neither its class nor the sensors themselves say how high they may be."""
    bounded = set() if isinstance(sensors, NoData) else {f"{entry.kind}_c" for entry in sensors if entry.critical_c is not None}
    if not isinstance(devices, NoData) and any(device.critical_c is not None for device in devices):
        bounded.add("gpu_c")
    missing: list[str] = []
    for fact in temperatures:
        kind = fact.name.replace("_temp_c", "_c")
        lacking = fact.value is None and fact.state in {Absence.NOT_APPLICABLE, Absence.UNSUPPORTED}
        if not lacking and kind not in bounded and ceilings.get(kind) is None:
            missing.append(kind)
    return Fact("undeclared_ceilings", float(len(missing)), subject=", ".join(missing))


def _slow(slow_cpus: Sequence[int] | NoData) -> Fact:
    name = "slow_governor_cpus"
    source = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    if isinstance(slow_cpus, NoData):
        return _absent(name, slow_cpus, source)
    shown = ", ".join(f"cpu{cpu}" for cpu in slow_cpus[:4]) + (" ..." if len(slow_cpus) > 4 else "")
    return Fact(name, float(len(slow_cpus)), source=source, subject=shown)


def _unwell(devices: _Devices) -> Fact:
    """Accelerators that give themselves a verdict other than OK."""
    name = "unwell_accelerators"
    if isinstance(devices, NoData):
        return _absent(name, devices)
    told = [device for device in devices if device.health is not None]
    if not told:
        return Fact(name, state=Absence.UNSUPPORTED, reason="no accelerator gives a verdict on itself")
    unwell = [f"{device.device} {device.health}" for device in told if device.health != "OK"]
    return Fact(name, float(len(unwell)), subject=", ".join(unwell))


def _past(look: Look, devices: _Devices) -> Fact:
    """Uncorrected errors that memory controllers, PCIe devices and accelerators counted before."""
    name = "past_uncorrected_errors"
    counts: dict[str, int] = {}
    read = False
    for parts in (look.edac, look.aer):
        if parts is not None and not isinstance(parts, NoData):
            read = True
            counts |= {part: errors.uncorrected for part, errors in parts.items() if errors.uncorrected}
    if not isinstance(devices, NoData):
        read = True
        counts |= {device.device: device.uncorrected_errors for device in devices if device.uncorrected_errors}
    if not read:
        absence = look.edac if isinstance(look.edac, NoData) else NoData(Absence.UNKNOWN, "not read")
        return _absent(name, absence)
    shown = ", ".join(f"{part} {number}" for part, number in list(counts.items())[:4])
    return Fact(name, float(sum(counts.values())), subject=shown)
