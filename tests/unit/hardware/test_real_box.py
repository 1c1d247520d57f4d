"""The machine that runs the tests, really watched: a child that spins is foreign, one of the run's own is not."""

import os
import subprocess
import sys
import time

import pytest

from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import HardwareReport, Sensitivity, Validity
from support.box import Switches

_SPIN_S = 1.0
_SPIN = "import time\nend = time.monotonic() + 20\nwhile time.monotonic() < end: pass"


def _watched(*, own: bool) -> HardwareReport:
    """A second beside a child that spins; its parent, this process, is not a root unless ``own``."""
    child = subprocess.Popen([sys.executable, "-c", _SPIN])
    machine = Machine.here()
    try:
        roots = (os.getpid(), child.pid) if own else ()
        watch = HardwareProbe(machine, Settings(period_s=0.25, first_window_s=0.1, roots=roots))
        watch.open(Sensitivity.SPEED, Switches())
        watch.sample()
        time.sleep(_SPIN_S)
        return watch.close()
    finally:
        child.kill()
        child.wait()
        machine.close()


def _share(report: HardwareReport, name: str) -> float:
    assert report.delta is not None
    value = next(fact.value for fact in report.delta.facts if fact.name == name)
    assert value is not None
    return value


def test_a_foreign_child_spoils_the_run_and_is_named() -> None:
    report = _watched(own=False)
    assert report.postcheck is not None
    # Even when everybody else wants the processors too, one of ours gets more than a twentieth of them.
    assert _share(report, "foreign_share") > 0.05
    assert _share(report, "own_share") == 0.0
    assert report.postcheck.validity is Validity.INVALID
    assert any(finding.rule == "D10" and "python" in finding.text for finding in report.postcheck.findings)


def test_a_child_of_the_run_is_its_own() -> None:
    report = _watched(own=True)
    assert _share(report, "own_share") > 0.05
    assert report.sampler is not None
    assert report.sampler.samples >= 3
    assert report.sampler.cpu_s > 0


def test_what_this_machine_lacks_is_named(absent_here: list[str]) -> None:
    report = _watched(own=True)
    assert report.postcheck is not None
    assert report.delta is not None
    lacking = [fact for fact in report.delta.facts if fact.value is None]
    assert all(fact.state is not None and fact.reason for fact in lacking)
    named = {fact.name for fact in report.postcheck.not_applicable}
    if "throttle_events" in named:
        absent_here.append("hardware: this machine has no throttle counters; they are tested on made-up boxes")
    assert (report.before.mem_total_kb or 0) * 1024 == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    assert report.before.machine.hostname == os.uname().nodename
    assert report.before.machine.kernel == os.uname().release
