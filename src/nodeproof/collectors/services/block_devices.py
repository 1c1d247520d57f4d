"""Whole disks and arrays of this machine, from ``/sys/block``: shared by everything that reads disks.

The list is made anew every thirty seconds; what does not change while a disk stays in its place (model, serial number) is read
once. A disk that was swapped for another under the same name is a new one: the kernel gives it another sequence number.
"""

import threading
from typing import NamedTuple

from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.sources.sys_block import BlockFacts, DeviceKind, device_kind, is_virtual
from nodeproof.units import SECTOR_BYTES

__all__ = ["BlockDevices", "Disk", "no_disks"]

_ROOT = "/sys/block"
_REFRESH_S = 30.0


class Disk(NamedTuple):
    """One whole disk."""

    name: str
    """As ``/proc/diskstats`` writes it: ``sda``, ``nvme0n1``, ``cciss/c0d0``."""
    generation: str
    """Changes when another disk takes this name."""
    size_bytes: int
    vendor: str
    model: str
    serial: str
    firmware: str
    parent: str
    """Device it hangs on, as hwmon names it too: ``nvme0``, ``2:0:0:0``; empty where there is none."""
    transport: str
    """``PCIe``, ``USB``, ``virtio``, ``MMC``; empty where only the disk itself can tell (SATA, SAS)."""
    rotational: bool | None
    removable: bool
    virtual: bool
    """Made up by a hypervisor or served by a network: SMART does not apply."""
    discards: bool

    @property
    def path(self) -> str:
        """Device file."""
        return f"/dev/{self.name}"


class _Listing(NamedTuple):
    """All devices at one moment."""

    at_s: float
    disks: dict[str, Disk]
    arrays: tuple[str, ...]
    kinds: dict[str, tuple[str, int, DeviceKind]]
    """Generation, sectors and kind of every entry, by its name in ``/sys/block``."""


class BlockDevices:
    """The list; get it by ``machine.shared(BlockDevices)``."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._clock = machine.clock
        self._lock = threading.Lock()
        self._listing: _Listing | None = None

    def disks(self) -> dict[str, Disk]:
        """Whole disks by name; the same object until the list changes. Raises NoData when ``/sys/block`` cannot be read."""
        return self._current().disks

    def arrays(self) -> tuple[str, ...]:
        """Names of the md arrays. Raises NoData when ``/sys/block`` cannot be read."""
        return self._current().arrays

    def _current(self) -> _Listing:
        now_s = self._clock.now().mono_s
        with self._lock:
            if self._listing is None or now_s - self._listing.at_s >= _REFRESH_S:
                self._listing = self._list(now_s, self._listing)
            return self._listing

    def _list(self, now_s: float, before: _Listing | None) -> _Listing:
        known = before.kinds if before else {}
        known_disks = before.disks if before else {}
        disks: dict[str, Disk] = {}
        kinds: dict[str, tuple[str, int, DeviceKind]] = {}
        for entry in self._files.names(_ROOT):
            folder = f"{_ROOT}/{entry}"
            name = entry.replace("!", "/")
            sectors = _integer(self._files, f"{folder}/size") or 0
            generation = _text(self._files, f"{folder}/diskseq") or _text(self._files, f"{folder}/dev")
            kept = known.get(entry)
            if kept is None or kept[:2] != (generation, sectors):
                kept = (generation, sectors, device_kind(_facts(self._files, folder, name, sectors)))
                known_disks = {disk: facts for disk, facts in known_disks.items() if disk != name}
            kinds[entry] = kept
            if kept[2] is DeviceKind.DISK:
                disks[name] = known_disks.get(name) or _disk(self._files, folder, name, generation, sectors)
        arrays = tuple(entry for entry, kept in kinds.items() if kept[2] is DeviceKind.MD)
        return _Listing(now_s, before.disks if before and disks == before.disks else disks, arrays, kinds)


def _facts(files: FileTree, folder: str, name: str, sectors: int) -> BlockFacts:
    return BlockFacts(
        name,
        sectors,
        has_device=files.exists(f"{folder}/device"),
        hidden=_text(files, f"{folder}/hidden") == "1",
        is_md=files.exists(f"{folder}/md"),
        is_dm=files.exists(f"{folder}/dm"),
        scsi_type=_integer(files, f"{folder}/device/type"),
    )


def _disk(files: FileTree, folder: str, name: str, generation: str, sectors: int) -> Disk:
    vendor = _text(files, f"{folder}/device/vendor")
    model = _text(files, f"{folder}/device/model") or _text(files, f"{folder}/device/name")
    rotational = _text(files, f"{folder}/queue/rotational")
    return Disk(
        name,
        generation,
        sectors * SECTOR_BYTES,
        "" if vendor.startswith("0x") else vendor,  # virtio gives a number there
        model,
        _text(files, f"{folder}/device/serial") or _text(files, f"{folder}/serial"),
        _text(files, f"{folder}/device/firmware_rev") or _text(files, f"{folder}/device/rev"),
        _link(files, f"{folder}/device").rpartition("/")[2],
        _transport(name, _link(files, folder)),
        {"1": True, "0": False}.get(rotational),
        removable=_text(files, f"{folder}/removable") == "1",
        virtual=is_virtual(name, vendor, model),
        discards=(_integer(files, f"{folder}/queue/discard_max_bytes") or 0) > 0,
    )


def _transport(name: str, link: str) -> str:
    if name.startswith("nvme"):
        return "PCIe"
    if "/usb" in link:
        return "USB"
    if name.startswith("mmcblk"):
        return "MMC"
    return "virtio" if "/virtio" in link or name.startswith("vd") else ""


def _text(files: FileTree, path: str) -> str:
    try:
        return files.read_text(path)
    except NoData:
        return ""


def _integer(files: FileTree, path: str) -> int | None:
    try:
        return files.read_int(path)
    except NoData:
        return None


def _link(files: FileTree, path: str) -> str:
    try:
        return files.link_target(path)
    except NoData:
        return ""


def no_disks() -> NoData:
    """The absence of everything about disks on a machine without any."""
    return NoData(Absence.NOT_APPLICABLE, "this machine has no disk of its own")
