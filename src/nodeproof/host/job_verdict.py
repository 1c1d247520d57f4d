"""What a job's end is called, from what its keeper saw."""

import os
import signal
from typing import NamedTuple

from nodeproof.host.oom import Nearness, OomFinding

__all__ = ["Cause", "Circumstances", "judge"]

_KILLED_BY_SHELL = 128 + signal.SIGKILL
"""What a shell or a launcher makes of a child that got SIGKILL."""


class Cause(NamedTuple):
    """Why a tree was ended from outside."""

    kind: str
    """A value of :class:`nodeproof.model.process.EndKind`."""
    reason: str
    grace_s: float


class Circumstances(NamedTuple):
    """All that bears on the name of an end."""

    cause: Cause | None
    """None = the program ended by itself."""
    status: int | None
    """Of the program, as wait(2) tells it; None = it was not seen to end."""
    oom: OomFinding
    leftovers: int
    stuck: bool
    """Something survived."""


def judge(seen: Circumstances) -> dict[str, object]:
    """Kind, reason, exit code, signal and kills for want of memory, as fields of ``Ended``."""
    exit_code = signal_number = None
    if seen.status is not None:
        code = os.waitstatus_to_exitcode(seen.status)
        exit_code, signal_number = (code, None) if code >= 0 else (None, -code)
    kind, reason = _name(seen, exit_code, signal_number)
    if seen.leftovers:
        reason += f"; {seen.leftovers} of its descendants outlived it and were ended"
    if seen.stuck:
        reason += "; not all of its processes could be ended"
    certain = seen.oom.nearness is Nearness.JOB or kind == "oom"
    return {
        "kind": kind,
        "reason": reason,
        "exit_code": exit_code,
        "signal": signal_number,
        "oom_kills": seen.oom.kills if certain else 0,
    }


def _name(seen: Circumstances, exit_code: int | None, number: int | None) -> tuple[str, str]:
    if seen.cause is not None:
        return seen.cause.kind, seen.cause.reason or "cancelled"
    if _starved(seen.oom, exit_code, number):
        return "oom", f"the kernel killed it for want of memory: {seen.oom.evidence}"
    if number is not None:
        name = signal.Signals(number).name if number in set(signal.Signals) else f"SIG{number}"
        perhaps = f"; {seen.oom.evidence}" if number == signal.SIGKILL and seen.oom.kills else ""
        return "signalled", f"ended by signal {number} ({name}), which was not ours{perhaps}"
    return "exited", f"ended by itself with exit status {exit_code}"


def _starved(oom: OomFinding, exit_code: int | None, number: int | None) -> bool:
    """A kill inside the job spoils any end but a clean one; one in its cgroup explains only an end by SIGKILL."""
    if oom.nearness is Nearness.JOB:
        return exit_code != 0
    return oom.nearness is Nearness.CGROUP and (number == signal.SIGKILL or exit_code == _KILLED_BY_SHELL)
