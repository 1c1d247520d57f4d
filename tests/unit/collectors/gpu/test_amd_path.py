"""Component gpu on machines with AMD cards."""

from pathlib import Path

from nodeproof.errors import Absence, CommandError, CommandFailure
from support.gpu import nvidia_smi_answers, smi_output, smi_table, smi_uuid, write_gpu
from support.gpu_host import GpuHost, value
from support.hosts_gpu import AMD_8, ROCM_LINE, write_amd, write_amd_8
from support.network import missing_of, readings
from support.tree import write

_METRIC = smi_output("../amd-smi/mi300x-metric.json")
_STATIC = smi_output("../amd-smi/mi300x-static.json")
_PROCESS = smi_output("../amd-smi/mi300x-process.json")
_ANSWERS = {"amd-smi static --json": _STATIC, "amd-smi metric --json": _METRIC, "amd-smi process --json": _PROCESS}


def test_the_drivers_files_are_enough_for_most(tmp_path: Path) -> None:
    write_amd_8(str(tmp_path))
    batch = GpuHost(tmp_path).collect()
    assert readings(batch, "cards") == {("amd", "expected"): 8, ("amd", "answering"): 8}
    assert readings(batch, "temperature") == {("0",): 41, ("1",): 42, ("2",): 93, ("3",): 44, ("4",): 45, ("5",): 46, ("7",): 48}
    (torn,) = missing_of(batch, "temperature")
    assert (torn.labels, torn.state) == ({"gpu_id": "6"}, Absence.UNKNOWN)
    assert value(batch, "memory_usage", "3") == 3
    assert value(batch, "power_draw", "5") == 145
    assert value(batch, "power_limit", "0") == 750
    assert value(batch, "clock_max_frequency", "0", "graphics") == 2100
    assert value(batch, "temperature_limit", "0", "slowdown") == 100
    assert readings(batch, "ecc_errors") == {(str(n),): float(n == 4) for n in range(8)}
    assert value(batch, "ecc_volatile_errors", "4", "corrected", "umc") == 12
    assert value(batch, "ecc_volatile_errors", "4", "corrected", "total") == 12
    assert value(batch, "pcie_width_max", "0") == 16
    assert value(batch, "memory_detail", "0", "shared_used") == 17
    assert [entry.state for entry in missing_of(batch, "fan_speed")] == [Absence.NOT_APPLICABLE]
    assert value(batch, "partition_info", "0", "SPX", "NPS1") == 1
    for name in ("mig_mode", "persistence_mode", "fabric_state", "performance_state"):
        assert {entry.state for entry in missing_of(batch, name)} == {Absence.NOT_APPLICABLE}, name


def test_amd_smi_fills_in_what_the_files_do_not_tell(tmp_path: Path) -> None:
    write_amd(str(tmp_path), "0000:05:00.0", 0)
    write_amd(str(tmp_path), "0000:26:00.0", 1)
    host = GpuHost(tmp_path, _ANSWERS)
    batch = host.collect()
    assert value(batch, "temperature", "0") == 41, "the file's, which is read now"
    assert value(batch, "energy", "0") == 987654.321
    assert value(batch, "throttle_reason", "0", "sw_power_cap") == 1
    assert readings(batch, "processes") == {("0",): 1, ("1",): 1}
    host.collect()
    assert host.commands.asked == ["amd-smi static --json", "amd-smi metric --json", "amd-smi process --json"]


def test_without_the_drivers_files_amd_smi_tells_all(tmp_path: Path) -> None:
    for address in ("0000:05:00.0", "0000:26:00.0"):
        write_gpu(str(tmp_path), address, vendor="0x1002", device_class="0x120000")
    batch = GpuHost(tmp_path, _ANSWERS).collect()
    assert readings(batch, "temperature") == {("0",): 71}
    assert readings(batch, "power_draw") == {("0",): 542, ("1",): 90}


def test_rocm_smi_is_asked_where_there_is_no_amd_smi(tmp_path: Path) -> None:
    for address in ("0000:83:00.0", "0000:a3:00.0"):
        write_gpu(str(tmp_path), address, vendor="0x1002", device_class="0x120000", link=None)
    batch = GpuHost(tmp_path, {ROCM_LINE: smi_output("../amd-smi/mi100-rocm602.json")}).collect()
    assert readings(batch, "temperature") == {("0",): 55, ("1",): 58}
    assert readings(batch, "processes") == {}


def test_tools_that_fail_say_why(tmp_path: Path) -> None:
    write_gpu(str(tmp_path), "0000:05:00.0", vendor="0x1002", device_class="0x120000")
    cases: dict[str, dict[str, bytes | CommandError]] = {
        "amd-smi static: WARNING: No JSON data to report": {"amd-smi static --json": b"WARNING: No JSON data to report\n"},
        "amd-smi metric: no card in its answer": {"amd-smi static --json": _STATIC, "amd-smi metric --json": b""},
        "rocm-smi: broken": {ROCM_LINE: b"broken\n"},
        "amd-smi: hangs": {"amd-smi static --json": CommandError("amd-smi", CommandFailure.TIMED_OUT, "hangs")},
        "amd-smi: killed": {
            "amd-smi static --json": _STATIC,
            "amd-smi metric --json": CommandError("amd-smi", CommandFailure.STUCK, "killed"),
        },
        "rocm-smi is not installed": {},
    }
    for reason, answers in cases.items():
        host = GpuHost(tmp_path, answers)
        (absence,) = missing_of(host.collect(), "temperature")
        assert (absence.state, reason in absence.reason or "amdgpu" in absence.reason) == (Absence.UNKNOWN, True), reason
        assert readings(host.collect(), "driver_up") == {("amd",): 0}


def test_processes_that_amd_smi_does_not_list_are_unknown(tmp_path: Path) -> None:
    write_amd(str(tmp_path), "0000:05:00.0", 0)
    answers = {name: answer for name, answer in _ANSWERS.items() if "process" not in name}
    for more in ({}, {"amd-smi process --json": b"nothing\n"}):
        assert readings(GpuHost(tmp_path, {**answers, **more}).collect(), "processes") == {}


def test_a_card_whose_files_are_gone_is_lost_while_others_answer(tmp_path: Path) -> None:
    for number, address in enumerate(AMD_8[:3]):
        write_amd(str(tmp_path), address, number)
    host = GpuHost(tmp_path)
    host.collect()
    (tmp_path / f"sys/bus/pci/devices/{AMD_8[1]}/mem_info_vram_total").unlink()
    assert readings(host.collect(), "card_state") == {("0",): 0, ("1",): 3, ("2",): 0}


def test_odd_files_cost_themselves_only(tmp_path: Path) -> None:
    root = str(tmp_path)
    write_amd(root, AMD_8[0], 0, gpu_busy_percent="junk", pp_dpm_sclk="", hwmon_pwm1=51, hwmon_temp2_label="edge")
    write(root, f"/sys/bus/pci/devices/{AMD_8[0]}/ras/odd", "")
    (tmp_path / f"sys/bus/pci/devices/{AMD_8[0]}/ras/sdma_err_count").mkdir()
    write_amd(root, AMD_8[1], 1)
    for name in ("ras", "hwmon"):
        (tmp_path / f"sys/bus/pci/devices/{AMD_8[1]}/{name}").rename(tmp_path / name)
    batch = GpuHost(tmp_path).collect()
    assert value(batch, "fan_speed", "0") == 20  # 51 of 255
    assert value(batch, "temperature", "0") == 41
    assert [entry.labels for entry in missing_of(batch, "utilization")] == [{"gpu_id": "0"}]
    assert readings(batch, "clock_max_frequency") == {("0", "memory"): 1300, ("1", "graphics"): 2100, ("1", "memory"): 1300}
    assert [entry.labels for entry in missing_of(batch, "temperature")] == [{"gpu_id": "1"}]
    assert [entry.labels for entry in missing_of(batch, "ecc_errors")] == [
        {"gpu_id": "0"},
        {"gpu_id": "1"},
    ]  # a block of 0 is no file


def test_beside_nvidia_cards_amd_ones_bear_their_vendors_name(tmp_path: Path) -> None:
    write_gpu(str(tmp_path), "0000:17:00.0", driver="nvidia")
    write_amd(str(tmp_path), AMD_8[0], 0)
    table = smi_table([{"index": "0", "pci.bus_id": "00000000:17:00.0", "uuid": smi_uuid(0)}])
    batch = GpuHost(tmp_path, nvidia_smi_answers(table)).collect()
    assert readings(batch, "temperature") == {("0",): 59, ("amd0",): 41}
    assert readings(batch, "driver_up") == {("nvidia",): 1, ("amd",): 1}
