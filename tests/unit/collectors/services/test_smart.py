import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeproof.collectors.services.smart import Smart, SmartReading
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.host.commands import CommandResult
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles, recorded_machine
from support.disk import smartctl_line
from support.hosts_disk import write_sick_storage, write_vm_disk
from support.smartctl import smartctl_output
from support.tree import write

_Answer = bytes | CommandResult | CommandError
_DISKS = ("nvme0n1", "sda", "sdb", "sdc", "sdd")
_GOOD = smartctl_output("sata-hdd.json")


class _Held(RecordedCommands):
    """Programs that wait at a gate before they answer."""

    def __init__(self, answers: dict[str, _Answer]) -> None:
        super().__init__(answers)
        self.gate = threading.Event()
        self.gate.set()

    def run(self, argv: Sequence[str], *, deadline_s: float, subject: str = "") -> CommandResult:
        assert self.gate.wait(10)
        return super().run(argv, deadline_s=deadline_s, subject=subject)


class _Host:
    def __init__(self, root: Path, **answers: _Answer) -> None:
        write_sick_storage(str(root))
        self.clock = ManualClock()
        lines: dict[str, _Answer] = {smartctl_line(disk): _GOOD for disk in _DISKS}
        self.commands = _Held(lines | {smartctl_line(disk): answer for disk, answer in answers.items()})
        self.machine = Machine(RecordedFiles(str(root)), self.commands, self.clock)
        self.smart = self.machine.shared(Smart)

    def readings(self) -> dict[str, SmartReading | NoData]:
        """Ask, and see the round through."""
        self.smart.readings()
        assert self.smart.wait(10)
        return self.smart.readings()

    def state(self, disk: str) -> Absence:
        found = self.readings()[disk]
        assert isinstance(found, NoData)
        return found.state


def test_before_the_first_round_everything_is_unknown(tmp_path: Path) -> None:
    host = _Host(tmp_path)
    host.commands.gate.clear()
    first = host.smart.readings()
    assert {disk: getattr(found, "state", None) for disk, found in first.items()} == dict.fromkeys(_DISKS, Absence.UNKNOWN)
    host.commands.gate.set()
    assert host.smart.wait(10)


def test_a_round_that_never_ends_makes_what_it_has_not_read_stale(tmp_path: Path) -> None:
    host = _Host(tmp_path)
    host.commands.gate.clear()
    host.smart.readings()
    host.clock.advance(601)
    assert {getattr(found, "state", None) for found in host.smart.readings().values()} == {Absence.STALE}
    host.commands.gate.set()
    assert host.smart.wait(10)
    assert all(isinstance(found, SmartReading) for found in host.readings().values())


def test_each_disk_is_asked_once_in_ten_minutes_and_never_woken(tmp_path: Path) -> None:
    host = _Host(tmp_path)
    for _ in range(3):
        readings = host.readings()
        host.clock.advance(100)
    assert host.commands.asked == [smartctl_line(disk) for disk in _DISKS]
    assert all(" -n standby " in line for line in host.commands.asked)
    reading = readings["sda"]
    assert isinstance(reading, SmartReading)
    assert (reading.report.status, reading.at.mono_s) == ("PASSED", 1000.0)
    host.clock.advance(300)
    host.readings()
    assert len(host.commands.asked) == 10


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (CommandError("smartctl", CommandFailure.TIMED_OUT, "gave no answer in 15 s and was ended"), Absence.READ_ERROR),
        (CommandError("smartctl", CommandFailure.STUCK, "waits in the kernel"), Absence.READ_ERROR),
        (CommandError("smartctl", CommandFailure.NO_PERMISSION, "Permission denied"), Absence.NO_PERMISSION),
        (smartctl_output("permission.json"), Absence.NO_PERMISSION),
        (smartctl_output("megaraid.json"), Absence.UNKNOWN),
        (smartctl_output("usb-bridge.json"), Absence.UNSUPPORTED),
        (b"Segmentation fault", Absence.READ_ERROR),
        (b"", Absence.READ_ERROR),
    ],
)
def test_defect_13_and_16_one_disk_that_gives_no_answer_costs_itself_only(
    tmp_path: Path, answer: _Answer, state: Absence
) -> None:
    host = _Host(tmp_path, sdb=answer)
    assert host.state("sdb") is state
    assert all(isinstance(host.readings()[disk], SmartReading) for disk in _DISKS if disk != "sdb")


def test_defect_16_a_failure_is_not_kept_for_ever(tmp_path: Path) -> None:
    host = _Host(tmp_path, sdb=CommandError("smartctl", CommandFailure.TIMED_OUT, "gave no answer"))
    assert host.state("sdb") is Absence.READ_ERROR
    host.commands.answers[smartctl_line("sdb")] = _GOOD
    host.clock.advance(601)
    assert isinstance(host.readings()["sdb"], SmartReading)


def test_a_disk_that_falls_asleep_keeps_what_it_said_but_not_its_temperature(tmp_path: Path) -> None:
    host = _Host(tmp_path)
    host.readings()
    host.commands.answers[smartctl_line("sdc")] = smartctl_output("standby.json")
    for _ in range(5):
        host.clock.advance(601)
        reading = host.readings()["sdc"]
    assert isinstance(reading, SmartReading)
    assert (reading.asleep, reading.report.status, reading.report.temperature_c) == (True, "PASSED", None)
    assert reading.at.mono_s == 1000.0


def test_a_disk_that_slept_from_the_start_is_unknown(tmp_path: Path) -> None:
    assert _Host(tmp_path, sdc=smartctl_output("standby.json")).state("sdc") is Absence.UNKNOWN


def test_an_answer_nobody_renewed_grows_stale(tmp_path: Path) -> None:
    host = _Host(tmp_path)
    host.readings()
    host.commands.gate.clear()
    host.clock.advance(1801)
    found = host.smart.readings()["sda"]  # the new round has only begun
    host.commands.gate.set()
    assert host.smart.wait(10)
    assert isinstance(found, NoData)
    assert (found.state, found.reason) == (Absence.STALE, "smartctl read it last 1801 s ago")


def test_a_disk_that_was_swapped_starts_anew(tmp_path: Path) -> None:
    host = _Host(tmp_path)
    host.readings()
    write(str(tmp_path), "/sys/block/sda/diskseq", 99)
    host.clock.advance(31)
    assert host.state("sda") is Absence.UNKNOWN
    host.clock.advance(600)
    assert isinstance(host.readings()["sda"], SmartReading)
    assert ("sda", "1") not in host.smart._outcomes


def test_virtual_disks_are_not_asked(tmp_path: Path) -> None:
    write_vm_disk(str(tmp_path))
    smart = recorded_machine(str(tmp_path), {"smartctl x": b""}).shared(Smart)
    with pytest.raises(NoData, match="virtual") as caught:
        smart.readings()
    assert caught.value.state is Absence.NOT_APPLICABLE


def test_no_disk_at_all(tmp_path: Path) -> None:
    (tmp_path / "sys" / "block").mkdir(parents=True)
    with pytest.raises(NoData, match="no disk of its own"):
        recorded_machine(str(tmp_path)).shared(Smart).readings()


def test_no_smartctl_names_the_package(tmp_path: Path) -> None:
    write_sick_storage(str(tmp_path))
    with pytest.raises(NoData) as caught:
        recorded_machine(str(tmp_path)).shared(Smart).readings()
    assert (caught.value.state, caught.value.remedy) == (Absence.UNSUPPORTED, "install smartmontools")


def test_memory_cards_are_not_asked(tmp_path: Path) -> None:
    write(str(tmp_path), "/sys/block/mmcblk0/size", 100)
    write(str(tmp_path), "/sys/block/mmcblk0/device/name", "CARD")
    machine = recorded_machine(str(tmp_path), {"smartctl x": b""})
    smart = machine.shared(Smart)
    smart.readings()
    assert smart.wait(10)
    found = smart.readings()["mmcblk0"]
    assert isinstance(found, NoData)
    assert found.state is Absence.UNSUPPORTED
    assert isinstance(machine.commands, RecordedCommands)
    assert machine.commands.asked == []


def test_versions_before_7_are_asked_in_text(tmp_path: Path) -> None:
    write(str(tmp_path), "/sys/block/sda/size", 100)
    write(str(tmp_path), "/sys/block/sda/device/type", 0)
    old = CommandResult((), 1, smartctl_output("v6-unknown-option.txt"), b"", 0.1, truncated=False)
    machine = recorded_machine(
        str(tmp_path),
        {smartctl_line("sda"): old, "smartctl -n standby -H -A /dev/sda": smartctl_output("v6-sata.txt")},
        ManualClock(),
    )
    smart = machine.shared(Smart)
    for _ in range(2):
        smart.readings()
        assert smart.wait(10)
        assert isinstance(machine.clock, ManualClock)
        machine.clock.advance(601)
    found = smart.readings()["sda"]
    smart.wait(10)
    assert isinstance(found, SmartReading)
    assert (found.report.status, found.report.counts["power_on_time"]) == ("PASSED", 180)
    assert isinstance(machine.commands, RecordedCommands)
    assert machine.commands.asked.count(smartctl_line("sda")) == 1
