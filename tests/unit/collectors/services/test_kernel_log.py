"""The kernel log as a service: counts, reach, loss, absence."""

import os
import threading
from collections.abc import Sequence

import pytest

from nodeproof.collectors.services.kernel_log import AerCounts, ErrorPair, KernelLog, LinkChange
from nodeproof.errors import Absence, NoData
from nodeproof.host.kmsg import KmsgChannel
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.event import EventKind, Severity
from support.kernel_log import fixture, log_machine, record, records_of_dmesg, write_log


def _log(root: object, *texts: str, first: int = 0) -> KernelLog:
    records = [record(text, sequence=first + n, time_us=(first + n) * 1_000_000) for n, text in enumerate(texts)]
    return log_machine(str(root), records).shared(KernelLog)


def test_counts_of_one_boot(tmp_path: object) -> None:
    """Defects 14 and 15: real machine-check lines count, by processor; one OOM kill counts once."""
    log = _log(
        tmp_path,
        "Linux version 6.18.0",
        "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: 8c00004000010091",
        "mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 5: 8c00004000010091",
        "mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 1: be00000000800400",
        "mce: [Hardware Error]: Machine check events logged",
        "Out of memory: Kill process 815 (java) score 900 or sacrifice child",
        "Killed process 815 (java) total-vm:2kB",
        "Memory cgroup out of memory: Killed process 4712 (stress) total-vm:9000kB",
        "I/O error, dev sda, sector 2048 op 0x0:(READ)",
        "critical medium error, dev sda, sector 2056 op 0x0:(READ)",
        "Buffer I/O error on dev sda1, logical block 0, async page read",
        "operation not supported error, dev loop0, sector 0 op 0x9:(WRITE_ZEROES)",
        "EXT4-fs error (device sda1): ext4_lookup:1: inode #2",
        "EXT4-fs (sda1): Remounting filesystem read-only",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer",
        "nvme 0000:01:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer",
        "EDAC MC0: 17 CE memory read error on DIMM_A1 (channel:1)",
        "EDAC MC0: 1 UE memory read error on DIMM_A1 (channel:1)",
        "{1}[Hardware Error]: event severity: recoverable",
        "{2}[Hardware Error]: event severity: corrected",
        "NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:05:00): 45, Ch 1",
        "NVRM: Xid (PCI:0000:05:00): 45, Ch 2",
        "INFO: task dd:99 blocked for more than 120 seconds.",
        "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [burn:99]",
        "CPU1: Core temperature above threshold, cpu clock throttled (total events = 1)",
        "nvme nvme0: I/O 1 QID 4 timeout, aborting",
    )
    counts = log.counts()
    assert (counts.complete, counts.since_s, counts.lost_records, counts.unverified) == (True, 0.0, 0, 0)
    assert counts.machine_checks == {3: ErrorPair(2, 0), 0: ErrorPair(0, 1)}
    assert counts.machine_check_notices == 1
    assert (counts.oom_kills, counts.oom_kills_cgroup) == (2, 1)
    assert counts.io_errors == {"sda": 2}
    assert counts.buffer_io_errors == {"sda1": 1}
    assert (counts.fs_errors, counts.fs_readonly) == ({"sda1": 1}, {"sda1": 1})
    assert counts.aer == {"0000:01:00.0": AerCounts(1, 1, 0)}
    assert counts.memory_errors == {"mc0 DIMM_A1": ErrorPair(17, 1)}
    assert counts.firmware_errors == ErrorPair(1, 1)
    assert counts.xids == {"0000:05:00": {"79": 1, "45": 2}}
    assert (counts.hung_tasks, counts.soft_lockups, counts.hard_lockups, counts.rcu_stalls, counts.oopses) == (1, 1, 0, 0, 0)
    assert (counts.thermal_events, counts.storage_resets) == ({"cpu1": 1}, {"nvme0": 1})
    assert counts.by_kind[("memory_error", "warning")] == 17
    assert counts.by_kind[("io_error", "info")] == 1


def test_the_same_object_while_nothing_happens_and_a_new_one_after(tmp_path: object) -> None:
    log = _log(tmp_path, "Linux version 6.18.0")
    first = log.counts()
    write_log(str(tmp_path), [record("harmless", sequence=1)])
    assert log.counts() is first
    write_log(str(tmp_path), [record("Killed process 1 (a)", sequence=2)])
    assert log.counts().oom_kills == 1
    assert first.oom_kills == 0


def test_a_ring_that_wrapped_is_told_and_counters_never_fall(tmp_path: object) -> None:
    """Defect 15: counting the ring's present text makes counters fall when old lines leave it."""
    log = _log(tmp_path, "Killed process 1 (a)", "Killed process 2 (b)", first=500)
    counts = log.counts()
    assert (counts.complete, counts.since_s, counts.oom_kills) == (False, 500.0, 2)
    write_log(str(tmp_path), [record("harmless", sequence=900)])
    later = log.counts()
    assert (later.lost_records, later.oom_kills, later.since_s) == (398, 2, 500.0)  # 502 ... 899


def test_records_seen_before_are_not_counted_again(tmp_path: object) -> None:
    log = _log(tmp_path, "Killed process 1 (a)", "Killed process 2 (b)")
    log.counts()
    log.take([record("Killed process 2 (b)", sequence=1), record("Killed process 3 (c)", sequence=2)], live=True, at_end=True)
    assert log.counts().oom_kills == 3


def test_a_damaged_record_counts_as_lost(tmp_path: object) -> None:
    write_log(str(tmp_path), [record("a", sequence=0), b"4,x,1,-;b", record("c", sequence=2)])
    assert recorded_machine(str(tmp_path)).shared(KernelLog).counts().lost_records == 1


def test_no_log_is_an_absence_not_zero(tmp_path: object) -> None:
    """Defect 15: a permission failure read as 0 OOM kills and 0 I/O errors."""
    log = recorded_machine(str(tmp_path)).shared(KernelLog)
    for ask in (log.counts, log.events, log.link_flaps):
        with pytest.raises(NoData) as caught:
            ask()
        assert caught.value.state is Absence.NO_PERMISSION
        assert "CAP_SYSLOG" in caught.value.remedy
    assert log.news() == []


def test_an_empty_log_is_unknown(tmp_path: object) -> None:
    write_log(str(tmp_path), [])
    with pytest.raises(NoData, match="holds no record"):
        recorded_machine(str(tmp_path)).shared(KernelLog).counts()


def test_forged_records_are_counted_as_unverified_only(tmp_path: object) -> None:
    """Case 18."""
    os.makedirs(f"{tmp_path}/dev")
    with open(f"{tmp_path}/dev/kmsg", "w", encoding="utf-8") as file:
        file.write(fixture("forged.txt"))
    log = recorded_machine(str(tmp_path)).shared(KernelLog)
    counts = log.counts()
    assert counts.xids == {"0000:01:00": {"31": 1}}
    assert (counts.unverified, counts.lost_records) == (1, 0)
    assert counts.by_kind == {("xid", "info"): 1}
    assert [(one.event.code, one.event.verified, one.event.severity) for one in log.events()] == [
        ("31", True, Severity.INFO),
        ("79", False, Severity.INFO),
    ]


def test_the_switch_that_trusts_programs_is_for_tests(tmp_path: object) -> None:
    machine = log_machine(str(tmp_path), [record("Killed process 1 (a)", sequence=0, facility=1)])
    assert KernelLog(machine).counts().oom_kills == 0
    assert KernelLog(machine, trusted=frozenset({0, 1})).counts().oom_kills == 1


def test_link_flaps_of_a_recorded_log(tmp_path: object) -> None:
    """Case 20: count 3, warning within the window, cleared after it, history kept."""
    clock = ManualClock(mono_s=902.0)
    machine = log_machine(str(tmp_path), records_of_dmesg(fixture("link_flap.txt")), clock)
    log = machine.shared(KernelLog)
    assert log.counts().link_changes["enp75s0np0"][:2] == (LinkChange(500.1, up=False), LinkChange(503.9, up=True))
    (flap,) = log.link_flaps()
    assert (flap.interface, flap.count, flap.severity) == ("enp75s0np0", 3, Severity.WARNING)
    clock.advance(600.0)
    (flap,) = log.link_flaps()
    assert (flap.count, flap.severity) == (3, Severity.INFO)
    assert len(log.counts().link_changes["enp75s0np0"]) == 6


def test_a_storm_is_one_piece_of_news(tmp_path: object) -> None:
    """Case 16."""
    storm = [record(f"NVRM: Xid (PCI:0000:61:00): 45, Ch {n}", sequence=n, time_us=100_000_000 + n * 100) for n in range(10_000)]
    log = log_machine(str(tmp_path), storm).shared(KernelLog)
    (news,) = log.news()
    assert (news.event.kind, news.event.severity, news.count) == (EventKind.XID, Severity.INFO, 10_000)
    assert log.news() == []
    (whole,) = log.events()
    assert whole.count == 10_000
    assert log.counts().xids == {"0000:61:00": {"45": 10_000}}


def test_tables_and_histories_are_bounded(tmp_path: object) -> None:
    texts = [f"I/O error, dev d{n}, sector 1" for n in range(300)]
    texts += [f"e{n}: Link down" for n in range(300)]
    texts += ["e0: Link up", "e0: Link down"] * 50
    counts = _log(tmp_path, *texts).counts()
    assert len(counts.io_errors) == 257
    assert counts.io_errors["other"] == 44
    assert len(counts.link_changes) == 256
    assert len(counts.link_changes["e0"]) == 64


def test_machine_checks_beyond_the_table_have_no_processor(tmp_path: object) -> None:
    line = "mce: [Hardware Error]: CPU {}: Machine Check: 0 Bank 5: 8c00004000010091"
    counts = _log(tmp_path, *(line.format(n) for n in range(260))).counts()
    assert len(counts.machine_checks) == 256
    assert counts.by_kind[("machine_check", "warning")] == 260


def test_boot_id(tmp_path: object) -> None:
    log = _log(tmp_path, "a")
    assert log.counts().boot_id == ""
    os.makedirs(f"{tmp_path}/proc/sys/kernel/random")
    with open(f"{tmp_path}/proc/sys/kernel/random/boot_id", "w", encoding="ascii") as file:
        file.write("7d2f0c9e-0000-4000-8000-000000000001\n")
    log.take([record("Killed process 1 (a)", sequence=1)], live=False, at_end=True)
    assert log.counts().boot_id == "7d2f0c9e-0000-4000-8000-000000000001"
    log.take([record("Killed process 1 (a)", sequence=2)], live=False, at_end=True)
    assert log.counts().boot_id == "7d2f0c9e-0000-4000-8000-000000000001"


def test_until_the_end_is_reached_nothing_is_told(tmp_path: object) -> None:
    log = _log(tmp_path, "a")
    log._closed = True  # nobody reads but this test
    log.take([record("Killed process 1 (a)", sequence=0)], live=False, at_end=False)
    with pytest.raises(NoData, match="still being read"):
        log.counts()
    log.take([], live=False, at_end=True)
    assert log.counts().oom_kills == 1


class _NoticingLog(KernelLog):
    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.done = threading.Event()

    def take(self, records: Sequence[bytes], *, live: bool, at_end: bool) -> None:
        super().take(records, live=live, at_end=at_end)
        self.done.set()


def test_followed_on_a_thread_and_closed_with_the_machine(tmp_path: object) -> None:
    machine = log_machine(str(tmp_path), [record("Killed process 1 (a)", sequence=0)])
    log = _NoticingLog(machine)
    machine.shared(lambda _: log)
    before = threading.active_count()
    log.start()
    log.start()
    assert log.done.wait(5.0)
    assert log.counts().oom_kills == 1
    machine.close()
    assert threading.active_count() == before
    with pytest.raises(NoData, match="no longer followed"):
        log.counts()


def test_news_is_bounded(tmp_path: object) -> None:
    """A flood of warnings leaves room for what is critical."""
    flood = [f"e{n}: Link down" for n in range(3000)]
    lost = [f"NVRM: Xid (PCI:0000:{n:02x}:00): 79, GPU has fallen off the bus." for n in range(8)]
    news = _log(tmp_path, *flood, *lost).news()
    assert len(news) == 1024 + 8
    assert [whole.event.severity for whole in news[1024:]] == [Severity.CRITICAL] * 8


class _DeviceChannel(KmsgChannel):
    """Stands for a device whose clock lags behind."""

    def __init__(self) -> None:
        super().__init__("")
        self.is_device = True

    def suspended_s(self) -> float:
        return 30.0


def test_time_of_events_follows_the_boot_clock_through_a_suspend(tmp_path: object) -> None:
    clock = ManualClock(mono_s=200.0)
    log = KernelLog(recorded_machine(str(tmp_path), clock=clock))
    log._channel = _DeviceChannel()
    log._closed = True
    log.take([record("e0: Link down", sequence=0, time_us=100_000_000)], live=False, at_end=True)
    assert log.counts().link_changes["e0"][-1].mono_s == 130.0
    clock.advance(1000.0)  # it slept meanwhile: the log's clock says 170.5 at 1200
    log.take([record("e0: Link up", sequence=1, time_us=170_500_000)], live=True, at_end=True)
    assert log.counts().link_changes["e0"][-1].mono_s == 1200.0
    log.take([record("e0: Link down", sequence=2, time_us=170_400_000)], live=True, at_end=True)
    assert log.counts().link_changes["e0"][-1].mono_s == pytest.approx(1199.9)


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK), reason="/dev/kmsg cannot be read here")
def test_the_log_of_this_machine() -> None:
    machine = Machine.here()
    counts = machine.shared(KernelLog).counts()
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        assert counts.boot_id == file.read().strip()
    assert counts.complete == (counts.since_s == 0.0)
    machine.close()


@pytest.mark.skipif(not os.access("/dev/kmsg", os.R_OK | os.W_OK), reason="/dev/kmsg cannot be written here")
def test_a_record_forged_on_this_machine_is_unverified() -> None:
    """Case 18, for real: what a program writes never counts as the kernel's."""
    machine = Machine.here()
    log = machine.shared(KernelLog)
    before = log.counts()
    try:
        with open("/dev/kmsg", "w", encoding="ascii") as device:
            device.write("<6>NVRM: Xid (PCI:0000:ff:00): 79, nodeproof test record, no event\n")
    except OSError as error:
        pytest.skip(f"/dev/kmsg takes no record: {error.strerror}")
    after = log.counts()
    if after is before:
        pytest.skip("this kernel drops what programs write to /dev/kmsg")
    newest = log.events()[-1].event
    machine.close()
    assert after.unverified > before.unverified
    assert after.xids == before.xids
    assert (newest.code, newest.verified, newest.severity, newest.facility) == ("79", False, Severity.INFO, 1)
