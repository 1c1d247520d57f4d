from pathlib import Path

import pytest

from nodeproof.collectors.services.block_devices import BlockDevices, Disk
from nodeproof.errors import Absence, NoData
from nodeproof.host.recorded import ManualClock, recorded_machine
from support.hosts_disk import NVME, SAS, write_disks, write_sick_storage, write_vm_disk
from support.tree import link, write


def test_whole_disks_and_arrays_of_a_large_host(tmp_path: Path) -> None:
    write_disks(str(tmp_path))
    devices = recorded_machine(str(tmp_path)).shared(BlockDevices)
    assert set(devices.disks()) == {*SAS, *NVME}
    assert devices.arrays() == ("md0",)
    assert devices.disks()["nvme3n1"] == Disk(
        "nvme3n1",
        "103",
        7_501_476_528 * 512,
        "",
        "SAMSUNG MZQL23T8HCLS-00A07",
        "SERIAL0003",
        "GDC5602Q",
        "nvme3",
        "PCIe",
        rotational=False,
        removable=False,
        virtual=False,
        discards=True,
    )
    assert devices.disks()["sdb"].path == "/dev/sdb"
    assert devices.disks()["sdb"].rotational is True


def test_a_virtual_disk_has_no_vendor_number_for_a_name(tmp_path: Path) -> None:
    write_vm_disk(str(tmp_path))
    (disk,) = recorded_machine(str(tmp_path)).shared(BlockDevices).disks().values()
    assert (disk.name, disk.vendor, disk.transport, disk.virtual, disk.serial) == ("vda", "", "virtio", True, "disk-0")


def test_the_list_stays_the_same_object_until_it_changes(tmp_path: Path) -> None:
    root, clock = str(tmp_path), ManualClock()
    write_sick_storage(root)
    devices = recorded_machine(root, clock=clock).shared(BlockDevices)
    first = devices.disks()
    clock.advance(31)
    assert devices.disks() is first
    write(root, "/sys/block/sda/diskseq", 77)
    write(root, "/sys/devices/bus/0:0:0:0/model", "ANOTHER DISK")
    assert devices.disks() is first  # not yet looked at again
    clock.advance(31)
    assert devices.disks()["sda"].model == "ANOTHER DISK"
    assert devices.disks()["sdb"] is first["sdb"]


def test_a_card_put_into_a_reader_appears(tmp_path: Path) -> None:
    root, clock = str(tmp_path), ManualClock()
    write_disks(root)
    devices = recorded_machine(root, clock=clock).shared(BlockDevices)
    assert "sdaw" not in devices.disks()
    write(root, "/sys/block/sdaw/size", 15_523_840)
    clock.advance(31)
    assert devices.disks()["sdaw"].removable


@pytest.mark.parametrize(
    ("entry", "target", "name", "transport"),
    [
        ("sdz", "../devices/pci0000:00/usb1/1-1/host9/block/sdz", "sdz", "USB"),
        ("sdy", "../devices/pci0000:00/ata1/host0/block/sdy", "sdy", ""),
        ("mmcblk0", "../devices/platform/mmc0/block/mmcblk0", "mmcblk0", "MMC"),
        ("cciss!c0d0", "../devices/pci0000:00/cciss0/block/cciss!c0d0", "cciss/c0d0", ""),
    ],
)
def test_where_a_disk_hangs(tmp_path: Path, entry: str, target: str, name: str, transport: str) -> None:
    root = str(tmp_path)
    real = f"/sys/{target.removeprefix('../')}"
    write(root, f"{real}/size", 1000)
    write(root, f"{real}/device/name", "CARD")
    link(root, f"/sys/block/{entry}", target)
    (disk,) = recorded_machine(root).shared(BlockDevices).disks().values()
    assert (disk.name, disk.transport, disk.model, disk.rotational) == (name, transport, "CARD", None)


def test_without_sysfs_there_is_no_list(tmp_path: Path) -> None:
    devices = recorded_machine(str(tmp_path)).shared(BlockDevices)
    with pytest.raises(NoData) as caught:
        devices.arrays()
    assert caught.value.state is Absence.UNSUPPORTED
