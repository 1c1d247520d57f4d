"""Component disk: errors that the kernel log and the file systems themselves have on record."""

from collections.abc import Mapping

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.errors import Absence, NoData, ParseError
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue.disk import ERRORS_PERIOD_S
from nodeproof.sources import btrfs

__all__ = ["groups"]

_EXT4 = "/sys/fs/ext4"
_BTRFS = "/sys/fs/btrfs"


def groups(machine: Machine) -> tuple[Group, ...]:
    """Groups of this part of the component."""
    return (
        Group(("io_errors", "storage_resets"), _Logged(machine).read),
        Group(("filesystem_errors",), _FileSystems(machine).read, every_s=ERRORS_PERIOD_S),
    )


class _Logged:
    """What the kernel log says of disks and controllers."""

    def __init__(self, machine: Machine) -> None:
        self._log = machine.shared(KernelLog)
        self._labels: dict[str, dict[str, str]] = {}

    def read(self, cycle: Cycle) -> None:
        counts = self._log.counts()
        self._add(cycle, "io_errors", counts.io_errors)
        self._add(cycle, "storage_resets", counts.storage_resets)

    def _add(self, cycle: Cycle, name: str, counted: Mapping[str, int]) -> None:
        cycle.add(name, sum(counted.values()))
        for device, number in counted.items():
            cycle.add(name, number, self._labels.setdefault(device, {"device": device}))


class _FileSystems:
    """Error counters of ext4 and btrfs."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files

    def read(self, cycle: Cycle) -> None:
        before = len(cycle.metrics) + len(cycle.missing)
        self._ext4(cycle)
        self._btrfs(cycle)
        if len(cycle.metrics) + len(cycle.missing) == before:
            raise NoData(Absence.NOT_APPLICABLE, "no mounted file system here counts its errors (ext4 and btrfs do)")

    def _ext4(self, cycle: Cycle) -> None:
        for device in _names(self._files, _EXT4):
            folder = f"{_EXT4}/{device}"
            if not self._files.exists(f"{folder}/errors_count"):  # "features" stands beside the devices
                continue
            labels = {"device": f"/dev/{device}", "fstype": "ext4", "error": "any"}
            try:
                cycle.add("filesystem_errors", self._files.read_int(f"{folder}/errors_count"), labels)
            except NoData as absence:
                cycle.miss_all(("filesystem_errors",), absence, labels)

    def _btrfs(self, cycle: Cycle) -> None:
        for uuid in _names(self._files, _BTRFS):
            members = _names(self._files, f"{_BTRFS}/{uuid}/devinfo")
            if not members:
                continue
            devices = _names(self._files, f"{_BTRFS}/{uuid}/devices")
            labels = {"device": f"/dev/{devices[0]}" if devices else uuid, "fstype": "btrfs"}
            try:
                totals = self._totals(f"{_BTRFS}/{uuid}/devinfo", members)
            except NoData as absence:
                cycle.miss_all(("filesystem_errors",), absence, labels)
                continue
            except ParseError as error:
                cycle.miss("filesystem_errors", Absence.READ_ERROR, str(error), labels)
                continue
            for kind, number in totals.items():
                cycle.add("filesystem_errors", number, {**labels, "error": kind})

    def _totals(self, folder: str, members: list[str]) -> dict[str, int]:
        """Errors by kind, all members together. Raises NoData, ParseError."""
        totals: dict[str, int] = {}
        for member in members:
            for kind, number in btrfs.parse_error_stats(self._files.read(f"{folder}/{member}/error_stats")).items():
                totals[kind] = totals.get(kind, 0) + number
        return totals


def _names(files: FileTree, folder: str) -> list[str]:
    try:
        return files.names(folder)
    except NoData:
        return []
