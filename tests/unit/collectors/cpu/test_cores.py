"""Online, offline, isolated and allowed processors, quotas, pressure."""

import os
from pathlib import Path

import pytest

from nodeproof.errors import Absence
from support.cpu_host import CpuHost

_CPU = "/sys/devices/system/cpu"
_COUNTS = frozenset({"online_core_num", "offline_core_num", "isolated_core_num"})


def _host(tmp_path: Path, files: dict[str, str], wanted: frozenset[str]) -> CpuHost:
    host = CpuHost(str(tmp_path), wanted=wanted)
    for path, content in files.items():
        host.write(path, content)
    return host


def test_counts(tmp_path: Path) -> None:
    # present 0-9; offline also lists 10-127, places that the firmware foresaw and nobody filled
    files = {"online": "0-3,5,7-9", "offline": "4,6,10-127", "isolated": "8-9", "present": "0-9"}
    host = _host(tmp_path, {f"{_CPU}/{name}": text for name, text in files.items()}, _COUNTS)
    host.cycle()
    assert {name: host.value(name) for name in _COUNTS} == {
        "online_core_num": 8,
        "offline_core_num": 2,
        "isolated_core_num": 2,
    }


def test_empty_lists_are_none_offline_and_none_isolated(tmp_path: Path) -> None:
    host = _host(tmp_path, {f"{_CPU}/online": "0-1", f"{_CPU}/offline": "\n", f"{_CPU}/isolated": "\n"}, _COUNTS)
    host.cycle()
    assert (host.value("offline_core_num"), host.value("isolated_core_num")) == (0, 0)


@pytest.mark.parametrize("content", [None, "\n", "garbage"])
def test_a_list_that_cannot_be_read_is_never_zero(tmp_path: Path, content: str | None) -> None:
    """Defect 30: the reference gave online_core_num 0 on a read error."""
    files = {f"{_CPU}/offline": "\n", f"{_CPU}/isolated": "\n"}
    if content is not None:
        files[f"{_CPU}/online"] = content
    host = _host(tmp_path, files, _COUNTS)
    host.cycle()
    assert host.values("online_core_num") == []
    assert host.absence("online_core_num").state is (Absence.UNSUPPORTED if content is None else Absence.READ_ERROR)
    assert host.value("offline_core_num") == 0


_LIMITS = frozenset({"allowed_core_num", "cgroup_limit_cores"})
_STATUS = {"/proc/self/status": "Cpus_allowed_list:\t0-3,8\n"}
_V2 = "/sys/fs/cgroup"


def test_the_tightest_quota_on_the_way_up_counts(tmp_path: Path) -> None:
    host = _host(
        tmp_path,
        {
            **_STATUS,
            "/proc/self/cgroup": "0::/kubepods/pod7/app",
            f"{_V2}/kubepods/pod7/app/cpu.max": "max 100000",
            f"{_V2}/kubepods/pod7/cpu.max": "250000 100000",
            f"{_V2}/kubepods/cpu.max": "6400000 100000",
        },
        _LIMITS,
    )
    host.cycle()
    assert host.value("cgroup_limit_cores", source=f"{_V2}/kubepods/pod7/cpu.max") == 2.5
    assert host.value("allowed_core_num") == 5


def test_a_quota_of_version_1(tmp_path: Path) -> None:
    folder = "/sys/fs/cgroup/cpu"
    host = _host(
        tmp_path,
        {
            **_STATUS,
            "/proc/self/cgroup": "4:cpu,cpuacct:/\n0::/",
            f"{folder}/cpu.cfs_quota_us": "50000",
            f"{folder}/cpu.cfs_period_us": "100000",
        },
        _LIMITS,
    )
    host.cycle()
    assert host.value("cgroup_limit_cores", source=f"{folder}/cpu.cfs_quota_us") == 0.5


def test_no_quota_is_not_applicable_and_never_zero(tmp_path: Path) -> None:
    host = _host(tmp_path, {**_STATUS, "/proc/self/cgroup": "0::/a", f"{_V2}/a/cpu.max": "max 100000"}, _LIMITS)
    host.cycle()
    entry = host.absence("cgroup_limit_cores")
    assert (entry.state, entry.reason) == (Absence.NOT_APPLICABLE, f"no processor quota is set from {_V2}/a upwards")


def test_a_damaged_quota_leaves_the_affinity_alone(tmp_path: Path) -> None:
    host = _host(tmp_path, {**_STATUS, "/proc/self/cgroup": "0::/a", f"{_V2}/a/cpu.max": "lots"}, _LIMITS)
    host.cycle()
    assert host.absence("cgroup_limit_cores").state is Absence.READ_ERROR
    assert host.value("allowed_core_num") == 5


def test_a_quota_that_may_not_be_read_is_no_missing_quota(tmp_path: Path) -> None:
    # A folder in the file's place: reading it fails with EISDIR, whoever reads.
    host = _host(tmp_path, {**_STATUS, "/proc/self/cgroup": "0::/a"}, _LIMITS)
    os.makedirs(f"{host.root}{_V2}/a/cpu.max")
    host.cycle()
    assert host.absence("cgroup_limit_cores").state is Absence.READ_ERROR


def test_pressure(tmp_path: Path) -> None:
    text = "some avg10=2.83 avg60=1.56 avg300=0.41 total=4304928\nfull avg10=0.50 avg60=0.25 avg300=0.00 total=1000000\n"
    host = _host(tmp_path, {"/proc/pressure/cpu": text}, frozenset({"pressure", "pressure_stall_time"}))
    host.cycle()
    assert host.value("pressure", stall="some", interval="avg10") == 2.83
    assert host.value("pressure", stall="some", interval="avg300") == 0.41
    assert host.value("pressure", stall="full", interval="avg60") == 0.25
    assert host.value("pressure_stall_time", stall="some") == 4.304928
    assert host.value("pressure_stall_time", stall="full") == 1.0


def test_pressure_of_a_kernel_without_the_full_line(tmp_path: Path) -> None:
    text = "some avg10=2.83 avg60=1.56 avg300=0.41 total=4304928\n"
    host = _host(tmp_path, {"/proc/pressure/cpu": text}, frozenset({"pressure", "pressure_stall_time"}))
    host.cycle()
    assert host.value("pressure", stall="some", interval="avg60") == 1.56
    assert host.absence("pressure", stall="full").state is Absence.UNSUPPORTED


def test_no_pressure_file_names_the_remedy(tmp_path: Path) -> None:
    host = _host(tmp_path, {}, frozenset({"pressure"}))
    host.cycle()
    entry = host.absence("pressure")
    assert entry.state is Absence.UNSUPPORTED
    assert "psi=1" in entry.remedy


def test_pressure_that_cannot_be_read(tmp_path: Path) -> None:
    os.makedirs(tmp_path / "proc/pressure/cpu")
    host = _host(tmp_path, {}, frozenset({"pressure"}))
    host.cycle()
    assert host.absence("pressure").state is Absence.READ_ERROR
