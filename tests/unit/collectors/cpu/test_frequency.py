"""cpufreq: current, hardware bounds, caps, governors, boost."""

from pathlib import Path

from nodeproof.errors import Absence
from support.cpu_host import CpuHost

_CPU = "/sys/devices/system/cpu"
_NAMES = frozenset({"frequency", "avg_freq", "min_freq", "max_freq", "allowed_max_freq", "governor_cores", "boost_enabled"})
_BARE = "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t: fpu\n"


def _host(tmp_path: Path, online: str = "0-1") -> CpuHost:
    host = CpuHost(str(tmp_path), wanted=_NAMES)
    host.write("/proc/cpuinfo", _BARE)
    host.write(f"{_CPU}/online", online)
    return host


def _cpufreq(host: CpuHost, cpu: int, **files: str | int) -> None:
    for name, content in files.items():
        host.write(f"{_CPU}/cpu{cpu}/cpufreq/{name}", content)


def test_frequencies(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _cpufreq(
        host,
        0,
        scaling_cur_freq=2_400_600,
        scaling_max_freq=3_000_000,
        scaling_governor="performance",
        scaling_driver="acpi-cpufreq",
    )
    _cpufreq(
        host,
        1,
        scaling_cur_freq=1_200_200,
        scaling_max_freq=2_000_000,
        scaling_governor="powersave",
        scaling_driver="acpi-cpufreq",
    )
    _cpufreq(host, 1, cpuinfo_min_freq=1_200_000, cpuinfo_max_freq=3_000_000)
    host.write(f"{_CPU}/cpufreq/boost", 1)
    host.cycle()
    assert host.values("frequency") == [({"core": "0"}, 2401), ({"core": "1"}, 1200)]
    assert host.value("avg_freq") == 1800.4  # (2400.6 + 1200.2) / 2
    assert (host.value("min_freq"), host.value("max_freq")) == (1200.0, 3000.0)
    assert host.value("allowed_max_freq") == 2000.0
    assert host.value("governor_cores", governor="performance", driver="acpi-cpufreq") == 1
    assert host.value("governor_cores", governor="powersave", driver="acpi-cpufreq") == 1
    assert host.value("boost_enabled") == 1


def test_minimum_without_maximum_is_given_alone(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _cpufreq(host, 0, cpuinfo_min_freq=1_200_000)
    host.cycle()
    assert host.value("min_freq") == 1200.0
    assert host.absence("max_freq").state is Absence.READ_ERROR


def test_a_processor_that_says_zero_leaves_the_mean_alone(tmp_path: Path) -> None:
    """Offline processors at 0 MHz once halved the mean of others."""
    host = _host(tmp_path)
    _cpufreq(host, 0, scaling_cur_freq=2_400_000)
    _cpufreq(host, 1, scaling_cur_freq=0)
    host.cycle()
    assert host.value("avg_freq") == 2400.0
    assert host.values("frequency") == [({"core": "0"}, 2400)]
    assert host.absence("frequency").reason.startswith("1 of 2 processors, the first: ")


def test_a_processor_that_goes_offline_takes_its_reading_with_it(tmp_path: Path) -> None:
    host = _host(tmp_path)
    for cpu in range(2):
        _cpufreq(host, cpu, scaling_cur_freq=2_000_000)
    host.cycle()
    host.write(f"{_CPU}/online", "0")
    host.cycle(10)
    assert host.values("frequency") == [({"core": "0"}, 2000)]
    assert host.absences("frequency") == []


def test_bare_metal_without_a_driver_names_the_remedy(tmp_path: Path) -> None:
    host = _host(tmp_path)
    host.cycle()
    for name in _NAMES:
        entry = host.absence(name)
        assert entry.state is Absence.UNSUPPORTED
        assert "cpufreq driver" in entry.remedy


def test_a_virtual_machine_has_no_frequency_control(tmp_path: Path) -> None:
    host = _host(tmp_path)
    host.write("/proc/cpuinfo", "processor\t: 0\nflags\t: fpu hypervisor\n")
    host.cycle()
    assert {entry.state for name in _NAMES for entry in host.absences(name)} == {Absence.NOT_APPLICABLE}


def test_an_empty_list_of_processors(tmp_path: Path) -> None:
    host = _host(tmp_path, online="\n")
    host.cycle()
    assert "is empty" in host.absence("frequency").reason


def test_intel_says_no_turbo(tmp_path: Path) -> None:
    host = _host(tmp_path)
    host.write(f"{_CPU}/intel_pstate/no_turbo", 1)
    host.cycle()
    assert host.value("boost_enabled") == 0
    host.write(f"{_CPU}/intel_pstate/no_turbo", 0)
    host.cycle(60)
    assert host.value("boost_enabled") == 1


def test_a_processor_without_a_governor_costs_itself_only(tmp_path: Path) -> None:
    host = _host(tmp_path)
    _cpufreq(host, 0, scaling_max_freq=3_000_000, scaling_governor="performance", scaling_driver="intel_pstate")
    _cpufreq(host, 1, scaling_max_freq=2_900_000)
    host.cycle()
    assert host.value("allowed_max_freq") == 2900.0
    assert host.value("governor_cores", governor="performance", driver="intel_pstate") == 1
    assert host.absence("governor_cores").reason.startswith("1 processors, the first: ")
