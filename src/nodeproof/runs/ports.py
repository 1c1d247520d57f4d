"""What the executor needs of others: evidence about the box, and a check that an endpoint answers sensibly.

``hardware`` implements the first, ``bench`` the second; a composition root hands them in. The executor calls ``open``, ``sample``
and ``close`` on a thread of their own with a deadline, never two at the same time, and goes on without the answer when there is
none: then the report says so.
"""

import time
from collections.abc import Mapping
from typing import NamedTuple, Protocol, Self

from nodeproof.model.hardware import (
    CellReport,
    Decision,
    HardwareDelta,
    HardwareReport,
    HardwareState,
    LiveSample,
    MachineIdentity,
    Postcheck,
    Precheck,
    Sensitivity,
    ThrottleActive,
    ThrottleCounters,
    Validity,
)
from nodeproof.runs.endpoint import ModelExpectation, TargetEndpoint

__all__ = [
    "SWITCH_VARIABLES",
    "CancelSignal",
    "CoherenceProbe",
    "CoherenceReport",
    "HardwareEvidence",
    "NullEvidence",
    "Switches",
    "unknown_report",
]


SWITCH_VARIABLES = ("NODEPROOF_NO_HW_PRECHECK", "NODEPROOF_HW_TEMP_GATE")
"""Read by composition roots alone."""
_ON = frozenset({"1", "true", "yes"})


class Switches(NamedTuple):
    """What the user has decided about the checks of the box."""

    never_refuse: bool = False
    """``NODEPROOF_NO_HW_PRECHECK``: a refusal becomes a warning. It lets a run start; it never makes its numbers valid."""
    temperature_gate: bool = False
    """``NODEPROOF_HW_TEMP_GATE``: temperatures over the ceilings refuse."""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self:
        """As the variables say: ``1``, ``true`` or ``yes`` in any case is on, everything else is off."""
        never_refuse, gate = (environ.get(name, "").strip().lower() in _ON for name in SWITCH_VARIABLES)
        return cls(never_refuse=never_refuse, temperature_gate=gate)


class HardwareEvidence(Protocol):
    """Watches the box around **one** run: open, sample, judge any number of times, close. Made anew for each run."""

    def open(self, sensitivity: Sensitivity, switches: Switches) -> HardwareReport:
        """Look at the box and judge it. The report is not closed. May raise: the run then has a report of unknowns."""
        ...

    def sample(self) -> None:
        """Begin to look at the box a few times a second, on a thread of the evidence's own. Returns at once."""
        ...

    def judge(self, name: str, begin_s: float, end_s: float) -> CellReport:
        """Validity of cell ``name``, measured between two moments of CLOCK_BOOTTIME; the closed report lists it.

        From any thread. Quick; never raises.
        """
        ...

    def live(self) -> LiveSample | None:
        """The newest look, for people who watch; None when there is none. From any thread. Quick; never raises."""
        ...

    def close(self) -> HardwareReport:
        """End the sampling, look once more, and judge. The report is closed. May raise: the report of :meth:`open` then stays."""
        ...

    def abandon(self) -> None:
        """End the sampling without looking again. Returns at once; may be called in any state, beside a call that is stuck."""
        ...


class CancelSignal(Protocol):
    """What a long call looks at to see whether it should stop."""

    def is_cancelled(self) -> bool:
        """Whether it should."""
        ...

    def wait(self, timeout_s: float) -> bool:
        """Wait until it should, at most ``timeout_s``; whether it should."""
        ...


class CoherenceReport(NamedTuple):
    """What the probe of an endpoint found."""

    concern: str = ""
    """The one gravest thing; empty = clean."""
    answers: tuple[str, ...] = ()
    """One line for each answer of a clean probe."""


class CoherenceProbe(Protocol):
    """Asks an endpoint questions whose answers are known. It never stops a run."""

    def probe(self, target: TargetEndpoint, intended_for: ModelExpectation | None, cancel: CancelSignal) -> CoherenceReport:
        """Ask. May raise: that is a concern like another. Returns soon after ``cancel`` says so."""
        ...


def unknown_report(sensitivity: Sensitivity, reason: str, *, closed: bool) -> HardwareReport:
    """Report of a box that could not be looked at: every value unknown, never valid."""
    state = HardwareState(
        captured_at=int(time.time()),
        machine=MachineIdentity(),
        throttle_counters=ThrottleCounters(),
        throttle_active=ThrottleActive(),
        perf_class="unknown@unknown",
    )
    return HardwareReport(
        sensitivity=sensitivity,
        perf_class="unknown@unknown",
        before=state,
        after=state if closed else None,
        delta=HardwareDelta(elapsed_s=0, duration_s=0.0) if closed else None,
        precheck=Precheck(Decision.WARN, [reason]),
        postcheck=Postcheck(Validity.UNKNOWN, [reason]) if closed else None,
    )


class NullEvidence:
    """Evidence of somebody who does not look: for tests, and where there is nothing to look with. Never says valid."""

    def __init__(self, reason: str = "the box was not looked at") -> None:
        self._reason = reason
        self._sensitivity = Sensitivity.SPEED

    def open(self, sensitivity: Sensitivity, switches: Switches) -> HardwareReport:
        """Unknown."""
        del switches
        self._sensitivity = sensitivity
        return unknown_report(sensitivity, self._reason, closed=False)

    def sample(self) -> None:
        """Nothing to begin."""

    def judge(self, name: str, begin_s: float, end_s: float) -> CellReport:
        """Unknown."""
        return CellReport(name, begin_s, end_s, Validity.UNKNOWN, [self._reason])

    def live(self) -> LiveSample | None:
        """None."""
        return None

    def close(self) -> HardwareReport:
        """Unknown."""
        return unknown_report(self._sensitivity, self._reason, closed=True)

    def abandon(self) -> None:
        """Nothing to end."""
