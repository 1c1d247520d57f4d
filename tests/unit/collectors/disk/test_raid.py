from pathlib import Path

import pytest

from nodeproof.errors import Absence
from support.disk import DiskHost, absences, label_values, value
from support.tree import write, write_all

_MDSTAT = """Personalities : [raid1]
md1 : active raid1 sdb1[1](F) sda1[0]
      976630336 blocks [2/1] [U_]
      [==>..................]  recovery = 12.6% (123055422/976630336) finish=90.1min speed=157900K/sec

unused devices: <none>
"""


def _array(root: str, name: str, members: tuple[str, ...] = (), **files: str | int) -> None:
    write_all(root, f"/sys/block/{name}", {"size": 0, "dev": "9:0"})
    write_all(root, f"/sys/block/{name}/md", files)
    for number, state in enumerate(members):
        write(root, f"/sys/block/{name}/md/dev-sd{number}/state", state)


def test_mdstat_stands_in_for_sysfs(tmp_path: Path) -> None:
    write(str(tmp_path), "/proc/mdstat", _MDSTAT)
    batch = DiskHost(str(tmp_path)).cycle()
    assert value(batch, "raid_state", device="md1", level="raid1") == 1.0
    assert value(batch, "raid_members", state="failed") == 1.0
    assert value(batch, "raid_sync_progress", action="recover") == 12.6


def test_sysfs_is_preferred(tmp_path: Path) -> None:
    root = str(tmp_path)
    write(root, "/proc/mdstat", _MDSTAT)
    _array(root, "md1", ("in_sync", "in_sync"), array_state="clean", level="raid1", raid_disks=2, degraded=0)
    assert value(DiskHost(root).cycle(), "raid_state", device="md1") == 0.0


@pytest.mark.parametrize("raw", ["Personalities : [raid1]\nunused devices: <none>\n", None])
def test_no_array_is_not_applicable(tmp_path: Path, raw: str | None) -> None:
    if raw is not None:
        write(str(tmp_path), "/proc/mdstat", raw)
    (absence,) = absences(DiskHost(str(tmp_path)).cycle(), "raid_state")
    assert absence.state is Absence.NOT_APPLICABLE


def test_case_58_another_mdstat_is_unsupported(tmp_path: Path) -> None:
    write(str(tmp_path), "/proc/mdstat", "sbName=/boot/config/super.dat\n")
    (absence,) = absences(DiskHost(str(tmp_path)).cycle(), "raid_state")
    assert absence.state is Absence.UNSUPPORTED


def test_an_mdstat_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "proc" / "mdstat").mkdir(parents=True)
    (absence,) = absences(DiskHost(str(tmp_path)).cycle(), "raid_state")
    assert absence.state is Absence.READ_ERROR


def test_a_device_without_an_array_is_left_out(tmp_path: Path) -> None:
    root = str(tmp_path)
    _array(root, "md0", array_state="clear")
    _array(root, "md127", array_state="inactive", level="container")
    _array(root, "md1", ("in_sync",), array_state="clean", level="linear", raid_disks=1, mismatch_cnt=-1)
    batch = DiskHost(root).cycle()
    assert label_values(batch, "raid_state", "device") == {"md1"}
    assert not label_values(batch, "raid_mismatches", "device")


def test_raid0_that_lost_a_member_has_failed(tmp_path: Path) -> None:
    root = str(tmp_path)
    _array(root, "md0", ("in_sync", "faulty"), array_state="clean", level="raid0", raid_disks=2)
    _array(root, "md1", array_state="broken", level="raid0", raid_disks=2)
    _array(root, "md2", array_state="active", level="raid0", raid_disks=2)
    batch = DiskHost(root).cycle()
    assert [value(batch, "raid_state", device=f"md{n}") for n in range(3)] == [3.0, 3.0, 0.0]


def test_an_inactive_mdstat_array_has_no_level(tmp_path: Path) -> None:
    write(str(tmp_path), "/proc/mdstat", "Personalities : [raid1]\nmd9 : inactive sda1[0](S)\n      100 blocks super 1.2\n")
    batch = DiskHost(str(tmp_path)).cycle()
    assert [m.labels for m in batch.metrics if m.name == "raid_state"] == [{"device": "md9"}]


def test_a_frozen_sync_has_no_progress(tmp_path: Path) -> None:
    root = str(tmp_path)
    files = {"array_state": "clean", "level": "raid1", "degraded": 0, "sync_action": "frozen", "sync_completed": "1 / 2"}
    _array(root, "md0", **files)  # type: ignore[arg-type]  # mypy takes the union of values for each keyword
    assert not label_values(DiskHost(root).cycle(), "raid_sync_progress", "device")
