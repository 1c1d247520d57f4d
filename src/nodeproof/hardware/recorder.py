"""Looks in, running totals kept: what ``nodeproof.hardware.facts`` makes facts of. No I/O."""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from nodeproof.collectors.services.kernel_log import KernelCounts
from nodeproof.errors import Absence, NoData
from nodeproof.hardware.energy import Rails
from nodeproof.hardware.looks import Look, Reading, busy_ticks
from nodeproof.hardware.providers import Accelerators, Relevant
from nodeproof.hardware.readers.errors import Errors, machine_checks
from nodeproof.hardware.readers.memory import MemoryNow, Stalls
from nodeproof.hardware.readers.processes import ProcessUse
from nodeproof.hardware.readers.processors import ThrottlePair
from nodeproof.hardware.readers.temperatures import Temperature
from nodeproof.hardware.tracks import Counters, Track
from nodeproof.model.event import EventKind, Severity
from nodeproof.model.hardware import DeviceState
from nodeproof.sources.proc_stat import CpuTimes

__all__ = ["Recorder"]

_T = TypeVar("_T")

_US_PER_MS = 1000
_US = 1_000_000
_MAX_POINTS = 4096
"""Points of a total that are kept; beyond that every second one goes."""
_STEP_S = 0.1
"""Slewing moves the wall clock by half a millisecond a second at most (adjtimex(2)): more at once is a step."""
_COUNTED_ELSEWHERE = {
    EventKind.MACHINE_CHECK,
    EventKind.FIRMWARE_ERROR,
    EventKind.MEMORY_ERROR,
    EventKind.MEMORY_FAILURE,
    EventKind.AER,
    EventKind.OOM_KILL,
    EventKind.THERMAL,
}
_LOADED = 0.5
"""An accelerator is under load when it is busy at least this share of the time."""
_STALLS = ("cpu_stall", "memory_stall", "io_stall")
_THERMAL_COUNTERS = ("sw_thermal_us", "hw_thermal_us", "hw_power_brake_us")


def _greatest(values: Iterable[float]) -> float:
    return max(values, default=0.0)


_COUNTERS: tuple[tuple[str, str, Callable[[Iterable[float]], float]], ...] = (
    ("busy", "/proc/stat", sum),
    ("steal", "/proc/stat", sum),
    ("own", "/proc/<pid>/stat", sum),
    ("foreign", "/proc/<pid>/stat", sum),
    ("swap_in", "/proc/vmstat", sum),
    ("oom_kills", "/proc/vmstat", sum),
    ("cpu_stall", "/proc/pressure/cpu", sum),
    ("memory_stall", "/proc/pressure/memory", sum),
    ("io_stall", "/proc/pressure/io", sum),
    ("edac_corrected", "/sys/devices/system/edac/mc", sum),
    ("edac_uncorrected", "/sys/devices/system/edac/mc", sum),
    ("aer_corrected", "/sys/bus/pci/devices/*/aer_dev_correctable", sum),
    ("aer_uncorrected", "/sys/bus/pci/devices/*/aer_dev_{fatal,nonfatal}", sum),
    ("mce_corrected", "/dev/kmsg", sum),
    ("mce_uncorrected", "/dev/kmsg", sum),
    ("thermal_log", "/dev/kmsg", sum),
    ("kernel_critical", "/dev/kmsg", sum),
    ("throttle_events", "/sys/devices/system/cpu/cpu*/thermal_throttle", sum),
    ("throttle_us", "/sys/devices/system/cpu/cpu*/thermal_throttle", _greatest),
    ("accelerator_corrected", "accelerators", sum),
    ("accelerator_uncorrected", "accelerators", sum),
    ("accelerator_throttle_us", "accelerators", _greatest),
    ("accelerator_foreign", "accelerators", sum),
    ("clock_loss", "accelerators", sum),
    ("critical", "/sys/class/hwmon, /sys/class/thermal", sum),
)
"""Name, source and how parts are joined: errors add up, parts that are slow at the same time do not."""
_PLAIN = (
    ("mhz_sum", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq"),
    ("mhz_count", "/sys/devices/system/cpu/cpu*/cpufreq/scaling_cur_freq"),
    ("loaded_looks", "accelerators"),
    ("suspended", "CLOCK_BOOTTIME - CLOCK_MONOTONIC"),
    ("wall_step", "CLOCK_REALTIME - CLOCK_BOOTTIME"),
)


class Recorder:
    """Everything that can be said later about any window of one run. Times go forwards."""

    def __init__(self, accelerators: Accelerators) -> None:
        self._accelerators = accelerators
        self.counters = {name: Counters(name.replace("_", " "), combine) for name, _, combine in _COUNTERS}
        self.tracks = {name: counters.track for name, counters in self.counters.items()}
        self.tracks |= {name: Track(name.replace("_", " ")) for name, _ in _PLAIN}
        self.sources = {name: source for name, source, _ in _COUNTERS} | dict(_PLAIN)
        self.rails = Rails()
        """Power of the accelerators."""
        self._last: Look | None = None
        self._seen_critical: Mapping[str, float] = {}
        self._lost = 0
        self._oom_by_log = False
        """Kernels before 4.13 count in their log only."""
        self.before_last_s: float | None = None
        """Time of the look before the newest one."""
        self.temperatures: list[Temperature] | None = None
        """Those read last; not every look reads them."""
        self.memory: MemoryNow | None = None
        """The same of memory."""
        self.hidden = ""
        """Why foreign processes cannot all be seen; empty when they can."""

    @property
    def last(self) -> Look | None:
        """The newest look."""
        return self._last

    def take(self, look: Look) -> None:
        """Add one look."""
        at_s = look.at.mono_s
        self._take_clocks(look, at_s)
        self._told(look.times, at_s, ("busy", "steal"), self._take_times)
        self._told(look.processes, at_s, ("own", "foreign"), self._take_processes)
        self._told(look.vmstat, at_s, ("swap_in", "oom_kills"), self._take_vmstat)
        self._told(look.throttle, at_s, ("throttle_us", "throttle_events"), self._take_throttle)
        self._told(look.clocks, at_s, ("mhz_sum", "mhz_count"), self._take_mhz)
        self._told(look.edac, at_s, ("edac_corrected", "edac_uncorrected"), self._errors("edac"))
        self._told(look.aer, at_s, ("aer_corrected", "aer_uncorrected"), self._errors("aer"))
        self._told(look.temperatures, at_s, ("critical",), self._take_temperatures)
        log = ("mce_corrected", "mce_uncorrected", "thermal_log", "kernel_critical")
        self._told(look.log, at_s, log, self._take_log)
        self._told(look.stalls, at_s, _STALLS, self._take_stalls)
        self._take_surveys(look, at_s)
        if look.memory is not None and not isinstance(look.memory, NoData):
            self.memory = look.memory
        self.before_last_s = None if self._last is None else self._last.at.mono_s
        self._last = look
        for track in self.tracks.values():
            if len(track) >= _MAX_POINTS:
                track.thin()

    def _told(self, reading: Reading[_T], at_s: float, names: tuple[str, ...], take: Callable[[float, _T], None]) -> None:
        if reading is None:
            return
        if isinstance(reading, NoData):
            for name in names:
                self.tracks[name].miss(at_s, reading)
        else:
            take(at_s, reading)

    def _take_clocks(self, look: Look, at_s: float) -> None:
        before = self._last
        slept = stepped = 0.0
        if before is not None:
            slept = max(0.0, look.suspended_s - before.suspended_s)
            drift = (look.at.wall_s - before.at.wall_s) - (look.at.mono_s - before.at.mono_s)
            stepped = abs(drift) if abs(drift) > _STEP_S else 0.0
        self.tracks["suspended"].add(at_s, slept if slept > _STEP_S else 0.0)
        self.tracks["wall_step"].add(at_s, stepped)

    def _take_times(self, at_s: float, times: dict[int, CpuTimes]) -> None:
        self.counters["busy"].take(at_s, {f"cpu{cpu}": busy_ticks(row) for cpu, row in times.items()})
        self.counters["steal"].take(at_s, {f"cpu{cpu}": row.steal for cpu, row in times.items()})

    def _take_processes(self, at_s: float, use: ProcessUse) -> None:
        self.hidden = use.hidden
        then_s = self.tracks["own"].last_s
        self.counters["own"].take(at_s, {"": use.own_ticks})
        foreign = self.counters["foreign"]
        foreign.take(at_s, {"": use.foreign_ticks})
        if then_s is not None:
            for user in use.top:
                foreign.note(then_s, at_s, f"{user.pid} {user.name}", user.used_s)

    def _take_vmstat(self, at_s: float, counters: dict[str, int]) -> None:
        if "pswpin" in counters:
            self.counters["swap_in"].take(at_s, {"": float(counters["pswpin"])})
        else:
            lacking = NoData(Absence.NOT_APPLICABLE, "/proc/vmstat has no pswpin: this kernel cannot swap")
            self.counters["swap_in"].miss(at_s, lacking)
        self._oom_by_log = "oom_kill" not in counters
        if not self._oom_by_log:
            self.counters["oom_kills"].take(at_s, {"": float(counters["oom_kill"])})

    def _take_throttle(self, at_s: float, parts: dict[str, ThrottlePair | None]) -> None:
        self.counters["throttle_events"].take(at_s, {part: _events(pair) for part, pair in parts.items()})
        timed = {part: _us(pair) for part, pair in parts.items() if pair is None or pair.time_ms is not None}
        if timed:
            self.counters["throttle_us"].take(at_s, timed)
        else:
            untimed = "this kernel (before 5.6) counts slow-downs without their time; their number is judged"
            self.counters["throttle_us"].miss(at_s, NoData(Absence.NOT_APPLICABLE, untimed))

    def _take_mhz(self, at_s: float, clocks: dict[int, float]) -> None:
        self.tracks["mhz_sum"].add(at_s, sum(clocks.values()))
        self.tracks["mhz_count"].add(at_s, len(clocks))

    def _errors(self, kind: str) -> Callable[[float, dict[str, Errors]], None]:
        def take(at_s: float, parts: dict[str, Errors]) -> None:
            self.counters[f"{kind}_corrected"].take(at_s, {part: errors.corrected for part, errors in parts.items()})
            self.counters[f"{kind}_uncorrected"].take(at_s, {part: errors.uncorrected for part, errors in parts.items()})

        return take

    def _take_log(self, at_s: float, counts: KernelCounts) -> None:
        checks = machine_checks(counts)
        then_s = self.tracks["kernel_critical"].last_s
        self.counters["mce_corrected"].take(at_s, {"": checks.corrected})
        self.counters["mce_uncorrected"].take(at_s, {"": checks.uncorrected})
        if self._oom_by_log:
            self.counters["oom_kills"].take(at_s, {"": counts.oom_kills})
        self.counters["thermal_log"].take(at_s, {"": sum(counts.thermal_events.values())})
        critical = {
            kind: float(number)
            for (kind, severity), number in counts.by_kind.items()
            if severity == Severity.CRITICAL and kind not in _COUNTED_ELSEWHERE
        }
        self.counters["kernel_critical"].take(at_s, {"": sum(critical.values())})
        if then_s is not None:
            for kind, number in critical.items():
                new = number - self._seen_critical.get(kind, 0.0)
                if new > 0:
                    self.counters["kernel_critical"].note(then_s, at_s, kind, new)
            if counts.lost_records > self._lost:
                reason = f"{counts.lost_records - self._lost} records of the kernel log were overwritten before they were read"
                for name in ("mce_corrected", "mce_uncorrected", "thermal_log", "kernel_critical"):
                    self.tracks[name].break_off(then_s, at_s, NoData(Absence.UNKNOWN, reason))
        self._seen_critical = critical
        self._lost = counts.lost_records

    def _take_temperatures(self, at_s: float, sensors: list[Temperature]) -> None:
        self.temperatures = sensors
        counter = self.counters["critical"]
        then_s = counter.track.last_s
        critical = [sensor for sensor in sensors if sensor.is_critical()]
        counter.track.add(at_s, 1.0 if critical else 0.0)
        for sensor in critical:
            counter.note(at_s if then_s is None else then_s, at_s, sensor.name, 1.0)

    def _take_stalls(self, at_s: float, stalls: Stalls) -> None:
        for name, total_s in zip(_STALLS, stalls, strict=True):
            if total_s is None:
                self.tracks[name].miss(at_s, NoData(Absence.UNSUPPORTED, f"{self.sources[name]} does not tell it"))
            else:
                self.counters[name].take(at_s, {"": round(total_s * _US)})

    def _take_surveys(self, look: Look, at_s: float) -> None:
        names = (
            "accelerator_corrected",
            "accelerator_uncorrected",
            "accelerator_throttle_us",
            "accelerator_foreign",
            "clock_loss",
            "loaded_looks",
        )
        if look.surveys is None:
            return
        seen = self._accelerators.relevant(look.surveys)
        if isinstance(seen, NoData):
            for name in names:
                self.tracks[name].miss(at_s, seen)
            return
        self._take_devices(at_s, seen.devices)
        self._take_loaded(at_s, seen.devices)
        self.rails.take(at_s, seen.devices)
        self._take_apps(at_s, seen)

    def _take_devices(self, at_s: float, devices: tuple[DeviceState, ...]) -> None:
        self.counters["accelerator_corrected"].take(at_s, {entry.device: entry.corrected_errors for entry in devices})
        self.counters["accelerator_uncorrected"].take(at_s, {entry.device: entry.uncorrected_errors for entry in devices})
        counters: dict[str, float | None] = {
            f"{entry.device} {name}": getattr(entry.throttle_counters, name) for entry in devices for name in _THERMAL_COUNTERS
        }
        self.counters["accelerator_throttle_us"].take(at_s, counters)

    def _take_loaded(self, at_s: float, devices: tuple[DeviceState, ...]) -> None:
        """How far below its rated clock the slowest of those under load runs."""
        rated = [entry for entry in devices if entry.rated_mhz]
        if not rated:
            absence = NoData(Absence.NOT_APPLICABLE, "no accelerator tells a clock that it keeps under load")
            self.tracks["clock_loss"].miss(at_s, absence)
            self.tracks["loaded_looks"].miss(at_s, absence)
            return
        losses = [
            (max(0.0, 1.0 - entry.clock_mhz / entry.rated_mhz), entry)
            for entry in rated
            if entry.rated_mhz and entry.clock_mhz is not None and entry.busy_share is not None and entry.busy_share >= _LOADED
        ]
        counter = self.counters["clock_loss"]
        then_s = counter.track.last_s
        loss, slowest = max(losses, default=(0.0, None), key=lambda pair: pair[0])
        counter.track.add(at_s, loss)
        self.tracks["loaded_looks"].add(at_s, 1.0 if losses else 0.0)
        if slowest is not None and loss:
            told = f"{slowest.device} {slowest.clock_mhz:g} of {slowest.rated_mhz:g} MHz"
            counter.note(at_s if then_s is None else then_s, at_s, told, loss)

    def _take_apps(self, at_s: float, seen: Relevant) -> None:
        counter = self.counters["accelerator_foreign"]
        unlisted = seen.unlisted()
        if unlisted is not None:
            counter.miss(at_s, unlisted)
            return
        then_s = counter.track.last_s
        foreign = seen.foreign()
        counter.track.add(at_s, 1.0 if foreign else 0.0)
        for app in foreign:
            counter.note(at_s if then_s is None else then_s, at_s, f"{app.pid} {app.name}".strip(), 1.0)


def _events(pair: ThrottlePair | None) -> float | None:
    return None if pair is None else float(pair.events)


def _us(pair: ThrottlePair | None) -> float | None:
    return None if pair is None or pair.time_ms is None else float(pair.time_ms * _US_PER_MS)
