"""The state of the box out of one look: the reference's keys where a value is known, every field with its value or its reason."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from nodeproof.collectors.services.platform import Platform
from nodeproof.errors import Absence, NoData
from nodeproof.hardware.class_ids import class_id, cpu_class, perf_class
from nodeproof.hardware.looks import Look, Reading
from nodeproof.hardware.providers import Accelerators, Survey
from nodeproof.hardware.readers.errors import Errors, machine_checks
from nodeproof.hardware.readers.temperatures import Temperature
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import (
    ComputeApp,
    DeviceState,
    Field,
    HardwareState,
    MachineIdentity,
    ThrottleActive,
    ThrottleCounters,
    ZoneTemperature,
)

__all__ = ["StateMaker", "cpu_ranges"]

_T = TypeVar("_T")
_CPU = "/sys/devices/system/cpu"
_MAX_FIELDS = 4096


class StateMaker:
    """Makes states of one machine; who it is is read once."""

    def __init__(self, machine: Machine, accelerators: Accelerators, allowed: tuple[int, ...]) -> None:
        self._files = machine.files
        self._platform = machine.shared(Platform)
        self._accelerators = accelerators
        self._allowed = allowed

    def state(self, look: Look) -> HardwareState:
        """The box as ``look`` saw it. Never raises."""
        surveys = [answer for _, answer in look.surveys or () if not isinstance(answer, NoData)]
        devices = [device for survey in surveys for device in survey.devices]
        zones, hottest_cpu = _temperatures(look.temperatures)
        memory = None if look.memory is None or isinstance(look.memory, NoData) else look.memory
        identity = self._identity(devices)
        box = class_id(identity.gpu) if devices else cpu_class(identity.cpu) if self._lacks_accelerators() else "unknown"
        clocks = [(device.clock_mhz, device.clock_max_mhz) for device in devices if device.clock_mhz is not None]
        slowest = min(clocks, default=(None, None), key=_headroom)
        return HardwareState(
            captured_at=int(look.at.wall_s),
            machine=identity,
            gpu_temp_c=_most(device.temp_c for device in devices),
            chassis_temps_c=zones,
            sm_clock_mhz=slowest[0],
            sm_clock_max_mhz=slowest[1],
            throttle_counters=_worst_counters(devices),
            throttle_active=_worst_flags(devices),
            mem_available_kb=memory.available_kb if memory else None,
            mem_total_kb=memory.total_kb if memory else None,
            page_cache_kb=memory.cached_kb if memory else None,
            gpu_compute_apps=self._apps(surveys),
            cpu_governor=_governors(look.governors),
            persistence_mode=_all_known(device.persistence_mode for device in devices),
            sources=_sources(look, surveys),
            cpu_temp_c=hottest_cpu,
            devices=devices,
            fields=self._fields(look, surveys)[:_MAX_FIELDS],
            perf_class=perf_class(box, identity.hostname),
        )

    def _lacks_accelerators(self) -> bool:
        return self._accelerators.absence().state is Absence.NOT_APPLICABLE

    def _apps(self, surveys: list[Survey]) -> list[ComputeApp] | None:
        if not surveys:
            return [] if self._lacks_accelerators() else None
        if any(survey.apps is None for survey in surveys):
            return None
        return [app for survey in surveys for app in survey.apps or ()]

    def _identity(self, devices: list[DeviceState]) -> MachineIdentity:
        info = self._platform.cpuinfo
        return MachineIdentity(
            hostname=self._text("/proc/sys/kernel/hostname"),
            machine_id=self._text("/etc/machine-id"),
            gpu=_one(device.name for device in devices),
            driver=_one(device.driver for device in devices),
            cpu=(info.model_name if info is not None else None) or None,
            cpus=(info.processors if info is not None else 0) or None,
            allowed_cpus=cpu_ranges(self._allowed) or None,
            kernel=self._text("/proc/sys/kernel/osrelease"),
            boot_id=self._text("/proc/sys/kernel/random/boot_id"),
        )

    def _text(self, path: str) -> str | None:
        try:
            return self._files.read_text(path) or None
        except NoData:
            return None

    def _fields(self, look: Look, surveys: list[Survey]) -> list[Field]:
        at = look.at.wall_s
        fields = [
            *_one_field(look.memory, "memory", "/proc/meminfo", at, "memory"),
            *_one_field(look.vmstat, "memory", "/proc/vmstat", at, "vmstat"),
            *_one_field(look.stalls, "machine", "/proc/pressure", at, "stalls"),
            *_one_field(look.times, "cpu", "/proc/stat", at, "times"),
            *_one_field(look.processes, "machine", "/proc/<pid>/stat", at, "processes"),
            *_governor_fields(look.governors, at),
            *_throttle_fields(look, at),
            *_temperature_fields(look.temperatures, at),
            *_error_fields(look.edac, "/sys/devices/system/edac/mc", "memory", at),
            *_error_fields(look.aer, "/sys/bus/pci/devices", "pcie", at),
            *_log_fields(look, at),
        ]
        for name, answer in look.surveys or ():
            if isinstance(answer, NoData):
                fields.append(_absent("accelerators", name, name, at, answer))
        for survey in surveys:
            fields += survey.fields
        if not surveys:
            fields.append(_absent("accelerators", "devices", "/sys/bus/pci/devices", at, self._accelerators.absence()))
        return fields


def _absent(device: str, name: str, source: str, at: float, absence: NoData) -> Field:
    return Field(device, name, source, at, state=absence.state, reason=absence.reason, remedy=absence.remedy)


def _one_field(reading: Reading[_T], device: str, source: str, at: float, name: str) -> list[Field]:
    """A source whose values are named attributes or keys."""
    if reading is None:
        return []
    if isinstance(reading, NoData):
        return [_absent(device, name, source, at, reading)]
    values = _FIELDS[name](reading)
    told = [Field(device, key, source, at, value=value, unit=unit) for key, value, unit in values if value is not None]
    silent = NoData(Absence.UNSUPPORTED, f"{source} does not tell it")
    return told + [_absent(device, key, source, at, silent) for key, value, _ in values if value is None]


_Values = list[tuple[str, float | str | None, str]]


def _stolen(times: Mapping[int, object]) -> _Values:
    return [("allowed_processors", float(len(times)), "")]


_FIELDS: dict[str, Callable[..., _Values]] = {
    "memory": lambda now: [
        ("total", now.total_kb, "KiB"),
        ("available", now.available_kb, "KiB"),
        ("cached", now.cached_kb, "KiB"),
    ],
    "vmstat": lambda now: [("pswpin", now.get("pswpin"), "pages"), ("oom_kill", now.get("oom_kill"), "")],
    "stalls": lambda now: [
        ("cpu_some", now.cpu_some_s, "s"),
        ("memory_full", now.memory_full_s, "s"),
        ("io_full", now.io_full_s, "s"),
    ],
    "times": _stolen,
    "processes": lambda use: [("foreign_cpu", use.foreign_ticks, "ticks"), ("own_cpu", use.own_ticks, "ticks")],
}


def _governor_fields(reading: Reading[dict[int, str]], at: float) -> list[Field]:
    source = f"{_CPU}/cpu*/cpufreq/scaling_governor"
    if reading is None:
        return []
    if isinstance(reading, NoData):
        return [_absent("cpu", "governor", source, at, reading)]
    by_name: dict[str, list[int]] = {}
    for cpu, name in reading.items():
        by_name.setdefault(name, []).append(cpu)
    return [Field(f"cpu{cpu_ranges(cpus)}", "governor", source, at, value=name) for name, cpus in by_name.items()]


def _throttle_fields(look: Look, at: float) -> list[Field]:
    source = f"{_CPU}/cpu*/thermal_throttle"
    if look.throttle is None:
        return []
    if isinstance(look.throttle, NoData):
        return [_absent("cpu", "throttle", source, at, look.throttle)]
    fields: list[Field] = []
    untimed = NoData(Absence.UNSUPPORTED, "this kernel counts slow-downs without their time", remedy="use Linux 5.6 or newer")
    for part, pair in look.throttle.items():
        if pair is None:
            fields.append(_absent(part, "throttle_events", source, at, NoData(Absence.READ_ERROR, "cannot be read")))
            continue
        fields.append(Field(part, "throttle_events", source, at, value=pair.events))
        if pair.time_ms is None:
            fields.append(_absent(part, "throttle_time", source, at, untimed))
        else:
            fields.append(Field(part, "throttle_time", source, at, value=pair.time_ms, unit="ms"))
    return fields


def _temperature_fields(reading: Reading[list[Temperature]], at: float) -> list[Field]:
    if reading is None:
        return []
    if isinstance(reading, NoData):
        return [_absent("machine", "temperatures", "/sys/class/hwmon, /sys/class/thermal", at, reading)]
    silent = NoData(Absence.READ_ERROR, "the sensor gives no usable value")
    fields: list[Field] = []
    for sensor in reading:
        if sensor.value_c is None:
            fields.append(_absent(sensor.name, "temperature", sensor.source, at, silent))
        else:
            fields.append(Field(sensor.name, "temperature", sensor.source, at, value=sensor.value_c, unit="°C"))
        if sensor.critical_c is not None:
            fields.append(Field(sensor.name, "critical", sensor.source, at, value=sensor.critical_c, unit="°C"))
    return fields


def _error_fields(reading: Reading[dict[str, Errors]], source: str, kind: str, at: float) -> list[Field]:
    if reading is None:
        return []
    if isinstance(reading, NoData):
        return [_absent(kind, f"{kind}_errors", source, at, reading)]
    silent = NoData(Absence.READ_ERROR, "the counter cannot be read")
    fields: list[Field] = []
    for part, errors in reading.items():
        for name, value in (("corrected_errors", errors.corrected), ("uncorrected_errors", errors.uncorrected)):
            place = f"{source}/{part}"
            fields.append(_absent(part, name, place, at, silent) if value is None else Field(part, name, place, at, value=value))
    return fields


def _log_fields(look: Look, at: float) -> list[Field]:
    if look.log is None:
        return []
    if isinstance(look.log, NoData):
        return [_absent("machine", "kernel_log", "/dev/kmsg", at, look.log)]
    checks = machine_checks(look.log)
    return [
        Field("machine", "machine_checks_corrected", "/dev/kmsg", at, value=checks.corrected),
        Field("machine", "machine_checks_uncorrected", "/dev/kmsg", at, value=checks.uncorrected),
        Field("machine", "kernel_log_complete", "/dev/kmsg", at, value=look.log.complete),
    ]


def _temperatures(reading: Reading[list[Temperature]]) -> tuple[list[ZoneTemperature] | None, float | None]:
    """Zones that could be read, None where there is none, and the hottest processor sensor."""
    if reading is None or isinstance(reading, NoData):
        return None, None
    zones = [
        ZoneTemperature(entry.name, entry.value_c) for entry in reading if entry.kind == "chassis" and entry.value_c is not None
    ]
    return zones or None, _most(entry.value_c for entry in reading if entry.kind == "cpu")


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _headroom(clock: tuple[float | None, float | None]) -> float:
    now, highest = clock
    return (now or 0.0) / highest if highest else float("inf")


def _worst_counters(devices: list[DeviceState]) -> ThrottleCounters:
    def worst(name: str) -> int | None:
        values = [getattr(device.throttle_counters, name) for device in devices]
        return max((value for value in values if value is not None), default=None)

    return ThrottleCounters(*(worst(name) for name in ThrottleCounters.__struct_fields__))


def _worst_flags(devices: list[DeviceState]) -> ThrottleActive:
    def worst(name: str) -> bool | None:
        values = [getattr(device.throttle_active, name) for device in devices]
        return True if any(values) else False if values and None not in values else None

    return ThrottleActive(*(worst(name) for name in ThrottleActive.__struct_fields__))


def _all_known(values: Iterable[bool | None]) -> bool | None:
    found = list(values)
    return None if not found or None in found else all(found)


def _one(values: Iterable[str | None]) -> str | None:
    found = set(values)
    return found.pop() if len(found) == 1 else None


def _governors(reading: Reading[dict[int, str]]) -> str | None:
    if reading is None or isinstance(reading, NoData):
        return None
    return ",".join(sorted(set(reading.values()))) or None


def _sources(look: Look, surveys: list[Survey]) -> list[str]:
    procfs = any(reading is not None and not isinstance(reading, NoData) for reading in look[2:7])
    sysfs = any(reading and not isinstance(reading, NoData) for reading in look[7:13])
    return [*(survey.source for survey in surveys), *(["procfs"] if procfs else []), *(["sysfs"] if sysfs else [])]


def cpu_ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as the kernel writes them: ``0-3,7``."""
    parts: list[str] = []
    start = previous = None
    for number in (*numbers, None):
        if previous is not None and number == previous + 1:
            previous = number
            continue
        if start is not None:
            parts.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = number
    return ",".join(parts)
