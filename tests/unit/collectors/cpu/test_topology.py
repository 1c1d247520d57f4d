"""Statics: counts, model, nodes, caches, flaws. All from sysfs."""

import os
import shutil
from pathlib import Path

import pytest

from nodeproof.errors import Absence
from support.cpu_host import CpuHost
from support.hosts import write_host

_CPU = "/sys/devices/system/cpu"


@pytest.fixture
def vm(tmp_path: Path) -> CpuHost:
    return CpuHost(write_host("vm-2cpu", str(tmp_path / "vm")))


def _bare(tmp_path: Path, files: dict[str, str], *wanted: str) -> CpuHost:
    host = CpuHost(str(tmp_path), wanted=frozenset(wanted))
    for path, content in files.items():
        host.write(path, content)
    return host


def test_no_program_is_run_for_the_topology(vm: CpuHost) -> None:
    """cases/monitor/56: a localised lscpu cannot hurt where none is run; the numbers come from sysfs."""
    vm.cycle()
    assert vm.machine.commands.asked == []  # type: ignore[attr-defined]  # recorded commands remember
    assert (vm.value("core_num"), vm.value("cpu_num"), vm.value("numa_node_num")) == (2, 1, 1)


def test_statics_are_read_again_until_they_succeed(vm: CpuHost) -> None:
    """Defect 30: the reference set its "done" flag even when the first attempt had failed."""
    cache, away = f"{vm.root}{_CPU}/cpu0/cache", f"{vm.root}/cache"
    shutil.move(cache, away)
    vm.write(f"{_CPU}/present", "garbage")
    vm.cycle()
    assert vm.values("core_num") == []
    assert vm.absence("core_num").state is Absence.READ_ERROR
    assert vm.absence("l2_cache_size").state is Absence.UNSUPPORTED
    vm.write(f"{_CPU}/present", "0-1")
    shutil.move(away, cache)
    vm.cycle(60)
    assert vm.value("core_num") == 2
    assert vm.value("l2_cache_size", core="0") == 256


def test_sockets_that_the_firmware_does_not_tell_apart(vm: CpuHost) -> None:
    vm.write(f"{_CPU}/cpu0/topology/physical_package_id", "-1")
    vm.cycle()
    assert vm.value("core_num") == 2
    entry = vm.absence("cpu_num")
    assert (entry.state, entry.reason.partition(" holds")[2]) == (
        Absence.UNSUPPORTED,
        " -1: the firmware does not tell sockets apart",
    )


def test_dies_of_the_first_socket(tmp_path: Path) -> None:
    # one socket, two dies of two cores, one thread each
    files = {f"{_CPU}/{name}": "0-3" for name in ("present", "online")}
    for cpu in range(4):
        folder = f"{_CPU}/cpu{cpu}/topology"
        die = "0-1" if cpu < 2 else "2-3"
        files |= {f"{folder}/physical_package_id": "0", f"{folder}/package_cpus_list": "0-3"}
        files |= {f"{folder}/die_cpus_list": die, f"{folder}/core_cpus_list": str(cpu)}
    host = _bare(tmp_path, files, "die_core_num")
    host.cycle()
    assert host.values("die_core_num") == [({"die": "0"}, 2), ({"die": "1"}, 2)]


def test_kernels_before_5_3_have_other_names(tmp_path: Path) -> None:
    files = {f"{_CPU}/{name}": "0-3" for name in ("present", "online")}
    for cpu in range(4):
        folder = f"{_CPU}/cpu{cpu}/topology"
        files |= {f"{folder}/physical_package_id": str(cpu % 2), f"{folder}/core_siblings_list": "0,2" if cpu % 2 == 0 else "1,3"}
    host = _bare(tmp_path, files, "cpu_num")
    host.cycle()
    assert host.value("cpu_num") == 2


def test_nodes_differ_and_some_have_no_processor(tmp_path: Path) -> None:
    """The reference divides processors by nodes; here each node is counted: a memory expander has none."""
    folder = "/sys/devices/system/node"
    files = {
        f"{folder}/online": "0-3",
        f"{folder}/node0/cpulist": "0-5",
        f"{folder}/node1/cpulist": "6-7",
        f"{folder}/node2/cpulist": "\n",
    }
    host = _bare(tmp_path, files, "numa_node_num", "numa_core_num")
    host.cycle()
    assert host.value("numa_node_num") == 4
    assert host.values("numa_core_num") == [({"node": "0"}, 6), ({"node": "1"}, 2), ({"node": "2"}, 0)]
    assert host.absence("numa_core_num", node="3").state is Absence.UNSUPPORTED


def test_an_empty_list_of_nodes_is_an_error(tmp_path: Path) -> None:
    host = _bare(tmp_path, {"/sys/devices/system/node/online": "\n"}, "numa_node_num")
    host.cycle()
    assert host.absence("numa_node_num").state is Absence.READ_ERROR


def test_a_damaged_cache_costs_itself_only(vm: CpuHost) -> None:
    vm.write(f"{_CPU}/cpu0/cache/index2/size", "many")
    vm.write(f"{_CPU}/cpu0/cache/index3/size", "32M")
    os.unlink(f"{vm.root}{_CPU}/cpu0/cache/index1/level")
    vm.cycle()
    assert vm.value("l1d_cache_size", core="0") == 32
    assert vm.absence("l1i_cache_size", core="0").state is Absence.UNSUPPORTED
    assert vm.absence("l2_cache_size", core="0").state is Absence.READ_ERROR
    assert vm.value("l3_cache_size", core="0") == 32 * 1024


def test_a_second_cache_of_a_kind_adds_nothing(vm: CpuHost) -> None:
    for name, content in (("level", "2"), ("type", "Unified"), ("size", "1K")):
        vm.write(f"{_CPU}/cpu0/cache/index4/{name}", content)
    vm.cycle()
    assert vm.values("l2_cache_size") == [({"core": "0"}, 256)]


def test_an_empty_cache_folder(vm: CpuHost) -> None:
    shutil.rmtree(f"{vm.root}{_CPU}/cpu0/cache")
    os.mkdir(f"{vm.root}{_CPU}/cpu0/cache")
    vm.cycle()
    assert "does not describe" in vm.absence("l1d_cache_size").reason


def test_model_without_cpuinfo(tmp_path: Path) -> None:
    host = _bare(tmp_path, {}, "model_info")
    host.cycle()
    assert host.absence("model_info").state is Absence.READ_ERROR


def test_model_without_a_name(tmp_path: Path) -> None:
    host = _bare(tmp_path, {"/proc/cpuinfo": "processor\t: 0\nflags\t: fpu\n"}, "model_info")
    host.cycle()
    assert host.absence("model_info").state is Absence.UNSUPPORTED


def test_arm_model_without_firmware_tables_or_caches(tmp_path: Path) -> None:
    files = {
        "/proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x48\nCPU part\t: 0xd01\n",
        f"{_CPU}/online": "0-1",
        f"{_CPU}/cpu0/topology/physical_package_id": "0",
        f"{_CPU}/cpu0/topology/package_cpus_list": "0-1",
        f"{_CPU}/cpu0/topology/core_cpus_list": "0",
        f"{_CPU}/cpu1/topology/core_cpus_list": "1",
    }
    host = _bare(tmp_path, files, "model_info")
    host.cycle()
    assert host.values("model_info") == [({"model_name": "HiSilicon TSV110 (Kunpeng 920)"}, 2)]


def test_smt(vm: CpuHost) -> None:
    vm.cycle()
    assert vm.value("smt_active", control="notsupported") == 0
    vm.write(f"{_CPU}/smt/active", "1")
    vm.write(f"{_CPU}/smt/control", "on")
    vm.cycle(60)
    assert vm.value("smt_active", control="on") == 1


def test_page_allocator_zones(tmp_path: Path) -> None:
    text = "Node 0, zone      DMA      1      0      1      0\nNode 1, zone   Normal      0      0      0      0\n"
    host = _bare(tmp_path, {"/proc/buddyinfo": text}, "numa_order_num", "numa_info")
    host.cycle()
    assert host.values("numa_order_num") == [({"node": "0", "zone": "DMA"}, 4), ({"node": "1", "zone": "Normal"}, 4)]
    assert host.values("numa_info") == [({"node": "0", "zone": "DMA"}, 2)]
    assert host.absence("numa_info", node="1", zone="Normal").state is Absence.UNKNOWN


def test_microcode_versions_that_differ_are_all_shown(tmp_path: Path) -> None:
    text = "processor\t: 0\nmicrocode\t: 0x1\nflags\t: fpu\n\nprocessor\t: 1\nmicrocode\t: 0x2\n"
    host = _bare(tmp_path, {"/proc/cpuinfo": text}, "microcode_info")
    host.cycle()
    assert host.values("microcode_info") == [({"version": "0x1"}, 1), ({"version": "0x2"}, 1)]


def test_arm_states_no_microcode(tmp_path: Path) -> None:
    host = _bare(tmp_path, {"/proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x48\n"}, "microcode_info")
    host.cycle()
    assert host.absence("microcode_info").state is Absence.NOT_APPLICABLE


def test_flaws(vm: CpuHost) -> None:
    os.mkdir(f"{vm.root}{_CPU}/vulnerabilities/unreadable")
    vm.cycle()
    found = {labels["vulnerability"]: value for labels, value in vm.values("vulnerability")}
    assert found == {"itlb_multihit": 1, "mds": 2, "meltdown": 1, "spectre_v2": 1, "srbds": 0}
    assert "Unknown: No mitigations" in vm.absence("vulnerability", vulnerability="mmio_stale_data").reason
    assert vm.absence("vulnerability", vulnerability="unreadable").state is Absence.READ_ERROR
