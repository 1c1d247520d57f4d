r"""Tables of mounts: ``/proc/self/mountinfo``, ``/proc/mounts`` and ``/etc/fstab`` (proc_pid_mountinfo(5), fstab(5)).

mountinfo: ``36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue``: id, parent, major:minor of the
super block, root of this mount inside its file system, mount point, options of the mount, optional fields up to a lone ``-``,
type, source, options of the super block. mounts and fstab: ``/dev/sda1 /boot ext4 rw 0 0``. All three write space, tab, newline
and backslash as ``\040 \011 \012 \134``; names are bytes, because a mount point need not be UTF-8.
"""

import re
from typing import NamedTuple

from nodeproof.errors import ParseError

__all__ = ["Mount", "TableEntry", "has_option", "parse", "parse_mountinfo", "visible"]

_OCTAL = re.compile(rb"\\([0-3][0-7]{2})")
_BEFORE_DASH = 6


class Mount(NamedTuple):
    """One line of mountinfo."""

    mount_id: int
    parent_id: int
    device_id: str
    """major:minor of the super block: the same for bind mounts and for subvolumes of one btrfs."""
    root: bytes
    mount_point: bytes
    options: str
    """Of this mount alone; a bind mount may be ``ro`` on a writable file system."""
    fstype: str
    source: bytes
    super_options: str
    """Of the file system: ``ro`` here means that nobody can write to it."""


class TableEntry(NamedTuple):
    """One line of ``/proc/mounts`` or ``/etc/fstab``."""

    source: bytes
    mount_point: bytes
    fstype: str
    options: str


def parse_mountinfo(raw: bytes, /) -> list[Mount]:
    """Every usable line, in order. Raises ParseError when there are lines and none is usable."""
    mounts = [mount for line in raw.split(b"\n") if (mount := _mount(line)) is not None]
    if not mounts and raw.strip():
        raise ParseError(
            "mountinfo", 1, raw[:80].decode("utf-8", "replace"), "lines with ids, major:minor, mount point and ' - '"
        )
    return mounts


def _mount(line: bytes) -> Mount | None:
    fields = line.split(b" ")
    try:
        dash = fields.index(b"-", _BEFORE_DASH)
        fstype, source, super_options = fields[dash + 1 : dash + 4]
        mount_id, parent_id = int(fields[0]), int(fields[1])
    except ValueError:
        return None
    major, _, minor = fields[2].partition(b":")
    if not major.isdigit() or not minor.isdigit() or not fields[4].startswith(b"/"):
        return None
    return Mount(
        mount_id,
        parent_id,
        fields[2].decode("ascii"),
        _unescape(fields[3]),
        _unescape(fields[4]),
        _text(fields[5]),
        _text(_unescape(fstype)),
        _unescape(source),
        _text(super_options),
    )


def parse(raw: bytes, /) -> list[TableEntry]:
    """Entries of ``/proc/mounts`` or ``/etc/fstab``; comments, blank and damaged lines are passed over. Never raises."""
    entries: list[TableEntry] = []
    for line in raw.split(b"\n"):
        fields = line.split()
        if len(fields) < 3 or fields[0].startswith(b"#"):
            continue
        options = _text(fields[3]) if len(fields) > 3 else "defaults"
        entries.append(TableEntry(_unescape(fields[0]), _unescape(fields[1]), _text(_unescape(fields[2])), options))
    return entries


def has_option(options: str, word: str, /) -> bool:
    """Whether the comma-separated ``options`` hold ``word``."""
    return word in options.split(",")


def visible(mounts: list[Mount], /) -> list[Mount]:
    """The mounts whose mount point still leads to them, in order: not those covered by a later mount on top or further up."""
    # The root of a mount namespace is its own parent.
    points = {(mount.parent_id, mount.mount_point) for mount in mounts if mount.parent_id != mount.mount_id}
    by_id = {mount.mount_id: mount for mount in mounts}
    return [mount for mount in mounts if (mount.mount_id, mount.mount_point) not in points and _reachable(mount, by_id, points)]


def _reachable(mount: Mount, by_id: dict[int, Mount], points: set[tuple[int, bytes]]) -> bool:
    """Whether looking up the mount point passes through this mount: no mount beside it or over its parents lies in the way."""
    child = mount
    passed: set[int] = set()
    while True:
        passed.add(child.mount_id)
        parent = by_id.get(child.parent_id)
        if parent is None or parent.mount_id in passed:
            return True
        if child.mount_point != parent.mount_point and (parent.mount_id, parent.mount_point) in points:
            return False
        path = child.mount_point.rpartition(b"/")[0]
        while len(path) > len(parent.mount_point.rstrip(b"/")):
            if (parent.mount_id, path) in points:
                return False
            path = path.rpartition(b"/")[0]
        child = parent


def _unescape(field: bytes) -> bytes:
    if b"\\" not in field:
        return field
    return _OCTAL.sub(lambda match: bytes((int(match[1], 8),)), field)


def _text(field: bytes) -> str:
    return field.decode("utf-8", "replace")
