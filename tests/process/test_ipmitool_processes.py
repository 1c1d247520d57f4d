"""A real process in place of ipmitool that hangs, ignores TERM, floods, forks: cycles stay quick, nothing is left behind."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeproof.clock import SystemClock
from nodeproof.collectors.chassis import create
from nodeproof.collectors.services.ipmi import Ipmi, IpmiTiming
from nodeproof.errors import Absence
from nodeproof.host.commands import HostCommands
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.model.metric import Batch
from support.bmc import EVERYTHING, missing_of, values

_GOOD = """
case "$1" in
sensor) echo "Inlet Temp | 23.000 | degrees C | ok | na | na | na | na | na | na";;
chassis) echo "System Power : on";;
*) echo "Invalid command" >&2; exit 1;;
esac
"""
_MODES = {
    "hangs": "exec sleep 600",
    "ignores TERM": "trap '' TERM HUP INT\nwhile :; do sleep 0.2; done",
    "floods": "exec yes 'flood flood flood flood flood flood flood flood'",
    "forks and keeps the pipe": "(trap '' TERM; sleep 600) &\nexit 0",
}
_DEADLINE_S = 0.4


class _Rig:
    """A machine whose ipmitool is a script that notes its process group when it starts, and how many ran beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tool = root / "bin" / "ipmitool"
        self.starts = root / "starts"
        (root / "bin").mkdir()
        (root / "dev").mkdir()
        (root / "dev" / "ipmi0").touch()
        (root / "lock").mkdir()
        self.starts.touch()
        self.set(_GOOD)
        commands = HostCommands(f"{root}/bin:/usr/bin:/bin", max_output_bytes=200_000)
        self.machine = Machine(FileTree(str(root)), commands, SystemClock())
        ipmi = self.machine.shared(Ipmi)
        for kind in ("sensor", "dcmi", "chassis", "psu", "sel"):
            ipmi.configure(kind, IpmiTiming(0.05, _DEADLINE_S))
        self.collector = create(self.machine, EVERYTHING)

    def set(self, body: str) -> None:
        """Let every run from now on do ``body``."""
        new = self.tool.with_suffix(".new")
        new.write_text(f"#!/bin/sh\necho $$ >> {self.starts}\n{body}\n")
        new.chmod(0o755)
        new.replace(self.tool)

    def runs(self) -> list[int]:
        """Process numbers of all runs so far; each leads a group of its own."""
        return [int(line) for line in self.starts.read_text().split()]

    def in_flight(self) -> list[int]:
        """Runs that have not ended (their children not counted)."""
        return [pid for pid, _ in _alive() if pid in self.runs()]

    def left(self) -> list[int]:
        """Processes of any run's group that are still there."""
        return [pid for pid, group in _alive() if group in self.runs()]


def _alive() -> list[tuple[int, int]]:
    """Process and group of everything that runs; the dead that nobody has fetched yet do not count."""
    found: list[tuple[int, int]] = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in {"Z", "X"}:
                found.append((int(name), int(fields[2])))
    return found


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[_Rig]:
    made = _Rig(tmp_path)
    yield made
    made.machine.close()
    for pid in made.left():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _until(rig: _Rig, true: Callable[[Batch], bool], limit_s: float = 10.0) -> Batch:
    """Cycle, as the daemon does, until ``true`` of a batch; at no moment do two runs live."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        batch = rig.collector.collect()
        assert len(rig.in_flight()) <= 1
        if true(batch):
            return batch
        time.sleep(0.01)
    raise AssertionError(f"not seen within {limit_s} s; last: {batch.missing}")


def _has_inlet(batch: Batch) -> bool:
    return values(batch).get(("inlet_temp",)) == 23.0


@pytest.mark.parametrize("mode", sorted(_MODES))
def test_a_tool_that_misbehaves_costs_no_cycle_and_leaves_nothing(rig: _Rig, mode: str) -> None:
    """Defect 16: a tool without a deadline, or a failure kept for ever, stopped a component for good."""
    rig.set(_MODES[mode])
    batch = _until(rig, lambda batch: missing_of(batch, "inlet_temp")[0].state is Absence.READ_ERROR)
    assert "ipmitool sensor" in missing_of(batch, "inlet_temp")[0].reason
    assert not _has_inlet(batch)
    rig.set(_GOOD)
    _until(rig, _has_inlet, limit_s=15.0)
    rig.machine.close()
    _gone(rig)


def _gone(rig: _Rig) -> None:
    deadline = time.monotonic() + 5.0
    while rig.left() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert rig.left() == []


def test_a_cycle_never_waits_for_a_tool_that_hangs(rig: _Rig) -> None:
    """The collector gives its batch while the run that it asked for is still in flight."""
    rig.set(_MODES["hangs"])
    for kind in ("sensor", "dcmi", "chassis", "psu", "sel"):
        rig.machine.shared(Ipmi).configure(kind, IpmiTiming(0.05, 60.0))
    _until(rig, lambda _: len(rig.runs()) == 1)
    for _ in range(50):
        batch = rig.collector.collect()
        assert rig.in_flight() == rig.runs()
    assert len(rig.runs()) == 1
    assert missing_of(batch, "inlet_temp")[0].state is Absence.UNKNOWN
    assert "has been running for" in missing_of(batch, "inlet_temp")[0].reason
    assert missing_of(batch, "bmc_up")[0].state is Absence.UNKNOWN
    rig.machine.close()
    _gone(rig)


def test_one_run_at_a_time_though_many_ask(rig: _Rig) -> None:
    busy = rig.root / "busy"
    rig.set(f"mkdir {busy} || echo two >> {rig.root}/overlap\nsleep 0.02\nrmdir {busy}\n{_GOOD}")
    others = [create(rig.machine, EVERYTHING) for _ in range(3)]
    for _ in range(40):
        for collector in (rig.collector, *others):
            collector.collect()
        time.sleep(0.01)
    rig.machine.settle(10.0)
    assert len(rig.runs()) >= 5
    assert not (rig.root / "overlap").exists()


def test_the_tool_is_run_without_input_and_in_the_plain_locale(rig: _Rig) -> None:
    seen = rig.root / "seen"
    rig.set(f'echo "$LC_ALL" >> {seen}\nif read line; then echo input >> {seen}; fi\n{_GOOD}')
    _until(rig, _has_inlet)
    assert set(seen.read_text().splitlines()) == {"C"}
