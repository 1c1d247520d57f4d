"""Single sources: what they read of a living box, and each reason why they cannot."""

import shutil
from pathlib import Path

import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.hardware.readers import memory
from nodeproof.hardware.readers.errors import Aer, Edac, Errors
from nodeproof.hardware.readers.processors import Clocks, Governors, Processors, Throttle, ThrottlePair
from nodeproof.hardware.readers.temperatures import Temperature, Temperatures
from nodeproof.host.recorded import recorded_machine
from support.box import CPU, Box
from support.hosts import write_host
from support.tree import write


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(str(tmp_path / "box"))


def absence(read: object) -> NoData:
    assert callable(read)
    with pytest.raises(NoData) as caught:
        read()
    return caught.value


def test_allowed_processors_come_from_the_affinity(box: Box) -> None:
    box.write("/proc/self/status", "Cpus_allowed_list:\t1-2")
    processors = Processors(box.machine)
    assert (processors.allowed, processors.restricted()) == ((1, 2), True)
    assert sorted(processors.times()) == [1, 2]
    box.write("/proc/stat", "cpu  1 2 3 4\ncpu0 1 2 3 4")
    assert absence(processors.times).state is Absence.READ_ERROR


def test_without_a_status_all_that_are_online_are_allowed(box: Box) -> None:
    box.write("/proc/self/status", "Name:\tx")
    assert Processors(box.machine).allowed == (0, 1, 2, 3)
    box.write(f"{CPU}/online", "x")
    assert (Processors(box.machine).allowed, Processors(box.machine).online()) == ((), [])


def test_threads_of_a_core_share_a_throttle_counter(box: Box) -> None:
    throttle = Throttle(box.machine, (0, 1, 2, 3))
    assert throttle.read() == {
        "cpu0": ThrottlePair(10, 100),
        "package0": ThrottlePair(7, 70),
        "cpu2": ThrottlePair(3, 30),
        "package1": ThrottlePair(1, 10),
    }
    box.write(f"{CPU}/cpu2/thermal_throttle/core_throttle_count", "x")
    box.remove(f"{CPU}/cpu0/thermal_throttle/core_throttle_total_time_ms")
    box.write(f"{CPU}/cpu0/thermal_throttle/package_throttle_total_time_ms", "x")
    read = throttle.read()
    assert (read["cpu0"], read["cpu2"], read["package0"]) == (ThrottlePair(10, None), None, None)


def test_without_topology_each_thread_counts_for_itself(box: Box) -> None:
    for cpu in range(4):
        shutil.rmtree(f"{box.root}{CPU}/cpu{cpu}/topology")
    assert sorted(Throttle(box.machine, (0, 1, 2, 3)).read()) == ["cpu0", "cpu1", "cpu2", "cpu3", "package0"]


def test_who_has_no_throttle_counters_and_why(tmp_path: Path) -> None:
    amd = recorded_machine(write_host("bare-x86-256cpu", str(tmp_path / "amd")))
    virtual = recorded_machine(write_host("vm-2cpu", str(tmp_path / "vm")))
    assert absence(Throttle(amd, (0, 1)).read).state is Absence.NOT_APPLICABLE
    assert absence(Throttle(virtual, (0, 1)).read).state is Absence.NOT_APPLICABLE
    intel = Box(str(tmp_path / "intel"))
    for cpu in range(4):
        shutil.rmtree(f"{intel.root}{CPU}/cpu{cpu}/thermal_throttle")
    lacking = absence(Throttle(intel.machine, ()).read)
    assert (lacking.state, lacking.remedy) == (Absence.UNSUPPORTED, "use a kernel built with CONFIG_X86_THERMAL_VECTOR")


def test_clocks_of_those_asked_for(box: Box) -> None:
    clocks = Clocks(box.machine)
    assert clocks.read((1, 3)) == {1: 3000.0, 3: 3000.0}
    assert clocks.read(()) == {}
    box.write(f"{CPU}/cpu1/cpufreq/scaling_cur_freq", "<unknown>")
    assert clocks.read((1, 3)) == {3: 3000.0}
    assert absence(lambda: clocks.read((1,))).state is Absence.READ_ERROR
    shutil.rmtree(f"{box.root}{CPU}/cpu1/cpufreq")
    assert absence(lambda: clocks.read((1,))).state is Absence.UNSUPPORTED


def test_powersave_is_slow_only_where_the_governor_means_it(box: Box) -> None:
    governors = Governors(box.machine, (0, 1, 2, 3))
    assert governors.slow(governors.read()) == []
    box.governor("powersave", cpus=range(1, 3))
    assert governors.slow(governors.read()) == [1, 2]
    box.governor("powersave", driver="intel_pstate")
    assert governors.slow(governors.read()) == []
    box.remove(f"{CPU}/cpu3/cpufreq/scaling_driver")
    assert governors.slow(governors.read()) == [3]
    for cpu in range(4):
        shutil.rmtree(f"{box.root}{CPU}/cpu{cpu}/cpufreq")
    assert absence(governors.read).state is Absence.UNSUPPORTED
    assert "no processor may be used" in absence(Governors(box.machine, ()).read).reason


def test_memory_controllers(box: Box, tmp_path: Path) -> None:
    edac = Edac(box.machine)
    box.edac(ce=4, ue=1)
    assert edac.read() == {"mc0": Errors(4, 1)}
    box.remove("/sys/devices/system/edac/mc/mc0/ue_count")
    assert edac.read() == {"mc0": Errors(4, None)}
    shutil.rmtree(f"{box.root}/sys/devices/system/edac")
    assert absence(edac.read).state is Absence.UNKNOWN
    virtual = recorded_machine(write_host("vm-2cpu", str(tmp_path / "vm")))
    assert absence(Edac(virtual).read).state is Absence.NOT_APPLICABLE


def test_pcie_devices_that_count_errors(box: Box) -> None:
    box.aer(corrected=5, nonfatal=2, fatal=1)
    aer = Aer(box.machine)
    assert aer.read() == {"0000:17:00.0": Errors(5, 3)}
    box.write("/sys/bus/pci/devices/0000:17:00.0/aer_dev_fatal", "rubbish")
    assert aer.read() == {"0000:17:00.0": Errors(5, None)}
    shutil.rmtree(f"{box.root}/sys/bus/pci")
    assert absence(Aer(box.machine).read).state is Absence.UNSUPPORTED


def test_temperatures_know_their_own_critical_point(box: Box) -> None:
    sensors = Temperatures(box.machine)
    cpu = Temperature("cpu", "hwmon0 coretemp Package id 0", 60.0, 100.0, False, "/sys/class/hwmon/hwmon0/temp1_input")
    zone = Temperature("chassis", "acpitz", 40.0, 105.0, False, "/sys/class/thermal/thermal_zone0/temp")
    assert sensors.read() == [cpu, zone]
    box.temperature(cpu_c=100, zone_c=104.9)
    assert [entry.is_critical() for entry in sensors.read()] == [True, False]
    box.temperature(cpu_c=50, zone_c=40)
    box.write("/sys/class/hwmon/hwmon0/temp1_crit_alarm", "1")
    assert [entry.is_critical() for entry in sensors.read()] == [True, False]
    box.write("/sys/class/thermal/thermal_zone0/temp", "rubbish")
    assert sensors.read()[1].value_c is None


def test_zones_and_chips_without_names_or_limits(box: Box) -> None:
    for file in ("type", "trip_point_0_type"):
        box.remove(f"/sys/class/thermal/thermal_zone0/{file}")
    box.write("/sys/class/hwmon/hwmon1/name", "nvme")
    read = Temperatures(box.machine).read()
    assert [(entry.name, entry.critical_c) for entry in read] == [
        ("hwmon0 coretemp Package id 0", 100.0),
        ("thermal_zone0", None),
    ]


def test_no_sensor_is_looked_for_again(box: Box) -> None:
    for folder in ("hwmon", "thermal"):
        shutil.rmtree(f"{box.root}/sys/class/{folder}")
    sensors = Temperatures(box.machine)
    assert absence(sensors.read).state is Absence.UNSUPPORTED
    box.write("/sys/class/thermal/thermal_zone0/temp", 41_000)
    assert [entry.value_c for entry in sensors.read()] == [41.0]


def test_memory_figures(box: Box) -> None:
    files = box.machine.files
    assert memory.meminfo(files) == (16_777_216, 15_728_640, 1_048_576)
    box.write("/proc/meminfo", "MemTotal: 5 kB")
    assert memory.meminfo(files) == (5, None, None)
    box.swapped, box.killed, box.waits = 3, 1, [0.5, 0.25, 0.125]
    box.live(8.0)
    assert memory.vmstat(files) == {"pswpin": 3, "oom_kill": 1}
    assert memory.stalls(files) == (4.0, 2.0, 1.0)
    box.write("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1")
    assert memory.stalls(files).memory_full_s is None


def test_no_pressure_files_and_who_may_not_read_them(box: Box, tmp_path: Path) -> None:
    machine = recorded_machine(str(tmp_path / "old"))
    write(str(tmp_path / "old"), "/proc/stat", "x")
    lacking = absence(lambda: memory.stalls(machine.files))
    assert lacking.state is Absence.UNSUPPORTED
    assert "psi=1" in lacking.remedy
