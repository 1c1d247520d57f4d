"""Disk part of made-up hosts. Every number follows from the few named here, so that readings can be worked out by hand.

* ``bare-x86-256cpu``: 48 SAS disks ``sda`` ... ``sdav`` and 16 NVMe disks, with partitions, loops, a CD drive, a card reader
  without a card, one hidden path of a multipath disk, dm and md on top. Disk number ``n`` (from 0) stands at ``(n + 1)`` times
  the base counters and grows by ``(n + 1)`` times the steps each tick.
* ``vm-2cpu``: one virtio disk, zram, loops.
* ``storage-sick``: a degraded and an inactive array, a file system gone read-only, a dead NFS server, a failing disk, and mount
  points with every hostile name.
"""

import json
import os
from collections.abc import Sequence

from support.kernel_log import record, write_log
from support.tree import link, write, write_all

__all__ = [
    "NVME",
    "SAS",
    "diskstats_256",
    "hostile_mount_points",
    "sd_name",
    "write_chip",
    "write_disks",
    "write_sick_storage",
    "write_vm_disk",
]


def sd_name(number: int) -> str:
    """Name of SCSI disk ``number``: ``sda`` ... ``sdz``, ``sdaa`` ..."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return f"sd{letters[number]}" if number < 26 else f"sd{letters[number // 26 - 1]}{letters[number % 26]}"


SAS = tuple(sd_name(number) for number in range(48))
NVME = tuple(f"nvme{number}n1" for number in range(16))

_BASE = (1000, 10, 80_000, 500, 2000, 20, 160_000, 4000, 0, 3000, 4500, 100, 0, 40_960, 50, 30, 20)
_STEP = (20, 1, 2048, 30, 10, 2, 4096, 25, 0, 10, 55, 1, 0, 2048, 1, 1, 1)


def _counters(factor: int, tick: int) -> str:
    return " ".join(str(factor * (base + tick * step)) for base, step in zip(_BASE, _STEP, strict=True))


def diskstats_256(tick: int, disks: Sequence[str] = (*SAS, *NVME)) -> str:
    """``/proc/diskstats`` after ``tick`` steps; what is no whole disk counts as busily, and must not be seen."""
    lines = [f"   7       {number} loop{number} {_counters(900, tick)}" for number in range(4)]
    for number, name in enumerate(disks):
        lines.append(f"   8 {16 * number:7d} {name} {_counters(number + 1, tick)}")
        part = f"{name}p1" if name.startswith("nvme") else f"{name}1"
        lines.append(f"   8 {16 * number + 1:7d} {part} {_counters(number + 1, tick)}")
    lines += [
        f"  11       0 sr0 {_counters(900, tick)}",
        f"   8     999 sdaw {_counters(900, tick)}",
        f" 253       0 dm-0 {_counters(900, tick)}",
        f"   9       0 md0 {_counters(900, tick)}",
    ]
    return "\n".join(lines) + "\n"


def _block(root: str, name: str, dev: str, sectors: int, **more: str | int) -> str:
    folder = f"/sys/block/{name}"
    write_all(root, folder, {"dev": dev, "size": sectors, "hidden": 0, "removable": 0})
    write_all(root, f"{folder}/queue", {"rotational": 0, "discard_max_bytes": 0})
    for path, content in more.items():
        write(root, f"{folder}/{path.replace('__', '/')}", content)
    return folder


def _on_bus(root: str, name: str, parent: str, files: dict[str, str | int]) -> None:
    """``device``, a link to the device on the bus as in the kernel."""
    write_all(root, f"/sys/devices/bus/{parent}", files)
    link(root, f"/sys/block/{name}/device", f"../../devices/bus/{parent}")


def write_disks(root: str, sas: Sequence[str] = SAS, nvme: Sequence[str] = NVME) -> None:
    """The disks of ``bare-x86-256cpu`` at tick 0, or fewer of them."""
    for number, name in enumerate(sas):
        _block(root, name, f"8:{16 * number}", 7_814_037_168, queue__rotational=1, diskseq=number + 1)
        _on_bus(root, name, f"0:0:{number}:0", {"type": 0, "vendor": "SEAGATE", "model": "ST4000NM0025", "rev": "N003"})
    for number, name in enumerate(nvme):
        _block(root, name, f"259:{number}", 7_501_476_528, queue__discard_max_bytes=2_199_023_255_040, diskseq=100 + number)
        files: dict[str, str | int] = {
            "model": "SAMSUNG MZQL23T8HCLS-00A07",
            "serial": f"SERIAL{number:04d}",
            "firmware_rev": "GDC5602Q",
        }
        _on_bus(root, name, f"nvme{number}", files)
    _block(root, "nvme0c0n1", "259:99", 7_501_476_528, hidden=1)
    _on_bus(root, "nvme0c0n1", "nvme0path", {})
    _block(root, "sr0", "11:0", 2_097_151, removable=1)
    _on_bus(root, "sr0", "1:0:0:0", {"type": 5, "vendor": "HL-DT-ST", "model": "DVDRAM"})
    _block(root, "sdaw", "8:999", 0, removable=1)
    _on_bus(root, "sdaw", "2:0:0:0", {"type": 0, "vendor": "Generic", "model": "SD/MMC reader"})
    for number in range(4):
        _block(root, f"loop{number}", f"7:{number}", 0)
    _block(root, "dm-0", "253:0", 1_000_000, dm__name="vg-root")
    _block(root, "md0", "9:0", 1_000_000, md__array_state="clean", md__level="raid1", md__raid_disks=2, md__degraded=0)
    write_all(root, "/sys/block/md0/md", {"sync_action": "idle", "sync_completed": "none", "mismatch_cnt": 0})
    for member in ("sda1", "sdb1"):
        write(root, f"/sys/block/md0/md/dev-{member}/state", "in_sync")
    write(root, "/proc/diskstats", diskstats_256(0, (*sas, *nvme)))
    write(root, "/proc/1/mountinfo", _MOUNTS_256)
    write(root, "/etc/fstab", "/dev/mapper/vg-root / ext4 defaults 0 1\n")
    write(root, "/statvfs.json", json.dumps(_SPACE_256))
    write(root, "/proc/pressure/io", _PRESSURE)
    write_all(root, "/sys/fs/ext4/dm-0", {"errors_count": 0})
    write(root, "/sys/fs/ext4/features/lazy_itable_init", "supported")
    write_log(root, [record("systemd[1]: nothing of interest")])
    for number in (1, 2):  # the first one's chip belongs to the processor part
        write_chip(
            root, 40 + number, "nvme", f"nvme{number}", {"temp1_input": 30_000 + 1000 * number, "temp1_label": "Composite"}
        )


def write_chip(root: str, number: int, name: str, device: str, files: dict[str, str | int]) -> None:
    """One chip of the hwmon class."""
    folder = f"/sys/class/hwmon/hwmon{number}"
    write_all(root, folder, {"name": name, **files})
    link(root, f"{folder}/device", f"../../../{device}")


_MOUNTS_256 = """22 28 0:21 / /proc rw,nosuid shared:12 - proc proc rw
23 28 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw
24 28 0:5 / /dev rw,nosuid shared:2 - devtmpfs devtmpfs rw,size=4096k
28 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw
29 28 9:0 / /srv rw,relatime shared:3 - xfs /dev/md0 rw,attr2
30 28 0:40 /@home /home rw,relatime shared:4 - btrfs /dev/nvme1n1p1 rw,subvolid=257,subvol=/@home
31 28 0:40 / /btrfs rw,relatime shared:5 - btrfs /dev/nvme1n1p1 rw,subvolid=5,subvol=/
32 28 253:0 /var/lib/x /mnt/bind rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw
33 28 0:50 / /var/lib/docker/overlay2/aa/merged rw - overlay overlay rw,lowerdir=/l,upperdir=/u
34 28 7:0 / /snap/core/1 ro - squashfs /dev/loop0 ro
35 28 0:60 / /net/home rw shared:9 - nfs4 filer:/home rw,vers=4.2
36 28 0:61 / /misc rw shared:10 - autofs systemd-1 rw,fd=29
"""

_SPACE_256: dict[str, list[int]] = {
    "/": [4096, 10_000_000, 2_500_000, 2_000_000, 2_500_000, 2_000_000],
    "/srv": [4096, 1_000_000_000, 900_000_000, 900_000_000, 400_000_000, 399_000_000],
    "/btrfs": [4096, 500_000_000, 100_000_000, 90_000_000, 0, 0],
    "/net/home": [1_048_576, 8_000_000, 2_000_000, 1_600_000, 50_000_000, 10_000_000],
}

_PRESSURE = "some avg10=1.50 avg60=0.75 avg300=0.25 total=123456\nfull avg10=1.25 avg60=0.50 avg300=0.10 total=100000\n"


def write_vm_disk(root: str) -> None:
    """The disk of ``vm-2cpu``."""
    _block(root, "vda", "254:0", 83_886_080, queue__discard_max_bytes=1_073_741_824, serial="disk-0", diskseq=9)
    _on_bus(root, "vda", "virtio1", {"vendor": "0x1af4", "device": "0x0002"})
    _block(root, "zram0", "253:0", 2_097_152)
    _block(root, "loop0", "7:0", 0)
    stats = "254 0 vda 1000 200 80000 500 2000 300 160000 4000 0 3000 4500 100 0 409600 50 30 20\n"
    write(
        root,
        "/proc/diskstats",
        f" {stats} 254 1 vda1 990 200 79000 490 2000 300 160000 4000 0 2900 4490\n 253 0 zram0 5 0 40 0 5 0 40 0 0 0 0\n",
    )
    write(root, "/proc/1/mountinfo", "28 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n29 28 0:21 / /proc rw - proc proc rw\n")
    write(root, "/etc/fstab", "/dev/vda1 / ext4 errors=remount-ro 0 1\n")
    write(root, "/statvfs.json", json.dumps({"/": [4096, 10_000_000, 7_500_000, 7_000_000, 2_500_000, 2_000_000]}))
    write(root, "/proc/pressure/io", _PRESSURE)
    write(root, "/sys/fs/ext4/vda1/errors_count", 0)
    write_log(root, [record("EXT4-fs (vda1): mounted filesystem with ordered data mode")])


_LONG = b"/mnt/" + b"x" * 65_536


def hostile_mount_points() -> dict[str, bytes]:
    """Mount points that a user who may mount can make up, as bytes of the path."""
    return {
        "quote": b'/mnt/a"b',
        "newline": b"/mnt/a\nb",
        "markup": b"/mnt/<script>alert(1)</script>",
        "not_utf8": b"/mnt/\xff\xfe",
        "backslash": b"/mnt/a\\040b",
        "space": b"/mnt/a b",
        "long": _LONG,
    }


def _escape(path: bytes) -> bytes:
    for byte in (b"\\", b" ", b"\t", b"\n"):
        path = path.replace(byte, b"\\%03o" % byte[0])
    return path


def write_sick_storage(root: str) -> None:
    """Everything of ``storage-sick``."""
    for number, name in enumerate(("sda", "sdb", "sdc", "sdd")):
        _block(root, name, f"8:{16 * number}", 3_907_029_168, queue__rotational=1, diskseq=number + 1)
        _on_bus(root, name, f"{number}:0:0:0", {"type": 0, "vendor": "ATA", "model": f"EXAMPLE DISK {number}", "rev": "0001"})
    _block(root, "nvme0n1", "259:0", 1_875_385_008, diskseq=9)
    _on_bus(root, "nvme0n1", "nvme0", {"model": "EXAMPLE NVME", "serial": "S0", "firmware_rev": "1.0"})
    counters = "100 0 800 100 100 0 800 100 0 200 200"
    lines = [f"8 {number} {name} {counters}" for number, name in enumerate(("sda", "sdb", "sdc", "sdd", "nvme0n1"))]
    write(root, "/proc/diskstats", "\n".join([*lines, "8 7 sde torn-l", ""]))
    _write_sick_arrays(root)
    _write_sick_mounts(root)
    write_all(root, "/sys/fs/ext4/md0", {"errors_count": 7})
    write(root, "/sys/fs/btrfs/features/skinny_metadata", "0")
    btrfs = "/sys/fs/btrfs/11111111-2222-3333-4444-555555555555"
    write(root, f"{btrfs}/devices/sdd1/size", 1000)
    write(root, f"{btrfs}/devinfo/1/error_stats", "write_errs 3\nread_errs 0\nflush_errs 0\ncorruption_errs 5\ngeneration_errs 0")
    write(root, f"{btrfs}/devinfo/2/error_stats", "write_errs 1\nread_errs 0\nflush_errs 0\ncorruption_errs 0\ngeneration_errs 0")
    write(
        root,
        "/proc/pressure/io",
        "some avg10=99.00 avg60=80.00 avg300=70.00 total=9\nfull avg10=88.00 avg60=77.00 avg300=66.00 total=8\n",
    )
    write_log(root, [record(text, sequence=number, time_us=1_000_000 * (number + 1)) for number, text in enumerate(_SICK_LOG)])


_SICK_LOG = (
    "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x80700 phys_seg 1 prio class 0",
    "I/O error, dev sda, sector 4096 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2",
    "I/O error, dev nvme0n1, sector 8 op 0x0:(READ) flags 0x0 phys_seg 1 prio class 2",
    "EXT4-fs (dm-3): Remounting filesystem read-only",
)


def _write_sick_arrays(root: str) -> None:
    raid1 = {"md__array_state": "clean", "md__level": "raid1", "md__raid_disks": 2, "md__degraded": 1}
    _block(root, "md0", "9:0", 4_000_000, **raid1)  # type: ignore[arg-type]  # mypy takes the union of values for each keyword
    write_all(root, "/sys/block/md0/md", {"sync_action": "recover", "sync_completed": "500000 / 2000000", "mismatch_cnt": 128})
    for member, state in (("sda1", "in_sync"), ("sdb1", "faulty,write_error"), ("sdc1", "spare")):
        write(root, f"/sys/block/md0/md/dev-{member}/state", state)
    _block(root, "md1", "9:1", 0, md__array_state="inactive", md__level="raid5", md__raid_disks=3)
    write(root, "/sys/block/md1/md/dev-sdd2/state", "spare")
    _block(root, "md2", "9:2", 1000, md__array_state="clean", md__level="raid0", md__raid_disks=2)
    for member in ("sda2", "sdb2"):
        write(root, f"/sys/block/md2/md/dev-{member}/state", "in_sync")
    _block(root, "md127", "9:127", 0, md__array_state="inactive", md__level="container", md__raid_disks=0)
    _block(root, "md3", "9:3", 1000, md__array_state="active", md__level="raid6", md__raid_disks=6, md__degraded=3)
    write_all(root, "/sys/block/md3/md", {"sync_action": "resync", "sync_completed": "delayed"})


def _write_sick_mounts(root: str) -> None:
    lines = [
        b"28 1 9:0 / / ro,relatime shared:1 - ext4 /dev/md0 ro,errors=remount-ro",
        b"29 28 8:49 / /data rw,relatime shared:2 - btrfs /dev/sdd1 rw,space_cache",
        b"30 28 0:40 / /net/dead rw shared:3 - nfs4 filer:/dead rw,hard,vers=4.2",
        b"31 28 0:41 / /net/denied rw shared:4 - cifs //filer/denied rw",
        b"32 28 253:3 / /var rw,relatime shared:5 - ext4 /dev/mapper/vg-var ro",
        b"33 28 253:4 / /opt rw,relatime shared:6 - ext4 /dev/mapper/vg-opt rw,emergency_ro",
        b"34 28 253:5 / /iso ro,relatime shared:6 - ext4 /dev/mapper/vg-iso ro",
        b"35 29 253:6 / /data/covered rw,relatime shared:6 - xfs /dev/mapper/vg-cov rw",
        b"36 35 253:7 / /data/covered rw,relatime shared:6 - xfs /dev/mapper/vg-top rw",
        b"torn line",
    ]
    space: dict[str, list[int | str]] = {
        "/": [4096, 1_000_000, 40_000, 0, 1_000_000, 1000],
        "/data": [4096, 2_000_000, 1_000_000, 1_000_000, 0, 0],
        "/net/dead": ["stale", "the server does not answer"],
        "/net/denied": ["no_permission", "Permission denied"],
        "/var": [4096, 1000, 500, 400, 100, 50],
        "/opt": [4096, 1000, 250, 200, 100, 75],
        "/iso": [4096, 1000, 0, 0, 100, 75],
        "/data/covered": [4096, 1000, 1000, 1000, 100, 100],
    }
    for number, path in enumerate(hostile_mount_points().values()):
        lines.append(b"%d 28 254:%d / %s rw,relatime - ext4 /dev/vg/h%d rw" % (40 + number, number, _escape(path), number))
        space[path.decode("utf-8", "replace")] = [4096, 1000, 900, 900, 1000, 900]
    write(root, "/proc/1/mountinfo", b"\n".join([*lines, b""]))
    fstab = "# the file systems of this node\n\n/dev/md0 / ext4 errors=remount-ro 0 1\n/dev/mapper/vg-iso /iso ext4 ro 0 2\n"
    write(root, "/etc/fstab", fstab)
    write(root, "/statvfs.json", json.dumps(space))
    write(root, "/sys/devices/virtual/block/dm-3/dev", "253:3")
    os.makedirs(f"{root}/sys/dev/block", exist_ok=True)
    link(root, "/sys/dev/block/253:3", "../../devices/virtual/block/dm-3")
