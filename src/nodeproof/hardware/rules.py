"""The rules of the box, as data: what is asked of which fact, and what follows for which kind of run.

``BEFORE`` decides whether a run may start, ``DURING`` whether what it measured may be believed. Facts are made by
``nodeproof.hardware.recorder`` and ``nodeproof.hardware.before``; ids R1 to R34n are those of bench.md 3.4, all others ours. Two
facts block by default, for they need no calibration: a box that is being slowed by heat now, and somebody else's accelerator
process. Everything else only warns before a run, and is judged by what happened during it.
"""

from enum import StrEnum

import msgspec

from nodeproof.model.hardware import Effect, Sensitivity

__all__ = ["BEFORE", "DEFAULT_POLICY", "DURING", "Compare", "Policy", "Rule", "Scope"]

_SPEED, _CORRECTNESS, _STABILITY = Sensitivity.SPEED, Sensitivity.CORRECTNESS, Sensitivity.STABILITY
_ALL = (_SPEED, _CORRECTNESS, _STABILITY)


class Compare(StrEnum):
    """How the fact is held against the limit."""

    ABOVE = ">"
    BELOW = "<"


class Scope(StrEnum):
    """What a rule is judged on."""

    CELL = "cell"
    """Each time window by itself: one that is not touched stays valid."""
    RUN = "run"
    """Always the whole run: memory that failed once was there in every cell."""


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question."""

    id: str
    fact: str
    text: str
    """Concern when the condition holds; ``{value}``, ``{limit}`` and ``{subject}`` are filled in."""
    effects: dict[Sensitivity, Effect]
    """What follows, by kind of run; a kind that is left out is not touched."""
    compare: Compare = Compare.ABOVE
    limit: float = 0.0
    ceiling: str = ""
    """Take the limit from the ceilings of this hardware class; a class without one is not judged by this rule."""
    gated: bool = False
    """With the temperature gate on, a warning becomes a refusal."""
    unknown: tuple[Sensitivity, ...] = ()
    """Kinds of run for which not knowing has a consequence: a warning before, validity unknown afterwards."""
    scope: Scope = Scope.CELL
    fails: bool = False
    """Hardware failed: a run of sensitivity stability has failed by it."""
    share: bool = False
    """Value and limit are shares of time, shown in percent."""


class Policy(msgspec.Struct, frozen=True):
    """All rules."""

    before: tuple[Rule, ...]
    during: tuple[Rule, ...]


def _all(effect: Effect) -> dict[Sensitivity, Effect]:
    return dict.fromkeys(_ALL, effect)


_REFUSE = {_SPEED: Effect.REFUSE, _CORRECTNESS: Effect.REFUSE, _STABILITY: Effect.WARN}
_WARN_SPEED = {_SPEED: Effect.WARN, _CORRECTNESS: Effect.NOTE, _STABILITY: Effect.NOTE}
_INVALID_SPEED = {_SPEED: Effect.INVALID, _CORRECTNESS: Effect.NOTE, _STABILITY: Effect.NOTE}
_INVALID_THROTTLED = {_SPEED: Effect.INVALID, _CORRECTNESS: Effect.NOTE, _STABILITY: Effect.INVALID}

BEFORE = (
    Rule("RC", "critical_sensors", "{subject} at or above its critical temperature", _all(Effect.REFUSE)),
    Rule("R1", "thermal_asserted", "{subject} slowed by heat at this moment", _REFUSE, unknown=_ALL),
    Rule(
        "R2",
        "foreign_accelerator_processes",
        "{value} foreign processes use the accelerators: {subject}",
        _REFUSE,
        unknown=_ALL,
    ),
    Rule(
        "R3",
        "gpu_temp_c",
        "accelerator {subject} at {value} °C, above {limit} °C",
        _all(Effect.WARN),
        ceiling="gpu_c",
        gated=True,
    ),
    Rule(
        "R3c", "cpu_temp_c", "processor {subject} at {value} °C, above {limit} °C", _all(Effect.WARN), ceiling="cpu_c", gated=True
    ),
    Rule(
        "R4",
        "chassis_temp_c",
        "zone {subject} at {value} °C, above {limit} °C",
        _all(Effect.WARN),
        ceiling="chassis_c",
        gated=True,
    ),
    Rule(
        "R34n",
        "undeclared_ceilings",
        "no temperature ceilings are declared for this class of hardware ({subject}): temperatures are not judged",
        _all(Effect.WARN),
    ),
    Rule(
        "W1",
        "foreign_share",
        "other processes use {value} of the allowed CPU time: {subject}",
        _WARN_SPEED,
        limit=0.05,
        share=True,
    ),
    Rule("W2", "steal_share", "the hypervisor takes {value} of the allowed CPU time", _WARN_SPEED, limit=0.02, share=True),
    Rule("W3", "swap_in_pages", "{value} pages came back from swap while the box was looked at", _WARN_SPEED),
    Rule("W4", "memory_stall_share", "tasks wait for memory {value} of the time", _WARN_SPEED, limit=0.01, share=True),
    Rule("W5", "slow_governor_cpus", "the governor holds {value} processors at their lowest frequency: {subject}", _WARN_SPEED),
    Rule("R5n", "unwell_accelerators", "{value} accelerators report themselves unwell: {subject}", _all(Effect.WARN)),
    Rule("W6", "past_uncorrected_errors", "{value} uncorrected errors since this system started: {subject}", _all(Effect.WARN)),
)

DURING = (
    Rule(
        "D1",
        "throttle_us",
        "processors slowed by heat for {value} µs: {subject}",
        _INVALID_THROTTLED,
        unknown=(_SPEED, _STABILITY),
    ),
    Rule(
        "D1e", "throttle_events", "{value} slow-downs by heat began: {subject}", _INVALID_THROTTLED, unknown=(_SPEED, _STABILITY)
    ),
    Rule(
        "D1k",
        "thermal_log_lines",
        "the kernel logged slowing down by heat {value} times",
        _INVALID_THROTTLED,
        unknown=(_SPEED, _STABILITY),
    ),
    Rule("D1s", "throttle_share", "slowed by heat {value} of the time", _all(Effect.NOTE), share=True),
    Rule(
        "D2",
        "accelerator_throttle_us",
        "accelerators slowed by heat: {subject}",
        _INVALID_THROTTLED,
        unknown=(_SPEED, _STABILITY),
    ),
    Rule("D2s", "accelerator_throttle_share", "accelerators slowed by heat {value} of the time", _all(Effect.NOTE), share=True),
    Rule(
        "D3",
        "edac_uncorrected",
        "{value} new uncorrected memory errors: {subject}",
        _all(Effect.INVALID),
        unknown=(_SPEED, _STABILITY),
        scope=Scope.RUN,
        fails=True,
    ),
    Rule(
        "D4",
        "mce_uncorrected",
        "{value} new uncorrected machine checks or firmware errors",
        _all(Effect.INVALID),
        unknown=(_SPEED, _STABILITY),
        scope=Scope.RUN,
        fails=True,
    ),
    Rule(
        "D5",
        "aer_uncorrected",
        "{value} new uncorrected PCIe errors: {subject}",
        _all(Effect.INVALID),
        unknown=(_SPEED, _STABILITY),
        scope=Scope.RUN,
        fails=True,
    ),
    Rule(
        "D6",
        "accelerator_uncorrected",
        "{value} new uncorrected errors of accelerators: {subject}",
        _all(Effect.INVALID),
        unknown=(_SPEED, _STABILITY),
        scope=Scope.RUN,
        fails=True,
    ),
    Rule("D7", "corrected_errors", "{value} new corrected errors: {subject}", _all(Effect.WARN), scope=Scope.RUN),
    Rule(
        "D8",
        "busy_mhz_ratio",
        "busy processors ran at {value} of the frequency they began with, under {limit}",
        _INVALID_SPEED,
        compare=Compare.BELOW,
        limit=0.95,
        unknown=(_SPEED,),
        share=True,
    ),
    Rule(
        "D8n",
        "accelerator_clock_loss",
        "accelerators under load ran {value} below their rated clock, and nothing tells why: {subject}",
        _WARN_SPEED,
        limit=0.05,
        share=True,
    ),
    Rule(
        "D9",
        "steal_share",
        "the hypervisor took {value} of the allowed CPU time, more than {limit}",
        _INVALID_SPEED,
        limit=0.02,
        unknown=(_SPEED,),
        share=True,
    ),
    Rule(
        "D10",
        "foreign_share",
        "other processes used {value} of the allowed CPU time, more than {limit}: {subject}",
        _INVALID_SPEED,
        limit=0.05,
        unknown=(_SPEED,),
        share=True,
    ),
    Rule("D11", "swap_in_pages", "{value} pages came back from swap", _INVALID_SPEED, unknown=(_SPEED,)),
    Rule(
        "D12",
        "oom_kills",
        "{value} processes were killed for want of memory",
        _INVALID_SPEED | {_STABILITY: Effect.WARN},
        unknown=(_SPEED,),
    ),
    Rule(
        "D13",
        "foreign_accelerator_looks",
        "foreign processes used the accelerators: {subject}",
        _INVALID_SPEED,
        unknown=(_SPEED,),
    ),
    Rule("D14", "suspended_s", "the machine was suspended for {value} s", _INVALID_SPEED, limit=0.5, unknown=(_SPEED,)),
    Rule("D15", "wall_step_s", "the wall clock was set by {value} s", _INVALID_SPEED, limit=0.5, unknown=(_SPEED,)),
    Rule("D16", "memory_stall_share", "tasks waited for memory {value} of the time", _WARN_SPEED, limit=0.01, share=True),
    Rule("D17", "io_stall_share", "tasks waited for disks {value} of the time", _WARN_SPEED, limit=0.1, share=True),
    Rule("D18", "governor_changes", "the governor of {value} processors was changed: {subject}", _WARN_SPEED, scope=Scope.RUN),
    Rule("D19", "kernel_critical", "the kernel logged {value} critical events: {subject}", _all(Effect.WARN)),
    Rule("D20", "critical_looks", "sensors at or above their critical temperature: {subject}", _all(Effect.WARN)),
    Rule("D21", "chassis_rise_c", "hottest zone changed by {value} °C", _all(Effect.NOTE), scope=Scope.RUN),
    Rule(
        "D21f",
        "chassis_rise_c",
        "hottest zone changed by {value} °C",
        _all(Effect.NOTE),
        compare=Compare.BELOW,
        scope=Scope.RUN,
    ),
)

DEFAULT_POLICY = Policy(BEFORE, DURING)
"""Any new uncorrected error or one microsecond of slowing down by heat; for speed also droop under 0.95, steal over 2 %, foreign
load over 5 %, any page from swap."""
