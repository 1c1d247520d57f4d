"""Boxes of which something is missing, silent or strange: what is said of them is unknown or lacking, with its reason."""

import shutil
from pathlib import Path

import msgspec
import pytest

from nodeproof.errors import Absence, NoData
from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.hardware.providers import Accelerators, RecordedProvider, Survey
from nodeproof.hardware.state import cpu_ranges
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.hardware import (
    ComputeApp,
    Decision,
    DeviceState,
    Fact,
    Field,
    HardwareReport,
    Sensitivity,
    ThrottleActive,
    ThrottleCounters,
    Validity,
)
from support.box import CPU, Box, Switches
from support.hosts import write_host

SPEED = Sensitivity.SPEED


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(str(tmp_path / "box"))


def fact(report: HardwareReport, name: str) -> Fact:
    assert report.delta is not None
    return next(entry for entry in report.delta.facts if entry.name == name)


def field(report: HardwareReport, device: str, name: str) -> Field:
    return next(entry for entry in report.before.fields if (entry.device, entry.name) == (device, name))


def validity(report: HardwareReport) -> Validity:
    assert report.postcheck is not None
    return report.postcheck.validity


def with_cards(box: Box, *answers: Survey | NoData, devices: tuple[str, ...] | None = None, steps: int = 2) -> HardwareReport:
    providers = (RecordedProvider(answers),) if answers else ()
    return box.run(steps=steps, watch=box.watch(settings=Settings(devices=devices), providers=providers))


def test_cards_that_nobody_can_ask_leave_it_open(box: Box) -> None:
    shutil.rmtree(f"{box.root}/sys/bus/pci/devices/0000:17:00.0")
    box.aer()
    box.write("/sys/bus/pci/devices/0000:41:00.0/class", "0x030200")
    box.write("/sys/bus/pci/devices/0000:41:00.0/vendor", "0x10de")
    report = with_cards(box)
    assert (report.precheck.decision, validity(report)) == (Decision.WARN, Validity.UNKNOWN)
    assert "1 accelerators (nvidia) are on the PCI bus, and nothing here can ask them" in report.precheck.concerns[0]
    assert (report.before.gpu_compute_apps, report.perf_class) == (None, "unknown@box")
    unused = with_cards(box, devices=())
    assert (unused.precheck.decision, validity(unused)) == (Decision.PROCEED, Validity.VALID)


def test_a_bus_that_cannot_be_looked_through_is_an_absence(box: Box) -> None:
    shutil.rmtree(f"{box.root}/sys/bus/pci/devices")
    box.write("/sys/bus/pci/devices/cards", "")
    box.write("/sys/bus/pci/x", "")
    shutil.rmtree(f"{box.root}/sys/bus/pci/devices")
    (Path(box.root) / "sys/bus/pci/devices").symlink_to("devices")
    absence = Accelerators(box.machine, (), None).absence()
    assert absence.state is Absence.READ_ERROR


CARD = DeviceState(
    "gpu0",
    name="NVIDIA H100",
    temp_c=50.0,
    clock_mhz=1000.0,
    clock_max_mhz=2000.0,
    uncorrected_errors=0,
    corrected_errors=0,
    persistence_mode=True,
    throttle_counters=ThrottleCounters(0, 0, 0, 0),
    throttle_active=ThrottleActive(sw_thermal=False, hw_thermal=False, hw_power_brake=False),
)


def test_a_slowed_card_and_a_second_process_refuse(box: Box) -> None:
    hot = msgspec.structs.replace(CARD, throttle_active=ThrottleActive(hw_thermal=True), uncorrected_errors=2)
    apps = (ComputeApp(500, "own"), ComputeApp(900, "other"))
    report = with_cards(box, Survey((hot,), apps, "nvidia-smi"))
    assert report.precheck.decision is Decision.REFUSE
    assert report.precheck.concerns == [
        "gpu0 slowed by heat at this moment",
        "1 foreign processes use the accelerators: 900 other",
        "no temperature ceilings are declared for this class of hardware (gpu_c): temperatures are not judged",
        "2 uncorrected errors since this system started: gpu0 2",
    ]
    assert report.before.foreign_compute_apps() == [ComputeApp(900, "other")]


def test_a_silent_card_and_unlisted_processes_are_unknown(box: Box) -> None:
    silent = DeviceState("gpu0")
    told = (Field("gpu0", "temperature", "nvidia-smi", 1.0, state=Absence.UNSUPPORTED, reason="[N/A]"),)
    report = with_cards(box, Survey((silent,), None, "nvidia-smi", fields=told))
    assert {finding.rule for finding in report.precheck.findings} == {"R1u", "R2u", "R34n"}
    assert validity(report) is Validity.UNKNOWN
    assert fact(report, "foreign_accelerator_looks").reason == "nvidia-smi cannot list processes"
    assert (report.before.gpu_compute_apps, report.before.persistence_mode) == (None, None)
    assert field(report, "gpu0", "temperature").reason == "[N/A]"
    why = NoData(Absence.NO_PERMISSION, "ask root")
    report = with_cards(box, Survey((silent,), None, "nvidia-smi", why))
    assert fact(report, "foreign_accelerator_looks").state is Absence.NO_PERMISSION


def test_the_worst_card_stands_for_all_in_the_keys_of_one(box: Box) -> None:
    slow = msgspec.structs.replace(
        CARD,
        device="gpu1",
        name="NVIDIA H200",
        temp_c=80.0,
        critical_c=80.0,
        clock_mhz=500.0,
        throttle_counters=ThrottleCounters(7, 1, None, 2),
        throttle_active=ThrottleActive(sw_thermal=True, hw_thermal=False),
    )
    report = with_cards(box, Survey((CARD, slow), (), "nvidia-smi"))
    before = report.before
    assert (before.gpu_temp_c, before.sm_clock_mhz, before.sm_clock_max_mhz) == (80.0, 500.0, 2000.0)
    assert before.throttle_counters == ThrottleCounters(7, 1, 0, 2)
    assert before.throttle_active == ThrottleActive(None, True, False, None)
    assert (before.machine.gpu, before.persistence_mode, before.perf_class) == (None, True, "unknown@box")
    assert before.sources == ["nvidia-smi", "procfs", "sysfs"]
    assert "RC" in {finding.rule for finding in report.precheck.findings}  # gpu1 is at its critical temperature


def test_one_kind_of_card_is_lacking_and_another_fails(box: Box) -> None:
    none = RecordedProvider([NoData(Absence.NOT_APPLICABLE, "no AMD card")], "amd")
    good = RecordedProvider([Survey((CARD,), (), "nvidia-smi")], "nvidia")
    bad = RecordedProvider([NoData(Absence.READ_ERROR, "driver gone")], "ascend")
    fine = box.run(steps=2, watch=box.watch(providers=(none, good)))
    assert validity(fine) is Validity.VALID
    assert field(fine, "accelerators", "amd").reason == "no AMD card"
    broken = box.run(steps=2, watch=box.watch(providers=(good, bad)))
    assert fact(broken, "accelerator_uncorrected").reason == "driver gone"
    named = box.run(steps=2, watch=box.watch(settings=Settings(devices=("npu3",)), providers=(good, bad)))
    assert fact(named, "accelerator_uncorrected").reason == "driver gone"
    nothing = box.run(steps=2, watch=box.watch(providers=(none,)))
    assert validity(nothing) is Validity.VALID


def test_old_kernels_count_killed_processes_in_their_log(box: Box) -> None:
    def happens(here: Box, step: int) -> None:
        if step == 2:
            here.log("Out of memory: Killed process 500 (xhpl) total-vm:1kB, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB")

    box.corrected = lambda: box.write("/proc/vmstat", "pgfault 1")
    box.corrected()
    report = box.run(happens, steps=5)
    assert fact(report, "oom_kills").value == 1.0
    assert fact(report, "swap_in_pages").state is Absence.NOT_APPLICABLE
    assert field(report, "memory", "pswpin").state is Absence.UNSUPPORTED


def test_a_log_that_wrapped_meanwhile_tells_too_little(box: Box) -> None:
    def happens(here: Box, step: int) -> None:
        if step == 2:
            here.write("/dev/kmsg", "4,0,1000,-;Linux version 6.1.0\n4,900,2000,-;hello")

    report = box.run(happens, steps=5)
    assert validity(report) is Validity.UNKNOWN
    assert fact(report, "mce_uncorrected").reason == "899 records of the kernel log were overwritten before they were read"


def test_no_kernel_log_is_unknown_with_its_reason(box: Box) -> None:
    box.remove("/dev/kmsg")
    report = box.run(steps=2)
    assert (validity(report), report.kernel_events) == (Validity.UNKNOWN, [])
    assert fact(report, "mce_uncorrected").reason == "/dev/kmsg: No such file or directory"
    assert field(report, "machine", "kernel_log").reason == "/dev/kmsg: No such file or directory"


def test_pressure_that_only_one_resource_tells(box: Box) -> None:
    box.corrected = lambda: box.remove("/proc/pressure/memory")
    box.corrected()
    report = box.run(steps=3)
    assert (fact(report, "memory_stall_share").value, fact(report, "io_stall_share").value) == (None, 0.0)
    assert validity(report) is Validity.VALID


def test_silent_sensors_and_counters_are_fields_with_reasons(box: Box) -> None:
    box.temperature(cpu_c=50, zone_c=50)
    box.write("/sys/class/hwmon/hwmon0/temp1_input", "")
    box.write("/sys/class/thermal/thermal_zone0/temp", "")
    box.write("/sys/devices/system/edac/mc/mc0/ce_count", "")
    box.write(f"{CPU}/cpu0/thermal_throttle/core_throttle_count", "")
    box.remove(f"{CPU}/cpu2/thermal_throttle/core_throttle_total_time_ms")
    report = box.run(steps=2)
    assert field(report, "hwmon0 coretemp Package id 0", "temperature").state is Absence.READ_ERROR
    assert field(report, "mc0", "corrected_errors").state is Absence.READ_ERROR
    assert field(report, "cpu0", "throttle_events").state is Absence.READ_ERROR
    assert field(report, "cpu2", "throttle_time").state is Absence.UNSUPPORTED
    assert (report.before.chassis_temps_c, report.before.cpu_temp_c) == (None, None)


def test_boxes_without_processor_sensor_have_no_ceiling_to_declare(box: Box) -> None:
    shutil.rmtree(f"{box.root}/sys/class/hwmon")
    report = box.run(steps=2)
    assert report.precheck.decision is Decision.PROCEED


def test_a_virtual_machine_names_what_it_does_not_have(tmp_path: Path) -> None:
    machine = recorded_machine(write_host("vm-2cpu", str(tmp_path / "vm")))
    watch = HardwareProbe(machine, Settings(roots=(1,), suspended_s=lambda: 0.0))
    report = watch.open(SPEED, Switches())
    watch.abandon()
    lacking = {entry.name for entry in report.before.fields if entry.state is Absence.NOT_APPLICABLE}
    assert {"throttle", "governor", "memory_errors"} <= lacking
    assert report.before.perf_class.startswith("cpu-")


def test_processors_as_ranges() -> None:
    assert [cpu_ranges(numbers) for numbers in ((), (3,), (0, 1, 2, 5, 7, 8))] == ["", "3", "0-2,5,7-8"]
