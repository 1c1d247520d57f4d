"""``/sys/block``: what kind of device a name stands for (Documentation/ABI/stable/sysfs-block).

The kernel tells whole disks from everything else there; a name alone does not (``nvme0c0n1`` is one path of a multipath disk,
``mmcblk0boot0`` a corner of another, ``sda`` may be an empty card reader).
"""

import re
from enum import StrEnum
from typing import NamedTuple

__all__ = ["BlockFacts", "DeviceKind", "device_kind", "is_virtual", "looks_like_whole_disk"]

_NAME = re.compile(
    r"^(sd[a-z]+|hd[a-z]|vd[a-z]+|xvd[a-z]+|nvme\d+n\d+|mmcblk\d+|dasd[a-z]+|rbd\d+|nbd\d+|pmem\d+s?|cciss/c\d+d\d+)$"
)
_PART_OF_CHIP = re.compile(r"^mmcblk\d+(boot\d+|rpmb|gp\d+)$")
_NO_DISK = re.compile(r"^(fd|sr|scd|loop|ram|zram|mtdblock|ubiblock)\d+$")
_VIRTUAL_NAME = re.compile(r"^(vd[a-z]+|xvd[a-z]+|rbd\d+|nbd\d+|pmem\d+s?|dasd[a-z]+)$")
_VIRTUAL_WORDS = (
    "qemu",
    "vmware",
    "virtual disk",
    "vbox",
    "msft",
    "google persistentdisk",
    "persistentdisk",
    "amazon elastic block store",
    "alibaba cloud elastic block",
    "xen",
)
"""Vendors and models that hypervisors give to disks they make up, in lower case."""
_CDROM_TYPES = {5, 7}
"""SCSI peripheral device types of drives for CD/DVD and optical memory (SPC-4, table of peripheral device types)."""


class DeviceKind(StrEnum):
    """What a device is to us."""

    DISK = "disk"
    MD = "md"
    DM = "dm"
    OTHER = "other"
    """Loop, RAM, CD, floppy, one path of a multipath disk, part of a chip, empty slot, or stacked on disks that are counted."""


class BlockFacts(NamedTuple):
    """What ``/sys/block/NAME`` says."""

    name: str
    sectors: int
    has_device: bool
    """``device`` exists: it hangs on a bus, so it is no invention of a driver."""
    hidden: bool = False
    is_md: bool = False
    is_dm: bool = False
    scsi_type: int | None = None
    """``device/type``."""


def device_kind(facts: BlockFacts, /) -> DeviceKind:
    """The kind of one device. A network block device hangs on no bus and is a disk all the same, once it is connected."""
    if facts.is_md:
        return DeviceKind.MD
    if facts.is_dm:
        return DeviceKind.DM
    if facts.hidden or facts.sectors <= 0 or facts.scsi_type in _CDROM_TYPES:
        return DeviceKind.OTHER
    if _NO_DISK.match(facts.name) or _PART_OF_CHIP.match(facts.name):
        return DeviceKind.OTHER
    if facts.has_device or facts.name.startswith("nbd"):
        return DeviceKind.DISK
    return DeviceKind.OTHER


def looks_like_whole_disk(name: str, /) -> bool:
    """The guess where ``/sys/block`` cannot be read."""
    return _NAME.match(name) is not None


def is_virtual(name: str, vendor: str, model: str, /) -> bool:
    """Whether a hypervisor or a network stands behind the disk: nothing there can fail in the way SMART foresees."""
    if _VIRTUAL_NAME.match(name):
        return True
    said = f"{vendor} {model}".lower()
    return any(word in said for word in _VIRTUAL_WORDS)
