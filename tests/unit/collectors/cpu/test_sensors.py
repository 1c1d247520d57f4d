"""Temperatures and power: which sensor is whose, and what is told when there is none."""

import threading
from pathlib import Path

import pytest

from nodeproof.errors import Absence, CommandError, CommandFailure
from nodeproof.host.files import FileTree
from support.cpu_host import CpuHost
from support.tree import link

_NAMES = frozenset({"temperature", "mem_temperature", "power", "core_temperature"})
_HWMON = "/sys/class/hwmon"
_CPU = "/sys/devices/system/cpu"
_COLUMNS = " | na        | na        | na        | na        | na        | na        \n"


def _host(tmp_path: Path, *, vendor: str = "GenuineIntel", bmc: str | None = None) -> CpuHost:
    answers = {} if bmc is None else {"ipmitool sensor": bmc.encode()}
    host = CpuHost(str(tmp_path), answers, _NAMES)
    host.write("/proc/cpuinfo", f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t: fpu\n")
    if bmc is not None:
        host.write("/dev/ipmi0", "")
    return host


def _sockets(host: CpuHost, count: int) -> None:
    host.write(f"{_CPU}/online", f"0-{count - 1}")
    for cpu in range(count):
        host.write(f"{_CPU}/cpu{cpu}/topology/physical_package_id", cpu)
        host.write(f"{_CPU}/cpu{cpu}/topology/package_cpus_list", cpu)


def _chip(host: CpuHost, number: int, name: str, device: str, **files: str | int) -> None:
    host.write(f"{_HWMON}/hwmon{number}/name", name)
    for item, content in files.items():
        host.write(f"{_HWMON}/hwmon{number}/{item}", content)
    if device:
        link(host.root, f"{_HWMON}/hwmon{number}/device", f"../../../{device}")


def _row(name: str, value: str, unit: str = "degrees C", status: str = "ok") -> str:
    return f"{name:<16} | {value:<10} | {unit:<10} | {status:<5}{_COLUMNS}"


def test_packages_of_coretemp_and_their_cores(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _sockets(host, 2)
    for number in range(2):
        files: dict[str, str | int] = {"temp1_input": 55_000 + 1000 * number, "temp1_label": f"Package id {number}"}
        _chip(host, number, "coretemp", f"coretemp.{number}", temp2_input=51_250, temp2_label="Core 0", **files)
    host.cycle()
    host.cycle(1)
    assert host.values("temperature") == [
        ({"cpu": "0", "sensor": "Package id 0"}, 55.0),
        ({"cpu": "1", "sensor": "Package id 1"}, 56.0),
    ]
    assert host.value("core_temperature", cpu="1", sensor="Core 0") == 51.2  # 51.25 to one decimal, half to even
    assert [metric.timestamp for metric in host.cycle(3).metrics if metric.name == "temperature"] == [
        "2026-09-21T14:13:20.000000+00:00"
    ] * 2  # the time of the reading, not of the cycle


def test_chips_are_spread_over_the_sockets(tmp_path: Path) -> None:
    """Four dies on two sockets (first EPYC): two chips each, told apart by their device."""
    host = _host(tmp_path, vendor="AuthenticAMD")
    _sockets(host, 2)
    for number in range(4):
        _chip(
            host,
            number,
            "k10temp",
            f"0000:00:{0x18 + number:02x}.3",
            temp1_input=60_000 + 1000 * number,
            temp1_label="Tdie",
            temp2_input=99_000,
            temp2_label="Tctl",
        )
    host.cycle()
    host.cycle(1)
    assert host.values("temperature") == [
        ({"cpu": "0", "sensor": "Tdie"}, 60.0),
        ({"cpu": "0", "sensor": "Tdie (0000:00:19.3)"}, 61.0),
        ({"cpu": "1", "sensor": "Tdie"}, 62.0),
        ({"cpu": "1", "sensor": "Tdie (0000:00:1b.3)"}, 63.0),
    ]
    assert host.absence("core_temperature", cpu="0", sensor="k10temp 0000:00:18.3").state is Absence.UNSUPPORTED


def test_the_hottest_core_stands_for_a_package_without_a_sensor(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _chip(host, 0, "coretemp", "coretemp.0", temp2_input=51_000, temp2_label="Core 0", temp3_input=53_000, temp3_label="Core 1")
    host.cycle()
    host.cycle(1)
    assert host.values("temperature") == [({"cpu": "0", "sensor": "hottest core"}, 53.0)]


def test_one_broken_sensor_costs_itself_only(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _chip(
        host,
        0,
        "coretemp",
        "coretemp.0",
        temp1_input="?",
        temp1_label="Package id 0",
        temp2_input=51_000,
        temp2_label="Core 0",
        temp3_input=-1_000_000,
        temp3_label="Core 1",
    )
    host.cycle()
    host.cycle(1)
    assert host.values("temperature") == []
    assert host.absence("temperature", cpu="0", sensor="Package id 0").state is Absence.READ_ERROR
    assert host.value("core_temperature", cpu="0", sensor="Core 0") == 51.0
    assert host.absence("core_temperature", cpu="0", sensor="coretemp coretemp.0").reason.startswith("1 of 2 cores: ")


def test_power_of_a_processor_chip(tmp_path: Path) -> None:
    host = _host(tmp_path, vendor="AuthenticAMD")
    _chip(
        host,
        0,
        "zenpower",
        "0000:00:18.3",
        temp1_input=60_000,
        temp1_label="Tdie",
        power1_input=42_500_000,
        power1_label="SVI2_P_Core",
    )
    host.cycle()
    host.cycle(1)
    assert host.value("power", cpu="0", sensor="SVI2_P_Core") == 42.5


def test_memory_modules(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _chip(host, 0, "jc42", "0-0018", temp1_input=41_250, in0_input=1_200)
    _chip(host, 1, "spd5118", "1-0051", temp1_input="?")
    host.cycle()
    host.cycle(1)
    assert host.values("mem_temperature") == [({"cpu": "0", "sensor": "jc42 0-0018"}, 41.2)]


def test_a_chip_that_has_not_answered_is_unknown_and_comes_quickly(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _chip(host, 0, "coretemp", "coretemp.0", temp1_input=55_000, temp1_label="Package id 0")
    _chip(host, 1, "jc42", "0-0018", temp1_input=41_250)
    host.cycle()
    assert host.absence("temperature", cpu="0", sensor="coretemp coretemp.0").state is Absence.UNKNOWN
    assert host.absence("mem_temperature").state is Absence.UNKNOWN
    host.cycle(1)
    assert host.value("temperature", cpu="0", sensor="Package id 0") == 55.0


_BMC = (
    _row("CPU1 Temp", "65.000")
    + _row("CPU2 Temp", "na", status="na")
    + _row("CPU1 MEM Temp", "42.500")
    + _row("MEM2 Temp", "na", status="na")
    + _row("CPU1 Pwr", "125.500", "Watts")
    + _row("FAN1", "5400.000", "RPM")
)


def test_sensors_of_the_bmc(tmp_path: Path) -> None:
    """``CPU1 MEM Temp`` is a memory temperature, and ``na`` is no 0 (defect 17)."""
    host = _host(tmp_path, bmc=_BMC)
    host.cycle()
    host.cycle(1)
    assert host.values("temperature") == [({"cpu": "1", "sensor": "CPU1 Temp"}, 65.0)]
    assert host.values("mem_temperature") == [({"cpu": "1", "sensor": "CPU1 MEM Temp"}, 42.5)]
    assert host.values("power") == [({"cpu": "1", "sensor": "CPU1 Pwr"}, 125.5)]
    assert "1 sensors, the first CPU2 Temp" in host.absence("temperature").reason
    assert host.absences("mem_temperature") == []


def test_a_hung_bmc_leaves_the_kernels_sensors_alone(tmp_path: Path) -> None:
    """Defect 16: one tool that hangs stopped the whole component."""
    host = CpuHost(
        str(tmp_path), {"ipmitool sensor": CommandError("ipmitool", CommandFailure.TIMED_OUT, "gave no answer in 120 s")}, _NAMES
    )
    host.write("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t: fpu\n")
    host.write("/dev/ipmi0", "")
    _chip(host, 0, "coretemp", "coretemp.0", temp1_input=55_000, temp1_label="Package id 0")
    host.cycle()
    host.cycle(1)
    assert host.value("temperature", cpu="0", sensor="Package id 0") == 55.0
    entry = host.absence("power")
    assert entry.state is Absence.READ_ERROR
    assert "gave no answer in 120 s" in entry.reason


def test_a_bmc_that_reads_nothing(tmp_path: Path) -> None:
    host = _host(tmp_path, bmc=_row("CPU1 Temp", "na", status="na"))
    host.cycle()
    host.cycle(1)
    assert host.absence("temperature").state is Absence.UNKNOWN
    assert host.absence("mem_temperature").state is Absence.UNSUPPORTED


def test_two_bmc_sensors_of_one_name(tmp_path: Path) -> None:
    host = _host(tmp_path, bmc=_row("CPU Temp", "60.000") + _row("CPU Temp", "61.000"))
    host.cycle()
    host.cycle(1)
    assert host.values("temperature") == [
        ({"cpu": "0", "sensor": "CPU Temp"}, 60.0),
        ({"cpu": "2", "sensor": "CPU Temp #2"}, 61.0),
    ]


@pytest.mark.parametrize(
    ("vendor", "remedy"), [("GenuineIntel", "modprobe coretemp"), ("AuthenticAMD", "modprobe k10temp"), ("Other", "ask the BMC")]
)
def test_bare_metal_without_a_driver_names_the_remedy(tmp_path: Path, vendor: str, remedy: str) -> None:
    host = _host(tmp_path, vendor=vendor)
    host.cycle()
    entry = host.absence("temperature")
    assert entry.state is Absence.UNSUPPORTED
    assert remedy in entry.remedy
    assert host.absence("mem_temperature").state is Absence.UNSUPPORTED
    assert host.absence("core_temperature").state is Absence.UNSUPPORTED


def test_other_chips_do_not_make_a_processor(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _chip(host, 0, "nvme", "nvme0", temp1_input=38_000)
    _chip(host, 1, "nct6779", "", temp1_input=127_000, temp1_label="CPUTIN")
    host.cycle()
    assert "no processor among nct6779, nvme" in host.absence("temperature").reason
    assert "no memory module among nct6779, nvme" in host.absence("mem_temperature").reason


def test_a_virtual_machine_has_none_of_them(tmp_path: Path) -> None:
    host = _host(tmp_path)
    host.write("/proc/cpuinfo", "processor\t: 0\nflags\t: fpu hypervisor\n")
    host.cycle()
    for name in _NAMES:
        assert {entry.state for entry in host.absences(name)} == {Absence.NOT_APPLICABLE}


def test_a_sensor_folder_that_cannot_be_listed(tmp_path: Path) -> None:
    host = _host(tmp_path)
    link(host.root, _HWMON, "hwmon")  # ELOOP
    host.cycle()
    assert host.absence("temperature").state is Absence.READ_ERROR
    assert host.absence("core_temperature").state is Absence.READ_ERROR


def test_a_chip_that_hangs_goes_stale_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect 16: what hangs costs its own readings, and they come back by themselves."""
    host = _host(tmp_path)
    _sockets(host, 2)
    for number in range(2):
        _chip(
            host, number, "coretemp", f"coretemp.{number}", temp1_input=50_000 + 1000 * number, temp1_label=f"Package id {number}"
        )
    hangs, answers = threading.Event(), threading.Event()
    answers.set()
    read = FileTree.read

    def sometimes_hang(files: FileTree, path: str) -> bytes:
        if path.endswith("hwmon1/temp1_input"):
            hangs.set()
            assert answers.wait(15)
        return read(files, path)

    monkeypatch.setattr(FileTree, "read", sometimes_hang)
    host.cycle()
    host.cycle(1)
    assert len(host.values("temperature")) == 2
    answers.clear()
    hangs.clear()
    host.clock.advance(10)
    host.collector.collect()
    assert hangs.wait(5)  # the second reading of chip 1 is in flight now, and stays there
    first, second = host.machine._slow[-2:]
    assert first.wait(5)
    host.clock.advance(11)
    host.batch = host.collector.collect()
    assert host.value("temperature", cpu="0", sensor="Package id 0") == 50.0
    entry = host.absence("temperature", cpu="1", sensor="coretemp coretemp.1")
    assert (entry.state, "has not answered for 11 s" in entry.reason) == (Absence.STALE, True)
    answers.set()
    assert second.wait(5)
    host.cycle(10)
    host.cycle(10)
    assert host.value("temperature", cpu="1", sensor="Package id 1") == 51.0
