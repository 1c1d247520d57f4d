"""Energy counters: power from differences, the end of the range, permissions."""

from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.host.files import FileTree
from support.cpu_host import CpuHost

_ZONE = "/sys/class/powercap/intel-rapl"
_RANGE_UJ = 262_143_328_850
_NAMES = frozenset({"energy", "domain_power", "power"})
_BARE = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t: fpu\n"


def _host(tmp_path: Path) -> CpuHost:
    host = CpuHost(str(tmp_path), wanted=_NAMES)
    host.write("/proc/cpuinfo", _BARE)
    return host


def _zone(host: CpuHost, number: str, name: str, energy_uj: int, range_uj: int = _RANGE_UJ) -> None:
    for item, content in (("name", name), ("energy_uj", energy_uj), ("max_energy_range_uj", range_uj)):
        host.write(f"{_ZONE}:{number}/{item}", content)


def test_power_and_energy_from_two_readings(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _zone(host, "0", "package-0", 1_000_000)
    _zone(host, "0:0", "dram", 0)
    _zone(host, "1", "psys", 0)
    host.cycle()
    assert host.value("energy", package="0", domain="package") == 0.0
    assert host.absence("power").state is Absence.UNKNOWN
    # 10 s later: 1,255 J in the package, 200 J in its memory, 3 kJ in the platform
    _zone(host, "0", "package-0", 1_256_000_000)
    _zone(host, "0:0", "dram", 200_000_000)
    _zone(host, "1", "psys", 3_000_000_000)
    host.cycle(10)
    assert host.value("power", cpu="0", sensor="RAPL package") == 125.5
    assert host.value("energy", package="0", domain="package") == 1255.0
    assert host.value("domain_power", package="0", domain="dram") == 20.0
    assert host.value("domain_power", domain="psys") == 300.0


def test_the_end_of_the_range_is_no_spike(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _zone(host, "0", "package-0", _RANGE_UJ - 400_000_000)
    host.cycle()
    _zone(host, "0", "package-0", 600_000_000)
    host.cycle(10)
    # 400 J before the end and 600 J after it, in 10 s
    assert host.value("power", cpu="0", sensor="RAPL package") == 100.0
    assert host.value("energy", package="0", domain="package") == 1000.0


def test_a_counter_that_began_anew_without_a_range_is_unknown_once(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _zone(host, "0", "package-0", 5_000_000_000, 0)
    host.write(f"{_ZONE}:0/max_energy_range_uj", "?")
    host.cycle()
    _zone(host, "0", "package-0", 1_000_000)
    host.cycle(10)
    assert host.values("power") == []
    assert host.absence("power").state is Absence.UNKNOWN
    _zone(host, "0", "package-0", 501_000_000)
    host.cycle(10)
    assert host.value("power", cpu="0", sensor="RAPL package") == 50.0


def test_the_same_package_seen_through_mmio_is_counted_once(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _zone(host, "0", "package-0", 0)
    host.write("/sys/class/powercap/intel-rapl-mmio:0/name", "package-0")
    host.write("/sys/class/powercap/intel-rapl-mmio:0/energy_uj", 7)
    host.cycle()
    assert len(host.values("energy")) == 1


def test_only_parts_without_a_whole_package(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _zone(host, "0:0", "dram", 0)
    host.cycle()
    _zone(host, "0:0", "dram", 10_000_000)
    host.cycle(10)
    assert host.value("domain_power", domain="dram") == 1.0
    assert "no counter of a whole package" in host.absence("power").reason


def test_a_damaged_counter_costs_itself_only(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _zone(host, "0", "package-0", 0)
    _zone(host, "1", "package-1", 0)
    host.write(f"{_ZONE}:1/energy_uj", "broken")
    host.cycle()
    assert host.value("energy", package="0", domain="package") == 0.0
    assert host.absence("energy").reason.startswith("1 of 2 counters: ")


def test_a_zone_without_a_name_keeps_its_folder_as_one(tmp_path: Path) -> None:
    host = _host(tmp_path)
    host.write(f"{_ZONE}:0/energy_uj", 0)
    host.cycle()
    assert host.values("energy") == [({"domain": "intel-rapl:0"}, 0.0)]


def test_root_only_counters_are_no_permission_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = _host(tmp_path)
    _zone(host, "0", "package-0", 0)
    read = FileTree.read

    def refuse(self: FileTree, path: str) -> bytes:
        if path.endswith("energy_uj"):
            raise NoData(Absence.NO_PERMISSION, f"{path}: Permission denied")
        return read(self, path)

    monkeypatch.setattr(FileTree, "read", refuse)
    host.cycle()
    for name in _NAMES:
        entry = host.absence(name)
        assert entry.state is Absence.NO_PERMISSION
        assert "run as root" in entry.remedy


@pytest.mark.parametrize("present", [False, True])
def test_bare_metal_without_the_driver(tmp_path: Path, present: bool) -> None:  # noqa: FBT001 - a parameter of the test
    host = _host(tmp_path)
    if present:
        host.write("/sys/class/powercap/dtpm/name", "x")
    host.cycle()
    for name in ("energy", "domain_power", "power"):
        assert host.absence(name).state is Absence.UNSUPPORTED
    assert "modprobe intel_rapl_msr" in host.absence("energy").remedy


def test_a_powercap_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    host = _host(tmp_path)
    (tmp_path / "sys/class").mkdir(parents=True)
    (tmp_path / "sys/class/powercap").symlink_to("powercap")  # ELOOP
    host.cycle()
    assert host.absence("energy").state is Absence.READ_ERROR
