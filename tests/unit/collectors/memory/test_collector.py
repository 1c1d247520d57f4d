"""Component memory: use, activity, pressure, zones, power. Sums behind the expected values stand beside them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from nodeproof.collectors.base import Collector
from nodeproof.collectors.memory import collector as memory
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.catalogue import Kind, component_specs
from nodeproof.model.metric import Batch
from support.bmc import EVERYTHING, settled
from support.hosts import write_host
from support.readings import absence, absent_names, value, values_by

_HOSTS = ("vm-2cpu", "bare-x86-256cpu", "aarch64-kunpeng", "lxc-container", "docker-v1-limit")
_MIB_KB = 1024


def _batch(name: str, tmp_path: Path) -> Batch:
    root = write_host(name, str(tmp_path / name))
    return memory.create(recorded_machine(root), EVERYTHING).collect()


def _host(tmp_path: Path, files: Mapping[str, str]) -> tuple[Collector, ManualClock, str]:
    """A machine that has only these files; the clock is to be moved."""
    for path, content in files.items():
        _write(str(tmp_path), path, content)
    clock = ManualClock()
    return memory.create(recorded_machine(str(tmp_path), clock=clock), EVERYTHING), clock, str(tmp_path)


def _write(root: str, path: str, content: str) -> None:
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    Path(root + path).write_text(content, encoding="ascii")


def _meminfo(**kib: int) -> dict[str, str]:
    return {"/proc/meminfo": "".join(f"{name}: {number} kB\n" for name, number in kib.items())}


def test_twenty_readings_of_a_small_virtual_machine(tmp_path: Path) -> None:
    batch = _batch("vm-2cpu", tmp_path)
    # (4015548 - 2610560) / 4015548 = 1404988 / 4015548 = 34.9887 %
    assert value(batch, "usage") == 34.99
    assert value(batch, "usage_detail", field="total") == 4015548 / _MIB_KB
    assert value(batch, "usage_detail", field="used") == 1404988 / _MIB_KB
    assert value(batch, "usage_detail", field="buffers") == 86.0  # 88064 / 1024
    assert value(batch, "usage_detail", field="cached") == 1348.0  # 1380352 / 1024
    assert value(batch, "usage_detail", field="sreclaimable") == 118.0  # 120832 / 1024
    # (2097148 - 1572861) / 2097148 = 524287 / 2097148 = 24.99999 %
    assert value(batch, "swap_usage") == 25.0
    assert value(batch, "swap_detail", field="used") == 524287 / _MIB_KB
    assert value(batch, "breakdown", field="anon") == 846.0  # 866304 / 1024
    assert value(batch, "breakdown", field="dirty") == 2.0  # 2048 / 1024
    assert value(batch, "commit_usage") == 50.0  # 2052460 / 4104920
    assert value(batch, "hardware_corrupted") == 0.0
    assert value(batch, "isolated_pages") == 12  # 0 anon + 12 file
    assert value(batch, "free_pages") == 300880
    assert value(batch, "oom_count") == 1
    assert value(batch, "saturation", interval="avg10") == 3.5
    assert value(batch, "pressure", stall="full", interval="avg60") == 0.6
    assert value(batch, "pressure_stall_time", stall="some") == 123.456789  # microseconds / 10^6
    # Zone DMA32 has 1000 + 500*2 + 250*4 + 100*8 + 50*16 + 20*32 + 10*64 + 5*128 + 4*256 + 2*512 + 60*1024
    # = 1000 + 1000 + 1000 + 800 + 800 + 640 + 640 + 640 + 1024 + 1024 + 61440 = 70008 pages; 1000 / 70008 = 1.4284 %
    assert value(batch, "fragmentation", node="0", zone="DMA32") == 1.43
    # Normal: 4000 + 1000*2 + 500*4 + 199*1024 = 8000 + 203776 = 211776; 4000 / 211776 = 1.8888 %
    assert value(batch, "fragmentation", node="0", zone="Normal") == 1.89
    assert value(batch, "numa_detail", node="0", field="used") == 2812028 / _MIB_KB
    assert value(batch, "zram_detail", device="zram0", field="used") == 68.0  # 71303168 / 1048576
    assert value(batch, "module_num") == 1
    assert absence(batch, "ecc_ce_errors").state is Absence.NOT_APPLICABLE
    assert absence(batch, "power").state is Absence.NOT_APPLICABLE
    assert absence(batch, "cgroup_limit").state is Absence.NOT_APPLICABLE


def test_twenty_readings_of_a_server_with_256_processors(tmp_path: Path) -> None:
    batch = _batch("bare-x86-256cpu", tmp_path)
    # total 8 * 132000000 kB = 1056000000 kB; (1056000000 - 792000000) / 1056000000 = 25 %
    assert value(batch, "usage") == 25.0
    assert value(batch, "usage_detail", field="total") == 1031250.0  # 1056000000 / 1024
    assert value(batch, "usage_detail", field="used") == 257812.5  # 264000000 / 1024
    assert value(batch, "usage_detail", field="free") == 515625.0  # 8 * 66000000 / 1024
    assert value(batch, "swap_usage") == 0.0
    assert value(batch, "breakdown", field="hugetlb") == 2048.0  # 1024 pages of 2 MiB
    assert value(batch, "hardware_corrupted") == 0.0078125  # two pages: 8 kB / 1024
    assert value(batch, "commit_usage") == 25.0  # 132000000 / 528000000
    assert value(batch, "isolated_pages") == 96  # 64 + 32
    assert value(batch, "free_pages") == 132_000_000  # 528000000 kB / 4 kB
    # 1000 single pages of 1000 + 1000 * 1024 = 1025000: 0.0976 %
    assert value(batch, "fragmentation", node="7", zone="Normal") == 0.1
    assert value(batch, "ecc_ce_errors", mc="mc1") == 5
    assert value(batch, "ecc_uce_errors", mc="mc0") == 0
    assert value(batch, "ecc_noinfo_errors", mc="mc1", type="ce") == 2
    # rank = row 1 * 8 channels + channel 2
    rank = {"mc": "mc1", "dimm": "rank10", "label": "mc#1csrow#1channel#2", "location": "csrow 1 channel 2"}
    assert value(batch, "ecc_dimm_ce_errors", **rank) == 3
    assert value(batch, "ecc_controller_info", mc="mc0", model="F19h_M00h: DEV 0000:00:18.3", mode="S4ECD4ED") == 524288
    assert value(batch, "numa_allocations_total", node="7", type="miss") == 35_000  # 7 * 5000
    assert value(batch, "numa_detail", node="3", field="free") == 64453.125  # 66000000 / 1024
    assert value(batch, "hugepages", size="2048kB", field="free") == 1000
    assert value(batch, "installed_size") == 1048576.0  # 16 * 65536
    assert value(batch, "module_size", locator="P1 CHANNEL H DIMM 0") == 65536.0
    slow = value(batch, "module_speed_downclocked", locator="P0 CHANNEL A DIMM 0", rated="3200 MT/s", configured="2933 MT/s")
    assert slow == 1.0
    assert value(batch, "ecc_capability", type="Multi-bit ECC") == 1.0
    assert len([metric for metric in batch.metrics if metric.name == "ecc_dimm_ce_errors"]) == 32


def test_twenty_readings_of_an_arm_server(tmp_path: Path) -> None:
    batch = _batch("aarch64-kunpeng", tmp_path)
    # (267386880 - 227278848) / 267386880 = 40108032 / 267386880 = 15 %
    assert value(batch, "usage") == 15.0
    assert value(batch, "usage_detail", field="total") == 261120.0  # 267386880 / 1024
    assert value(batch, "usage_detail", field="cached") == 30720.0  # 31457280 / 1024
    assert value(batch, "swap_usage") == 0.0  # 4194300 of 4194300 free
    assert value(batch, "swap_detail", field="free") == 4194300 / _MIB_KB
    assert value(batch, "breakdown", field="writeback") == 0.0625  # 64 / 1024
    assert value(batch, "breakdown", field="percpu") == 400.0  # 409600 / 1024
    assert value(batch, "commit_usage") == 30.0  # 41366322 / 137887740
    assert value(batch, "oom_count") == 0
    # Node 3: 3500 + 1000*2 + 500*4 + 250*8 + 100*16 + 50*32 + 20*64 + 10*128 + 5*256 + 2*512 + 11970*1024
    #       = 3500 + 2000 + 2000 + 2000 + 1600 + 1600 + 1280 + 1280 + 1280 + 1024 + 12257280 = 12274844: 0.0285 %
    assert value(batch, "fragmentation", node="3", zone="Normal") == 0.03
    assert value(batch, "ecc_ce_errors", mc="mc0") == 41
    assert value(batch, "ecc_uce_errors", mc="mc0") == 1
    bad = {"mc": "mc0", "dimm": "dimm5", "label": "SOCKET 1 CHANNEL 1 DIMM 0 DIMM110", "location": "memory 5"}
    assert value(batch, "ecc_dimm_ce_errors", **bad) == 37
    assert value(batch, "ecc_dimm_uce_errors", **bad) == 1
    assert value(batch, "ecc_noinfo_errors", mc="mc0", type="ce") == 4  # 41 = 37 + 4
    assert value(batch, "numa_detail", node="2", field="free") == 46912.0  # (50135040 - 2 * 1048576) / 1024
    assert value(batch, "numa_allocations_total", node="3", type="foreign") == 2400  # 3 * 800
    assert value(batch, "hugepages", size="2048kB", field="total") == 16
    assert value(batch, "transparent_hugepages", state="always") == 2.0
    assert value(batch, "overcommit_policy", policy="always") == 1
    assert value(batch, "module_num") == 8
    assert value(batch, "module_slots") == 16
    assert value(batch, "installed_size") == 262144.0  # 8 * 32768
    # The daemon's own unit: (67108864 - 16777216) / 268435456 = 18.75 %
    assert value(batch, "cgroup_usage", cgroup="/system.slice/nodeproof.service") == 18.75
    assert absence(batch, "saturation").state is Absence.UNSUPPORTED


def test_twenty_readings_of_a_container_under_lxcfs(tmp_path: Path) -> None:
    batch = _batch("lxc-container", tmp_path)
    # (2097152 - 1500416) / 2097152 = 596736 / 2097152 = 28.4546 %
    assert value(batch, "usage") == 28.45
    assert value(batch, "usage_detail", field="total") == 2048.0
    assert value(batch, "usage_detail", field="used") == 582.75  # 596736 / 1024
    assert value(batch, "usage_detail", field="available") == 1465.25  # 1500416 / 1024
    assert value(batch, "usage_detail", field="free") == 953.25  # 976128 / 1024
    assert value(batch, "usage_detail", field="cached") == 512.0
    assert value(batch, "breakdown", field="anon") == 448.0  # 458752 / 1024
    assert value(batch, "breakdown", field="committed") == 20480.0  # a promise may exceed the total: 20971520 / 1024
    assert value(batch, "commit_usage") == 50.0  # 20971520 / 41943040
    assert value(batch, "oom_count") == 7
    assert value(batch, "pressure_stall_time", stall="full") == 1.0
    assert value(batch, "cgroup_limit", cgroup="/", source="/sys/fs/cgroup/memory.max") == 2048.0
    # (1148190720 - 536870912) / 2147483648 = 611319808 / 2147483648 = 28.4668 %
    assert value(batch, "cgroup_usage", cgroup="/") == 28.47
    assert value(batch, "cgroup_detail", cgroup="/", field="current") == 1095.0  # 1148190720 / 1048576
    assert value(batch, "cgroup_detail", cgroup="/", field="working_set") == 583.0  # 611319808 / 1048576
    assert value(batch, "cgroup_detail", cgroup="/", field="swap") == 128.0
    assert value(batch, "cgroup_detail", cgroup="/", field="swap_limit") == 1024.0
    assert value(batch, "cgroup_oom_kills", cgroup="/") == 2
    # What the host counts cannot be the container's: neither negative nor over 100 %, but missing with its reason.
    assert absence(batch, "usage_detail", field="sreclaimable").state is Absence.UNKNOWN
    assert absence(batch, "breakdown", field="slab").state is Absence.UNKNOWN
    assert absence(batch, "swap_usage").state is Absence.UNKNOWN
    assert "1610612736" in absence(batch, "swap_detail").reason  # 1572864 kB free of 1048576 kB


def test_twenty_readings_of_a_container_of_cgroup_v1(tmp_path: Path) -> None:
    batch = _batch("docker-v1-limit", tmp_path)
    # (65870632 - 49402974) / 65870632 = 16467658 / 65870632 = 25.0 %
    assert value(batch, "usage") == 25.0
    assert value(batch, "usage_detail", field="used") == 16467658 / _MIB_KB
    assert value(batch, "usage_detail", field="sreclaimable") == 1536.0
    assert value(batch, "swap_usage") == 0.0
    assert value(batch, "swap_detail", field="total") == 0.0
    assert value(batch, "breakdown", field="dirty") == 8.0
    assert value(batch, "breakdown", field="writeback") == 0.125  # 128 / 1024
    assert value(batch, "commit_usage") == 150.0  # 49402974 / 32935316
    # DMA: 1 + 4 + 16 + 32 + 64 + 256 + 512 + 3*1024 = 3957; 1 / 3957 = 0.0253 %
    assert value(batch, "fragmentation", node="0", zone="DMA") == 0.03
    # Normal: 90000 + 8000 + 4000 + 800 + 160 = 102960; 90000 / 102960 = 87.4126 %
    assert value(batch, "fragmentation", node="0", zone="Normal") == 87.41
    assert value(batch, "numa_detail", node="0", field="used") == 45870632 / _MIB_KB
    assert value(batch, "numa_allocations_total", node="0", type="local") == 800000
    assert value(batch, "transparent_hugepages", state="always") == 2.0
    assert value(batch, "cgroup_limit", cgroup="/", source="/sys/fs/cgroup/memory/memory.limit_in_bytes") == 512.0
    # (402653184 - 134217728) / 536870912 = 50 %
    assert value(batch, "cgroup_usage", cgroup="/") == 50.0
    assert value(batch, "cgroup_detail", cgroup="/", field="working_set") == 256.0
    assert value(batch, "cgroup_detail", cgroup="/", field="swap") == 32.0  # (436207616 - 402653184) / 1048576
    assert value(batch, "cgroup_detail", cgroup="/", field="swap_limit") == 512.0  # (1073741824 - 536870912) / 1048576
    assert absence(batch, "cgroup_oom_kills", cgroup="/").state is Absence.UNSUPPORTED
    assert absence(batch, "ecc_ce_errors").state is Absence.UNKNOWN
    assert "modprobe" in absence(batch, "ecc_ce_errors").remedy
    assert absence(batch, "refaults", type="anon").state is Absence.UNSUPPORTED


@pytest.mark.parametrize("name", _HOSTS)
def test_every_metric_of_the_catalogue_is_read_or_said_to_be_missing(name: str, tmp_path: Path) -> None:
    batch = _batch(name, tmp_path)
    assert {metric.name for metric in batch.metrics} | absent_names(batch) == set(component_specs("memory"))


@pytest.mark.parametrize("name", _HOSTS)
def test_series_are_unique_labels_are_those_of_the_catalogue_and_nothing_is_negative(name: str, tmp_path: Path) -> None:
    batch = _batch(name, tmp_path)
    specs = component_specs("memory")
    series = [(metric.name, *sorted((metric.labels or {}).items())) for metric in batch.metrics]
    assert len(series) == len(set(series))
    for metric in batch.metrics:
        assert set(metric.labels or {}) <= set(specs[metric.name].labels), metric
        assert metric.value >= 0
        assert metric.unit == specs[metric.name].unit


@pytest.mark.parametrize("name", _HOSTS)
def test_no_serial_number_leaves_the_machine(name: str, tmp_path: Path) -> None:
    for metric in _batch(name, tmp_path).metrics:
        assert "SERIAL" not in str(metric.labels)


def test_case_51_every_memory_metric_of_the_big_arm_host_is_there(tmp_path: Path) -> None:
    raw = (
        "MemTotal:       1055762868 kB\nMemFree:        900000000 kB\nMemAvailable:   980000000 kB\nBuffers:         1000000 kB\n"
        "Cached:         50000000 kB\nShadowCallStack:10373888 kB\nSwapTotal:             0 kB\nSwapFree:              0 kB\n"
        "SReclaimable:     200000 kB\nHugePages_Total:       0\n"
    )
    batch = _host(tmp_path, {"/proc/meminfo": raw})[0].collect()
    # (1055762868 - 980000000) / 1055762868 = 75762868 / 1055762868 = 7.1761 %
    assert value(batch, "usage") == 7.18
    assert value(batch, "usage_detail", field="total") == 1055762868 / _MIB_KB
    assert value(batch, "swap_usage") == 0.0
    assert values_by(batch, "swap_detail", "field") == {"total": 0.0, "used": 0.0, "free": 0.0}


@pytest.mark.parametrize(
    ("kib", "state", "word"),
    [
        ({"MemTotal": 1000, "MemAvailable": 1001}, Absence.UNKNOWN, "more than there is"),
        ({"MemTotal": 1000}, Absence.UNSUPPORTED, "3.14"),
        ({"MemTotal": 1000, "MemAvailable": 1 << 63}, Absence.UNKNOWN, "no plausible number"),
        ({"MemTotal": 0, "MemAvailable": 0}, Absence.UNKNOWN, "is 0"),
        ({"MemFree": 1000, "MemAvailable": 10}, Absence.READ_ERROR, "no MemTotal"),
    ],
)
def test_implausible_totals_are_missing_never_negative(tmp_path: Path, kib: dict[str, int], state: Absence, word: str) -> None:
    batch = _host(tmp_path, _meminfo(SwapTotal=10, SwapFree=5, **kib))[0].collect()
    entry = absence(batch, "usage")
    assert entry.state is state
    assert word in entry.reason
    assert value(batch, "swap_usage") == 50.0  # its neighbour is well


def test_a_meminfo_without_swap_lines_says_so(tmp_path: Path) -> None:
    batch = _host(tmp_path, _meminfo(MemTotal=1000, MemAvailable=500))[0].collect()
    assert absence(batch, "swap_usage").state is Absence.READ_ERROR
    assert value(batch, "usage") == 50.0
    assert absence(batch, "hardware_corrupted").state is Absence.UNSUPPORTED
    assert absence(batch, "commit_usage").state is Absence.UNSUPPORTED


def test_without_a_total_nothing_is_said_of_its_parts(tmp_path: Path) -> None:
    batch = _host(tmp_path, _meminfo(AnonPages=1000))[0].collect()
    assert absence(batch, "breakdown").state is Absence.READ_ERROR


def test_a_commit_limit_of_zero_is_no_division(tmp_path: Path) -> None:
    batch = _host(tmp_path, _meminfo(MemTotal=1000, MemAvailable=1, Committed_AS=5, CommitLimit=0))[0].collect()
    assert absence(batch, "commit_usage").state is Absence.NOT_APPLICABLE


def test_defect_9_large_and_small_values_are_rounded_right(tmp_path: Path) -> None:
    total = (1 << 54) - 1  # kB: near 2^64 bytes
    batch = _host(tmp_path, _meminfo(MemTotal=total, MemAvailable=total // 3))[0].collect()
    assert value(batch, "usage") == 66.67
    assert value(batch, "usage_detail", field="total") == total / _MIB_KB


_VMSTAT = "pswpin {0}\npswpout {1}\npgfault {2}\npgmajfault {3}\nallocstall_normal {4}\nallocstall_movable 1\noom_kill 2\n"


def _rates(tmp_path: Path, seconds: float, after: tuple[int, ...]) -> Batch:
    collector, clock, root = _host(tmp_path, {"/proc/vmstat": _VMSTAT.format(100, 200, 1000, 50, 9)})
    first = collector.collect()
    assert absence(first, "swap_in").state is Absence.UNKNOWN
    assert not [metric for metric in first.metrics if metric.name in {"swap_in", "swap_out", "page_faults"}]
    clock.advance(seconds)
    _write(root, "/proc/vmstat", _VMSTAT.format(*after))
    return collector.collect()


@pytest.mark.parametrize("seconds", [0.5, 1.0, 3.0, 7.25, 600.0])
def test_defect_7_rates_divide_by_the_time_that_passed(tmp_path: Path, seconds: float) -> None:
    batch = _rates(tmp_path, seconds, (130, 260, 4000, 350, 15))
    assert value(batch, "swap_in") == round(30 / seconds, 2)
    assert value(batch, "swap_out") == round(60 / seconds, 2)
    assert value(batch, "allocation_stalls") == round(6 / seconds, 2)


def test_defect_30_minor_faults_are_the_total_without_the_major_ones(tmp_path: Path) -> None:
    # total 1000 -> 4000, major 50 -> 350: 3000 faults in 10 s, 300 of them major
    batch = _rates(tmp_path, 10.0, (100, 200, 4000, 350, 9))
    assert value(batch, "page_faults", type="major") == 30.0
    assert value(batch, "page_faults", type="minor") == 270.0


def test_a_counter_that_steps_back_is_missing_for_that_interval_only(tmp_path: Path) -> None:
    collector, clock, root = _host(tmp_path, {"/proc/vmstat": _VMSTAT.format(100, 200, 1000, 50, 9)})
    collector.collect()
    clock.advance(2)
    _write(root, "/proc/vmstat", _VMSTAT.format(4, 240, 1000, 50, 9))
    batch = collector.collect()
    assert "stepped back from 100 to 4" in absence(batch, "swap_in").reason
    assert value(batch, "swap_out") == 20.0
    clock.advance(2)
    _write(root, "/proc/vmstat", _VMSTAT.format(10, 240, 1000, 50, 9))
    assert value(collector.collect(), "swap_in") == 3.0


def test_two_readings_at_the_same_moment_make_no_rate(tmp_path: Path) -> None:
    assert absence(_rates(tmp_path, 0.0, (130, 260, 4000, 350, 15)), "swap_in").state is Absence.UNKNOWN


def test_a_kernel_without_swap_says_so(tmp_path: Path) -> None:
    batch = _host(tmp_path, {"/proc/vmstat": "pgfault 5\n"})[0].collect()
    for name in ("swap_in", "swap_out", "isolated_pages", "free_pages", "allocation_stalls"):
        assert absence(batch, name).state is Absence.UNSUPPORTED
    assert absence(batch, "page_faults", type="minor").state is Absence.UNSUPPORTED


class _Counts(NamedTuple):
    oom_kills: int


class _Log:
    """A kernel log with one answer; None = no right to read it."""

    oom_kills: int | None = 0

    def __init__(self, machine: Machine) -> None:
        pass

    def counts(self) -> _Counts:
        if self.oom_kills is None:
            raise NoData(Absence.NO_PERMISSION, "/dev/kmsg: Operation not permitted", remedy="run as root")
        return _Counts(self.oom_kills)


def _with_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, vmstat: str, oom_kills: int | None) -> Batch:
    monkeypatch.setattr(memory, "KernelLog", _Log)
    monkeypatch.setattr(_Log, "oom_kills", oom_kills)
    return _host(tmp_path, {"/proc/vmstat": vmstat})[0].collect()


def test_defect_15_the_kernels_own_counter_counts_each_kill_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The log (two lines a kill, a ring that wraps) is not asked while the counter is there.
    assert value(_with_log(tmp_path, monkeypatch, "pgfault 1\noom_kill 3\n", 6), "oom_count") == 3


def test_defect_15_without_the_counter_the_log_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert value(_with_log(tmp_path, monkeypatch, "pgfault 1\n", 4), "oom_count") == 4


def test_defect_15_no_right_to_read_the_log_is_not_zero_kills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = _with_log(tmp_path, monkeypatch, "pgfault 1\n", None)
    entry = absence(batch, "oom_count")
    assert entry.state is Absence.NO_PERMISSION
    assert entry.remedy == "run as root"
    assert "oom_count" not in {metric.name for metric in batch.metrics}


def test_the_log_is_left_alone_when_nobody_wants_the_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class OnlyFreePages:
        def wants(self, component: str, name: str) -> bool:
            return (component, name) == ("memory", "free_pages")

    monkeypatch.setattr(memory, "KernelLog", _Log)
    monkeypatch.setattr(_Log, "oom_kills", None)
    _write(str(tmp_path), "/proc/vmstat", "nr_free_pages 9\n")
    batch = memory.create(recorded_machine(str(tmp_path)), OnlyFreePages()).collect()
    assert [(metric.name, metric.value) for metric in batch.metrics] == [("free_pages", 9)]
    assert batch.missing == []


def test_the_breakdown_is_not_made_when_nobody_wants_it(tmp_path: Path) -> None:
    class OnlyUsage:
        def wants(self, component: str, name: str) -> bool:
            return (component, name) == ("memory", "usage")

    _write(str(tmp_path), "/proc/meminfo", "MemTotal: 100 kB\nMemAvailable: 25 kB\n")
    batch = memory.create(recorded_machine(str(tmp_path)), OnlyUsage()).collect()
    assert [(metric.name, metric.value) for metric in batch.metrics] == [("usage", 75.0)]


def test_a_damaged_line_of_pressure_costs_only_itself(tmp_path: Path) -> None:
    text = "some avg10=1.00 avg60=0.50 avg300=0.25 total=2000000\nfull avg10=x avg60=0 avg300=0 total=0\n"
    batch = _host(tmp_path, {"/proc/pressure/memory": text})[0].collect()
    assert values_by(batch, "saturation", "interval") == {"avg10": 1.0, "avg60": 0.5, "avg300": 0.25}
    assert value(batch, "pressure_stall_time", stall="some") == 2.0
    assert absence(batch, "pressure").state is Absence.READ_ERROR
    assert absence(batch, "pressure_stall_time", stall="full").state is Absence.READ_ERROR


def test_no_pressure_file_names_what_would_help(tmp_path: Path) -> None:
    batch = _host(tmp_path, {})[0].collect()
    assert "psi=1" in absence(batch, "saturation").remedy


def test_a_zone_without_free_pages_has_no_fragmentation_rather_than_none_of_it(tmp_path: Path) -> None:
    text = "Node 0, zone Normal 0 0 0\nNode 1, zone Normal 3 1 0\n"
    batch = _host(tmp_path, {"/proc/buddyinfo": text})[0].collect()
    assert absence(batch, "fragmentation", node="0", zone="Normal").state is Absence.NOT_APPLICABLE
    assert value(batch, "fragmentation", node="1", zone="Normal") == 60.0  # 3 of 3 + 2


_SENSORS = b"""CPU1 Pwr         | 118.000    | Watts      | ok    | na        | na        | na        | na        | na        | na
MEM1 Pwr         | 12.500     | Watts      | ok    | na        | na        | na        | na        | na        | na
MEM2 Power       | na         | Watts      | na    | na        | na        | na        | na        | na        | na
MEM1 Temp        | 42.000     | degrees C  | ok    | na        | na        | na        | na        | na        | na
MEM_PWR_GOOD     | 0x1        | discrete   | 0x0180| na        | na        | na        | na        | na        | na
"""


def _bmc(tmp_path: Path, output: bytes) -> tuple[Machine, Collector]:
    _write(str(tmp_path), "/dev/ipmi0", "")
    machine = recorded_machine(str(tmp_path), {"ipmitool sensor": output})
    return machine, memory.create(machine, EVERYTHING)


def test_power_comes_from_the_sensors_for_memory_and_a_dead_one_is_not_zero(tmp_path: Path) -> None:
    batch = settled(*_bmc(tmp_path, _SENSORS))
    assert value(batch, "power", sensor="MEM1 Pwr") == 12.5
    assert absence(batch, "power", sensor="MEM2 Power").state is Absence.READ_ERROR
    assert len([metric for metric in batch.metrics if metric.name == "power"]) == 1


def test_a_bmc_without_such_a_sensor_says_so(tmp_path: Path) -> None:
    batch = settled(*_bmc(tmp_path, _SENSORS.splitlines(keepends=True)[0]))
    assert absence(batch, "power").state is Absence.UNSUPPORTED


def test_labels_are_the_same_objects_in_each_cycle(tmp_path: Path) -> None:
    root = write_host("vm-2cpu", str(tmp_path / "host"))
    clock = ManualClock()
    collector = memory.create(recorded_machine(root, clock=clock), EVERYTHING)
    first = {id(metric.labels) for metric in collector.collect().metrics if metric.labels}
    clock.advance(120)
    second = [
        metric for metric in collector.collect().metrics if metric.labels and metric.name not in {"page_faults", "refaults"}
    ]
    assert all(id(metric.labels) in first for metric in second)


def test_rates_and_shares_are_no_counters() -> None:
    for spec in component_specs("memory").values():
        if spec.unit in {"%", "count/s"}:
            assert spec.kind is Kind.GAUGE, spec.name


def test_this_machine_agrees_with_another_library() -> None:
    batch = memory.create(Machine.here(), EVERYTHING).collect()
    ours, theirs = values_by(batch, "usage_detail", "field"), psutil.virtual_memory()
    mib = 1 << 20
    assert ours["total"] == theirs.total / mib
    # Others work here meanwhile: a tenth of the total, or 256 MiB, may move between two readings.
    slack = max(256.0, ours["total"] / 10)
    assert ours["available"] == pytest.approx(theirs.available / mib, abs=slack)
    assert ours["free"] == pytest.approx(theirs.free / mib, abs=slack)
    assert values_by(batch, "swap_detail", "field")["total"] == psutil.swap_memory().total / mib
