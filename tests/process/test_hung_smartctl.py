"""A real smartctl that hangs, floods, ignores signals and leaves children: the disk collector goes on, and nothing is left."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeproof.collectors.disk.collector import create
from nodeproof.collectors.services import smart as smart_module
from nodeproof.collectors.services.smart import Smart, SmartReading
from nodeproof.errors import Absence, NoData
from nodeproof.host.commands import HostCommands
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedFiles
from support.bmc import EVERYTHING
from support.disk import absences, label_values, value
from support.hosts_disk import write_sick_storage
from support.smartctl import smartctl_output

_SCRIPT = """#!/bin/sh
for disk; do :; done
note() { echo "$1" >> "$FOLDER/pids"; }
note $$
case "$disk" in
*/sda) sleep 300;;
*/sdb) trap '' TERM; sh -c "trap '' TERM; echo \\$\\$ >> $FOLDER/pids; sleep 300" & wait; sleep 300;;
*/sdc) exec yes '{"smartctl":{"exit_status":0}}';;
*/sdd) sleep 300 & note $!; cat "$FOLDER/good.json";;
*) cat "$FOLDER/good.json";;
esac
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "smartctl").write_text(_SCRIPT, encoding="utf-8")
    (tools / "smartctl").chmod(0o755)
    (tools / "good.json").write_bytes(smartctl_output("nvme.json"))
    root = tmp_path / "root"
    write_sick_storage(str(root))
    monkeypatch.setenv("FOLDER", str(tools))
    monkeypatch.setattr(smart_module, "_DEADLINE_S", 0.4)
    commands = HostCommands(f"{tools}:/usr/bin:/bin", max_output_bytes=200_000)
    return Machine(RecordedFiles(str(root)), commands, ManualClock())


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in {"Z", "X"}
    except FileNotFoundError:
        return False


def _children() -> set[int]:
    """Children of this process, dead ones that nobody has reaped included; other tests may have left theirs."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def _eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 8
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def _pids(tmp_path: Path) -> list[int]:
    path = tmp_path / "bin" / "pids"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def test_the_collector_goes_on_while_smartctl_hangs_and_nothing_is_left(machine: Machine, tmp_path: Path) -> None:
    collector = create(machine, EVERYTHING)
    clock = machine.clock
    assert isinstance(clock, ManualClock)
    collector.collect()
    clock.advance(5)
    assert _eventually(lambda: bool(_pids(tmp_path)))
    # The first smartctl hangs right now; the one of another disk has answered.
    assert _eventually(lambda: any(isinstance(one, SmartReading) for one in machine.shared(Smart).readings().values()))
    during = collector.collect()
    assert label_values(during, "iops", "device") == {"sda", "sdb", "sdc", "sdd", "nvme0n1"}
    assert value(during, "smart_status", device="nvme0n1") == 1.0
    assert "sda" not in label_values(during, "smart_status", "device")
    machine.settle(15)
    clock.advance(61)
    after = collector.collect()
    assert value(after, "smart_status", device="sdd", status="PASSED") == 1.0
    found = {(entry.labels or {})["device"]: (entry.state, entry.reason) for entry in absences(after, "smart_status")}
    for disk in ("sda", "sdb"):
        assert found[disk][0] is Absence.READ_ERROR, disk
    assert found["sdc"][0] is Absence.READ_ERROR  # a flood is no answer
    pids = _pids(tmp_path)
    assert len(pids) == 7  # five runs and two children
    assert _eventually(lambda: not any(map(_alive, pids)))
    machine.close()


def test_rounds_leave_no_descriptors_threads_or_zombies(machine: Machine, tmp_path: Path) -> None:
    smart = machine.shared(Smart)
    clock = machine.clock
    assert isinstance(clock, ManualClock)

    def one_round() -> dict[str, SmartReading | NoData]:
        smart.readings()
        assert smart.wait(15)
        clock.advance(601)
        return smart.readings()

    (tmp_path / "bin" / "smartctl").write_text('#!/bin/sh\nsleep 300 & cat "$FOLDER/good.json"\n', encoding="utf-8")
    one_round()
    smart.wait(15)
    descriptors, children = len(os.listdir("/proc/self/fd")), _children()
    assert all(isinstance(found, SmartReading) for found in one_round().values())
    smart.wait(15)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert _children() == children
    machine.close()


def test_closing_the_machine_ends_the_round(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smart_module, "_DEADLINE_S", 60.0)
    (tmp_path / "bin" / "smartctl").write_text('#!/bin/sh\necho $$ >> "$FOLDER/pids"; exec sleep 300\n', encoding="utf-8")
    smart = machine.shared(Smart)
    smart.readings()
    assert _eventually(lambda: bool(_pids(tmp_path)))
    machine.close()
    assert smart.wait(10)
    assert len(_pids(tmp_path)) == 1
    assert not any(map(_alive, _pids(tmp_path)))
