"""Component disk: space, inodes and read-only remounts of mounted file systems, one row per device.

Bind mounts, btrfs subvolumes and second mounts of a network share have the same super block, hence the same major:minor, and
become one row: that of the mount that shows the whole file system at the shortest path. ``statvfs`` may hang on a dead server, so
it only runs in the background: local file systems together, each network mount alone. A local one that hangs all the same is
moved out to a call of its own, and the others go on.
"""

import zlib
from collections.abc import Callable
from typing import NamedTuple

from nodeproof.clock import Instant, rfc3339
from nodeproof.collectors.base import Cycle, Group
from nodeproof.collectors.disk.fstypes import Watch, in_memory, watch
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.errors import Absence, NoData
from nodeproof.host.background import Answer, Background
from nodeproof.host.filesystems import Space
from nodeproof.host.machine import Machine
from nodeproof.model.catalogue.disk import SPACE_PERIOD_S
from nodeproof.model.metric import Labels
from nodeproof.sources import proc_mounts
from nodeproof.sources.proc_mounts import Mount, has_option
from nodeproof.units import BYTES_PER_MIB

__all__ = ["Row", "groups", "rows", "shown_name"]

_SPACE = ("space_usage", "space_detail", "inode_usage")
_TMPFS = ("tmpfs_usage", "tmpfs_detail", "tmpfs_inode_usage")
_DEADLINE_S = 5.0
_LONGEST_NAME = 1024
_LOCAL = "statvfs of local file systems"


class Row(NamedTuple):
    """One file system and the mount it is read through."""

    device_id: str
    mount: Mount
    way: Watch
    path: str
    """Mount point for system calls: bytes that are no UTF-8 are kept."""
    labels: Labels
    detail: tuple[Labels, Labels, Labels]
    """Labels of total, used and available."""
    hidden: bool
    """Every mount of it is covered by another one."""


def groups(machine: Machine) -> tuple[Group, ...]:
    """Groups of this part of the component."""
    mounts = _Mounts(machine)
    return (
        Group(_SPACE, _SpaceReader(machine, mounts).read, every_s=SPACE_PERIOD_S),
        Group(("read_only", "read_only_remount"), _Remounts(machine, mounts).read, every_s=SPACE_PERIOD_S),
        Group(_TMPFS, _Tmpfs(machine, mounts).read, every_s=SPACE_PERIOD_S),
    )


def shown_name(raw: bytes) -> str:
    """A source or mount point as a label: bytes that are no UTF-8 replaced; one of absurd length is cut and gets its checksum."""
    text = raw.decode("utf-8", "replace")
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}...{zlib.crc32(raw):08x}"


def rows(mounts: list[Mount]) -> list[Row]:
    """The file systems worth watching, one row per super block, in order of their first mount."""
    seen = {mount.mount_id for mount in proc_mounts.visible(mounts)}
    best: dict[str, tuple[tuple[bool, bool, int], Mount]] = {}
    for mount in mounts:
        if watch(mount.fstype, mount.mount_point) is Watch.NOT:
            continue
        rank = (mount.mount_id not in seen, mount.root != b"/", len(mount.mount_point))
        kept = best.get(mount.device_id)
        if kept is None or rank < kept[0]:
            best[mount.device_id] = (rank, mount)
    return [_row(device_id, mount, hidden=rank[0]) for device_id, (rank, mount) in best.items()]


def _row(device_id: str, mount: Mount, *, hidden: bool) -> Row:
    labels = {
        "device": shown_name(mount.source),
        "mount_point": shown_name(mount.mount_point),
        "fstype": shown_name(mount.fstype.encode()),
    }
    total, used, available = ({**labels, "field": field} for field in ("total", "used", "available"))
    path = mount.mount_point.decode("utf-8", "surrogateescape")
    return Row(device_id, mount, watch(mount.fstype, mount.mount_point), path, labels, (total, used, available), hidden)


class _Mounts:
    """The table of mounts, read once a cycle for all groups and parsed when it has changed."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        # Below a moved root (/host in a container) the mount points are those of process 1.
        self._path = "/proc/1/mountinfo" if machine.files.root else "/proc/self/mountinfo"
        self._raw = b""
        self._rows: list[Row] = []
        self._in_memory: list[Mount] = []
        self._at: Instant | None = None

    def rows(self, at: Instant) -> list[Row]:
        """File systems worth watching. Raises NoData, ParseError."""
        self._read(at)
        if not self._rows:
            raise NoData(Absence.NOT_APPLICABLE, f"{self._path} has no file system with space of its own")
        return self._rows

    def in_memory(self, at: Instant) -> list[Mount]:
        """Mounts of file systems in memory, one a file system. Raises NoData, ParseError."""
        self._read(at)
        return self._in_memory

    def _read(self, at: Instant) -> None:
        if at == self._at:
            return
        raw = self._files.read(self._path)
        if raw != self._raw or not self._rows:
            mounts = proc_mounts.parse_mountinfo(raw)
            self._rows = rows(mounts)
            shared = [mount for mount in proc_mounts.visible(mounts) if in_memory(mount.fstype, mount.mount_point)]
            self._in_memory = list({mount.device_id: mount for mount in reversed(shared)}.values())[::-1]
            self._raw = raw
        self._at = at


_Outcome = Space | NoData
_Key = tuple[str, str]


class _Local:
    """One call for all local file systems; it remembers where it is, so that a hang can be told from a slow round."""

    def __init__(self, machine: Machine) -> None:
        self._files = machine.files
        self.paths: tuple[str, ...] = ()
        self.at_path = ""
        self.source: Background[dict[str, _Outcome]] = machine.background(
            _LOCAL, self._read, interval_s=SPACE_PERIOD_S, deadline_s=_DEADLINE_S
        )

    def _read(self) -> dict[str, _Outcome]:
        outcomes: dict[str, _Outcome] = {}
        for path in self.paths:
            self.at_path = path
            try:
                outcomes[path] = self._files.statvfs(path)
            except NoData as absence:
                outcomes[path] = absence.again()
        self.at_path = ""
        return outcomes


class _SpaceReader:
    """Space of every row."""

    def __init__(self, machine: Machine, mounts: _Mounts) -> None:
        self._machine = machine
        self._mounts = mounts
        self._local = _Local(machine)
        self._alone: dict[_Key, Background[Space]] = {}
        self._hung: set[_Key] = set()

    def read(self, cycle: Cycle) -> None:
        found = self._mounts.rows(cycle.at)
        keys = {(row.device_id, row.path) for row in found}
        self._hung &= keys
        for key in self._alone.keys() - keys:
            self._machine.retire(self._alone.pop(key))
        together = [
            row for row in found if row.way is Watch.LOCAL and not row.hidden and (row.device_id, row.path) not in self._hung
        ]
        answers = self._read_local(together)
        taken_at = cycle.timestamp
        for row in found:
            cycle.timestamp = taken_at
            try:
                answer = self._answer(row, answers)
            except NoData as absence:
                cycle.miss_all(_SPACE, absence, row.labels)
                continue
            cycle.timestamp = rfc3339(answer.at.wall_s)
            _add(cycle, row, answer.value)
        cycle.timestamp = taken_at

    def _read_local(self, together: list[Row]) -> Callable[[Row], Answer[Space]]:
        """Ask for the local file systems; gives what tells the answer for one of them."""
        self._local.paths = tuple(row.path for row in together)
        try:
            answer = self._local.source.latest()
        except NoData as absence:
            return self._without_local(together, absence)

        def told(row: Row) -> Answer[Space]:
            outcome = answer.value.get(row.path)
            if outcome is None:
                raise NoData(Absence.UNKNOWN, "mounted since the last reading")
            if isinstance(outcome, NoData):
                raise outcome.again()
            return Answer(outcome, answer.at)

        return told

    def _without_local(self, together: list[Row], absence: NoData) -> Callable[[Row], Answer[Space]]:
        if absence.state is Absence.STALE:
            stuck = self._local.at_path
            self._hung |= {(row.device_id, row.path) for row in together if row.path == stuck}
            self._machine.retire(self._local.source)
            self._local = _Local(self._machine)

        def told(row: Row) -> Answer[Space]:
            del row
            raise absence.again()

        return told

    def _answer(self, row: Row, local: Callable[[Row], Answer[Space]]) -> Answer[Space]:
        if row.hidden:
            raise NoData(Absence.UNSUPPORTED, "its mount point is covered by another mount")
        key = (row.device_id, row.path)
        if row.way is Watch.LOCAL and key not in self._hung:
            return local(row)
        source = self._alone.get(key)
        if source is None:
            files, path = self._machine.files, row.path
            source = self._alone[key] = self._machine.background(
                f"statvfs of {row.labels['mount_point'][:80]!r}",
                lambda: files.statvfs(path),
                interval_s=SPACE_PERIOD_S,
                deadline_s=_DEADLINE_S,
            )
        return source.latest()


def _add(cycle: Cycle, row: Row, space: Space) -> None:
    if space.blocks <= 0 or space.block_bytes <= 0 or not 0 <= space.blocks_free <= space.blocks:
        cycle.miss_all(_SPACE, NoData(Absence.UNSUPPORTED, "the file system does not tell its size"), row.labels)
        return
    used = space.blocks - space.blocks_free
    mib = space.block_bytes / BYTES_PER_MIB
    cycle.add("space_usage", round(100.0 * used / space.blocks, 2), row.labels)
    for labels, blocks in zip(row.detail, (space.blocks, used, space.blocks_available), strict=True):
        cycle.add("space_detail", round(blocks * mib, 3), labels)
    if space.inodes <= 0 or not 0 <= space.inodes_free <= space.inodes:
        cycle.miss("inode_usage", Absence.NOT_APPLICABLE, f"{row.mount.fstype} has no fixed number of inodes", row.labels)
    else:
        cycle.add("inode_usage", round(100.0 * (space.inodes - space.inodes_free) / space.inodes, 2), row.labels)


class _Remounts:
    """File systems that have become read-only by themselves: what ext4, xfs and btrfs do after an error."""

    def __init__(self, machine: Machine, mounts: _Mounts) -> None:
        self._files = machine.files
        self._mounts = mounts
        self._log = machine.shared(KernelLog)
        self._seen_writable: set[tuple[str, bytes]] = set()

    def read(self, cycle: Cycle) -> None:
        found = self._mounts.rows(cycle.at)
        wanted_writable = self._writable_by_fstab()
        blamed = self._blamed_by_kernel()
        self._seen_writable &= {(row.device_id, row.mount.source) for row in found}
        for row in found:
            mount = row.mount
            identity = (row.device_id, mount.source)
            options = mount.super_options
            cycle.add("read_only", float(has_option(options, "ro")), row.labels)
            if has_option(options, "emergency_ro") or has_option(options, "shutdown"):
                cycle.add("read_only_remount", 1.0, row.labels)
                continue
            if not has_option(options, "ro"):
                self._seen_writable.add(identity)
                cycle.add("read_only_remount", 0.0, row.labels)
                continue
            turned = identity in self._seen_writable or mount.mount_point in wanted_writable
            cycle.add("read_only_remount", float(turned or self._kernel_name(row) in blamed), row.labels)

    def _kernel_name(self, row: Row) -> str:
        """``dm-0`` for ``/dev/mapper/vg-data``: the kernel log knows no other names."""
        try:
            return self._files.link_target(f"/sys/dev/block/{row.device_id}").rpartition("/")[2]
        except NoData:
            return row.labels["device"].rpartition("/")[2]

    def _writable_by_fstab(self) -> set[bytes]:
        try:
            raw = self._files.read("/etc/fstab")
        except NoData:  # containers and image-based systems have none; what was seen before still counts
            return set()
        return {entry.mount_point for entry in proc_mounts.parse(raw) if not has_option(entry.options, "ro")}

    def _blamed_by_kernel(self) -> frozenset[str]:
        try:
            return frozenset(self._log.counts().fs_readonly)
        except NoData:  # reported by the metrics that are about the log
            return frozenset()


class _Tmpfs:
    """File systems in memory. Asking them touches no disk and no server, so it is done here and now."""

    def __init__(self, machine: Machine, mounts: _Mounts) -> None:
        self._files = machine.files
        self._mounts = mounts

    def read(self, cycle: Cycle) -> None:
        for mount in self._mounts.in_memory(cycle.at):
            if has_option(mount.super_options, "ro"):
                continue
            labels = {"mount_point": shown_name(mount.mount_point)}
            try:
                self._add(cycle, labels, self._files.statvfs(mount.mount_point.decode("utf-8", "surrogateescape")))
            except NoData as absence:
                cycle.miss_all(_TMPFS, absence, labels)
        if not cycle.metrics and not cycle.missing:
            raise NoData(Absence.NOT_APPLICABLE, "no file system in memory is mounted that programs share")

    @staticmethod
    def _add(cycle: Cycle, labels: Labels, space: Space) -> None:
        if space.blocks <= 0 or space.block_bytes <= 0 or not 0 <= space.blocks_free <= space.blocks:
            cycle.miss_all(_TMPFS, NoData(Absence.NOT_APPLICABLE, "it has no limit of its own"), labels)
            return
        used = space.blocks - space.blocks_free
        mib = space.block_bytes / BYTES_PER_MIB
        cycle.add("tmpfs_usage", round(100.0 * used / space.blocks, 2), labels)
        for field, blocks in (("total", space.blocks), ("used", used), ("available", space.blocks_available)):
            cycle.add("tmpfs_detail", round(blocks * mib, 3), {**labels, "field": field})
        if 0 < space.inodes >= space.inodes_free >= 0:
            cycle.add("tmpfs_inode_usage", round(100.0 * (space.inodes - space.inodes_free) / space.inodes, 2), labels)
