"""Chassis readings by the kernel's own sensors, where no BMC can be asked."""

from pathlib import Path

import pytest

from nodeproof.collectors.base import Collector
from nodeproof.collectors.chassis import create
from nodeproof.errors import Absence
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from support.bmc import EVERYTHING, missing_of, settled, values

_HWMON = "sys/class/hwmon"


def _host(root: Path, chips: dict[str, dict[str, str]]) -> tuple[Machine, Collector, ManualClock]:
    """Bare metal without a BMC device; ``chips`` by folder, files by name."""
    (root / "proc").mkdir(parents=True)
    (root / "proc" / "cpuinfo").write_text("processor : 0\nvendor_id : GenuineIntel\nflags : fpu\n")
    for folder, files in chips.items():
        chip = root / _HWMON / folder
        chip.mkdir(parents=True)
        for name, text in files.items():
            (chip / name).write_text(f"{text}\n")
    clock = ManualClock()
    machine = recorded_machine(str(root), {}, clock)
    return machine, create(machine, EVERYTHING), clock


def _later(machine: Machine, collector: Collector, clock: ManualClock) -> dict[tuple[str, ...], float]:
    """After the chips were read once more and looked at again."""
    for _ in range(2):
        clock.advance(6.0)
        batch = settled(machine, collector)
    return values(batch)


_NCT = {
    "name": "nct6779",
    "fan1_input": "1200",
    "fan1_label": "SYS_FAN1",
    "fan2_input": "0",
    "temp1_input": "24000",
    "temp1_label": "Inlet Temp",
    "temp2_input": "36500",
    "temp2_label": "Exhaust",
}


def test_fans_air_and_power(tmp_path: Path) -> None:
    machine, collector, _ = _host(tmp_path, {"hwmon0": _NCT, "hwmon1": {"name": "power_meter", "power1_average": "187000000"}})
    batch = settled(machine, collector)
    found = values(batch)
    assert found["fan_speed", "SYS 1", "F"] == 1200.0
    assert found["fan_state", "SYS 1", "F"] == 0.0
    assert found["inlet_temp",] == 24.0
    assert found["outlet_temp",] == 36.5
    assert found["power",] == 187.0
    # What only a BMC tells is missing with the reason that there is none to ask.
    assert missing_of(batch, "psu_state")[0].state is Absence.UNSUPPORTED
    assert "modprobe" in missing_of(batch, "bmc_up")[0].remedy


def test_a_header_at_zero_is_unknown_until_it_has_turned(tmp_path: Path) -> None:
    machine, collector, clock = _host(tmp_path, {"hwmon0": _NCT})
    batch = settled(machine, collector)
    assert [(entry.labels, entry.state) for entry in missing_of(batch, "fan_speed")] == [
        ({"fan": "2", "direction": "F"}, Absence.UNKNOWN)
    ]
    fan = tmp_path / _HWMON / "hwmon0" / "fan2_input"
    fan.write_text("900\n")
    assert _later(machine, collector, clock)["fan_state", "2", "F"] == 0.0
    fan.write_text("0\n")
    stopped = _later(machine, collector, clock)
    assert (stopped["fan_speed", "2", "F"], stopped["fan_state", "2", "F"]) == (0.0, 2.0)


def test_the_chip_s_own_alarm_counts(tmp_path: Path) -> None:
    machine, collector, _ = _host(tmp_path, {"hwmon0": {"name": "nct6779", "fan1_input": "300", "fan1_alarm": "1"}})
    assert values(settled(machine, collector))["fan_state", "1", "F"] == 2.0


def test_a_fan_whose_file_cannot_be_read(tmp_path: Path) -> None:
    machine, collector, _ = _host(tmp_path, {"hwmon0": {"name": "nct6779", "fan1_input": "rubbish"}})
    batch = settled(machine, collector)
    gap = missing_of(batch, "fan_speed")[0]
    assert (gap.labels, gap.state) == ({"fan": "1", "direction": "F"}, Absence.UNKNOWN)
    assert not [key for key in values(batch) if key[0] == "fan_state"]


def test_fans_of_two_chips_never_share_labels_and_cards_are_left_out(tmp_path: Path) -> None:
    machine, collector, _ = _host(
        tmp_path,
        {
            "hwmon0": {"name": "nct6779", "fan1_input": "1000"},
            "hwmon1": {"name": "it8728", "fan1_input": "1100"},
            "hwmon2": {"name": "amdgpu", "fan1_input": "2000"},
        },
    )
    found = {key: value for key, value in values(settled(machine, collector)).items() if key[0] == "fan_speed"}
    assert found == {("fan_speed", "1", "F"): 1000.0, ("fan_speed", "it8728 fan1", "F"): 1100.0}


def test_without_any_chip_the_absence_of_the_bmc_stands(tmp_path: Path) -> None:
    machine, collector, _ = _host(tmp_path, {})
    batch = settled(machine, collector)
    assert batch.metrics == []
    for name in ("power", "inlet_temp", "fan_speed"):
        assert "/dev/ipmi0" in missing_of(batch, name)[0].reason


def test_chips_are_not_walked_in_every_cycle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine, collector, clock = _host(tmp_path, {"hwmon0": _NCT})
    settled(machine, collector)
    walks: list[str] = []
    real = FileTree.names

    def counted(tree: FileTree, path: str) -> list[str]:
        walks.append(path)
        return real(tree, path)

    monkeypatch.setattr(FileTree, "names", counted)
    collector.collect()
    clock.advance(1.0)
    collector.collect()
    assert walks == []
    clock.advance(5.0)
    collector.collect()
    assert walks == ["/sys/class/hwmon"]
