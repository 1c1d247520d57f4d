"""Component disk: software RAID. The files of ``/sys/block/mdN/md`` say more than ``/proc/mdstat``, which stands in for them."""

from typing import NamedTuple

from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.services.block_devices import BlockDevices
from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue.disk import RAID_PERIOD_S
from nodeproof.sources import mdstat
from nodeproof.sources.mdstat import Array

__all__ = ["groups"]

_NAMES = ("raid_state", "raid_members", "raid_sync_progress", "raid_mismatches")


def groups(machine: Machine) -> tuple[Group, ...]:
    """Groups of this part of the component."""
    return (Group(_NAMES, _Arrays(machine).read, every_s=RAID_PERIOD_S),)


class _Arrays:
    """All arrays of the md driver."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self._devices = machine.shared(BlockDevices)

    def read(self, cycle: Cycle) -> None:
        arrays = self._from_sysfs() or self._from_mdstat()
        if not arrays:
            raise NoData(Absence.NOT_APPLICABLE, "this machine has no software RAID")
        for array in arrays:
            self._add(cycle, array)

    def _from_sysfs(self) -> list[Array]:
        try:
            names = self._devices.arrays()
        except NoData:
            return []
        return [array for name in names if (array := _array(self._files, name)) is not None]

    def _from_mdstat(self) -> list[Array]:
        try:
            raw = self._files.read("/proc/mdstat")
        except NoData as absence:
            if absence.state is Absence.UNSUPPORTED:  # no md driver, hence no array
                return []
            raise
        return list(mdstat.parse(raw).values())

    @staticmethod
    def _add(cycle: Cycle, array: Array) -> None:
        labels = {"device": array.name}
        if array.level:
            labels["level"] = array.level
        cycle.add("raid_state", float(array.state), labels)
        for state, number in (
            ("wanted", array.members_wanted),
            ("active", array.members_active),
            ("failed", array.members_failed),
            ("spare", array.members_spare),
        ):
            if number is not None:
                cycle.add("raid_members", number, {**labels, "state": state})
        if array.sync_percent is not None:
            cycle.add("raid_sync_progress", array.sync_percent, {**labels, "action": array.sync_action})
        if array.mismatches is not None:
            cycle.add("raid_mismatches", array.mismatches, labels)


class _Members(NamedTuple):
    active: int
    failed: int
    spare: int


def _array(files: FileTree, name: str) -> Array | None:
    """One array out of sysfs; None for what is no array: a container of external metadata, or a device without one."""
    folder = f"/sys/block/{name}/md"
    state = _text(files, f"{folder}/array_state")
    level = _text(files, f"{folder}/level")
    if state in {"", "clear"} or level == "container":
        return None
    wanted = _count(files, f"{folder}/raid_disks")
    members = _members(files, folder)
    missing = _count(files, f"{folder}/degraded")
    if missing is None and wanted:
        missing = max(0, wanted - members.active) if members.active else None  # raid0 and linear have no such file
    action = _text(files, f"{folder}/sync_action") or "idle"
    percent = mdstat.sync_percent(_text(files, f"{folder}/sync_completed")) if action not in {"idle", "frozen"} else None
    return Array(
        name,
        mdstat.judge(state, level, wanted, missing, members.active),
        level,
        wanted,
        members.active,
        members.failed,
        members.spare,
        action,
        percent,
        _count(files, f"{folder}/mismatch_cnt"),
    )


def _members(files: FileTree, folder: str) -> _Members:
    try:
        entries = [entry for entry in files.names(folder) if entry.startswith("dev-")]
    except NoData:
        entries = []
    kinds = [mdstat.member_kind(_text(files, f"{folder}/{entry}/state")) for entry in entries]
    return _Members(kinds.count("active"), kinds.count("failed"), kinds.count("spare"))


def _text(files: FileTree, path: str) -> str:
    try:
        return files.read_text(path)
    except NoData:
        return ""


def _count(files: FileTree, path: str) -> int | None:
    try:
        number = files.read_int(path)
    except NoData:
        return None
    return number if number >= 0 else None
