"""Component system: is the clock kept, and did it jump."""

from nodeproof.collectors.base import Cycle, Group
from nodeproof.errors import Absence
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Labels
from nodeproof.sources import timex

__all__ = ["groups"]

_STEP_S = 0.5
"""Slewing moves the clock by 500 ppm at most (adjtimex(2)), chrony by up to 10 %: half a second between two cycles is a step."""
_CLOCK = ("clock_synced", "clock_offset", "clock_max_error", "clock_estimated_error", "clock_frequency_error")
_FORWARD: Labels = {"direction": "forward"}
_BACKWARD: Labels = {"direction": "backward"}


def groups(machine: Machine) -> tuple[Group, ...]:
    """Clock groups of the component."""
    return (
        Group(_CLOCK, _Discipline(machine).read, every_s=10.0),
        Group(("clock_steps_total",), _Steps().read),
    )


class _Discipline:
    """What the kernel knows of its clock."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        state = timex.parse(self._files.adjtimex())
        cycle.add("clock_synced", float(state.synced))
        cycle.add("clock_max_error", state.max_error_s)
        cycle.add("clock_estimated_error", state.estimated_error_s)
        if state.frequency_ppm is None:
            cycle.miss(
                "clock_frequency_error", Absence.UNSUPPORTED, "the kernel does not tell the correction of its clock's rate"
            )
        else:
            cycle.add("clock_frequency_error", round(state.frequency_ppm, 3))
        if state.offset_s is None:
            cycle.miss("clock_offset", Absence.UNKNOWN, "nothing disciplines the kernel's clock, so its offset is not known")
        else:
            cycle.add("clock_offset", state.offset_s)


class _Steps:
    """Wall time against time since boot, which nobody sets."""

    def __init__(self) -> None:
        self._difference_s: float | None = None
        self._mono_s = 0.0
        self._forward = 0
        self._backward = 0

    def read(self, cycle: Cycle) -> None:
        difference_s = cycle.at.wall_s - cycle.at.mono_s
        before_s, self._difference_s = self._difference_s, difference_s
        elapsed_s, self._mono_s = cycle.at.mono_s - self._mono_s, cycle.at.mono_s
        if before_s is not None:
            # A fast slew over a long pause is no step.
            limit_s = max(_STEP_S, elapsed_s * 0.1)
            self._forward += difference_s - before_s > limit_s
            self._backward += before_s - difference_s > limit_s
        cycle.add("clock_steps_total", self._forward, _FORWARD)
        cycle.add("clock_steps_total", self._backward, _BACKWARD)
