"""Space, with calls that really hang: a thread that waits at a gate stands for one that waits in the kernel."""

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.clock import rfc3339
from nodeproof.collectors.disk.collector import create
from nodeproof.collectors.disk.fstypes import IMAGES, NETWORK, VIRTUAL, Watch, watch
from nodeproof.collectors.disk.space import rows, shown_name
from nodeproof.errors import Absence
from nodeproof.host.filesystems import Space
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles
from nodeproof.model.metric import Batch
from nodeproof.sources.proc_mounts import parse_mountinfo
from support.bmc import EVERYTHING
from support.disk import DiskHost, absences, label_values, value
from support.tree import write

_SPACE = [4096, 1000, 500, 400, 100, 50]


def _host(tmp_path: Path, *mounts: str) -> DiskHost:
    root = str(tmp_path)
    write(root, "/proc/1/mountinfo", "\n".join(mounts) + "\n")
    write(root, "/statvfs.json", json.dumps({line.split()[4]: _SPACE for line in mounts}))
    return DiskHost(root)


def _settled(host: DiskHost) -> Batch:
    host.cycle()
    return host.cycle()


def test_defect_32_bind_mounts_and_subvolumes_become_one_row(tmp_path: Path) -> None:
    host = _host(
        tmp_path,
        "30 28 0:40 /@home /home rw - btrfs /dev/sda2 rw,subvol=/@home",
        "31 28 0:40 /@ / rw - btrfs /dev/sda2 rw,subvol=/@",
        "32 28 0:40 / /mnt/top rw - btrfs /dev/sda2 rw,subvol=/",
        "33 28 8:17 /sub/dir /data rw - ext4 /dev/sdb1 rw",
        "34 28 8:17 /sub/dir/deeper /data/deeper/still rw - ext4 /dev/sdb1 rw",
    )
    assert label_values(_settled(host), "space_usage", "mount_point") == {"/mnt/top", "/data"}


def test_virtual_file_systems_images_and_container_layers_are_left_out(tmp_path: Path) -> None:
    host = _host(
        tmp_path,
        "28 1 8:1 / / rw - ext4 /dev/sda1 rw",
        "29 28 0:21 / /proc rw - proc proc rw",
        "30 28 0:30 / /run rw - tmpfs tmpfs rw",
        "31 28 0:31 / /misc rw - autofs systemd-1 rw",
        "32 28 7:1 / /snap/x ro - squashfs /dev/loop1 ro",
        "33 28 0:33 / /var/lib/docker/merged rw - overlay overlay rw",
        "34 28 0:34 / /proc/fs/nfsd rw - nfsd nfsd rw",
    )
    assert label_values(_settled(host), "space_usage", "mount_point") == {"/"}


def test_the_root_of_a_container_is_its_overlay(tmp_path: Path) -> None:
    host = _host(
        tmp_path,
        "900 800 0:50 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w",
        "901 900 8:1 /var/lib/c/hosts /etc/hosts rw - ext4 /dev/sda1 rw",
        "902 900 8:1 /var/lib/c/hostname /etc/hostname rw - ext4 /dev/sda1 rw",
    )
    assert label_values(_settled(host), "space_usage", "mount_point") == {"/", "/etc/hosts"}


def test_nothing_worth_watching_is_said(tmp_path: Path) -> None:
    host = _host(tmp_path, "29 28 0:21 / /proc rw - proc proc rw")
    (absence,) = absences(host.cycle(), "space_usage")
    assert absence.state is Absence.NOT_APPLICABLE


def test_file_systems_without_inodes_or_size(tmp_path: Path) -> None:
    host = _host(tmp_path, "28 1 8:1 / / rw - vfat /dev/sda1 rw", "29 28 8:2 / /odd rw - ext4 /dev/sda2 rw")
    write(host.root, "/statvfs.json", json.dumps({"/": [4096, 1000, 500, 500, 0, 0], "/odd": [4096, 0, 0, 0, 0, 0]}))
    batch = _settled(host)
    assert value(batch, "space_usage") == 50.0
    states = {(entry.labels or {})["mount_point"]: entry.state for entry in absences(batch, "inode_usage")}
    assert states == {"/": Absence.NOT_APPLICABLE, "/odd": Absence.UNSUPPORTED}


def test_one_local_file_system_that_cannot_be_asked_costs_itself_only(tmp_path: Path) -> None:
    host = _host(tmp_path, "28 1 8:1 / / rw - ext4 /dev/sda1 rw", "29 28 8:2 / /shut rw - ext4 /dev/sda2 rw")
    write(host.root, "/statvfs.json", json.dumps({"/": _SPACE, "/shut": ["no_permission", "Permission denied"]}))
    batch = _settled(host)
    assert label_values(batch, "space_usage", "mount_point") == {"/"}
    assert _states(batch) == {"/shut": Absence.NO_PERMISSION}


def test_a_file_system_mounted_just_now_is_unknown_for_one_cycle(tmp_path: Path) -> None:
    root = "28 1 8:1 / / rw - ext4 /dev/sda1 rw"
    host = _host(tmp_path, root)
    _settled(host)
    write(host.root, "/proc/1/mountinfo", f"{root}\n29 28 8:2 / /new rw - ext4 /dev/sda2 rw\n")
    write(host.root, "/statvfs.json", json.dumps({"/": _SPACE, "/new": _SPACE}))
    batch = host.cycle()
    assert [entry.reason for entry in absences(batch, "space_usage")] == ["mounted since the last reading"]
    assert label_values(host.cycle(), "space_usage", "mount_point") == {"/", "/new"}


def test_readings_carry_the_time_they_were_taken(tmp_path: Path) -> None:
    host = _host(tmp_path, "28 1 8:1 / / rw - ext4 /dev/sda1 rw")
    host.cycle()
    taken = rfc3339(host.clock.wall_s)
    (metric,) = (metric for metric in host.cycle(7.0).metrics if metric.name == "space_usage")
    assert metric.timestamp == taken


def test_a_remount_is_seen_by_what_was_there_before(tmp_path: Path) -> None:
    writable = "28 1 8:1 / /data rw - xfs /dev/sda1 rw"
    host = _host(tmp_path, writable)
    assert value(host.cycle(), "read_only_remount") == 0.0
    write(host.root, "/proc/1/mountinfo", writable.replace("sda1 rw", "sda1 ro"))
    assert value(host.cycle(), "read_only_remount") == 1.0
    write(host.root, "/proc/1/mountinfo", writable)
    assert value(host.cycle(), "read_only_remount") == 0.0


def test_a_read_only_bind_mount_of_a_writable_file_system_is_none(tmp_path: Path) -> None:
    host = _host(tmp_path, "28 1 8:1 / /data ro - xfs /dev/sda1 rw")
    assert value(host.cycle(), "read_only_remount") == 0.0


def test_a_file_system_always_read_only_is_no_remount(tmp_path: Path) -> None:
    host = _host(tmp_path, "28 1 8:1 / /data ro - ext4 /dev/sda1 ro")
    assert value(host.cycle(), "read_only_remount") == 0.0


def test_who_can_be_written_to(tmp_path: Path) -> None:
    host = _host(
        tmp_path,
        "28 1 8:1 / / rw - ext4 /dev/sda1 rw",
        "29 28 8:2 / /media ro - ext4 /dev/sdb1 ro",
        "30 28 8:3 / /seen ro - ext4 /dev/sdc1 rw",
    )
    states = {one.labels["mount_point"]: one.value for one in host.cycle().metrics if one.name == "read_only" and one.labels}
    assert states == {"/": 0.0, "/media": 1.0, "/seen": 0.0}


_MEMORY = (
    "28 1 8:1 / / rw - ext4 /dev/sda1 rw",
    "30 28 0:30 / /run rw - tmpfs tmpfs rw,size=1024k",
    "31 30 0:31 / /run/user/1000 rw - tmpfs tmpfs rw",
    "32 28 0:32 / /old/shm rw - tmpfs shm rw",
    "33 28 0:33 / /dev/shm rw - tmpfs shm rw",
    "34 28 0:33 / /mnt/same rw - tmpfs shm rw",
    "35 28 0:35 / /secrets ro - tmpfs tmpfs ro",
    "36 28 0:36 / /endless rw - tmpfs tmpfs rw,size=0",
    "37 28 0:37 / /old rw - ext4 /dev/sdb1 rw",
    "38 28 0:38 / /shut rw - tmpfs tmpfs rw",
)


def test_file_systems_in_memory_are_watched_apart(tmp_path: Path) -> None:
    """One that is hidden, private, read-only, or seen already is left out; one without a limit has no share to give."""
    host = _host(tmp_path, *_MEMORY)
    spaces: dict[str, object] = dict.fromkeys((line.split()[4] for line in _MEMORY), _SPACE)
    spaces |= {"/run": [4096, 256, 64, 64, 1000, 990], "/endless": [4096, 0, 0, 0, 0, 0]}
    spaces |= {"/shut": ["no_permission", "Permission denied"], "/dev/shm": [4096, 1000, 20, 20, 0, 0]}  # noqa: S108 - a label
    write(host.root, "/statvfs.json", json.dumps(spaces))
    batch = host.cycle()
    found = {one.labels["mount_point"]: one.value for one in batch.metrics if one.name == "tmpfs_usage" and one.labels}
    # /run: (256 - 64) of 256 blocks; /dev/shm: (1000 - 20) of 1000
    assert found == {"/run": 75.0, "/dev/shm": 98.0}  # noqa: S108 - a label
    # 192 blocks of 4096 bytes = 786432 bytes = 0.75 MiB
    assert value(batch, "tmpfs_detail", mount_point="/run", field="used") == 0.75
    assert value(batch, "tmpfs_detail", mount_point="/run", field="total") == 1.0
    assert value(batch, "tmpfs_detail", mount_point="/run", field="available") == 0.25
    assert [one.value for one in batch.metrics if one.name == "tmpfs_inode_usage"] == [1.0]  # (1000 - 990) of 1000
    states = {(entry.labels or {})["mount_point"]: entry.state for entry in absences(batch, "tmpfs_usage")}
    assert states == {"/endless": Absence.NOT_APPLICABLE, "/shut": Absence.NO_PERMISSION}


def test_a_host_without_a_file_system_in_memory_says_so(tmp_path: Path) -> None:
    (absence,) = absences(_host(tmp_path, "28 1 8:1 / / rw - ext4 /dev/sda1 rw").cycle(), "tmpfs_usage")
    assert absence.state is Absence.NOT_APPLICABLE


class _Gates(RecordedFiles):
    """``statvfs`` hangs on the paths that are shut."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.shut: dict[str, threading.Event] = {}
        self.calls: list[str] = []

    def statvfs(self, path: str) -> Space:
        self.calls.append(path)
        gate = self.shut.get(path)
        if gate is not None:
            assert gate.wait(15)
        return super().statvfs(path)


class _Hanging:
    """A host with three mounts, some of which hang."""

    def __init__(self, root: str, *shut: str) -> None:
        write(
            root,
            "/proc/1/mountinfo",
            "28 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
            "29 28 8:2 / /data rw - xfs /dev/sda2 rw\n"
            "30 28 0:40 / /net rw - nfs4 filer:/x rw,hard\n",
        )
        write(root, "/statvfs.json", json.dumps(dict.fromkeys(("/", "/data", "/net"), _SPACE)))
        self.files = _Gates(root)
        self.files.shut = {path: threading.Event() for path in shut}
        self.clock = ManualClock()
        self.machine = Machine(self.files, RecordedCommands({}), self.clock)
        self.collector = create(self.machine, EVERYTHING)

    def cycle(self, pause_s: float = 5.0) -> Batch:
        self.clock.advance(pause_s)
        batch = self.collector.collect()
        self.machine.settle(0.2)
        return batch

    def open(self) -> None:
        for gate in self.files.shut.values():
            gate.set()
        self.machine.settle(10)


def _states(batch: Batch) -> dict[str, Absence]:
    return {(entry.labels or {})["mount_point"]: entry.state for entry in absences(batch, "space_usage")}


def test_a_dead_nfs_server_costs_itself_only_and_heals(tmp_path: Path) -> None:
    host = _Hanging(str(tmp_path), "/net")
    assert set(_states(host.cycle()).values()) == {Absence.UNKNOWN}
    for _ in range(4):
        batch = host.cycle()
    assert label_values(batch, "space_usage", "mount_point") == {"/", "/data"}
    assert _states(batch) == {"/net": Absence.STALE}
    assert host.files.calls.count("/net") == 1
    assert len([thread for thread in threading.enumerate() if "statvfs" in thread.name]) == 1
    host.open()
    host.cycle()
    assert label_values(host.cycle(), "space_usage", "mount_point") == {"/", "/data", "/net"}


def test_a_local_disk_that_hangs_is_moved_out_and_the_others_go_on(tmp_path: Path) -> None:
    host = _Hanging(str(tmp_path), "/data")
    host.cycle()
    batch = host.cycle(6.0)
    assert _states(batch) == {"/": Absence.STALE, "/data": Absence.UNKNOWN}  # asked again, in a call of its own
    for _ in range(4):
        batch = host.cycle(6.0)
    assert label_values(batch, "space_usage", "mount_point") == {"/", "/net"}
    assert _states(batch) == {"/data": Absence.STALE}
    assert host.files.calls.count("/data") == 2
    host.open()
    host.cycle(6.0)
    assert label_values(host.cycle(), "space_usage", "mount_point") == {"/", "/data", "/net"}


def test_a_network_mount_that_went_away_is_forgotten(tmp_path: Path) -> None:
    host = _Hanging(str(tmp_path), "/net")
    host.cycle()
    write(str(tmp_path), "/proc/1/mountinfo", "28 1 8:1 / / rw - ext4 /dev/sda1 rw\n")
    host.cycle()
    assert _states(host.cycle()) == {}
    host.open()


@pytest.mark.parametrize(
    ("fstype", "point", "expected"),
    [
        ("ext4", b"/", Watch.LOCAL),
        ("xfs", b"/data", Watch.LOCAL),
        ("zfs", b"/tank", Watch.LOCAL),
        ("nfs4", b"/net", Watch.ALONE),
        ("fuse.sshfs", b"/net", Watch.ALONE),
        ("fuseblk", b"/usb", Watch.ALONE),
        ("lustre", b"/scratch", Watch.ALONE),
        ("fuse.lxcfs", b"/var/lib/lxcfs", Watch.NOT),
        ("tmpfs", b"/tmp", Watch.NOT),
        ("efivarfs", b"/sys/firmware/efi/efivars", Watch.NOT),
        ("selinuxfs", b"/sys/fs/selinux", Watch.NOT),
        ("iso9660", b"/cd", Watch.NOT),
        ("overlay", b"/x", Watch.NOT),
        ("overlay", b"/", Watch.LOCAL),
    ],
)
def test_how_file_systems_are_watched(fstype: str, point: bytes, expected: Watch) -> None:
    assert watch(fstype, point) is expected


def test_the_lists_do_not_contradict_each_other() -> None:
    assert not VIRTUAL & NETWORK
    assert not VIRTUAL & IMAGES
    assert not IMAGES & NETWORK


@given(st.binary(max_size=3000))
def test_a_label_is_bounded_text(raw: bytes) -> None:
    shown = shown_name(raw)
    assert len(shown) <= 1024 + 11
    shown.encode("utf-8")


def test_long_names_that_begin_alike_stay_apart() -> None:
    assert shown_name(b"x" * 5000) != shown_name(b"x" * 5001)


@given(st.lists(st.tuples(st.sampled_from(["8:1", "8:2", "0:40"]), st.sampled_from(["/", "/a", "/a/b"])), max_size=6))
def test_one_row_a_device_whatever_is_mounted_where(entries: list[tuple[str, str]]) -> None:
    lines = [f"{10 + n} 1 {device} / {point} rw - ext4 /dev/x rw" for n, (device, point) in enumerate(entries)]
    found = rows(parse_mountinfo("\n".join(lines).encode()))
    assert [row.device_id for row in found] == list(dict.fromkeys(device for device, _ in entries))
