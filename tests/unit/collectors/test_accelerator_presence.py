"""Components gpu and npu on hosts without cards, and the scan of the bus that they share."""

from pathlib import Path
from types import ModuleType

import pytest

from nodeproof.collectors import npu
from nodeproof.collectors.gpu import collector as gpu
from nodeproof.errors import Absence
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.catalogue import component_specs
from support import tree
from support.network import Everything, readings


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
    assert scans.count("/sys/bus/pci/devices") == 1
    clock.advance(1)
    tree.write_all(str(tmp_path), "/sys/bus/pci/devices/0000:c1:00.0", {"class": "0x120000", "vendor": "0x19e5"})
    batch = collectors[1].collect()
    assert readings(batch, "device_count") == {("huawei",): 1}
    assert scans.count("/sys/bus/pci/devices") == 2


def test_a_bus_that_cannot_be_looked_through_is_no_empty_bus(tmp_path: Path) -> None:
    tree.write(str(tmp_path), "/sys/bus/pci", "no folder")
    assert gpu.create(_machine(tmp_path), Everything()).collect().missing[0].state is Absence.NOT_APPLICABLE  # no PCI at all
    other = tmp_path / "other"
    tree.write(str(other), "/sys/bus/pci/x", "")
    (other / "sys/bus/pci/devices").symlink_to("devices")
    batch = gpu.create(_machine(other), Everything()).collect()
    assert {entry.state for entry in batch.missing} == {Absence.READ_ERROR}
    assert {entry.name for entry in batch.missing} == set(component_specs("gpu"))
