"""What changed between the states before and after a run (bench.md 3.3). A counter that went backwards gives nothing, never 0."""

from collections.abc import Callable, Iterable, Mapping

from nodeproof.errors import Absence
from nodeproof.model.hardware import DeviceState, Fact, HardwareDelta, HardwareState

__all__ = [
    "THERMAL",
    "accelerator_facts",
    "chassis_rise",
    "counter_delta",
    "governor_changes",
    "hardware_delta",
    "merged",
    "temperature_delta",
]

THERMAL = ("sw_thermal_us", "hw_thermal_us", "hw_power_brake_us")
"""Counters of slowing down by heat; the power cap is not one: a power-limited part gathers it in normal operation."""
_US = 1e6


def hardware_delta(before: HardwareState, after: HardwareState, duration_s: float, facts: Iterable[Fact]) -> HardwareDelta:
    """After minus before; ``facts`` are those of the whole run."""
    counters = {name: _worst(before, after, name) for name in ("sw_power_cap_us", *THERMAL)}
    return HardwareDelta(
        elapsed_s=int(duration_s),
        duration_s=round(duration_s, 6),
        **counters,
        gpu_temp_delta_c=temperature_delta(before.gpu_temp_c, after.gpu_temp_c),
        hottest_chassis_delta_c=temperature_delta(before.hottest_chassis_c(), after.hottest_chassis_c()),
        cpu_temp_delta_c=temperature_delta(before.cpu_temp_c, after.cpu_temp_c),
        facts=list(facts),
    )


def counter_delta(before: int | None, after: int | None) -> int | None:
    """How far a counter moved; None when it went backwards or was read on one side only."""
    return None if before is None or after is None or after < before else after - before


def temperature_delta(before: float | None, after: float | None) -> float | None:
    """Difference in °C; None unless both are known."""
    return None if before is None or after is None else round(after - before, 3)


def accelerator_facts(before: HardwareState, after: HardwareState, duration_s: float, mine: Callable[[str], bool]) -> list[Fact]:
    """``accelerator_throttle_us`` and its share of time, from the two states alone, of the devices that are ``mine``.

    The three counters may run at the same time, so the time slowed lies between the greatest of them and their sum: that is told.
    """
    pairs = [pair for pair in _pairs(before, after) if mine(pair[0])]
    if not pairs:
        return []
    shown: list[str] = []
    total_us, known, complete = 0, False, True
    for device, earlier, later in pairs:
        for name in THERMAL:
            step = counter_delta(getattr(earlier.throttle_counters, name), getattr(later.throttle_counters, name))
            shown.append(f"{device} {name[:-3]} {'unreadable' if step is None else f'{step} µs'}")
            total_us += step or 0
            known = known or step is not None
            complete = complete and step is not None
    state, reason = (None, "") if complete else (Absence.UNKNOWN, "a counter could not be read on both sides, or went backwards")
    share = total_us / _US / duration_s if known and duration_s > 0 else None
    values = (("accelerator_throttle_us", float(total_us) if known else None, "us"), ("accelerator_throttle_share", share, ""))
    subject = ", ".join(shown)
    return [Fact(name, value, unit, complete, state, reason, "accelerators", subject) for name, value, unit in values]


def merged(seen: Fact | None, between: Fact) -> Fact:
    """One fact of what the samples showed and of what the two states show: the greater value, complete when both are."""
    if seen is None or (seen.value is None and seen.state is not Absence.NOT_APPLICABLE):
        return between
    if seen.state is Absence.NOT_APPLICABLE or between.value is None:
        return seen
    complete = seen.complete and between.complete
    incomplete = seen if not seen.complete else between
    return Fact(
        between.name,
        max(seen.value or 0.0, between.value),
        between.unit,
        complete,
        None if complete else incomplete.state,
        "" if complete else incomplete.reason,
        between.source,
        between.subject,
    )


def chassis_rise(before: HardwareState, after: HardwareState) -> Fact:
    """By how much the hottest zone changed."""
    rise = temperature_delta(before.hottest_chassis_c(), after.hottest_chassis_c())
    if rise is None:
        return Fact("chassis_rise_c", state=Absence.UNKNOWN, reason="no zone was read on both sides")
    return Fact("chassis_rise_c", rise, "°C", source="/sys/class/thermal")


def governor_changes(before: Mapping[int, str] | None, after: Mapping[int, str] | None) -> Fact:
    """Processors whose governor is another one now."""
    if before is None or after is None:
        return Fact("governor_changes", state=Absence.UNKNOWN, reason="governors were not read on both sides")
    changed = [cpu for cpu, name in after.items() if before.get(cpu, name) != name]
    shown = ", ".join(f"cpu{cpu} {before[cpu]} -> {after[cpu]}" for cpu in changed[:4])
    return Fact("governor_changes", float(len(changed)), source="/sys/devices/system/cpu/cpu*/cpufreq", subject=shown)


def _pairs(before: HardwareState, after: HardwareState) -> list[tuple[str, DeviceState, DeviceState]]:
    later = {device.device: device for device in after.devices}
    return [(device.device, device, later[device.device]) for device in before.devices if device.device in later]


def _worst(before: HardwareState, after: HardwareState, name: str) -> int | None:
    """The greatest move of that counter on any device; None unless it could be told of every device."""
    steps = [
        counter_delta(getattr(earlier.throttle_counters, name), getattr(later.throttle_counters, name))
        for _, earlier, later in _pairs(before, after)
    ]
    known = [step for step in steps if step is not None]
    return max(known) if known and len(known) == len(steps) else None
