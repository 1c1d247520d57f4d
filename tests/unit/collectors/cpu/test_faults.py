"""Machine checks from the kernel log, and slowing down because of heat."""

import os
from pathlib import Path

import pytest

from nodeproof.collectors.services.kernel_log import ErrorPair, KernelCounts, KernelLog
from nodeproof.errors import Absence, NoData
from support.cpu_host import CpuHost
from support.hosts import write_host

_CHECKS = frozenset({"cpu_ce_errors", "cpu_uce_errors", "machine_checks"})
_CPU = "/sys/devices/system/cpu"


class _Log:
    """Counts that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checks: dict[int, ErrorPair] = {}
        self.complete = True
        self.notices = 0
        self.lost = 0
        self.absence: NoData | None = None
        monkeypatch.setattr(KernelLog, "counts", lambda _: self.counts())

    def counts(self) -> KernelCounts:
        if self.absence is not None:
            raise self.absence
        nothing: dict[str, object] = {field: {} for field in KernelCounts.__struct_fields__}
        numbers = {field: 0 for field in KernelCounts.__struct_fields__ if KernelCounts.__annotations__[field] in {int, "int"}}
        return KernelCounts(
            **{
                **nothing,
                **numbers,
                "boot_id": "",
                "complete": self.complete,
                "since_s": 0.0,
                "lost_records": self.lost,
                "machine_checks": dict(self.checks),
                "machine_check_notices": self.notices,
                "firmware_errors": ErrorPair(0, 0),
            }  # type: ignore[arg-type]  # fields that these tests leave empty
        )


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> _Log:
    return _Log(monkeypatch)


def test_the_first_error_after_start_is_reported(log: _Log, tmp_path: Path) -> None:
    """Defect 10: the step from no error to the first one counts."""
    host = CpuHost(str(tmp_path), wanted=_CHECKS)
    host.cycle()
    assert host.values("cpu_ce_errors") == [({"cpu": "0"}, 0)]
    log.checks = {17: ErrorPair(1, 0)}
    host.cycle(1)
    assert host.values("cpu_ce_errors") == [({"cpu": "17"}, 1)]
    assert host.values("cpu_uce_errors") == [({"cpu": "17"}, 0)]
    host.cycle(1)
    assert host.values("cpu_ce_errors") == [({"cpu": "17"}, 0)]


def test_a_processor_that_joins_later_counts_from_zero(log: _Log, tmp_path: Path) -> None:
    host = CpuHost(str(tmp_path), wanted=_CHECKS)
    log.checks = {0: ErrorPair(3, 1)}
    host.cycle()
    assert host.values("cpu_ce_errors") == []  # how many of them are new is not known
    assert host.absence("cpu_ce_errors").state is Absence.UNKNOWN
    log.checks = {0: ErrorPair(5, 1), 4: ErrorPair(0, 2)}
    host.cycle(1)
    assert host.values("cpu_ce_errors") == [({"cpu": "0"}, 2), ({"cpu": "4"}, 0)]
    assert host.values("cpu_uce_errors") == [({"cpu": "0"}, 0), ({"cpu": "4"}, 2)]
    assert host.value("machine_checks", severity="corrected") == 5
    assert host.value("machine_checks", severity="uncorrected") == 3


def test_a_log_that_lost_its_beginning_proves_no_zero_at_first(log: _Log, tmp_path: Path) -> None:
    host = CpuHost(str(tmp_path), wanted=_CHECKS)
    log.complete = False
    host.cycle()
    assert host.values("cpu_ce_errors") == []
    host.cycle(1)
    assert host.values("cpu_ce_errors") == [({"cpu": "0"}, 0)]


def test_notices_without_details_are_unknown_and_not_zero(log: _Log, tmp_path: Path) -> None:
    """Defect 14: ``Machine check events logged`` names neither processor nor kind."""
    host = CpuHost(str(tmp_path), wanted=_CHECKS)
    log.notices = 2
    host.cycle()
    for name in _CHECKS:
        assert host.values(name) == []
        entry = host.absence(name)
        assert entry.state is Absence.UNKNOWN
        assert "rasdaemon" in entry.remedy


def test_lost_records_are_told_beside_what_was_seen(log: _Log, tmp_path: Path) -> None:
    host = CpuHost(str(tmp_path), wanted=_CHECKS)
    host.cycle()
    log.lost = 40
    host.cycle(1)
    assert host.values("cpu_ce_errors") == [({"cpu": "0"}, 0)]
    assert "40 records" in host.absence("cpu_ce_errors").reason


def test_a_log_that_may_not_be_read_is_no_zero(log: _Log, tmp_path: Path) -> None:
    host = CpuHost(str(tmp_path), wanted=_CHECKS)
    log.absence = NoData(Absence.NO_PERMISSION, "/dev/kmsg: Operation not permitted", remedy="run as root")
    host.cycle()
    for name in _CHECKS:
        assert host.values(name) == []
        assert (host.absence(name).state, host.absence(name).remedy) == (Absence.NO_PERMISSION, "run as root")


_THROTTLE = frozenset(
    {
        "new_throttles",
        "thermal_throttle_util",
        "core_throttles",
        "core_throttle_time",
        "max_core_throttles",
        "package_throttles",
        "package_throttle_time",
    }
)


@pytest.fixture
def intel(tmp_path: Path) -> CpuHost:
    return CpuHost(write_host("bare-x86-intel", str(tmp_path / "host")), wanted=_THROTTLE)


def _counter(host: CpuHost, cpu: int, name: str, value: int) -> None:
    host.write(f"{_CPU}/cpu{cpu}/thermal_throttle/{name}", value)


def test_throttle_counters_are_summed_over_cores_not_threads(intel: CpuHost) -> None:
    intel.cycle()
    # socket 0 has cores 0 and 1 with 10 and 20, socket 1 cores 2 and 3 with 30 and 40; times are ten times that
    assert intel.values("core_throttles") == [({"package": "0"}, 30), ({"package": "1"}, 70)]
    assert intel.values("core_throttle_time") == [({"package": "0"}, 300), ({"package": "1"}, 700)]
    assert intel.values("max_core_throttles") == [({"package": "0"}, 20), ({"package": "1"}, 40)]
    assert intel.values("package_throttles") == [({"package": "0"}, 7), ({"package": "1"}, 8)]
    assert intel.value("package_throttle_time", package="1") == 70
    assert intel.absence("new_throttles", package="0").state is Absence.UNKNOWN


def test_what_began_and_ended_since_the_last_reading(intel: CpuHost) -> None:
    intel.cycle()
    _counter(intel, 1, "core_throttle_count", 23)
    _counter(intel, 1, "core_throttle_total_time_ms", 200 + 1500)
    _counter(intel, 2, "package_throttle_total_time_ms", 70 + 90_000)
    intel.cycle(30)
    assert intel.values("new_throttles") == [({"package": "0"}, 3), ({"package": "1"}, 0)]
    # 1.5 s of 30 s; in socket 1 a slow-down ended that had begun 90 s ago
    assert intel.values("thermal_throttle_util") == [({"package": "0"}, 5.0), ({"package": "1"}, 100.0)]


def test_counters_that_began_anew_are_unknown_once(intel: CpuHost) -> None:
    intel.cycle()
    for cpu in (0, 1):
        _counter(intel, cpu, "core_throttle_count", 0)
        _counter(intel, cpu, "package_throttle_count", 0)
    intel.cycle(30)
    assert intel.absence("new_throttles", package="0").reason == "all counters began anew"
    assert intel.value("new_throttles", package="1") == 0


def test_kernels_before_5_6_count_without_time(intel: CpuHost) -> None:
    for cpu in range(4):
        for kind in ("core", "package"):
            os.unlink(f"{intel.root}{_CPU}/cpu{cpu}/thermal_throttle/{kind}_throttle_total_time_ms")
    intel.cycle()
    intel.cycle(30)
    assert intel.value("core_throttles", package="0") == 30
    for name in ("core_throttle_time", "package_throttle_time", "thermal_throttle_util"):
        assert intel.absence(name, package="0").state is Absence.UNSUPPORTED
    assert intel.value("new_throttles", package="0") == 0


def test_a_time_that_cannot_be_read_costs_its_package_only(intel: CpuHost) -> None:
    _counter(intel, 3, "core_throttle_count", 40)
    intel.write(f"{_CPU}/cpu3/thermal_throttle/core_throttle_total_time_ms", "x")
    intel.cycle()
    assert intel.value("core_throttles", package="0") == 30
    assert intel.absence("core_throttles", package="1").state is Absence.READ_ERROR


def test_processors_that_go_offline_are_divided_anew(intel: CpuHost) -> None:
    intel.cycle()
    intel.write(f"{_CPU}/online", "0-2,4-6")
    intel.cycle(30)
    assert intel.value("core_throttles", package="1") == 30
    assert intel.value("new_throttles", package="1") == 0


def test_amd_has_no_such_counters(tmp_path: Path) -> None:
    host = CpuHost(str(tmp_path), wanted=_THROTTLE)
    host.write("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t: fpu\n")
    host.cycle()
    entry = host.absence("new_throttles")
    assert (entry.state, entry.reason) == (Absence.NOT_APPLICABLE, "processors of AuthenticAMD have no thermal throttle counters")


def test_intel_without_them_names_the_remedy(tmp_path: Path) -> None:
    host = CpuHost(str(tmp_path), wanted=_THROTTLE)
    host.write("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t: fpu\n")
    host.cycle()
    entry = host.absence("new_throttles")
    assert entry.state is Absence.UNSUPPORTED
    assert "CONFIG_X86_THERMAL_VECTOR" in entry.remedy
