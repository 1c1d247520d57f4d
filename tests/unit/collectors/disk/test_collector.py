"""Component disk over three made-up hosts, twenty readings each worked out by hand from the numbers in ``support.hosts_disk``."""

from pathlib import Path

import pytest

from nodeproof.collectors.disk.collector import identity
from nodeproof.errors import Absence, CommandError, CommandFailure, NoData
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.catalogue import component_specs
from nodeproof.model.metric import Batch
from support.disk import DiskHost, absences, label_values, smartctl_line, value
from support.hosts_disk import NVME, SAS, diskstats_256
from support.smartctl import smartctl_output
from support.tree import write

_VM_LATER = "254 0 vda 1100 210 88192 600 2050 310 168192 4250 2 3500 4850 110 0 450560 55 32 21\n"


def _close(found: float, expected: float) -> bool:
    return abs(found - expected) < 1e-9


def test_vm_2cpu_twenty_readings(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path / "root"), "vm-2cpu")
    write(host.root, "/proc/stat", "cpu  1000 0 500 8000 400 0 100 0 0 0\n")
    host.cycle()
    write(host.root, "/proc/diskstats", _VM_LATER)
    write(host.root, "/proc/stat", "cpu  1100 0 550 8700 550 0 100 0 0 0\n")
    batch = host.cycle(5.0)
    root = {"device": "/dev/vda1", "mount_point": "/", "fstype": "ext4"}
    expected = [
        ("space_usage", root, 25.0),  # (10,000,000 - 7,500,000) / 10,000,000 blocks
        ("space_detail", {"field": "total"}, 39062.5),  # 10,000,000 x 4096 / 1,048,576
        ("space_detail", {"field": "used"}, 9765.625),  # 2,500,000 x 4096 / 1,048,576
        ("space_detail", {"field": "available"}, 27343.75),  # 7,000,000 x 4096 / 1,048,576
        ("inode_usage", root, 20.0),  # 500,000 / 2,500,000
        ("read_only_remount", root, 0.0),
        ("iops", {"direction": "read"}, 20.0),  # (1100 - 1000) / 5 s
        ("iops", {"direction": "write"}, 10.0),  # (2050 - 2000) / 5 s
        ("throughput", {"direction": "read"}, 0.8),  # 8192 sectors x 512 B = 4 MiB / 5 s
        ("throughput", {"direction": "write"}, 0.8),  # 8192 sectors / 5 s
        ("read_latency", {"device": "vda"}, 1.0),  # (600 - 500) ms / 100 reads
        ("write_latency", {"device": "vda"}, 5.0),  # (4250 - 4000) ms / 50 writes
        ("io_util", {"device": "vda"}, 10.0),  # (3500 - 3000) ms / 5000 ms
        ("queue_depth", {"device": "vda"}, 0.07),  # (4850 - 4500) ms / 5000 ms
        ("discard_throughput", {"device": "vda"}, 4.0),  # 40,960 sectors = 20 MiB / 5 s
        ("read_sectors_total", {"device": "vda"}, 88192),
        ("written_sectors_total", {"device": "vda"}, 168192),
        ("read_time_total", {"device": "vda"}, 600),
        ("write_time_total", {"device": "vda"}, 4250),
        ("io_wait", {}, 15.0),  # 150 of 100 + 50 + 700 + 150 ticks
        ("pressure", {"stall": "some", "interval": "avg10"}, 1.5),
        ("pressure", {"stall": "full", "interval": "avg300"}, 0.1),
        ("filesystem_errors", {"device": "/dev/vda1", "fstype": "ext4"}, 0),
        ("io_errors", {}, 0),
    ]
    for name, labels, number in expected:
        assert _close(value(batch, name, **labels), number), (name, labels)
    assert label_values(batch, "iops", "device") == {"vda"}


def test_vm_2cpu_what_a_virtual_machine_has_not(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path / "root"), "vm-2cpu")
    host.cycle()
    batch = host.cycle()
    for name in ("smart_status", "smart_temperature", "smart_pending_sectors", "raid_state", "raid_sync_progress"):
        (absence,) = absences(batch, name)
        assert absence.state is Absence.NOT_APPLICABLE, name
    assert host.asked == []


def test_bare_metal_with_64_disks_twenty_readings(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path / "root"), "bare-x86-256cpu")
    host.cycle()
    write(host.root, "/proc/diskstats", diskstats_256(1))
    batch = host.cycle(5.0)
    expected = [
        # disk number n grows by (n + 1) times: 20 reads, 2048 + 4096 sectors, 10 writes, 30 + 25 ms, 10 ms busy, 55 ms queued
        ("iops", {"device": "sda", "direction": "read"}, 4.0),  # 1 x 20 / 5 s
        ("iops", {"device": "sda", "direction": "write"}, 2.0),  # 1 x 10 / 5 s
        ("iops", {"device": "sdav", "direction": "read"}, 192.0),  # 48 x 20 / 5 s
        ("iops", {"device": "nvme15n1", "direction": "write"}, 128.0),  # 64 x 10 / 5 s
        ("throughput", {"device": "sda", "direction": "read"}, 0.2),  # 2048 x 512 B = 1 MiB / 5 s
        ("throughput", {"device": "nvme0n1", "direction": "write"}, 19.6),  # 49 x 2 MiB / 5 s
        ("read_latency", {"device": "sdb"}, 1.5),  # 60 ms / 40 reads
        ("write_latency", {"device": "sdb"}, 2.5),  # 50 ms / 20 writes
        ("io_util", {"device": "sda"}, 0.2),  # 10 ms / 5000 ms
        ("io_util", {"device": "nvme15n1"}, 12.8),  # 640 ms / 5000 ms
        ("queue_depth", {"device": "nvme15n1"}, 0.704),  # 64 x 55 ms / 5000 ms
        ("discard_throughput", {"device": "nvme0n1"}, 9.8),  # 49 x 2048 sectors = 49 MiB / 5 s
        ("read_sectors_total", {"device": "sdc"}, 246_144),  # 3 x (80,000 + 2048)
        ("write_time_total", {"device": "sdc"}, 12_075),  # 3 x (4000 + 25)
        ("space_usage", {"device": "/dev/mapper/vg-root"}, 75.0),  # 7,500,000 of 10,000,000
        ("space_detail", {"device": "/dev/md0", "field": "available"}, 3_515_625.0),  # 900,000,000 x 4096 / 1,048,576
        ("space_usage", {"device": "filer:/home", "fstype": "nfs4"}, 75.0),  # 6,000,000 of 8,000,000
        ("inode_usage", {"device": "filer:/home"}, 80.0),  # 40,000,000 of 50,000,000
        ("space_usage", {"mount_point": "/btrfs"}, 80.0),  # 400,000,000 of 500,000,000
        ("raid_state", {"device": "md0", "level": "raid1"}, 0.0),
        ("raid_members", {"device": "md0", "state": "active"}, 2.0),
        ("smart_temperature", {"device": "nvme1n1"}, 31.0),  # hwmon: 31,000 thousandths, no root needed
    ]
    for name, labels, number in expected:
        assert _close(value(batch, name, **labels), number), (name, labels)


def test_bare_metal_counts_each_disk_once(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path / "root"), "bare-x86-256cpu")
    host.cycle()
    write(host.root, "/proc/diskstats", diskstats_256(1))
    batch = host.cycle()
    assert label_values(batch, "iops", "device") == {*SAS, *NVME}
    assert label_values(batch, "discard_throughput", "device") == set(NVME)
    assert label_values(batch, "space_usage", "mount_point") == {"/", "/srv", "/btrfs", "/net/home"}


def test_bare_metal_absences_stay_few(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path / "root"), "bare-x86-256cpu")
    for _ in range(3):
        batch = host.cycle()
    (absence,) = absences(batch, "smart_status")
    assert (absence.state, absence.remedy) == (Absence.UNSUPPORTED, "install smartmontools")
    assert len(batch.missing) < 40
    (idle,) = absences(batch, "read_latency")
    assert idle.state is Absence.NOT_APPLICABLE
    assert idle.reason.endswith("(sda, sdb, sdc, sdd, sde, sdf, sdg, sdh and 56 more)")


_SICK = {
    smartctl_line("sda"): smartctl_output("failing.json"),
    smartctl_line("sdb"): smartctl_output("permission.json"),
    smartctl_line("sdc"): smartctl_output("standby.json"),
    smartctl_line("sdd"): smartctl_output("sata-hdd.json"),
    smartctl_line("nvme0n1"): smartctl_output("nvme-hot.json"),
}


def _sick(tmp_path: Path) -> Batch:
    host = DiskHost(str(tmp_path / "root"), "storage-sick", _SICK)
    for _ in range(4):
        batch = host.cycle()
    return batch


def test_storage_sick_twenty_readings(tmp_path: Path) -> None:
    batch = _sick(tmp_path)
    expected = [
        ("raid_state", {"device": "md0"}, 1.0),  # one of two members is missing: degraded
        ("raid_members", {"device": "md0", "state": "active"}, 1.0),
        ("raid_members", {"device": "md0", "state": "failed"}, 1.0),
        ("raid_members", {"device": "md0", "state": "spare"}, 1.0),
        ("raid_sync_progress", {"device": "md0", "action": "recover"}, 25.0),  # 500,000 / 2,000,000
        ("raid_mismatches", {"device": "md0"}, 128.0),
        ("raid_state", {"device": "md1"}, 2.0),  # inactive
        ("raid_state", {"device": "md2"}, 0.0),  # raid0 with both members
        ("raid_state", {"device": "md3"}, 3.0),  # raid6 without three of six
        ("raid_sync_progress", {"device": "md3", "action": "resync"}, 0.0),  # delayed
        ("read_only_remount", {"mount_point": "/"}, 1.0),  # fstab has it writable
        ("read_only_remount", {"mount_point": "/var"}, 1.0),  # the kernel says it remounted dm-3
        ("read_only_remount", {"mount_point": "/opt"}, 1.0),  # emergency_ro
        ("read_only_remount", {"mount_point": "/iso"}, 0.0),  # fstab wants it read-only
        ("read_only_remount", {"mount_point": "/data"}, 0.0),
        ("space_usage", {"mount_point": "/"}, 96.0),  # 960,000 of 1,000,000
        ("inode_usage", {"mount_point": "/"}, 99.9),  # 999,000 of 1,000,000
        ("filesystem_errors", {"device": "/dev/md0"}, 7.0),
        ("filesystem_errors", {"device": "/dev/sdd1", "error": "write"}, 4.0),  # 3 + 1 of the two members
        ("filesystem_errors", {"device": "/dev/sdd1", "error": "corruption"}, 5.0),
        ("smart_status", {"device": "sda", "status": "FAILED"}, 0.0),
        ("smart_failing_attributes", {"device": "sda"}, 2.0),
        ("smart_reallocated_sectors", {"device": "sda"}, 3968.0),
        ("smart_status", {"device": "sdd", "status": "PASSED"}, 1.0),
        ("smart_status", {"device": "nvme0n1", "status": "WARNING"}, 1.0),
        ("smart_critical_warning", {"device": "nvme0n1"}, 2.0),
        ("smart_temperature", {"device": "nvme0n1"}, 84.0),
        ("smart_note", {"device": "nvme0n1", "note": "sensors_disagree"}, 1.0),
        ("io_errors", {"device": "sda"}, 2.0),
        ("io_errors", {"device": "nvme0n1"}, 1.0),
    ]
    for name, labels, number in expected:
        assert _close(value(batch, name, **labels), number), (name, labels)
    assert [m.value for m in batch.metrics if m.name == "io_errors" and m.labels is None] == [3.0]
    assert label_values(batch, "raid_state", "device") == {"md0", "md1", "md2", "md3"}


def test_storage_sick_what_could_not_be_read_says_why(tmp_path: Path) -> None:
    batch = _sick(tmp_path)
    found = {(entry.labels or {}).get("mount_point"): entry.state for entry in absences(batch, "space_usage")}
    assert found == {
        "/net/dead": Absence.STALE,
        "/net/denied": Absence.NO_PERMISSION,
        "/data/covered": Absence.UNSUPPORTED,  # of the two mounts there, the one below
    }
    smart = {(entry.labels or {})["device"]: entry.state for entry in absences(batch, "smart_status")}
    assert smart == {"sdb": Absence.NO_PERMISSION, "sdc": Absence.UNKNOWN}


def test_storage_sick_hostile_names_stay_apart_and_bounded(tmp_path: Path) -> None:
    batch = _sick(tmp_path)
    points = label_values(batch, "space_usage", "mount_point")
    assert {'/mnt/a"b', "/mnt/a\nb", "/mnt/<script>alert(1)</script>", "/mnt/\ufffd\ufffd", "/mnt/a\\040b", "/mnt/a b"} <= points
    (longest,) = (point for point in points if len(point) > 100)
    assert len(longest) == 1024 + 3 + 8
    assert value(batch, "space_usage", mount_point="/mnt/a\nb") == 10.0


@pytest.mark.parametrize("name", ["vm-2cpu", "bare-x86-256cpu", "storage-sick"])
def test_everything_emitted_stands_in_the_catalogue_with_its_labels(tmp_path: Path, name: str) -> None:
    host = DiskHost(str(tmp_path / "root"), name, _SICK if name == "storage-sick" else None)
    specs = component_specs("disk")
    for _ in range(3):
        batch = host.cycle()
        for metric in batch.metrics:
            assert set(metric.labels or ()) <= set(specs[metric.name].labels), metric
        told = {metric.name for metric in batch.metrics} | {entry.name for entry in batch.missing}
        # absent without a word: no device that discards, no sync under way, nothing to remark; disk_info is for the specs only
        assert specs.keys() - told <= {
            "disk_info",
            "discard_throughput",
            "raid_sync_progress",
            "raid_mismatches",
            *(spec for spec in specs if spec.startswith("smart_")),
        }


def test_a_machine_without_anything(tmp_path: Path) -> None:
    batch = DiskHost(str(tmp_path)).cycle()
    assert batch.metrics == []
    states = {entry.name: entry.state for entry in batch.missing}
    assert states["iops"] is Absence.UNSUPPORTED
    assert states["space_usage"] is Absence.UNSUPPORTED
    assert states["raid_state"] is Absence.NOT_APPLICABLE


def test_identity_of_disks_with_smartctl(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path / "root"), "storage-sick", _SICK)
    found = {(metric.labels or {})["device"]: metric for metric in identity(host.machine)}
    assert (found["sdd"].component, found["sdd"].name, found["sdd"].unit) == ("disk", "disk_info", "GB")
    assert found["sdd"].value == 2000.4  # 3,907,029,168 x 512 = 2,000,398,934,016 bytes
    assert found["sdd"].labels == {
        "device": "sdd",
        "model": "EXAMPLE HDD4000",
        "serial": "EX0001",
        "interface": "SATA",
        "firmware": "A1B2",
    }
    assert found["sdb"].labels == {"device": "sdb", "model": "EXAMPLE DISK 1", "firmware": "0001"}
    assert (found["nvme0n1"].labels or {})["interface"] == "PCIe"


def test_identity_without_smartctl_is_what_the_kernel_knows(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path / "root"), "bare-x86-256cpu")
    found = {(metric.labels or {})["device"]: metric.labels for metric in identity(host.machine)}
    assert len(found) == 64
    assert found["sda"] == {"device": "sda", "model": "SEAGATE ST4000NM0025", "firmware": "N003"}
    assert found["nvme3n1"] == {
        "device": "nvme3n1",
        "model": "SAMSUNG MZQL23T8HCLS-00A07",
        "serial": "SERIAL0003",
        "interface": "PCIe",
        "firmware": "GDC5602Q",
    }


def test_identity_of_a_virtual_disk(tmp_path: Path) -> None:
    (metric,) = identity(DiskHost(str(tmp_path / "root"), "vm-2cpu").machine)
    assert metric.value == 42.9  # 83,886,080 x 512 bytes
    assert metric.labels == {"device": "vda", "serial": "disk-0", "interface": "virtio"}


def test_identity_without_sysfs_is_an_absence(tmp_path: Path) -> None:
    with pytest.raises(NoData):
        identity(recorded_machine(str(tmp_path)))


def test_identity_when_smartctl_fails_keeps_the_rest(tmp_path: Path) -> None:
    failure = CommandError("smartctl", CommandFailure.TIMED_OUT, "gave no answer in 15 s and was ended")
    host = DiskHost(str(tmp_path / "root"), "storage-sick", dict.fromkeys(_SICK, failure))
    assert len(identity(host.machine)) == 5
