"""What a workload may use of the machine."""

import os
from pathlib import Path

import pytest

from nodeproof.host.recorded import recorded_machine
from nodeproof.stress.workloads.box import look

MIB = 1 << 20
MEMINFO = "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n"


def _write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")


def _caches(cpu: int, shared: str, size: str) -> dict[str, str]:
    base = f"/sys/devices/system/cpu/cpu{cpu}/cache"
    rows = {
        "index0": ("1", "Data", str(cpu), "32K"),
        "index1": ("1", "Instruction", str(cpu), "32K"),
        "index2": ("3", "Unified", shared, size),
    }
    return {
        f"{base}/{index}/{name}": value
        for index, values in rows.items()
        for name, value in zip(("level", "type", "shared_cpu_list", "size"), values, strict=True)
    }


@pytest.fixture
def four_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})


@pytest.mark.usefixtures("four_cpus")
def test_all_allowed_cpus_and_what_is_available_without_limits(tmp_path: Path) -> None:
    _write(tmp_path, {"/proc/meminfo": MEMINFO})
    box = look(recorded_machine(str(tmp_path)))
    assert box.cpus == (0, 1, 2, 3)
    # 4096 MiB available; the reserve is 256 MiB, as 2 % of it would be 82 MiB
    assert box.memory_bytes == 3840 * MIB
    assert (box.llc_bytes, box.llc_known) == (32 * MIB, False)


@pytest.mark.usefixtures("four_cpus")
def test_each_last_level_cache_counts_once(tmp_path: Path) -> None:
    files = {"/proc/meminfo": MEMINFO}
    for cpu, shared in enumerate(("0-1", "0-1", "2-3", "2-3")):
        files |= _caches(cpu, shared, "16M")
    _write(tmp_path, files)
    box = look(recorded_machine(str(tmp_path)))
    assert (box.llc_bytes, box.llc_known) == (32 * MIB, True)
    assert look(recorded_machine(str(tmp_path)), 2).llc_bytes == 32 * MIB  # CPUs 0 and 2: both caches


@pytest.mark.usefixtures("four_cpus")
@pytest.mark.parametrize("version", [1, 2])
def test_the_tightest_cgroup_limits_cpus_and_memory(tmp_path: Path, version: int) -> None:
    if version == 2:
        files = {
            "/proc/self/cgroup": "0::/job\n",
            "/sys/fs/cgroup/memory.stat": "file 0\n",
            "/sys/fs/cgroup/job/cpu.max": "250000 100000\n",
            "/sys/fs/cgroup/job/memory.max": str(1024 * MIB),
            "/sys/fs/cgroup/job/memory.current": str(300 * MIB),
            "/sys/fs/cgroup/job/memory.stat": f"file 1\ninactive_file {100 * MIB}\n",
        }
    else:
        files = {
            "/proc/self/cgroup": "4:cpu:/job\n3:memory:/job\n",
            "/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "250000",
            "/sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
            "/sys/fs/cgroup/memory/job/memory.limit_in_bytes": str(1024 * MIB),
            "/sys/fs/cgroup/memory/job/memory.usage_in_bytes": str(300 * MIB),
            "/sys/fs/cgroup/memory/job/memory.stat": f"total_inactive_file {100 * MIB}\n",
        }
    _write(tmp_path, {"/proc/meminfo": MEMINFO, **files})
    box = look(recorded_machine(str(tmp_path)))
    assert box.cpus == (0, 2)  # 2.5 CPUs feed two threads, spread over the four
    assert box.memory_bytes == (1024 - 300 + 100 - 256) * MIB


@pytest.mark.usefixtures("four_cpus")
def test_unlimited_cgroups_change_nothing(tmp_path: Path) -> None:
    cgroup = {"cpu.max": "max 100000", "memory.max": "max", "memory.current": "5", "memory.stat": "anon 3"}
    _write(
        tmp_path,
        {"/proc/meminfo": MEMINFO, "/proc/self/cgroup": "0::/\n", **{f"/sys/fs/cgroup/{k}": v for k, v in cgroup.items()}},
    )
    box = look(recorded_machine(str(tmp_path)))
    assert (len(box.cpus), box.memory_bytes) == (4, 3840 * MIB)


@pytest.mark.usefixtures("four_cpus")
def test_a_damaged_quota_is_no_quota(tmp_path: Path) -> None:
    _write(tmp_path, {"/proc/meminfo": MEMINFO, "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "rubbish"})
    assert len(look(recorded_machine(str(tmp_path))).cpus) == 4


@pytest.mark.usefixtures("four_cpus")
@pytest.mark.parametrize("threads", [0, 5])
def test_more_threads_than_cpus_are_refused(tmp_path: Path, threads: int) -> None:
    _write(tmp_path, {"/proc/meminfo": MEMINFO})
    with pytest.raises(ValueError, match="4 CPUs may be used"):
        look(recorded_machine(str(tmp_path)), threads)


@pytest.mark.usefixtures("four_cpus")
def test_nothing_is_left_where_the_reserve_is_all_there_is(tmp_path: Path) -> None:
    _write(tmp_path, {"/proc/meminfo": "MemAvailable: 1024 kB\n"})
    assert look(recorded_machine(str(tmp_path))).memory_bytes == 0
