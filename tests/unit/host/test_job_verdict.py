"""What an end is called."""

import pytest

from nodeproof.host.job_verdict import Cause, Circumstances, judge
from nodeproof.host.oom import Nearness, OomFinding

NO_OOM = OomFinding(Nearness.NOWHERE, 0, "")
LOG = OomFinding(Nearness.JOB, 2, "the log names 1, 2")
GROUP = OomFinding(Nearness.CGROUP, 1, "its group counts 1")
MACHINE = OomFinding(Nearness.MACHINE, 1, "the machine counts 1")
CANCEL = Cause("cancelled", "by hand", 1.0)


def exited(code: int) -> int:
    return code << 8


@pytest.mark.parametrize(
    ("cause", "status", "oom", "verdict"),
    [
        (None, exited(0), NO_OOM, ("exited", 0, None, 0, "ended by itself with exit status 0")),
        (None, exited(3), NO_OOM, ("exited", 3, None, 0, "ended by itself with exit status 3")),
        (None, 11, NO_OOM, ("signalled", None, 11, 0, "ended by signal 11 (SIGSEGV), which was not ours")),
        (None, 9, NO_OOM, ("signalled", None, 9, 0, "ended by signal 9 (SIGKILL), which was not ours")),
        (None, 33, NO_OOM, ("signalled", None, 33, 0, "ended by signal 33 (SIG33), which was not ours")),
        (None, 9, LOG, ("oom", None, 9, 2, "the kernel killed it for want of memory: the log names 1, 2")),
        (None, exited(1), LOG, ("oom", 1, None, 2, "the kernel killed it for want of memory: the log names 1, 2")),
        (None, exited(0), LOG, ("exited", 0, None, 2, "ended by itself with exit status 0")),
        (None, 9, GROUP, ("oom", None, 9, 1, "the kernel killed it for want of memory: its group counts 1")),
        (None, exited(137), GROUP, ("oom", 137, None, 1, "the kernel killed it for want of memory: its group counts 1")),
        (None, exited(1), GROUP, ("exited", 1, None, 0, "ended by itself with exit status 1")),
        (None, 9, MACHINE, ("signalled", None, 9, 0, "ended by signal 9 (SIGKILL), which was not ours; the machine counts 1")),
        (None, 15, MACHINE, ("signalled", None, 15, 0, "ended by signal 15 (SIGTERM), which was not ours")),
        (CANCEL, 15, NO_OOM, ("cancelled", None, 15, 0, "by hand")),
        (CANCEL, exited(0), LOG, ("cancelled", 0, None, 2, "by hand")),
        (Cause("cancelled", "", 1.0), None, NO_OOM, ("cancelled", None, None, 0, "cancelled")),
        (Cause("limit", "too long", 1.0), 9, MACHINE, ("limit", None, 9, 0, "too long")),
    ],
)
def test_names(cause: Cause | None, status: int | None, oom: OomFinding, verdict: tuple[object, ...]) -> None:
    told = judge(Circumstances(cause, status, oom, 0, stuck=False))
    assert tuple(told[key] for key in ("kind", "exit_code", "signal", "oom_kills", "reason")) == verdict


def test_leftovers_and_survivors_are_told() -> None:
    told = judge(Circumstances(None, exited(0), NO_OOM, 3, stuck=True))
    assert told["reason"] == (
        "ended by itself with exit status 0; 3 of its descendants outlived it and were ended;"
        " not all of its processes could be ended"
    )
