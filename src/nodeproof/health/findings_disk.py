"""Findings about file systems and disks."""

from nodeproof.health.limits import grown, level, state
from nodeproof.health.rules import DAY_S, HOUR_S, Compare, FindingRule, How, Limit, Probe
from nodeproof.model.health import Severity

__all__ = ["RULES"]

_INFO, _WARNING, _CRITICAL = Severity.INFO, Severity.WARNING, Severity.CRITICAL
_REPLACE = "Save its data and replace it (smartctl -a)."
_MOUNT = ("device", "mount_point")


def _disk_count(name: str) -> Limit:
    return level(Probe("disk", (name,), entity=("device",)), 0, 0, enter=1)


_FILE_SYSTEMS = (
    FindingRule(
        "disk",
        "read_only",
        _CRITICAL,
        state("disk", "read_only_remount", *_MOUNT, enter=1),
        "{mount_point} ({device}) has become read-only",
        "The kernel makes a file system read-only when it finds it damaged or its disk failing.",
        "Read the kernel log (journalctl -k), check the disk, then repair the file system (fsck).",
    ),
    FindingRule(
        "disk",
        "file_system_full",
        _WARNING,
        level(Probe("disk", ("space_detail",), entity=_MOUNT, how=How.OCCUPIED, unless="read_only"), 95, 93, enter=2),
        "{mount_point} is {value} % full",
        "Programs that write there are about to fail. Space reserved for root counts as taken, as in df.",
        "Find what fills it (du -xh).",
    ),
    FindingRule(
        "disk",
        "inodes_short",
        _INFO,
        level(Probe("disk", ("inode_usage",), entity=_MOUNT, unless="read_only"), 90, 88, enter=2),
        "{mount_point} uses {value} % of its inodes",
        "A file system without free inodes takes no new file, however much space it has.",
        "Find the directory with the many small files (du --inodes -x).",
    ),
    FindingRule(
        "disk",
        "inodes_full",
        _WARNING,
        level(Probe("disk", ("inode_usage",), entity=_MOUNT, unless="read_only"), 95, 93, enter=2),
        "{mount_point} uses {value} % of its inodes",
        "A file system without free inodes takes no new file, however much space it has.",
        "Find the directory with the many small files (du --inodes -x).",
    ),
    FindingRule(
        "disk",
        "tmpfs_full",
        _WARNING,
        level(Probe("disk", ("tmpfs_usage",), entity=("mount_point",)), 95, 93, enter=2),
        "{mount_point}, which lies in memory, is {value} % full",
        "Programs that write there are about to fail: shared memory of jobs (/dev/shm), sockets and locks (/run), scratch files.",
        "Find what fills it (du -xh) and whose it is; what dead jobs left behind may go.",
    ),
    FindingRule(
        "disk",
        "tmpfs_inodes_full",
        _WARNING,
        level(Probe("disk", ("tmpfs_inode_usage",), entity=("mount_point",)), 95, 93, enter=2),
        "{mount_point}, which lies in memory, uses {value} % of its inodes",
        "A file system without free inodes takes no new file, however much space it has.",
        "Find the directory with the many small files (du --inodes -x).",
    ),
    FindingRule(
        "disk",
        "file_system_errors",
        _WARNING,
        level(Probe("disk", ("filesystem_errors",), entity=("device", "error")), 0, 0, enter=1),
        "{fstype} on {device} has {value} errors on record",
        "The file system found itself damaged.",
        "Check the disk, then repair it (e2fsck -f; btrfs scrub start, btrfs device stats -z).",
    ),
    FindingRule(
        "disk",
        "pressure",
        _WARNING,
        level(Probe("disk", ("pressure",), (("stall", "full"), ("interval", "avg60"))), 50, 40),
        "all tasks stood still for want of I/O {value} % of the last minute",
        "The machine is busy waiting for its disks.",
        "Find the disk and its user (iostat -x, iotop).",
    ),
)

_DISKS = (
    FindingRule(
        "disk",
        "raid_degraded",
        _CRITICAL,
        state("disk", "raid_state", "device", equal=1, enter=1),
        "RAID array {device} runs without all of its members",
        "The next disk to fail may take the data with it.",
        "mdadm --detail names the member; replace it.",
    ),
    FindingRule(
        "disk",
        "raid_inactive",
        _WARNING,
        state("disk", "raid_state", "device", equal=2, enter=1),
        "RAID array {device} is inactive",
        "The array was found and not started.",
        "mdadm --detail tells why; mdadm --run starts it.",
    ),
    FindingRule(
        "disk",
        "raid_failed",
        _CRITICAL,
        state("disk", "raid_state", "device", at_least=3, enter=1),
        "RAID array {device} has failed",
        "Too few members are left.",
        "mdadm --detail names the members; restore from backup.",
    ),
    FindingRule(
        "disk",
        "io_errors",
        _WARNING,
        grown("disk", "io_errors", HOUR_S, "device", where=(("device", "*"),), from_zero=True),
        "{value} requests to {device} failed within 1 h",
        "The block layer gave requests up: data could not be read or written.",
        "Check the disk and its cable (smartctl -a, journalctl -k).",
    ),
    FindingRule(
        "disk",
        "controller_resets",
        _WARNING,
        grown("disk", "storage_resets", HOUR_S, "device", where=(("device", "*"),), from_zero=True),
        "{device} timed out or was reset {value} times within 1 h",
        "A disk controller or link stopped answering for a while.",
        "Check cable, backplane and firmware (journalctl -k).",
    ),
    FindingRule(
        "disk",
        "failing_attributes",
        _CRITICAL,
        _disk_count("smart_failing_attributes"),
        "disk {device}: {value} SMART attributes foretell failure",
        "Attributes that foretell failure stand at or below the threshold of the disk's maker.",
        _REPLACE,
    ),
    FindingRule(
        "disk",
        "nvme_failing",
        _CRITICAL,
        Limit(Probe("disk", ("smart_critical_warning",), entity=("device",)), Compare.BITS, 4 | 8, enter=1, leave_s=0),
        "disk {device} is unreliable or has made itself read-only (critical warning {value})",
        "An NVMe disk says that its media or it itself can no longer be trusted.",
        _REPLACE,
    ),
    FindingRule(
        "disk",
        "nvme_warning",
        _WARNING,
        Limit(
            Probe("disk", ("smart_critical_warning",), entity=("device",)),
            Compare.BITS,
            1 | 2 | 16 | 32,
            enter=1,
            leave_s=0,
        ),
        "disk {device} warns of spare, temperature or its write cache (critical warning {value})",
        "Bits: 1 spare low, 2 too hot or too cold, 16 backup of the cache failed, 32 persistent memory.",
        "smartctl -a tells which; cool it or plan its replacement.",
    ),
    FindingRule(
        "disk",
        "worn",
        _WARNING,
        Limit(Probe("disk", ("smart_percentage_used",), entity=("device",)), Compare.AT_LEAST, 100, enter=1, leave_s=0),
        "disk {device} has used {value} % of its rated endurance",
        "The disk is worn, not failed: its maker no longer vouches for it.",
        "Plan its replacement.",
    ),
    FindingRule(
        "disk",
        "pending_sectors",
        _WARNING,
        _disk_count("smart_pending_sectors"),
        "disk {device} has {value} sectors that cannot be read",
        "Sectors that wait to be written again; their content is lost.",
        _REPLACE,
    ),
    FindingRule(
        "disk",
        "unreadable_sectors",
        _WARNING,
        _disk_count("smart_offline_uncorrectable"),
        "disk {device} found {value} sectors unreadable",
        "Sectors that the disk's own scan could not read.",
        _REPLACE,
    ),
    FindingRule(
        "disk",
        "new_reallocations",
        _WARNING,
        grown("disk", "smart_reallocated_sectors", DAY_S, "device"),
        "disk {device} replaced {value} sectors by spares within 24 h",
        "A disk that goes on replacing sectors is about to fail.",
        _REPLACE,
    ),
    FindingRule(
        "disk",
        "media_errors",
        _WARNING,
        grown("disk", "smart_media_errors", DAY_S, "device"),
        "disk {device} could not deliver data {value} times within 24 h",
        "The disk found data damaged beyond its own correction.",
        _REPLACE,
    ),
    FindingRule(
        "disk",
        "crc_errors",
        _WARNING,
        grown("disk", "smart_crc_errors", DAY_S, "device"),
        "{value} transfers to disk {device} were damaged within 24 h",
        "Data was damaged between disk and controller: mostly the cable.",
        "Reseat or replace the cable.",
    ),
)

RULES: tuple[FindingRule, ...] = (*_FILE_SYSTEMS, *_DISKS)
"""Rules of this module."""
