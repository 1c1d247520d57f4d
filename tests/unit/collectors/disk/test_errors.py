from pathlib import Path

from nodeproof.errors import Absence
from support.disk import DiskHost, absences, value
from support.kernel_log import record, write_log
from support.tree import write


def test_defect_15_a_log_that_may_not_be_read_is_no_zero(tmp_path: Path) -> None:
    batch = DiskHost(str(tmp_path)).cycle()
    assert [m for m in batch.metrics if m.name in {"io_errors", "storage_resets"}] == []
    assert [entry.state for entry in absences(batch, "io_errors")] == [Absence.NO_PERMISSION]


def test_defect_15_errors_are_counted_by_disk_and_in_all_and_never_fall(tmp_path: Path) -> None:
    root = str(tmp_path)
    line = "I/O error, dev sda, sector 4096 op 0x1:(WRITE) flags 0x800 phys_seg 1 prio class 2"
    write_log(root, [record(line, sequence=1)])
    host = DiskHost(root)
    batch = host.cycle()
    assert [m.value for m in batch.metrics if m.name == "io_errors"] == [1.0, 1.0]
    write_log(root, [record(line, sequence=2, time_us=2_000_000)])
    assert value(host.cycle(), "io_errors", device="sda") == 2.0


def test_an_ext4_counter_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    root = str(tmp_path)
    write(root, "/sys/fs/ext4/sda1/errors_count", "many")
    write(root, "/sys/fs/ext4/sda2/errors_count", 3)
    batch = DiskHost(root).cycle()
    assert value(batch, "filesystem_errors") == 3
    assert [(entry.state, (entry.labels or {})["device"]) for entry in absences(batch, "filesystem_errors")] == [
        (Absence.READ_ERROR, "/dev/sda1")
    ]


def test_a_btrfs_of_an_older_kernel_has_no_counters(tmp_path: Path) -> None:
    root = str(tmp_path)
    write(root, "/sys/fs/btrfs/features/x", 0)
    write(root, "/sys/fs/btrfs/aaaa/devinfo/1/missing", 0)
    (absence,) = absences(DiskHost(root).cycle(), "filesystem_errors")
    assert (absence.state, absence.labels) == (Absence.UNSUPPORTED, {"device": "aaaa", "fstype": "btrfs"})


def test_a_damaged_btrfs_file_takes_no_other_file_system_down(tmp_path: Path) -> None:
    root = str(tmp_path)
    write(root, "/sys/fs/ext4/sda1/errors_count", 0)
    write(root, "/sys/fs/btrfs/aaaa/devinfo/1/error_stats", "rubbish")
    write(root, "/sys/fs/btrfs/bbbb/devinfo/1/error_stats", "read_errs 2")
    batch = DiskHost(root).cycle()
    assert value(batch, "filesystem_errors", device="/dev/sda1") == 0
    assert value(batch, "filesystem_errors", device="bbbb", error="read") == 2
    assert [entry.state for entry in absences(batch, "filesystem_errors")] == [Absence.READ_ERROR]


def test_no_file_system_that_counts_is_not_applicable(tmp_path: Path) -> None:
    (absence,) = absences(DiskHost(str(tmp_path)).cycle(), "filesystem_errors")
    assert absence.state is Absence.NOT_APPLICABLE
