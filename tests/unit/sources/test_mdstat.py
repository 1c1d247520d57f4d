import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.errors import Absence, NoData
from nodeproof.sources.mdstat import Array, ArrayState, judge, member_kind, parse, sync_percent

_RAID0 = b"""Personalities : [raid0]
md0 : active raid0 nvme0n2[1] nvme0n1[0]
      786169856 blocks super 1.2 1024k chunks

unused devices: <none>
"""
_BROKEN = b"""Personalities : [raid6] [raid5] [raid4]
md125 : inactive sdc1[29](S) sdb1[27](S) sde1[28](S)
      41937920 blocks super 1.2
md126 : active raid5 super 1.2 level 5, 64k chunk, algorithm 2 [4/0] [____]
"""
_PENDING = b"""Personalities : [raid1]
md1 : active raid1 sdb1[1] sda1[0]
      976630336 blocks [2/2] [UU]
        resync=PENDING
"""
_RECOVERY = b"""Personalities : [raid1]
md1 : active raid1 sdc1[2](S) sdb1[1](F) sda1[0]
      976630336 blocks [2/1] [U_]
      [==>..................]  recovery = 12.6% (123055422/976630336) finish=90.1min speed=157900K/sec
      bitmap: 1/8 pages [4KB], 65536KB chunk
"""


def test_case_58_raid0_has_no_member_counts_and_is_sound() -> None:
    assert parse(_RAID0) == {"md0": Array("md0", ArrayState.OPTIMAL, "raid0", None, None, 0, 0, "idle", None)}


def test_case_58_inactive_is_inactive_and_none_of_four_members_is_failed() -> None:
    arrays = parse(_BROKEN)
    assert arrays["md125"] == Array("md125", ArrayState.INACTIVE, "", None, None, 0, 3, "idle", None)
    assert arrays["md126"] == Array("md126", ArrayState.FAILED, "raid5", 4, 0, 0, 0, "idle", None)


def test_case_58_a_pending_resync_is_sound_and_at_nothing() -> None:
    assert parse(_PENDING)["md1"] == Array("md1", ArrayState.OPTIMAL, "raid1", 2, 2, 0, 0, "resync", 0.0)


def test_case_58_the_file_of_unraid_is_unsupported() -> None:
    with pytest.raises(NoData, match="another format") as caught:
        parse(b"sbName=/boot/config/super.dat\nsbVersion=2.9.17\n")
    assert caught.value.state is Absence.UNSUPPORTED


@pytest.mark.parametrize(
    ("text", "percent"),
    [
        ("delayed\n", 0.0),
        ("none\n", None),
        ("500000 / 2000000\n", 25.0),
        ("1 / 3", 33.33),
        ("0 / 0", None),
        ("3 / 2", None),
        ("x / 2", None),
        ("", None),
    ],
)
def test_case_58_progress_of_a_sync(text: str, percent: float | None) -> None:
    assert sync_percent(text) == percent


def test_recovery_of_a_mirror() -> None:
    assert parse(_RECOVERY)["md1"] == Array("md1", ArrayState.DEGRADED, "raid1", 2, 1, 1, 1, "recover", 12.6)


def test_a_share_above_a_hundred_is_no_share() -> None:
    assert parse(_RECOVERY.replace(b"12.6%", b"126%"))["md1"].sync_percent is None


def test_a_container_of_external_metadata_is_no_array() -> None:
    raw = b"Personalities : [raid1]\nmd127 : inactive nvme1n1[1](S) nvme0n1[0](S)\n      2210 blocks super external:imsm\n"
    assert parse(raw) == {}


def test_a_machine_without_arrays() -> None:
    assert parse(b"Personalities : \nunused devices: <none>\n") == {}


@pytest.mark.parametrize(
    ("state", "level", "wanted", "missing", "active", "expected"),
    [
        ("clean", "raid1", 2, 0, 2, ArrayState.OPTIMAL),
        ("active", "raid1", 2, 1, 1, ArrayState.DEGRADED),
        ("active", "raid1", 2, 2, 0, ArrayState.FAILED),
        ("active", "raid10", 4, 2, 2, ArrayState.DEGRADED),
        ("active", "raid10", 4, 4, None, ArrayState.FAILED),
        ("active", "raid5", 3, 1, 2, ArrayState.DEGRADED),
        ("active", "raid5", 3, 2, 1, ArrayState.FAILED),
        ("active", "raid6", 6, 2, 4, ArrayState.DEGRADED),
        ("active", "raid6", 6, 3, 3, ArrayState.FAILED),
        ("active", "raid0", 2, 1, 1, ArrayState.FAILED),
        ("active", "raid0", 2, None, None, ArrayState.OPTIMAL),
        ("inactive", "raid5", 3, None, 0, ArrayState.INACTIVE),
        ("clear", "", None, None, None, ArrayState.INACTIVE),
        ("broken", "raid0", 2, None, 1, ArrayState.FAILED),
    ],
)
def test_how_many_members_a_level_can_do_without(
    state: str, level: str, wanted: int | None, missing: int | None, active: int | None, expected: ArrayState
) -> None:
    assert judge(state, level, wanted, missing, active) is expected


def test_states_of_members() -> None:
    states = ("in_sync,write_mostly", "faulty,write_error", "spare", "blocked", "")
    assert [member_kind(state) for state in states] == ["active", "failed", "spare", "other", "other"]


@given(st.binary(max_size=300))
def test_arbitrary_bytes(raw: bytes) -> None:
    for text in (raw, b"Personalities : [raid1]\nmd0 : " + raw):
        try:
            arrays = parse(text)
        except NoData:
            continue
        assert all(array.sync_percent is None or 0 <= array.sync_percent <= 100 for array in arrays.values())


@given(st.integers(1, 64), st.integers(0, 64), st.sampled_from(["raid1", "raid5", "raid6", "raid10"]))
def test_member_counts_come_back(wanted: int, active: int, level: str) -> None:
    raw = f"Personalities : [{level}]\nmd9 : active {level} sda[0]\n      100 blocks [{wanted}/{active}] [U]\n"
    array = parse(raw.encode())["md9"]
    assert (array.level, array.members_wanted, array.members_active) == (level, wanted, active)
    assert (array.state is ArrayState.OPTIMAL) == (active >= wanted)
