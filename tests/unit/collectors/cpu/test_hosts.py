"""Readings of whole hosts, each worked out by hand from the host's files; and what the catalogue says of all of them."""

from collections import Counter
from pathlib import Path

import pytest

from nodeproof.errors import Absence
from nodeproof.host.files import FileTree
from nodeproof.model.catalogue import component_specs
from support.cpu_host import CpuHost
from support.hosts import write_host
from support.hosts_cpu import amd_stat
from support.kernel_log import write_log

_HOSTS = ("vm-2cpu", "bare-x86-256cpu", "bare-x86-intel", "aarch64-kunpeng")
_CPU = "/sys/devices/system/cpu"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The largest host, written once: a test that changes it changes it back."""
    return write_host("bare-x86-256cpu", str(tmp_path_factory.mktemp("hosts") / "large"))


def _host(name: str, tmp_path: Path, large: str = "") -> CpuHost:
    root = large if name == "bare-x86-256cpu" else write_host(name, str(tmp_path / name))
    write_log(root, [])
    return CpuHost(root)


def test_vm_2cpu(tmp_path: Path) -> None:
    host = _host("vm-2cpu", tmp_path)
    host.cycle()
    # 2 s later, 400 ticks in all: user 5000 -> 5100, system 3000 -> 3040, idle 190000 -> 190200, iowait 800 -> 820,
    # softirq 60 -> 64, steal 120 -> 156; guest 40 -> 90 is part of user.
    host.write(
        "/proc/stat",
        "cpu  5100 20 3040 190200 820 0 64 156 90 0\n"
        "cpu0 2060 20 1020 96100 310 0 54 26 0 0\n"
        "cpu1 3040 0 2020 94100 510 0 10 130 90 0\n"
        "intr 116812 0\nctxt 233328\nbtime 1789996400\nprocesses 7481\nprocs_running 1\nprocs_blocked 2\nsoftirq 82026 0\n",
    )
    host.cycle(2)
    assert host.value("usage", core="total") == 50.0  # (400 - 200 idle) / 400
    assert host.value("user_util", core="total") == 25.0  # 100 / 400
    assert host.value("system_util", core="total") == 10.0  # 40 / 400
    assert host.value("iowait_util", core="total") == 5.0  # 20 / 400
    assert host.value("softirq_util", core="total") == 1.0  # 4 / 400
    assert host.value("steal_util", core="total") == 9.0  # 36 / 400
    # core 0: 60 + 20 + 100 + 10 + 4 + 6 = 200 ticks, 100 of them idle
    assert host.value("usage", core="0") == 50.0
    assert host.value("idle_util", core="1") == 50.0  # 40 + 20 + 100 + 10 + 30 = 200
    assert host.value("steal_time", core="1") == 130
    assert host.value("context_switches") == 1000.0  # (233328 - 231328) / 2 s
    assert host.value("interrupts") == 500.0  # (116812 - 115812) / 2 s
    assert host.value("forks") == 3.0  # (7481 - 7475) / 2 s
    assert host.value("procs_blocked") == 2
    assert host.value("load_average", interval="5m") == 0.25
    assert host.value("process_count", type="total") == 287
    assert host.value("pressure", stall="some", interval="avg10") == 2.83
    assert host.value("pressure_stall_time", stall="some") == 4.304928  # 4304928 us
    assert (
        host.value("cgroup_limit_cores", source="/sys/fs/cgroup/system.slice/nodeproof.service/cpu.max") == 1.5
    )  # 150000 / 100000
    assert host.value("l2_cache_size", core="0") == 256  # 256K
    assert host.value("l3_cache_size", core="0") == 35_840  # 35840K
    assert host.value("model_info", model_name="Intel(R) Xeon(R) CPU E5-2680 v4 @ 2.40GHz", cache_size="35840 KB") == 2
    assert host.value("numa_core_num", node="0") == 2  # 0-1
    assert (host.value("online_core_num"), host.value("offline_core_num"), host.value("allowed_core_num")) == (2, 0, 2)
    assert host.value("cpu_ce_errors", cpu="0") == 0  # the whole kernel log was read and holds none
    for name in ("temperature", "power", "energy", "frequency", "max_freq", "new_throttles"):
        assert {entry.state for entry in host.absences(name)} == {Absence.NOT_APPLICABLE}
        assert host.values(name) == []


def test_bare_x86_256cpu(tmp_path: Path, large: str) -> None:
    host = _host("bare-x86-256cpu", tmp_path, large)
    host.cycle()
    host.write("/proc/stat", amd_stat(1))
    host.write("/sys/class/powercap/intel-rapl:1/energy_uj", 65_225_000_000)
    host.write("/sys/class/powercap/intel-rapl:0/energy_uj", 217_389_013)
    host.cycle(1)
    # Each core gains 100 ticks, idle 85 - c % 50. The sum of c % 50 over 0..255 is 5 * 1225 + (0 + .. + 5) = 6140, so idle gains
    # 256 * 85 - 6140 = 15620 of 25600: usage = 9980 / 25600 = 38.984 %
    assert host.value("usage", core="total") == 38.98
    assert host.value("user_util", core="total") == 23.98  # 6140 / 25600 = 23.984 %
    assert host.value("system_util", core="total") == 10.0
    assert host.value("usage", core="249") == 64.0  # 249 % 50 = 49: 49 + 10 + 5
    assert host.value("idle_util", core="249") == 36.0
    assert host.value("iowait_util", core="0") == 5.0
    assert host.value("user_time", core="7") == 100_707  # 100000 + 100 * 7 + 7
    # 256 * 100000 + 100 * (0 + .. + 255) + 6140 = 25600000 + 3264000 + 6140
    assert host.value("user_time", core="total") == 28_870_140
    assert host.value("context_switches") == 120_000.0
    assert host.value("frequency", core="255") == 2705  # 2450 + 255
    assert host.value("avg_freq") == 2577.5  # 2450 + 255 / 2
    assert (host.value("min_freq"), host.value("max_freq")) == (1500.0, 3529.052)
    assert host.value("allowed_max_freq") == 2000.0  # core 200 is capped
    assert host.value("governor_cores", governor="performance", driver="acpi-cpufreq") == 252  # all but four
    assert host.value("temperature", cpu="0", sensor="Tctl") == 62.5
    assert host.value("temperature", cpu="1", sensor="Tctl") == 71.1  # 71.125
    assert host.value("power", cpu="1", sensor="RAPL package") == 225.0  # 225 J in 1 s
    # over the end of the range: 65532.610987 - 65000 + 217.389013 = 750 J
    assert host.value("power", cpu="0", sensor="RAPL package") == 750.0
    assert host.value("energy", package="0", domain="package") == 750.0
    assert (host.value("core_num"), host.value("cpu_num"), host.value("numa_node_num")) == (256, 2, 8)
    assert host.value("numa_core_num", node="3") == 32  # 48-63 and 176-191
    assert host.value("isolated_core_num") == 8  # 64-67 and 192-195
    assert host.value("die_core_num", die="0") == 64
    assert host.value("l3_cache_size", core="0") == 32_768
    assert host.value("smt_active", control="on") == 1
    assert host.value("boost_enabled") == 1
    assert host.value("numa_info", node="0", zone="Normal") == 10  # 1000 blocks of order 10
    assert host.value("vulnerability", vulnerability="srso", detail="Vulnerable: No microcode") == 2
    assert host.absence("new_throttles").state is Absence.NOT_APPLICABLE  # AMD has no such counters
    assert host.values("mem_temperature") == []
    host.write("/proc/stat", amd_stat(0))
    for package in range(2):
        host.write(f"/sys/class/powercap/intel-rapl:{package}/energy_uj", 65_000_000_000)


def test_bare_x86_intel(tmp_path: Path) -> None:
    host = _host("bare-x86-intel", tmp_path)
    host.cycle()
    host.write("/proc/stat", _seven(100))
    for package, energy_uj in ((0, 1_500_000_000), (1, 262_143_000_000 + 328_850)):
        host.write(f"/sys/class/powercap/intel-rapl:{package}/energy_uj", energy_uj)
    host.write("/sys/class/powercap/intel-rapl:0:0/energy_uj", 251_000_000)
    host.cycle(10)
    # every core: 60 user, 40 idle
    assert host.value("usage", core="total") == 60.0
    assert host.value("usage", core="6") == 60.0
    assert host.value("temperature", cpu="0", sensor="Package id 0") == 55.0
    assert host.value("temperature", cpu="1", sensor="Package id 1") == 56.0
    assert host.value("core_temperature", cpu="1", sensor="Core 1") == 53.0
    assert host.value("mem_temperature", cpu="0", sensor="jc42 0-0018") == 41.2  # 41.25
    assert host.value("power", cpu="0", sensor="RAPL package") == 150.0  # 1500 J in 10 s
    assert host.value("power", cpu="1", sensor="RAPL package") == 0.03  # 0.32885 J in 10 s
    assert host.value("domain_power", package="0", domain="dram") == 25.0  # 250 J in 10 s
    assert host.value("energy", package="0", domain="dram") == 250.0
    assert len(host.values("energy")) == 4  # the mmio zone shows package 0 a second time
    assert host.value("core_throttles", package="1") == 70  # cores 2 and 3: 30 + 40
    assert host.value("package_throttle_time", package="0") == 70
    assert (host.value("core_num"), host.value("online_core_num"), host.value("offline_core_num")) == (8, 7, 1)
    assert host.value("cpu_num") == 2
    assert host.value("numa_core_num", node="1") == 3  # 2, 3 and 6; thread 7 is offline
    assert host.value("boost_enabled") == 0  # no_turbo is set
    assert host.value("max_freq") == 3700.0
    assert host.value("l2_cache_size", core="0") == 1024
    assert host.value("microcode_info", version="0x2007006") == 1
    assert host.value("load_average", interval="1m") == 1.5
    assert host.absence("forks").state is Absence.UNSUPPORTED  # this file has no line processes


def _seven(ticks: int) -> str:
    row = (1000 + ticks * 6 // 10, 10, 500, 90_000 + ticks * 4 // 10, 50, 0, 20, 0, 0, 0)
    total = " ".join(str(7 * number) for number in row)
    return f"cpu {total}\n" + "".join(f"cpu{cpu} {' '.join(map(str, row))}\n" for cpu in range(7)) + "ctxt 1000000\n"


def test_aarch64_kunpeng(tmp_path: Path) -> None:
    host = _host("aarch64-kunpeng", tmp_path)
    host.cycle()
    host.cycle(1)
    # SMBIOS names the model; /proc/cpuinfo of arm64 does not. 64 cores a socket, and the last cache of core 0 is 32M.
    assert host.value("model_info", model_name="Kunpeng 920-6426", cache_size="32768 KB") == 64
    assert (host.value("core_num"), host.value("cpu_num"), host.value("numa_node_num")) == (128, 2, 4)
    assert [value for _, value in host.values("numa_core_num")] == [32, 32, 32, 32]
    assert host.value("die_core_num", die="0") == 64
    assert host.value("online_core_num") == 128
    assert host.value("allowed_core_num") == 128
    assert host.value("l1d_cache_size", core="0") == 64
    assert host.value("l1i_cache_size", core="0") == 64
    assert host.value("l2_cache_size", core="0") == 512
    assert host.value("l3_cache_size", core="0") == 32_768  # 32M
    # 128 * 20000 + (0 + .. + 127) = 2560000 + 8128
    assert host.value("user_time", core="total") == 2_568_128
    assert host.value("user_time", core="127") == 20_127
    assert host.value("softirq_time", core="total") == 640  # 128 * 5
    assert host.value("load_average", interval="15m") == 10.25
    assert host.value("process_count", type="running") == 13
    assert host.value("procs_blocked") == 0
    assert host.value("pressure", stall="some", interval="avg300") == 0.75
    assert host.value("pressure_stall_time", stall="some") == 2.5
    assert host.value("smt_active", control="notimplemented") == 0
    assert host.value("numa_order_num", node="1", zone="Normal") == 11
    assert host.absence("pressure", stall="full").state is Absence.UNSUPPORTED  # an older kernel
    assert host.absence("usage").reason == "no time was counted since the last reading"
    assert "frequencies to the system" in host.absence("avg_freq").remedy
    assert host.absence("temperature").state is Absence.UNSUPPORTED
    assert host.absence("microcode_info").state is Absence.NOT_APPLICABLE
    assert host.absence("new_throttles").state is Absence.NOT_APPLICABLE  # Intel only


@pytest.mark.parametrize("name", _HOSTS)
def test_every_row_of_the_catalogue_is_a_reading_or_an_absence_with_its_reason(name: str, tmp_path: Path, large: str) -> None:
    host = _host(name, tmp_path, large)
    host.cycle()
    batch = host.cycle(1)
    specs = component_specs("cpu")
    assert {metric.name for metric in batch.metrics} | {entry.name for entry in batch.missing} == set(specs)
    for metric in batch.metrics:
        spec = specs[metric.name]
        assert metric.unit == spec.unit
        assert set(metric.labels or {}) <= set(spec.labels), metric
    series = Counter((metric.name, *sorted((metric.labels or {}).items())) for metric in batch.metrics)
    assert [key for key, count in series.items() if count > 1] == []
    assert all(entry.reason and entry.source for entry in batch.missing)
    assert len(batch.missing) < 60


def test_a_cycle_of_256_processors_opens_no_file_for_each(tmp_path: Path, large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of single processors belong to slow groups: an ordinary cycle opens a handful of files, whatever the host's size."""
    host = _host("bare-x86-256cpu", tmp_path, large)
    for _ in range(6):
        host.cycle(1)
    opened: list[str] = []
    read = FileTree.read

    def note(files: FileTree, path: str) -> bytes:
        opened.append(path)
        return read(files, path)

    monkeypatch.setattr(FileTree, "read", note)
    host.cycle(1)
    assert opened == []
    host.cycle(10)
    per_processor = [path for path in opened if path.startswith(f"{_CPU}/cpu")]
    assert Counter(path.rpartition("/")[2] for path in per_processor)["scaling_cur_freq"] == 256
