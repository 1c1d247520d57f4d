"""/proc/stat and /proc/loadavg: shares, counters, rates."""

from pathlib import Path

import pytest

from nodeproof.errors import Absence
from support.cpu_host import CpuHost

_STAT = "/proc/stat"
_SHARES = ("usage", "user_util", "system_util", "idle_util", "iowait_util")


def _host(tmp_path: Path, *rows: str, wanted: frozenset[str] | None = None) -> CpuHost:
    host = CpuHost(str(tmp_path), wanted=wanted)
    host.write(_STAT, "\n".join(rows))
    return host


def test_the_first_sample_has_counters_and_no_share(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 100 0 0 900 0 0 0 0 0 0", "cpu0 100 0 0 900 0 0 0 0 0 0", "ctxt 7")
    host.cycle()
    assert host.value("user_time", core="total") == 100
    for name in (*_SHARES, "irq_util", "softirq_util", "steal_util", "context_switches"):
        assert host.values(name) == []
        assert host.absence(name).state is Absence.UNKNOWN


def test_guest_time_is_counted_once(tmp_path: Path) -> None:
    """Defect 8: 100 ticks of a guest in 200 ticks are 50 %, not 66.7 %."""
    host = _host(tmp_path, "cpu 100 0 0 100 0 0 0 0 100 0")
    host.cycle()
    host.write(_STAT, "cpu 200 0 0 200 0 0 0 0 200 0")
    host.cycle(1)
    assert host.value("usage", core="total") == 50.0
    assert host.value("user_util", core="total") == 50.0
    assert host.value("idle_util", core="total") == 50.0


def test_iowait_that_steps_back_counts_nothing(tmp_path: Path) -> None:
    """Defect 8: iowait fell from 50 to 40 while 60 ticks went to users and 40 were idle: 60 of 100 ticks, and no -9.2e16 %."""
    host = _host(tmp_path, "cpu 100 0 0 100 50 0 0 0 0 0")
    host.cycle()
    host.write(_STAT, "cpu 160 0 0 140 40 0 0 0 0 0")
    host.cycle(1)
    assert host.value("iowait_util", core="total") == 0.0
    assert host.value("usage", core="total") == 60.0


def test_idle_that_steps_back_counts_nothing(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 100 0 0 100 50 0 0 0 0 0")
    host.cycle()
    host.write(_STAT, "cpu 150 0 0 90 100 0 0 0 0 0")
    host.cycle(1)
    assert host.value("idle_util", core="total") == 0.0
    assert host.value("iowait_util", core="total") == 50.0


def test_shares_are_rounded_half_up_to_two_decimals_at_any_size(tmp_path: Path) -> None:
    """Defect 9: the reference's helper overflowed for large numbers. Here 1 of 8 000 ticks is 0.0125 %, so 0.01; 1 of 800 is
    0.125 %, so 0.13; and 2^63 ticks of 2^64 are 50 %."""
    host = _host(tmp_path, "cpu 0 0 0 0 0 0 0 0", "cpu0 0 0 0 0 0 0 0 0", "cpu1 0 0 0 0 0 0 0 0")
    host.cycle()
    half = 2**63
    host.write(_STAT, f"cpu 1 0 0 7999 0 0 0 0\ncpu0 1 0 0 799 0 0 0 0\ncpu1 {half} 0 0 {half} 0 0 0 0")
    host.cycle(1)
    assert host.value("user_util", core="total") == 0.01
    assert host.value("user_util", core="0") == 0.13
    assert host.value("user_util", core="1") == 50.0


def test_every_share_of_the_total(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 0 0 0 0 0 0 0 0")
    host.cycle()
    # 400 ticks: 40 user, 20 nice, 60 system, 200 idle, 40 iowait, 4 irq, 16 softirq, 20 steal
    host.write(_STAT, "cpu 40 20 60 200 40 4 16 20 0 0")
    host.cycle(1)
    expected = {
        "usage": 50.0,  # (400 - 200) / 400
        "user_util": 15.0,  # (40 + 20) / 400
        "system_util": 15.0,
        "idle_util": 50.0,
        "iowait_util": 10.0,
        "irq_util": 1.0,
        "softirq_util": 4.0,
        "steal_util": 5.0,
    }
    assert {name: host.value(name, core="total") for name in expected} == expected


@pytest.mark.parametrize("elapsed_s", [0.5, 1.0, 3.0, 7.25])
def test_rates_divide_by_the_time_that_passed(tmp_path: Path, elapsed_s: float) -> None:
    """Defect 7: 3,000 switches in 0.5 s are 6,000 a second, in 7.25 s 413.79; the reference always divided by 3."""
    host = _host(tmp_path, "cpu 1 1 1 1", "ctxt 10000", "intr 500 1 2", "softirq 70 1", "processes 900")
    host.cycle()
    host.write(_STAT, "cpu 2 2 2 2\nctxt 13000\nintr 620 1 2\nsoftirq 82 1\nprocesses 903\n")
    host.cycle(elapsed_s)
    assert host.value("context_switches") == round(3000 / elapsed_s, 2)
    assert host.value("interrupts") == round(120 / elapsed_s, 2)
    assert host.value("softirqs") == round(12 / elapsed_s, 2)
    assert host.value("forks") == round(3 / elapsed_s, 2)


def test_a_rate_whose_counter_began_anew_is_unknown_once(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 1 1 1 1", "ctxt 10000")
    host.cycle()
    host.write(_STAT, "cpu 2 2 2 2\nctxt 50\n")
    host.cycle(1)
    assert host.values("context_switches") == []
    assert host.absence("context_switches").state is Absence.UNKNOWN
    host.write(_STAT, "cpu 3 3 3 3\nctxt 80\n")
    host.cycle(1)
    assert host.value("context_switches") == 30.0


def test_lines_that_the_kernel_does_not_print_are_unsupported(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 1 1 1 1", "procs_blocked 4")
    host.cycle()
    assert host.value("procs_blocked") == 4
    assert host.absence("forks").state is Absence.UNSUPPORTED
    host.write(_STAT, "cpu 1 1 1 1\n")
    host.cycle(1)
    assert host.absence("procs_blocked").state is Absence.UNSUPPORTED


def test_a_core_that_comes_back_starts_anew_and_one_that_left_leaves_nothing(tmp_path: Path) -> None:
    both = "cpu 20 0 0 20\ncpu0 10 0 0 10\ncpu1 10 0 0 10\n"
    host = _host(tmp_path, both)
    host.cycle()
    host.write(_STAT, "cpu 30 0 0 30\ncpu0 20 0 0 20\n")
    host.cycle(1)
    assert [labels for labels, _ in host.values("usage")] == [{"core": "total"}, {"core": "0"}]
    assert [labels for labels, _ in host.values("user_time")] == [{"core": "total"}, {"core": "0"}]
    host.write(_STAT, "cpu 5000 0 0 5000\ncpu0 30 0 0 30\ncpu1 4970 0 0 4970\n")
    host.cycle(1)
    assert [labels for labels, _ in host.values("usage")] == [{"core": "total"}, {"core": "0"}]
    assert host.absence("usage").reason == "core 1: needs a second reading of /proc/stat"
    host.write(_STAT, "cpu 5020 0 0 5000\ncpu0 40 0 0 30\ncpu1 4980 0 0 4970\n")
    host.cycle(1)
    assert host.value("usage", core="1") == 100.0


def test_a_core_whose_counters_began_anew_has_no_share_for_once(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 20 0 0 20\ncpu0 1000 0 0 1000\n")
    host.cycle()
    host.write(_STAT, "cpu 30 0 0 20\ncpu0 5 0 0 5\n")
    host.cycle(1)
    assert host.value("usage", core="total") == 100.0
    assert host.absence("usage").reason == "core 0: the counters began anew"


def test_no_time_between_two_readings(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 20 0 0 20")
    host.cycle()
    host.cycle(0.001)
    assert host.values("usage") == []
    assert host.absence("usage").reason == "no time was counted since the last reading"


def test_many_cores_without_a_share_make_one_entry(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 20 0 0 20")
    host.cycle()
    host.write(_STAT, "cpu 30 0 0 20\n" + "".join(f"cpu{core} 1 1 1 1\n" for core in range(20)))
    host.cycle(1)
    assert host.absence("usage").reason == "core 0, 1, 2, 3, 4, 5, 6, 7 and 12 more: needs a second reading of /proc/stat"


def test_a_file_that_vanishes_makes_the_next_reading_a_first_one(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 20 0 0 20")
    host.cycle()
    host.write(_STAT, "rubbish")
    host.cycle(1)
    assert {entry.state for entry in host.absences("usage")} == {Absence.READ_ERROR}
    assert host.values("user_time") == []
    host.write(_STAT, "cpu 30 0 0 30")
    host.cycle(1)
    assert host.absence("usage").state is Absence.UNKNOWN


def test_only_what_is_wanted_is_made(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 20 0 0 20", wanted=frozenset({"user_time", "load_average"}))
    host.write("/proc/loadavg", "0.35 0.25 0.15 2/287 12345")
    host.cycle()
    batch = host.cycle(1)
    assert [(metric.name, metric.unit) for metric in batch.metrics] == [("user_time", "jiffies"), *[("load_average", "")] * 3]
    assert batch.missing == []


def test_load(tmp_path: Path) -> None:
    host = _host(tmp_path, "cpu 20 0 0 20")
    host.write("/proc/loadavg", "0.35 0.25 0.15 2/287 12345")
    host.cycle()
    assert [host.value("load_average", interval=interval) for interval in ("1m", "5m", "15m")] == [0.35, 0.25, 0.15]
    assert (host.value("process_count", type="running"), host.value("process_count", type="total")) == (2, 287)
