"""The hwmon service: chips, sensors, labels, limits, what goes missing."""

import os
import shutil
from pathlib import Path

import pytest

from nodeproof.collectors.services.hwmon import Chip, Hwmon
from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from support.tree import link, write

_ROOT = "/sys/class/hwmon"


class _Host:
    def __init__(self, root: str) -> None:
        self.root = root
        self.clock = ManualClock()
        self.machine: Machine = recorded_machine(root, clock=self.clock)
        self.hwmon = self.machine.shared(Hwmon)

    def chip(self, number: int, name: str, **files: str | int) -> None:
        write(self.root, f"{_ROOT}/hwmon{number}/name", name)
        for item, content in files.items():
            write(self.root, f"{_ROOT}/hwmon{number}/{item}", content)

    def settled(self, after_s: float = 0.0) -> list[Chip]:
        """What the chips say once their calls have ended."""
        self.clock.advance(after_s)
        self.hwmon.chips()
        self.machine.settle(10.0)
        return self.hwmon.chips()


@pytest.fixture
def host(tmp_path: Path) -> _Host:
    return _Host(str(tmp_path))


def test_every_kind_of_sensor(host: _Host) -> None:
    host.chip(
        0,
        "board",
        temp1_input=45_500,
        temp1_label="Inlet",
        temp1_max=85_000,
        temp1_crit=-273_150,  # not set
        temp1_crit_alarm=1,
        fan2_input=5400,
        fan2_min=600,
        fan2_alarm=0,
        in0_input=12_096,
        curr1_input=1_500,
        power1_average=125_500_000,
        power1_cap=500_000_000,
        energy1_input=7_000_000,
        humidity1_input=40_000,
        pwm1=128,
    )
    link(host.root, f"{_ROOT}/hwmon0/device", "../../../board.0")
    [chip] = host.settled()
    assert (chip.folder, chip.name, chip.device, chip.absence) == ("hwmon0", "board", "board.0", None)
    found = {sensor.key: (sensor.kind, sensor.label, sensor.value, sensor.limits, sensor.alarm) for sensor in chip.sensors}
    assert found == {
        "temp1": ("temp", "Inlet", 45.5, {"max": 85.0}, True),
        "fan2": ("fan", "fan2", 5400.0, {"min": 600.0}, False),
        "in0": ("in", "in0", 12.096, {}, None),
        "curr1": ("curr", "curr1", 1.5, {}, None),
        "power1": ("power", "power1", 125.5, {"cap": 500.0}, None),
        "energy1": ("energy", "energy1", 7.0, {}, None),
    }


def test_a_chip_that_was_not_read_yet_says_so(host: _Host) -> None:
    host.chip(0, "k10temp", temp1_input=60_000)
    [chip] = host.hwmon.chips()
    assert chip.absence is not None
    assert (chip.sensors, chip.absence.state, chip.at) == ((), Absence.UNKNOWN, None)


def test_no_chip_at_all(host: _Host) -> None:
    with pytest.raises(NoData) as missing:
        host.hwmon.chips()
    assert missing.value.state is Absence.UNSUPPORTED
    os.makedirs(f"{host.root}{_ROOT}")
    with pytest.raises(NoData, match="no sensor driver is loaded"):
        host.hwmon.chips()


def test_sensors_that_fail_keep_their_neighbours(host: _Host) -> None:
    host.chip(
        0, "x", temp1_input="?", temp2_input=20_000, temp2_fault=1, temp3_input=30_000, temp3_fault=0, temp4_input=65_261_850
    )
    [chip] = host.settled()
    states = {sensor.key: (sensor.value, sensor.absence.state if sensor.absence else None) for sensor in chip.sensors}
    assert states == {
        "temp1": (None, Absence.READ_ERROR),
        "temp2": (None, Absence.READ_ERROR),
        "temp3": (30.0, None),
        "temp4": (None, Absence.READ_ERROR),
    }


def test_a_sensor_that_does_not_answer_is_unknown_and_no_missing_driver(host: _Host) -> None:
    host.chip(0, "x", temp1_input=20_000, temp1_fault=0, temp1_alarm=0)
    host.settled()
    for name in ("temp1_input", "temp1_fault", "temp1_alarm"):
        os.unlink(f"{host.root}{_ROOT}/hwmon0/{name}")
    [chip] = host.settled(6)
    [sensor] = chip.sensors
    assert sensor.absence is not None
    assert (sensor.value, sensor.alarm, sensor.absence.state) == (None, None, Absence.UNKNOWN)


def test_labels_and_limits_that_cannot_be_read_are_left_out(host: _Host) -> None:
    host.chip(0, "x", temp1_input=20_000, temp1_max="?")
    os.makedirs(f"{host.root}{_ROOT}/hwmon0/temp1_label")
    os.makedirs(f"{host.root}{_ROOT}/hwmon0/temp1_crit")
    os.makedirs(f"{host.root}{_ROOT}/hwmon0/temp2_max")  # a limit without a sensor
    [chip] = host.settled()
    [sensor] = chip.sensors
    assert (sensor.label, sensor.limits, sensor.value) == ("temp1", {}, 20.0)


def test_a_chip_without_a_name_is_called_by_its_folder(host: _Host) -> None:
    write(host.root, f"{_ROOT}/hwmon7/temp1_input", 20_000)
    [chip] = host.settled()
    assert (chip.name, chip.device) == ("hwmon7", "")


def test_readings_grow_old_and_are_made_anew(host: _Host) -> None:
    host.chip(0, "x", temp1_input=20_000)
    host.settled()
    write(host.root, f"{_ROOT}/hwmon0/temp1_input", 21_000)
    [chip] = host.settled(1)
    assert chip.sensors[0].value == 20.0  # not due yet
    [chip] = host.settled(5)
    assert chip.sensors[0].value == 21.0


def test_chips_come_and_go(host: _Host) -> None:
    host.chip(0, "x", temp1_input=20_000)
    host.chip(1, "nvme", temp1_input=38_000)
    assert [chip.name for chip in host.settled()] == ["x", "nvme"]
    shutil.rmtree(f"{host.root}{_ROOT}/hwmon1")
    assert [chip.name for chip in host.settled(1)] == ["x"]
    host.chip(1, "jc42", temp1_input=40_000)  # another chip under the old number
    assert [(chip.name, chip.sensors[0].value) for chip in host.settled(1)] == [("x", 20.0), ("jc42", 40.0)]


def test_a_folder_that_vanished_while_it_was_read(host: _Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.chip(0, "x", temp1_input=20_000)
    names = FileTree.names
    monkeypatch.setattr(FileTree, "names", lambda self, path: names(self, path if path == _ROOT else "/gone"))
    [chip] = host.settled()
    assert chip.absence is not None
    assert chip.absence.state is Absence.UNSUPPORTED
