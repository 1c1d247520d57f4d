import shutil
from pathlib import Path

import pytest

from nodeproof.errors import Absence
from support.disk import DiskHost, absences, label_values, value
from support.tree import write

_FIRST = "254 0 vda 1000 0 80000 500 2000 0 160000 4000 0 3000 4500 100 0 409600 50 30 20"
_RATES = ("iops", "throughput", "read_latency", "write_latency", "io_util", "queue_depth")


@pytest.fixture
def host(tmp_path: Path) -> DiskHost:
    host = DiskHost(str(tmp_path / "root"), "vm-2cpu")
    write(host.root, "/proc/diskstats", _FIRST)
    return host


def _grow(host: DiskHost, line: str) -> None:
    write(host.root, "/proc/diskstats", line)


def test_defect_6_all_rates_come_from_one_pair_of_readings(host: DiskHost) -> None:
    host.cycle()
    _grow(host, "254 0 vda 1010 0 82048 520 2010 0 162048 4100 0 3100 4600 100 0 409600 50 30 20")
    batch = host.cycle(1.0)
    assert value(batch, "iops", direction="read") == 10.0
    assert value(batch, "throughput", direction="read") == 1.0  # 2048 x 512 B / 1 s
    assert value(batch, "throughput", direction="write") == 1.0
    assert value(batch, "read_latency") == 2.0  # 20 ms / 10
    assert value(batch, "write_latency") == 10.0  # 100 ms / 10


@pytest.mark.parametrize("pause_s", [0.5, 1.0, 2.0, 3.0, 7.5])
def test_defect_7_rates_divide_by_the_time_that_passed(host: DiskHost, pause_s: float) -> None:
    host.cycle()
    _grow(host, "254 0 vda 1030 0 80000 500 2000 0 160000 4000 0 3000 4500 100 0 409600 50 30 20")
    assert value(host.cycle(pause_s), "iops", direction="read") == round(30 / pause_s, 2)


def test_defect_9_rounding_of_large_counters_is_exact(host: DiskHost) -> None:
    _grow(host, f"254 0 vda 1 0 {2**63} 1 1 0 1 1 0 1 1")
    assert value(host.cycle(), "read_sectors_total") == 2**63
    _grow(host, f"254 0 vda 2 0 {2**63 + 10**13} 2 1 0 1 1 0 2 2")
    assert value(host.cycle(), "throughput", direction="read") == 976562500.0  # 10^13 x 512 / 1,048,576 / 5


def test_the_first_reading_has_totals_and_says_why_there_are_no_rates(host: DiskHost) -> None:
    batch = host.cycle()
    assert value(batch, "read_time_total") == 500
    for name in _RATES:
        (absence,) = absences(batch, name)
        assert (absence.state, absence.labels) == (Absence.UNKNOWN, {"device": "vda"})


@pytest.mark.parametrize(
    "line",
    [
        "254 0 vda 999 0 80000 500 2000 0 160000 4000 0 3000 4500 100 0 409600 50 30 20",
        "254 0 vda 1000 0 80000 3 2000 0 160000 4000 0 3000 4500 100 0 409600 50 30 20",
        "254 0 vda 1000 0 80000 500 2000 0 160000 4000 0 3000 4500 100 0 1 50 30 20",
    ],
)
def test_a_counter_that_steps_back_is_a_restart_without_a_number(host: DiskHost, line: str) -> None:
    host.cycle()
    _grow(host, line)
    batch = host.cycle()
    for name in _RATES:
        assert [entry.state for entry in absences(batch, name)] == [Absence.UNKNOWN]
    batch = host.cycle()
    assert value(batch, "iops", direction="read") == 0.0


def test_another_disk_under_the_same_name_starts_anew(host: DiskHost) -> None:
    host.cycle()
    write(host.root, "/sys/block/vda/diskseq", 10)
    _grow(host, _FIRST.replace("1000", "900000", 1))
    batch = host.cycle(31.0)  # the list of disks is looked at again
    assert [entry.state for entry in absences(batch, "iops")] == [Absence.UNKNOWN]


def test_a_disk_cannot_be_busy_for_longer_than_the_time(host: DiskHost) -> None:
    host.cycle()
    _grow(host, _FIRST.replace(" 3000 ", " 8200 "))  # 5200 of 5000 ms: two clocks
    assert value(host.cycle(), "io_util") == 100.0
    _grow(host, _FIRST.replace(" 3000 ", " 14000 "))  # 5800 of 5000 ms: no share of time
    batch = host.cycle()
    assert [entry.state for entry in absences(batch, "io_util")] == [Absence.UNKNOWN]
    assert absences(batch, "iops") != []


def test_a_clock_that_stands_still_brings_no_rate(host: DiskHost) -> None:
    host.cycle()
    batch = host.cycle(0.0)
    assert [entry.state for entry in absences(batch, "iops")] == [Absence.UNKNOWN]


def test_no_completed_request_is_quietly_not_applicable(host: DiskHost) -> None:
    host.cycle()
    _grow(host, _FIRST.replace("vda 1000", "vda 1001"))
    batch = host.cycle()
    assert value(batch, "read_latency") == 0.0
    (absence,) = absences(batch, "write_latency")
    assert absence.state is Absence.NOT_APPLICABLE


def test_an_old_kernel_tells_no_times(host: DiskHost) -> None:
    _grow(host, "254 0 vda 100 800 50 400")
    host.cycle()
    _grow(host, "254 0 vda 110 10640 50 400")
    batch = host.cycle()
    assert value(batch, "iops", direction="read") == 2.0
    for name in ("read_latency", "write_latency", "io_util", "queue_depth", "read_time_total", "write_time_total"):
        assert Absence.UNSUPPORTED in [entry.state for entry in absences(batch, name)], name


def test_disks_come_and_go(host: DiskHost) -> None:
    host.cycle()
    write(host.root, "/sys/block/sda/size", 1000)
    write(host.root, "/sys/block/sda/device/type", 0)
    _grow(host, f"{_FIRST}\n8 0 sda 5 0 40 1 5 0 40 1 0 1 2\n8 1 sda1 5 0 40 1 5 0 40 1 0 1 2\n")
    batch = host.cycle(31.0)
    assert label_values(batch, "read_sectors_total", "device") == {"vda", "sda"}
    assert [entry.labels for entry in absences(batch, "iops")] == [{"device": "sda"}]
    assert label_values(host.cycle(), "iops", "device") == {"vda", "sda"}
    _grow(host, _FIRST)
    assert label_values(host.cycle(), "iops", "device") == {"vda"}


def test_names_decide_where_sysfs_cannot_be_read(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path))
    _grow(host, "8 0 sda 1 0 2 3 4 0 5 6 0 7 8\n8 1 sda1 1 0 2 3 4 0 5 6 0 7 8\n253 0 dm-0 1 0 2 3 4 0 5 6 0 7 8\n")
    assert label_values(host.cycle(), "read_sectors_total", "device") == {"sda"}


def test_a_node_without_a_disk_of_its_own(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path))
    _grow(host, "7 0 loop0 1 0 2 3 4 0 5 6 0 7 8\n")
    batch = host.cycle()
    (absence,) = absences(batch, "iops")
    assert absence.state is Absence.NOT_APPLICABLE


def test_io_wait_that_steps_back_is_nothing_and_no_time_is_no_share(host: DiskHost) -> None:
    write(host.root, "/proc/stat", "cpu  100 0 100 100 100 0 0 0 0 0\ncpu0 1 0 1 1 1 0 0 0 0 0\n")
    host.cycle()
    write(host.root, "/proc/stat", "cpu  150 0 100 150 90 0 0 0 0 0\n")
    assert value(host.cycle(), "io_wait") == 0.0
    (absence,) = absences(host.cycle(), "io_wait")
    assert (absence.state, absence.reason) == (Absence.UNKNOWN, "no time was counted since the last reading")


def test_no_pressure_says_what_would_bring_it(host: DiskHost) -> None:
    (Path(host.root) / "proc/pressure/io").unlink()
    (absence,) = absences(host.cycle(), "pressure")
    assert (absence.state, absence.remedy) == (Absence.UNSUPPORTED, "boot with psi=1, on a kernel of 4.20 or newer")


def test_pressure_with_one_damaged_line(host: DiskHost) -> None:
    write(host.root, "/proc/pressure/io", "some avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=x\n")
    batch = host.cycle()
    assert [m.value for m in batch.metrics if m.name == "pressure"] == [1.0, 2.0, 3.0]
    assert [entry.labels for entry in absences(batch, "pressure")] == [{"stall": "full"}]


def test_pressure_of_the_wrong_kind(host: DiskHost) -> None:
    (Path(host.root) / "proc/pressure/io").unlink()
    (Path(host.root) / "proc/pressure/io").mkdir()
    (absence,) = absences(host.cycle(), "pressure")
    assert absence.state is Absence.READ_ERROR


def test_what_discards_is_told_even_where_nothing_can(tmp_path: Path) -> None:
    host = DiskHost(str(tmp_path / "a"), "storage-sick")
    (absence,) = absences(host.cycle(), "discard_throughput")
    assert absence.state is Absence.NOT_APPLICABLE
    flash = DiskHost(str(tmp_path / "b"), "vm-2cpu")
    (absence,) = absences(flash.cycle(), "discard_throughput")
    assert (absence.state, absence.labels) == (Absence.UNKNOWN, {"device": "vda"})
    assert absences(flash.cycle(), "discard_throughput") == []
    shutil.rmtree(tmp_path / "b" / "sys" / "block")
    bare = DiskHost(str(tmp_path / "b"))
    (absence,) = absences(bare.cycle(), "discard_throughput")
    assert absence.state is Absence.UNKNOWN
    assert "/sys/block" in absence.reason
