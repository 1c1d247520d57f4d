"""Components gpu and npu: cards that are there and cannot be read yet."""

from pathlib import Path
from types import ModuleType

import pytest

from nodeproof.collectors import gpu, npu
from nodeproof.errors import Absence
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from support import tree
from support.network import Everything, missing_of, readings

_GPU_HEALTH = {"temperature", "memory_usage", "utilization", "ecc_errors"}
_NPU_HEALTH = {
    "card_drop",
    "temperature",
    "health_status",
    "hbm_double_ecc",
    "ddr_double_ecc",
    "memory_usage",
    "utilization",
    "error_code",
}


def _machine(root: Path, *cards: tuple[str, str, str], clock: ManualClock | None = None) -> Machine:
    for address, device_class, vendor in cards:
        tree.write_all(str(root), f"/sys/bus/pci/devices/{address}", {"class": device_class, "vendor": vendor})
    return recorded_machine(str(root), clock=clock)


@pytest.mark.parametrize("module", [gpu, npu])
def test_defect_12_a_host_without_cards_says_so_once_and_gives_no_number(tmp_path: Path, module: ModuleType) -> None:
    machine = _machine(tmp_path, ("0000:00:02.0", "0x030000", "0x1a03"), ("0000:00:03.0", "0x020000", "0x19e5"))
    batch = module.create(machine, Everything()).collect()
    assert batch.metrics == []
    assert [(entry.name, entry.state) for entry in batch.missing] == [("device_count", Absence.NOT_APPLICABLE)]


def test_unread_gpus_never_look_healthy(tmp_path: Path) -> None:
    machine = _machine(
        tmp_path,
        *((f"0000:1{number}:00.0", "0x030200", "0x10de") for number in range(4)),
        ("0000:20:00.0", "0x120000", "0x1002"),
        ("0000:21:00.0", "0x068000", "0x10de"),
        ("0000:22:00.0", "junk", "0x10de"),
        ("0000:23:00.0", "0x030200", "junk"),
    )
    batch = gpu.create(machine, Everything()).collect()
    assert readings(batch, "device_count") == {("nvidia",): 4, ("amd",): 1}
    assert {entry.name for entry in batch.missing} == _GPU_HEALTH
    assert {entry.state for entry in batch.missing} == {Absence.UNSUPPORTED}
    assert missing_of(batch, "temperature")[0].reason == (
        "this version cannot read the cards at 0000:10:00.0, 0000:11:00.0, 0000:12:00.0 and 2 more"
    )


def test_unread_npus_never_look_healthy(tmp_path: Path) -> None:
    machine = _machine(tmp_path, ("0000:c1:00.0", "0x120000", "0x19e5"), ("0000:01:00.0", "0x030000", "0x19e5"))
    batch = npu.create(machine, Everything()).collect()
    assert readings(batch, "device_count") == {("huawei",): 1}
    assert {entry.name for entry in batch.missing} == _NPU_HEALTH
    assert "npu_num" not in repr(batch)


def test_both_collectors_share_one_scan_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    machine = _machine(tmp_path, ("0000:10:00.0", "0x030200", "0x10de"), clock=clock)
    scans: list[str] = []
    names = FileTree.names

    def count(files: FileTree, path: str) -> list[str]:
        scans.append(path)
        return names(files, path)

    monkeypatch.setattr(FileTree, "names", count)
    collectors = [gpu.create(machine, Everything()), npu.create(machine, Everything())]
    for _ in range(59):
        for collector in collectors:
            collector.collect()
        clock.advance(1)
    assert len(scans) == 1
    clock.advance(1)
    tree.write_all(str(tmp_path), "/sys/bus/pci/devices/0000:c1:00.0", {"class": "0x120000", "vendor": "0x19e5"})
    batch = collectors[1].collect()
    assert readings(batch, "device_count") == {("huawei",): 1}
    assert len(scans) == 2


def test_a_bus_that_cannot_be_looked_through_is_no_empty_bus(tmp_path: Path) -> None:
    tree.write(str(tmp_path), "/sys/bus/pci", "no folder")
    assert gpu.create(_machine(tmp_path), Everything()).collect().missing[0].state is Absence.NOT_APPLICABLE  # no PCI at all
    other = tmp_path / "other"
    tree.write(str(other), "/sys/bus/pci/x", "")
    (other / "sys/bus/pci/devices").symlink_to("devices")
    batch = gpu.create(_machine(other), Everything()).collect()
    assert {entry.state for entry in batch.missing} == {Absence.READ_ERROR}
    assert {entry.name for entry in batch.missing} == _GPU_HEALTH | {"device_count"}
