import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.sources.sys_block import BlockFacts, DeviceKind, device_kind, is_virtual, looks_like_whole_disk

_OTHER = DeviceKind.OTHER
_DISK = DeviceKind.DISK


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (BlockFacts("sda", 100, has_device=True, scsi_type=0), _DISK),
        (BlockFacts("nvme0n1", 100, has_device=True), _DISK),
        (BlockFacts("vda", 100, has_device=True), _DISK),
        (BlockFacts("mmcblk0", 100, has_device=True), _DISK),
        (BlockFacts("rbd0", 100, has_device=True), _DISK),
        (BlockFacts("dasda", 100, has_device=True), _DISK),
        (BlockFacts("cciss/c0d0", 100, has_device=True), _DISK),
        (BlockFacts("nbd0", 100, has_device=False), _DISK),
        (BlockFacts("nbd0", 0, has_device=False), _OTHER),
        (BlockFacts("nvme0c0n1", 100, has_device=True, hidden=True), _OTHER),
        (BlockFacts("mmcblk0boot0", 100, has_device=True), _OTHER),
        (BlockFacts("mmcblk0rpmb", 100, has_device=True), _OTHER),
        (BlockFacts("sr0", 100, has_device=True, scsi_type=5), _OTHER),
        (BlockFacts("sdb", 100, has_device=True, scsi_type=5), _OTHER),
        (BlockFacts("fd0", 8, has_device=True), _OTHER),
        (BlockFacts("sdc", 0, has_device=True, scsi_type=0), _OTHER),
        (BlockFacts("loop0", 100, has_device=False), _OTHER),
        (BlockFacts("ram0", 100, has_device=False), _OTHER),
        (BlockFacts("zram0", 100, has_device=False), _OTHER),
        (BlockFacts("zd0", 100, has_device=False), _OTHER),
        (BlockFacts("drbd0", 100, has_device=False), _OTHER),
        (BlockFacts("dm-0", 100, has_device=False, is_dm=True), DeviceKind.DM),
        (BlockFacts("md0", 0, has_device=False, is_md=True), DeviceKind.MD),
    ],
)
def test_what_counts_as_a_disk(facts: BlockFacts, kind: DeviceKind) -> None:
    assert device_kind(facts) is kind


def test_the_guess_without_sysfs() -> None:
    whole = ["sda", "sdaa", "vda", "xvdb", "nvme10n1", "mmcblk0", "dasda", "rbd0", "nbd1", "hda", "cciss/c0d0"]
    others = ["sda1", "nvme0n1p1", "nvme0c0n1", "mmcblk0p1", "dm-0", "md0", "loop0", "ram0", "zram0", "sr0", "xvda1"]
    assert [name for name in (*whole, *others) if looks_like_whole_disk(name)] == whole


@pytest.mark.parametrize(
    ("name", "vendor", "model", "virtual"),
    [
        ("vda", "", "", True),
        ("sda", "QEMU", "QEMU HARDDISK", True),
        ("sda", "VMware", "Virtual disk", True),
        ("sda", "ATA", "VBOX HARDDISK", True),
        ("sda", "Msft", "Virtual Disk", True),
        ("sda", "Google", "PersistentDisk", True),
        ("nvme0n1", "", "Amazon Elastic Block Store", True),
        ("rbd0", "", "", True),
        ("sda", "ATA", "ST4000NM0025", False),
        ("sda", "DELL", "PERC H730 Mini", False),
        ("nvme0n1", "", "SAMSUNG MZQL23T8HCLS-00A07", False),
    ],
)
def test_what_a_hypervisor_made_up(name: str, vendor: str, model: str, virtual: bool) -> None:  # noqa: FBT001 - the expectation
    assert is_virtual(name, vendor, model) is virtual


@given(st.text(max_size=20), st.integers(), st.booleans(), st.booleans())
def test_a_hidden_or_empty_device_is_never_a_disk(name: str, sectors: int, has_device: bool, hidden: bool) -> None:  # noqa: FBT001
    kind = device_kind(BlockFacts(name, sectors, has_device=has_device, hidden=hidden))
    assert kind in {DeviceKind.DISK, DeviceKind.OTHER}
    if hidden or sectors <= 0:
        assert kind is DeviceKind.OTHER
