"""The box under a run: its state before, during and after, what changed, and whether the run's numbers may be believed.

The JSON keys of the reference stay (bench.md 3.2, 3.3, 3.10): what is unknown has no key, nothing stands for it. All other keys
are additions: ``fields`` (every field with its value or its reason, source and time), ``devices``, ``findings``, ``cells``,
``facts``, ``sampler``. Temperatures are in °C, clocks in MHz; sizes and times bear their unit in the name.
"""

from enum import StrEnum

import msgspec

from nodeproof.errors import Absence

__all__ = [
    "REPORT_SCHEMA",
    "CellReport",
    "ComputeApp",
    "Decision",
    "DeviceState",
    "Effect",
    "Fact",
    "Field",
    "Finding",
    "HardwareDelta",
    "HardwareReport",
    "HardwareState",
    "KernelNote",
    "LiveSample",
    "MachineIdentity",
    "Postcheck",
    "Precheck",
    "SamplerReport",
    "Sensitivity",
    "ThrottleActive",
    "ThrottleCounters",
    "Validity",
    "ZoneTemperature",
]

REPORT_SCHEMA = 1
"""Grows when a key of the report changes its meaning; new keys alone do not change it."""


class Sensitivity(StrEnum):
    """What a run's result depends on."""

    SPEED = "speed"
    """Its numbers are rates: whatever slows the box spoils them."""
    CORRECTNESS = "correctness"
    """Its answer is right or wrong, however fast: heat never refuses it."""
    STABILITY = "stability"
    """It loads the box to find what breaks: an uncorrected hardware error is a failure, heat short of critical is wanted."""


class Decision(StrEnum):
    """Whether a run may start."""

    PROCEED = "proceed"
    WARN = "warn"
    REFUSE = "refuse"


class Validity(StrEnum):
    """Whether what was measured may be believed."""

    VALID = "valid"
    UNKNOWN = "unknown"
    INVALID = "invalid"
    NOT_APPLICABLE = "not-applicable"


class Effect(StrEnum):
    """What a rule does when its condition holds."""

    NOTE = "note"
    """Told, nothing more."""
    WARN = "warn"
    REFUSE = "refuse"
    """Before a run: it does not start."""
    INVALID = "invalid"
    """During a run: what it measured then is not to be believed."""


class Fact(msgspec.Struct, frozen=True, omit_defaults=True):
    """One number that rules judge, or why there is none."""

    name: str
    value: float | None = None
    unit: str = ""
    complete: bool = True
    """False: ``value`` is what could be read of it, so a lower bound."""
    state: Absence | None = None
    """Kind of absence; set when there is no value or it is not complete."""
    reason: str = ""
    source: str = ""
    subject: str = ""
    """What it is about: the device, processors or processes behind the number."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One rule that has something to say, with its evidence."""

    rule: str
    """Id of the rule, ``R1`` ...; with a ``u`` behind it the rule could not be judged."""
    effect: Effect
    text: str
    fact: Fact
    limit: float | None = None
    condition: str = ""
    """What the rule asks, in words: ``> 0.02``."""


class Field(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing read of one device: its value, or why there is none."""

    device: str
    """``machine``, ``cpu``, ``memory``, ``mc0``, ``0000:17:00.0``, ``gpu0`` ..."""
    name: str
    source: str
    """File or command."""
    at: float
    """Seconds since the epoch of the reading."""
    value: float | str | bool | None = None
    unit: str = ""
    state: Absence | None = None
    reason: str = ""
    remedy: str = ""


class MachineIdentity(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which box this is."""

    hostname: str | None = None
    machine_id: str | None = None
    gpu: str | None = None
    """Name of the accelerators; None when there is none, it is not known, or they differ."""
    driver: str | None = None
    cpu: str | None = None
    """Model name of the processors."""
    cpus: int | None = None
    """Logical processors online."""
    allowed_cpus: str | None = None
    """Those the run may use: ``0-3,7``."""
    kernel: str | None = None
    boot_id: str | None = None


class ZoneTemperature(msgspec.Struct, frozen=True):
    """One thermal zone."""

    name: str
    temp_c: float


class ThrottleCounters(msgspec.Struct, frozen=True, omit_defaults=True):
    """Microseconds that an accelerator ran slowed, by reason. None = not readable."""

    sw_power_cap_us: int | None = None
    sw_thermal_us: int | None = None
    hw_thermal_us: int | None = None
    hw_power_brake_us: int | None = None
    sync_boost_us: int | None = None


class ThrottleActive(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reasons asserted at this moment. None = not readable."""

    sw_power_cap: bool | None = None
    """Normal operation of a power-limited part: no rule looks at it."""
    sw_thermal: bool | None = None
    hw_thermal: bool | None = None
    hw_power_brake: bool | None = None

    def thermal(self) -> bool | None:
        """Whether heat or the power brake slows it; None when no reason was reported and none is asserted."""
        flags = (self.sw_thermal, self.hw_thermal, self.hw_power_brake)
        if any(flags):
            return True
        return None if all(flag is None for flag in flags) else False


class ComputeApp(msgspec.Struct, frozen=True, omit_defaults=True):
    """A process that uses an accelerator."""

    pid: int
    name: str = ""
    used_mib: int | None = None
    device: str = ""
    """Device it uses; empty when the tool does not tell."""
    foreign: bool = True
    """Neither of the run's own process tree, nor on a device the run does not use."""


class DeviceState(msgspec.Struct, frozen=True, omit_defaults=True):
    """One accelerator, never merged with its neighbours. None = not readable; the reason stands in the state's ``fields``."""

    device: str
    """``gpu0``, ``npu3``."""
    vendor: str = ""
    name: str | None = None
    driver: str | None = None
    temp_c: float | None = None
    critical_c: float | None = None
    clock_mhz: float | None = None
    clock_max_mhz: float | None = None
    throttle_counters: ThrottleCounters = ThrottleCounters()
    throttle_active: ThrottleActive = ThrottleActive()
    uncorrected_errors: int | None = None
    corrected_errors: int | None = None
    persistence_mode: bool | None = None
    rated_mhz: float | None = None
    """Clock that it keeps under load unless something slows it; None where its clock varies by design."""
    busy_share: float | None = None
    power_w: float | None = None
    power_rail: str = ""
    """What that power is the power of: ``npu_rail``, ``gpu_rail``."""
    power_at_s: float | None = None
    """Seconds since boot of that reading, where its source keeps one for longer than a look."""
    health: str | None = None
    """Its own verdict on itself: ``OK``, ``warning``, ``alarm``, ``critical``."""


class HardwareState(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The box at one moment. Where the reference has one key for all accelerators, the worst of them stands there."""

    captured_at: int
    """Seconds since the epoch."""
    machine: MachineIdentity
    gpu_temp_c: float | None = None
    chassis_temps_c: list[ZoneTemperature] | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    throttle_counters: ThrottleCounters
    throttle_active: ThrottleActive
    mem_available_kb: int | None = None
    mem_total_kb: int | None = None
    page_cache_kb: int | None = None
    gpu_compute_apps: list[ComputeApp] | None = None
    """None = cannot be listed; an empty list = none runs."""
    cpu_governor: str | None = None
    """Governors of the allowed processors, with a comma between where they differ."""
    persistence_mode: bool | None = None
    sources: list[str] = []
    cpu_temp_c: float | None = None
    """Hottest processor sensor."""
    devices: list[DeviceState] = []
    fields: list[Field] = []
    perf_class: str = ""

    def hottest_chassis_c(self) -> float | None:
        """The hottest thermal zone; None when none could be read (unknown, not cool)."""
        return max((zone.temp_c for zone in self.chassis_temps_c or ()), default=None)

    def foreign_compute_apps(self) -> list[ComputeApp] | None:
        """Accelerator processes that are not the run's own; None when processes cannot be listed."""
        apps = self.gpu_compute_apps
        return None if apps is None else [app for app in apps if app.foreign]

    def clock_headroom(self) -> float | None:
        """Clock as a share of the highest one; None unless both are known and the highest is above 0."""
        if self.sm_clock_mhz is None or not self.sm_clock_max_mhz:
            return None
        return self.sm_clock_mhz / self.sm_clock_max_mhz

    def thermal(self) -> bool | None:
        """Whether heat slows any accelerator now; None when none reported."""
        answers = [device.throttle_active.thermal() for device in self.devices] or [self.throttle_active.thermal()]
        if any(answers):
            return True
        return None if any(answer is None for answer in answers) else False

    def one_line(self) -> str:
        """The state in one line for a log; what is not known says so."""
        apps = self.foreign_compute_apps()
        clock = f"{self.sm_clock_mhz:g}/{self.sm_clock_max_mhz:g} MHz" if self.clock_headroom() is not None else "clock unknown"
        available = "unknown" if self.mem_available_kb is None else f"{self.mem_available_kb / (1 << 20):.1f} GiB"
        return " · ".join(
            (
                self.perf_class or "unknown@unknown",
                f"cpu {_degrees(self.cpu_temp_c)}",
                f"gpu {_degrees(self.gpu_temp_c)}",
                f"chassis {_degrees(self.hottest_chassis_c())}",
                f"sm {clock}",
                f"foreign accelerator processes {'unknown' if apps is None else len(apps)}",
                f"available memory {available}",
            )
        )


def _degrees(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g} °C"


class HardwareDelta(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """After minus before. A counter that went backwards, or is missing on one side, has no key: never 0."""

    elapsed_s: int
    """Whole seconds, as in the reference."""
    duration_s: float
    """The same, exactly."""
    sw_power_cap_us: int | None = None
    sw_thermal_us: int | None = None
    hw_thermal_us: int | None = None
    hw_power_brake_us: int | None = None
    gpu_temp_delta_c: float | None = None
    hottest_chassis_delta_c: float | None = None
    cpu_temp_delta_c: float | None = None
    facts: list[Fact] = []
    """Everything that the rules judge, over the whole run."""


class Precheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the run may start, and what is to be said about it."""

    decision: Decision
    concerns: list[str] = []
    findings: list[Finding] = []


class Postcheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether what the run measured may be believed."""

    validity: Validity
    concerns: list[str] = []
    findings: list[Finding] = []
    not_applicable: list[Fact] = []
    """What this machine does not have, so that nobody takes it for looked at."""
    failed: bool = False
    """Hardware failed under the load: an uncorrected error. A run of sensitivity stability has found what it looked for."""


class CellReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """One time window of a run, as the run named it."""

    name: str
    begin_s: float
    """Seconds since boot (``Instant.mono_s``)."""
    end_s: float
    validity: Validity
    concerns: list[str] = []
    findings: list[Finding] = []
    superseded: bool = False
    """It was measured again later under the same name."""
    energy: dict[str, float] = {}
    """Energy of the window by rail, keys as those of the run; empty = no power was read in it."""


class KernelNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something the kernel logged during the run."""

    kind: str
    severity: str
    message: str
    at_s: float
    """Seconds since boot."""
    device: str = ""
    code: str = ""


class SamplerReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """What watching the box cost, and how well it was done."""

    period_s: float
    samples: int
    """Looks taken, those before and after the run included."""
    late: int
    """Looks that began more than half a period after their time."""
    cpu_s: float
    """CPU time of looking while the run went on, on all threads; the looks before the run are not in it."""
    cpu_share: float
    """The same as a share of the allowed processors' time."""
    unread: dict[str, int] = {}
    """Looks at which a source that this machine should have gave nothing, by source."""


class HardwareReport(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Everything about the box that belongs to one run. ``after``, ``delta`` and ``postcheck`` appear together or not at all."""

    sensitivity: Sensitivity
    perf_class: str
    before: HardwareState
    after: HardwareState | None = None
    delta: HardwareDelta | None = None
    precheck: Precheck
    postcheck: Postcheck | None = None
    cells: list[CellReport] = []
    kernel_events: list[KernelNote] = []
    sampler: SamplerReport | None = None
    energy: dict[str, float] = {}
    """Energy of the run by rail, its keys those of bench.md 3.9 (``npu_rail_energy_j``); empty = no power was read."""
    schema: int = 0

    def refuses(self) -> bool:
        """Whether the precheck forbade the run."""
        return self.precheck.decision is Decision.REFUSE

    def invalidated(self) -> bool:
        """Whether the run's numbers are known not to hold. A report that was never closed is unmeasured, not invalid."""
        return self.postcheck is not None and self.postcheck.validity is Validity.INVALID

    def concerns(self) -> list[str]:
        """All concerns, those before the run first."""
        return [*self.precheck.concerns, *(self.postcheck.concerns if self.postcheck is not None else ())]


class LiveSample(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The newest look at the box, for a live strip; what could not be read has no key."""

    at: float
    """Seconds since the epoch."""
    mono_s: float
    window_s: float | None = None
    """Length of the interval that the shares are about."""
    busy_share: float | None = None
    """Of the allowed processors' time: busy with anything."""
    own_share: float | None = None
    foreign_share: float | None = None
    foreign_top: list[str] = []
    """Who the foreign load is: ``4711 python 48.0 %``."""
    steal_share: float | None = None
    busy_mhz: float | None = None
    """Mean clock of the busy processors."""
    busy_mhz_ratio: float | None = None
    """The same against the first tenth of the run."""
    throttle_share: float | None = None
    """Of the worst part, clamped to 0..1."""
    throttle_events: int | None = None
    """Slow-downs begun since the run began."""
    cpu_temp_c: float | None = None
    chassis_temp_c: float | None = None
    critical: list[str] = []
    """Sensors at or above their own critical point: time to stop the run."""
    mem_available_kb: int | None = None
    memory_stall_share: float | None = None
    swap_in_pages: int | None = None
    """Since the run began."""
    uncorrected_errors: int | None = None
    """Since the run began, of memory, processors and PCIe."""
    devices: list[DeviceState] = []
