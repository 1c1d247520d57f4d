"""Component system: readings worked out by hand for two hosts, and what happens when sources fail."""

import os

import psutil
import pytest

from nodeproof.clock import rfc3339_parse
from nodeproof.collectors.base import Collector
from nodeproof.collectors.services.kernel_log import KernelLog
from nodeproof.collectors.system.collector import create
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, recorded_machine
from nodeproof.model.catalogue import component_specs
from nodeproof.model.metric import Batch
from support.hosts_system import write_files, write_system_bare_x86_256cpu, write_system_vm_2cpu
from support.readings import absence, absent_names, value, values_by


class _All:
    def wants(self, component: str, name: str) -> bool:  # noqa: ARG002 - the protocol's parameters
        return True


def _collector(root: object, clock: ManualClock | None = None) -> Collector:
    return create(recorded_machine(str(root), clock=clock), _All())


@pytest.fixture
def vm(tmp_path: object) -> Batch:
    write_system_vm_2cpu(str(tmp_path))
    return _collector(tmp_path).collect()


@pytest.fixture
def bare(tmp_path: object) -> Batch:
    write_system_bare_x86_256cpu(str(tmp_path))
    return _collector(tmp_path).collect()


def test_a_small_guest_by_hand(vm: Batch) -> None:
    assert value(vm, "uptime") == 86400.25
    assert value(vm, "boot_info", boot_id="11111111-2222-4333-8444-555555555555") == 1
    assert value(vm, "platform_info", virtualization="kvm") == 1  # hypervisor flag, and QEMU in sys_vendor
    assert value(vm, "entropy") == 256
    assert value(vm, "clock_synced") == 0  # status 64 = STA_UNSYNC
    assert value(vm, "clock_max_error") == 16  # 16,000,000 us
    assert absence(vm, "clock_offset").state is Absence.UNKNOWN  # the kernel says 0, and means nothing by it
    assert value(vm, "processes", state="sleeping") == 2  # systemd, kthreadd
    assert value(vm, "processes", state="running") == 1  # "a) R (b"
    assert value(vm, "processes", state="idle") == 1
    assert value(vm, "processes", state="zombie") == 1
    assert value(vm, "processes", state="disk_sleep") == 0
    assert value(vm, "threads") == 7  # 1 + 1 + 1 + 3 + 1
    assert value(vm, "file_handles") == 1024
    assert value(vm, "file_handles_usage") == 0.5  # 100 * 1024 / 204,800
    assert value(vm, "pid_usage") == 1.0  # 100 * 164 / 16,400: threads-max is the smaller
    assert value(vm, "kernel_taint") == 0
    assert value(vm, "kernel_events_total", kind="io_error", severity="warning") == 1
    assert value(vm, "kernel_log_complete") == 0  # its first record is number 900
    assert value(vm, "kernel_log_lost_total") == 2  # 903 and 904
    assert value(vm, "kernel_log_unverified_total") == 1  # a program's "Kernel panic"
    assert not [one for one in vm.metrics if (one.labels or {}).get("kind") == "panic"]
    assert absence(vm, "pcie_errors_total").state is Absence.NOT_APPLICABLE


def test_a_large_server_by_hand(bare: Batch) -> None:
    assert value(bare, "uptime") == 8640000.5
    assert value(bare, "boot_info", boot_id="aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee") == 1
    assert value(bare, "platform_info", virtualization="none") == 1
    assert value(bare, "clock_synced") == 1  # status 8193 = PLL, NANO
    assert value(bare, "clock_offset") == pytest.approx(-41.23e-6)  # -41,230 ns
    assert value(bare, "clock_max_error") == pytest.approx(0.00182)  # 1,820 us
    states = values_by(bare, "processes", "state")
    assert states == {"sleeping": 90, "idle": 180, "running": 20, "disk_sleep": 3, "zombie": 5, "stopped": 1, "traced": 0}
    assert value(bare, "threads") == 589  # 90 * 4 + 180 + 20 * 2 + 3 + 5 + 1
    assert value(bare, "pid_usage") == 1.0  # 100 * 589 / 58,900
    assert value(bare, "file_handles") == 50000
    assert value(bare, "file_handles_usage") == 0.0  # of 2^63 - 1
    assert value(bare, "kernel_taint", flags="proprietary_module,out_of_tree_module,unsigned_module") == 12289
    assert value(bare, "kernel_events_total", kind="machine_check", severity="warning") == 2
    assert value(bare, "kernel_events_total", kind="memory_error", severity="warning") == 4
    assert value(bare, "kernel_events_total", kind="oom_kill", severity="warning") == 1
    assert value(bare, "kernel_events_total", kind="hung_task", severity="warning") == 1
    assert value(bare, "kernel_events_total", kind="xid", severity="info") == 1
    assert value(bare, "kernel_events_total", kind="oops", severity="critical") == 0
    assert value(bare, "kernel_log_complete") == 1
    assert values_by(bare, "pcie_errors_total", "severity") == {"corrected": 15, "nonfatal": 1, "fatal": 2}  # 12 + 3, 1, 2
    assert value(bare, "pcie_device_errors_total", device="0000:c1:00.0", severity="corrected") == 12
    assert value(bare, "pcie_device_errors_total", device="0000:05:00.0", severity="fatal") == 2
    assert len([one for one in bare.metrics if one.name == "pcie_device_errors_total"]) == 4
    assert absent_names(bare) == set()


def test_an_empty_machine_has_no_numbers_but_reasons(tmp_path: object) -> None:
    """Defect 30: what could not be read is absent, never 0. Clock steps alone are known from the clocks themselves."""
    batch = _collector(tmp_path).collect()
    assert {metric.name for metric in batch.metrics} == {"clock_steps_total"}
    identity = {"device_model", "os_info"}
    assert absent_names(batch) == set(component_specs("system")) - identity - {"clock_steps_total"}


def test_everything_that_is_told_stands_in_the_catalogue(vm: Batch, bare: Batch) -> None:
    specs = component_specs("system")
    for metric in (*vm.metrics, *bare.metrics):
        assert set(metric.labels or {}) <= set(specs[metric.name].labels), metric
        assert metric.unit == specs[metric.name].unit


def test_failed_statics_are_tried_again(tmp_path: object) -> None:
    """Defect 30: "collected once" flags were set even if the collection had failed."""
    clock = ManualClock()
    collector = _collector(tmp_path, clock)
    assert "boot_info" in absent_names(collector.collect())
    write_system_vm_2cpu(str(tmp_path))
    clock.advance(3600.0)
    assert value(collector.collect(), "boot_info", boot_id="11111111-2222-4333-8444-555555555555") == 1


def test_wall_clock_steps_are_counted_both_ways(tmp_path: object) -> None:
    clock = ManualClock()
    collector = _collector(tmp_path, clock)
    collector.collect()
    for wall_s, mono_s in ((3.0, 3.0), (7200.0, 3.0), (3.1, 3.0), (-500.0, 3.0), (3.4, 3.0), (100.0, 95.0)):
        clock.wall_s += wall_s
        clock.mono_s += mono_s
        batch = collector.collect()
    # 7197 s forward, 503 s backward; 0.1 s, 0.4 s and 5 s in 95 s are slewing
    assert values_by(batch, "clock_steps_total", "direction") == {"forward": 1, "backward": 1}


def _with_processes(root: object, states: dict[int, str]) -> None:
    for pid, state in states.items():
        folder = f"{root}/proc/{pid}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/stat", "w", encoding="ascii") as file:
            file.write(f"{pid} (job{pid}) {state} 2 0 0 0 -1 0 0 0 0 0 0 12 0 0 20 0 1 0 {pid} 0\n")


def test_the_longest_sleeper_in_state_d_is_named_after_a_second_look(tmp_path: object) -> None:
    clock = ManualClock()
    _with_processes(tmp_path, {1: "S", 50: "D", 60: "S"})
    collector = _collector(tmp_path, clock)
    first = collector.collect()
    assert value(first, "disk_sleep_longest") == 0
    assert not [one for one in first.metrics if one.name == "disk_sleep_task"]
    clock.advance(15.0)
    _with_processes(tmp_path, {60: "D"})
    second = collector.collect()
    assert value(second, "processes", state="disk_sleep") == 2
    assert value(second, "disk_sleep_longest") == 15
    assert value(second, "disk_sleep_task", pid="50", command="job50") == 1
    clock.advance(15.0)
    _with_processes(tmp_path, {50: "S"})
    assert value(collector.collect(), "disk_sleep_task", pid="60", command="job60") == 1


def test_a_process_that_wakes_up_between_two_looks_is_not_stuck(tmp_path: object) -> None:
    """A RAID check or a backup is in state D at nearly every look, and in a new sleep each time."""
    clock = ManualClock()
    _with_processes(tmp_path, {1: "S", 50: "D", 60: "D"})

    def switched(pid: int, times: int) -> None:
        with open(f"{tmp_path}/proc/{pid}/status", "w", encoding="ascii") as file:
            file.write(f"Name:\tjob\nvoluntary_ctxt_switches:\t{times}\nnonvoluntary_ctxt_switches:\t7\n")

    switched(50, 100)
    switched(60, 3)
    collector = _collector(tmp_path, clock)
    collector.collect()
    for look in range(1, 11):
        clock.advance(15.0)
        switched(50, 100 + look)
        batch = collector.collect()
        assert value(batch, "disk_sleep_longest") == 15 * look
        assert value(batch, "disk_sleep_task", pid="60", command="job60") == 1
    switched(60, 4)
    switched(50, 200)
    clock.advance(15.0)
    assert value(collector.collect(), "disk_sleep_longest") == 0


def test_counts_of_processes_bear_the_time_of_the_look_that_made_them(tmp_path: object) -> None:
    clock = ManualClock()
    _with_processes(tmp_path, {1: "S"})
    collector = _collector(tmp_path, clock)
    began = clock.now().wall_s
    ages = []
    for _ in range(17):
        read_s = {rfc3339_parse(one.timestamp) for one in collector.collect().metrics if one.name in {"processes", "threads"}}
        assert len(read_s) == 1
        ages.append(read_s.pop() - began)
        clock.advance(1.0)
    assert ages == [0.0] * 15 + [15.0] * 2


def test_five_thousand_processes_are_looked_through_in_pieces(tmp_path: object) -> None:
    clock = ManualClock()
    _with_processes(tmp_path, dict.fromkeys(range(1, 1001), "S"))
    machine = recorded_machine(str(tmp_path), clock=clock)
    reads: list[str] = []
    read = machine.files.read

    def counting(path: str) -> bytes:
        if path.startswith("/proc/") and path.endswith("/stat"):
            reads.append(path)
        return read(path)

    machine.files.read = counting  # type: ignore[method-assign]  # counts what is read
    collector = create(machine, _All())
    assert value(collector.collect(), "processes", state="sleeping") == 1000
    _with_processes(tmp_path, {1: "Z"})
    counts = []
    for _ in range(9):
        reads.clear()
        clock.advance(3.0)
        batch = collector.collect()
        counts.append((len(reads), values_by(batch, "processes", "state")["zombie"]))
    # due after 15 s, then 400 a cycle; the new numbers are told when all have been read
    assert counts == [(0, 0), (0, 0), (0, 0), (0, 0), (400, 0), (400, 0), (200, 1), (0, 1), (0, 1)]


def test_processes_that_end_or_are_damaged_are_left_out(tmp_path: object) -> None:
    _with_processes(tmp_path, {1: "S", 7: "Q"})
    write_files(str(tmp_path), {"proc/8/stat": "rubbish", "proc/9/other": ""})
    states = values_by(_collector(tmp_path).collect(), "processes", "state")
    assert states["sleeping"] == 1
    assert states["other"] == 1
    assert sum(states.values()) == 2


def test_no_readable_process_is_an_error(tmp_path: object) -> None:
    write_files(str(tmp_path), {"proc/1/stat": "rubbish"})
    entry = absence(_collector(tmp_path).collect(), "processes")
    assert (entry.state, entry.reason) == (Absence.READ_ERROR, "no /proc/PID/stat could be read")


def test_hidden_processes_make_no_quiet_machine(tmp_path: object) -> None:
    _with_processes(tmp_path, {400: "S"})
    entry = absence(_collector(tmp_path).collect(), "processes")
    assert entry.state is Absence.NO_PERMISSION
    assert "hidepid" in entry.remedy


@pytest.mark.parametrize(
    ("path", "name"), [("/proc/1/stat", "processes"), ("/sys/bus/pci/devices/0000:c1:00.0/aer_dev_fatal", "pcie_errors_total")]
)
def test_one_file_that_may_not_be_read(tmp_path: object, path: str, name: str) -> None:
    write_system_bare_x86_256cpu(str(tmp_path))
    machine = recorded_machine(str(tmp_path))
    read = machine.files.read

    def denying(wanted: str) -> bytes:
        if wanted == path:
            raise NoData(Absence.NO_PERMISSION, path)
        return read(wanted)

    machine.files.read = denying  # type: ignore[method-assign,assignment]  # one file is denied
    batch = create(machine, _All()).collect()
    assert absence(batch, name).state is Absence.NO_PERMISSION
    assert not [one for one in batch.metrics if one.name == name]


def test_damaged_counters_of_one_device_leave_the_others_their_rows(tmp_path: object) -> None:
    write_files(str(tmp_path), {"sys/bus/pci/devices/0000:c1:00.0/aer_dev_correctable": "rubbish"})
    write_system_bare_x86_256cpu(str(tmp_path))
    batch = _collector(tmp_path).collect()
    entry = absence(batch, "pcie_errors_total")
    assert entry.state is Absence.READ_ERROR
    assert entry.reason.startswith("0000:c1:00.0: ")
    assert value(batch, "pcie_device_errors_total", device="0000:05:00.0", severity="corrected") == 3


def test_devices_that_get_counters_later_are_found(tmp_path: object) -> None:
    clock = ManualClock()
    write_system_vm_2cpu(str(tmp_path))
    collector = _collector(tmp_path, clock)
    assert "pcie_errors_total" in absent_names(collector.collect())
    device = "sys/bus/pci/devices/0000:00:01.0"
    counters = {f"{device}/aer_dev_{kind}": "TOTAL_ERR 1\n" for kind in ("correctable", "nonfatal", "fatal")}
    write_files(str(tmp_path), counters)
    clock.advance(60.0)
    assert "pcie_errors_total" in absent_names(collector.collect())
    clock.advance(600.0)
    assert values_by(collector.collect(), "pcie_errors_total", "severity") == {"corrected": 1, "nonfatal": 1, "fatal": 1}


def test_a_pci_folder_that_may_not_be_listed(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    write_system_bare_x86_256cpu(str(tmp_path))
    machine = recorded_machine(str(tmp_path))
    listdir = os.listdir

    def denying(path: str) -> list[str]:
        if path.endswith("/sys/bus/pci/devices"):
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", denying)
    assert absence(create(machine, _All()).collect(), "pcie_errors_total").state is Absence.NO_PERMISSION


def test_a_machine_without_pci_and_a_kernel_without_limits(tmp_path: object) -> None:
    write_files(
        str(tmp_path),
        {
            "proc/sys/kernel/pid_max": "0\n",
            "proc/sys/kernel/threads-max": "10\n",
            "proc/cpuinfo": "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t\t: fpu\n\n",
        },
    )
    batch = _collector(tmp_path).collect()
    assert absence(batch, "pid_usage").state is Absence.READ_ERROR
    assert absence(batch, "pcie_errors_total").state is Absence.UNSUPPORTED


def test_a_container_is_named(tmp_path: object) -> None:
    write_system_vm_2cpu(str(tmp_path))
    write_files(str(tmp_path), {"run/systemd/container": "podman\n"})
    assert value(_collector(tmp_path).collect(), "platform_info", virtualization="kvm", container="podman") == 1


def test_labels_of_the_log_are_made_once(tmp_path: object) -> None:
    write_system_vm_2cpu(str(tmp_path))
    collector = _collector(tmp_path)
    first, second = ([one.labels for one in collector.collect().metrics if one.name == "kernel_events_total"] for _ in range(2))
    assert all(a is b for a, b in zip(first, second, strict=True))


def test_this_machine_against_another_reader() -> None:
    """Oracle: psutil's own walk through /proc, and the kernel's files read plainly."""
    machine = Machine.here()
    batch = create(machine, _All()).collect()
    states = values_by(batch, "processes", "state")
    assert abs(sum(states.values()) - len(psutil.pids())) <= 30  # others start and end meanwhile
    with open("/proc/uptime", encoding="ascii") as file:
        assert abs(value(batch, "uptime") - float(file.read().split()[0])) < 10
    with open("/proc/sys/kernel/tainted", encoding="ascii") as file:
        assert [one.value for one in batch.metrics if one.name == "kernel_taint"] == [float(file.read())]
    assert isinstance(machine.shared(KernelLog), KernelLog)
    machine.close()
