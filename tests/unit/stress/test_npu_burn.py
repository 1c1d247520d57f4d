"""NPU Burn: its settings, its devices, its container, and what a run of it proves (stress.md 2.4, 3.5, 9.2, 9.3)."""

import os
import signal
import time
from pathlib import Path

import pytest

from nodeproof.clock import SystemClock
from nodeproof.host.commands import HostCommands
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import ManualClock, RecordedCommands, RecordedFiles
from nodeproof.model.hardware import Sensitivity
from nodeproof.model.job import CheckStatus, Correctness, ExecutionProfile, Report, Status
from nodeproof.runs.ports import Switches
from nodeproof.stress.adapters.base import ItemRequest, LaunchError
from nodeproof.stress.adapters.npu_burn import NpuBurnAdapter
from nodeproof.stress.adapters.npu_burn_settings import NpuBurnSettings, check_settings, choose_devices
from nodeproof.stress.job import JobTools
from nodeproof.stress.manager import Manager
from nodeproof.stress.problems import SelectionError
from nodeproof.stress.settings import StressSettings
from support.dcmi import FakeDcmi
from support.hosts_npu import write_npu_a2
from support.npu_burn import IMAGE, BurnHost, burn_settings, container_engine
from support.stress import ENVIRON, make_tools, run_job

_ASKED = ItemRequest("npu_burn")


def adapter(host: BurnHost, environ: dict[str, str]) -> NpuBurnAdapter:
    return NpuBurnAdapter(burn_settings(host.folder), environ, host.machine())


def described(host: BurnHost, **changes: str) -> ExecutionProfile:
    return adapter(host, host.environ(**changes)).describe(_ASKED)


def parameters(profile: ExecutionProfile) -> dict[str, str]:
    return {one.key: one.value for one in profile.parameters}


def manager(host: BurnHost, settings: StressSettings, environ: dict[str, str] | None = None) -> Manager:
    environ = host.environ() if environ is None else environ
    machine = host.machine()
    tools = make_tools(settings)._replace(environment=environ, machine=machine, switches=Switches(), clock=SystemClock())
    return Manager(settings, environ=environ, tools=tools, machine=machine)


def burn(host: BurnHost, environ: dict[str, str] | None = None, *, timeout_s: float = 20.0) -> Report:
    return run_job(manager(host, burn_settings(host.folder, timeout_s=timeout_s), environ), "npu_burn")


# Settings


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("BACKEND", "podman", "neither native nor docker_exec"),
        ("EXECUTABLE", "npu-burn", "no absolute path"),
        ("EXECUTABLE", "", "no absolute path"),
        ("RUN_CASE", "", "neither case nor group is set"),
        ("GROUP", "all_ops", "both NPU_BURN_RUN_CASE and NPU_BURN_GROUP are set"),
        ("RUN_CASE", "matmul; reboot", "no name of a case or group"),
        ("RUN_CASE", "--help", "no name of a case or group"),
        ("CHIP_GENERATION", "A4", "none of A2, A3, A5"),
        ("CHIP_GENERATION", "", "none of A2, A3, A5"),
        ("INTERNAL_TIMEOUT_SECONDS", "0", "no number of seconds"),
        ("INTERNAL_TIMEOUT_SECONDS", "5m", "no number of seconds"),
        ("INTERNAL_TIMEOUT_SECONDS", "-3", "no number of seconds"),
        ("INTERNAL_TIMEOUT_SECONDS", "9" * 400, "no number of seconds"),
        ("DEVICE_ROOT", "dev", "no absolute path"),
        ("OUTPUT_DIR", "output", "no absolute path"),
        ("DEVICE", "", "no device is named"),
    ],
)
def test_a_wrong_setting_fails_by_its_name(tmp_path: Path, name: str, value: str, said: str) -> None:
    host = BurnHost(tmp_path)
    profile = described(host, **{name: value})
    assert profile.preflight.status is CheckStatus.FAIL
    assert said in profile.preflight.message
    assert f"NPU_BURN_{'RUN_CASE' if name == 'GROUP' else name}: " in profile.preflight.message


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CONTAINER_RUNTIME", "docker", "no absolute path"),
        ("CONTAINER_NAME", "-rm", "no name of a container"),
        ("CONTAINER_NAME", "a b", "no name of a container"),
        ("CONTAINER_IMAGE", "", "no image is named"),
    ],
)
def test_a_wrong_setting_of_the_container_fails(tmp_path: Path, name: str, value: str, said: str) -> None:
    found = check_settings(NpuBurnSettings.of(BurnHost(tmp_path).in_container(**{name: value})))
    assert [said in one.message for one in found if one.status is CheckStatus.FAIL] == [True]


def test_versions_that_nobody_told_only_warn(tmp_path: Path) -> None:
    (found,) = check_settings(NpuBurnSettings.of(BurnHost(tmp_path).in_container(SOC_MODEL="", RUNTIME_CANN="")))
    assert found.status is CheckStatus.WARN
    assert found.message.startswith("NPU_BURN_RUNTIME_CANN, NPU_BURN_SOC_MODEL is not set")


@pytest.mark.parametrize(
    ("asked", "available", "chosen", "said"),
    [
        ("all", (0, 1), (0, 1), ""),
        ("1,0", (0, 1), (1, 0), ""),
        ("all", (), (), "there is no device"),
        ("0, 1", (0, 1), (), "no logical id"),
        ("0,", (0, 1), (), "no logical id"),
        ("01", (0, 1), (), "no logical id"),
        ("-1", (0, 1), (), "no logical id"),
        ("1,1", (0, 1), (), "twice"),
        ("2", (0, 1), (), "logical ids here: 0 to 1"),
        ("0", (), (), "logical ids here: none"),
    ],
)
def test_devices_are_chosen_by_logical_id(asked: str, available: tuple[int, ...], chosen: tuple[int, ...], said: str) -> None:
    devices, problem = choose_devices(asked, available)
    assert devices == chosen
    assert said in problem
    assert bool(said) == bool(problem)


# Devices


def test_logical_ids_count_from_zero_where_the_device_nodes_do_not(tmp_path: Path) -> None:
    """9.2: two cards at nodes 2 and 5 are the logical devices 0 and 1."""
    profile = described(BurnHost(tmp_path, nodes=(2, 5)))
    told = parameters(profile)
    assert profile.preflight.status is CheckStatus.WARN  # for its limit of 20 s
    assert (told["devices"], told["device_node_ids"], told["available_devices"]) == ("0,1", "2,5", "0,1")
    assert (told["device_namespace"], told["topology_source"]) == ("npu_burn_logical", "device_nodes")
    assert (told["selector"], told["workload"], told["output_mode"]) == ("run_case", "matmul", "upstream_default")
    assert told["pci_topology_devices"] == "2"
    assert {asset.name: asset.status for asset in profile.assets} == {
        "executable": "pass",
        "output_directory": "pass",
        "logical_devices": "pass",
    }


@pytest.mark.parametrize(
    ("nodes", "on_bus", "said"),
    [
        ((0, 1), 0, "would take it for eight"),
        ((0, 1), 1, "1 accelerators on the bus and 2 device nodes"),
        ((0,), 2, "2 accelerators on the bus and 1 device nodes"),
        ((), 2, "2 accelerators on the bus and 0 device nodes"),
    ],
)
def test_bus_and_device_nodes_must_count_alike(tmp_path: Path, nodes: tuple[int, ...], on_bus: int, said: str) -> None:
    profile = described(BurnHost(tmp_path, nodes=nodes, on_bus=on_bus))
    assert profile.preflight.status is CheckStatus.FAIL
    assert said in profile.preflight.message


def test_without_lspci_nothing_is_burnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = BurnHost(tmp_path, on_bus=None)
    monkeypatch.setattr("support.npu_burn.HostCommands", lambda path: HostCommands(path.split(":")[0]))
    profile = described(host)
    assert "lspci is not installed" in profile.preflight.message


def test_an_lspci_that_fails_is_no_empty_bus(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    host.install("lspci", "#!/bin/sh\necho 'lspci: Cannot open /proc/bus/pci' >&2\nexit 1\n")
    profile = described(host)
    assert "Cannot open /proc/bus/pci" in profile.preflight.message


def test_device_nodes_that_cannot_be_listed_fail(tmp_path: Path) -> None:
    profile = described(BurnHost(tmp_path), DEVICE_ROOT=str(tmp_path / "nowhere"))
    assert profile.preflight.status is CheckStatus.FAIL


def test_a_device_that_is_not_there_cannot_be_asked_for(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    profile = described(host, DEVICE="0,7")
    assert "device 7 is not there" in profile.preflight.message
    with pytest.raises(SelectionError, match="device 7 is not there"):
        manager(host, burn_settings(tmp_path), host.environ(DEVICE="0,7")).start(["npu_burn"])


def test_missing_program_and_results_directory_fail(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    assets = {one.name: one for one in described(host, EXECUTABLE="/nowhere/npu-burn", OUTPUT_DIR="/nowhere").assets}
    assert (assets["executable"].status, assets["output_directory"].status) == (CheckStatus.FAIL, CheckStatus.FAIL)
    assert len(assets["executable"].sha256) == 0
    assert len(described(host).assets[0].sha256) == 64


def test_a_device_lost_between_check_and_start_is_refused(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    made = adapter(host, host.environ())
    assert made.launch(_ASKED).argv[1:3] == ("--device", "0,1")
    (host.dev / "davinci1").unlink()
    with pytest.raises(LaunchError, match="2 accelerators on the bus and 1 device nodes"):
        made.launch(_ASKED)


def test_the_command_line_is_that_of_the_tool(tmp_path: Path) -> None:
    """--output is never given: the tool refuses a directory that exists."""
    host = BurnHost(tmp_path)
    made = adapter(host, host.environ(RUN_CASE="", GROUP="memory", DEVICE="1", INTERNAL_TIMEOUT_SECONDS="60"))
    argv = made.launch(_ASKED).argv
    said = "--device 1 --sdc_detect --timeout 60 --chip_generation A2 --group memory"
    assert argv == (host.program, *said.split())


def test_a_configured_program_goes_before_the_environment(tmp_path: Path) -> None:
    found = NpuBurnSettings.of({"NPU_BURN_EXECUTABLE": "/one", "HOME": "/h"}, "/two")
    assert (found.executable, found.output_dir) == ("/two", "/h/.ascend_npu_burn/output")


def test_the_stamp_follows_the_program(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    made = adapter(host, host.environ())
    before = made.stamp(_ASKED)
    os.utime(host.program, (1, 1))
    assert made.stamp(_ASKED) != before
    assert adapter(host, host.environ(EXECUTABLE="/nowhere/x")).stamp(_ASKED) == ()


def test_a_limit_that_would_cut_a_case_off_warns(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    profile = described(host)
    assert profile.preflight.status is CheckStatus.WARN
    assert "a case may take 300 s and the whole item 20 s" in profile.preflight.message
    assert described(host, INTERNAL_TIMEOUT_SECONDS="10").preflight.message == "1 checks passed"


# Runs


def test_a_clean_burn_is_healthy_with_every_device_in_its_counts(tmp_path: Path) -> None:
    host = BurnHost(tmp_path, nodes=(0, 1, 2, 3), on_bus=4)
    report = burn(host)
    (item,) = report.benchmarks
    assert (report.status, item.status) == (Status.HEALTHY, Status.HEALTHY)
    assert item.values == {"devices": 4, "cases": 4, "passed": 4, "failed": 0, "errors": 0, "case_time_seconds": 56.0}
    assert item.details["requested"] == [0, 1, 2, 3]
    assert item.outcome is not None
    assert item.outcome.correctness is Correctness.VALIDATED


@pytest.mark.parametrize(
    ("habits", "correctness", "said"),
    [
        ({"broken": [1]}, Correctness.FAILED, "1 of 2 cases failed, 1 errors; the console table says FAIL for device 1"),
        ({"console_fails": [0]}, Correctness.FAILED, "the console table says FAIL for device 0"),
        ({"sdc": 1}, Correctness.FAILED, "1 silent data corruption records"),
        ({"dead": [1]}, Correctness.NOT_PROVEN, "device 1 was requested and has no rows: its worker died"),
        ({"dead": [0, 1]}, Correctness.NOT_PROVEN, "npu_burn_results.csv is not there"),
        ({"keeps_old": True}, Correctness.NOT_PROVEN, "npu_burn_results.csv is that of an earlier run"),
        ({"dies_at_once": True}, Correctness.NOT_PROVEN, "source its set_env.sh"),
    ],
)
def test_status_0_is_no_pass(tmp_path: Path, habits: dict[str, object], correctness: Correctness, said: str) -> None:
    """F4, F5: the program ends with status 0 in every one of these."""
    host = BurnHost(tmp_path)
    if habits.get("keeps_old"):
        host.behave()
        assert burn(host).status is Status.HEALTHY
    host.behave(**habits)
    (item,) = burn(host).benchmarks
    assert item.status is Status.UNHEALTHY
    assert item.outcome is not None
    assert item.outcome.correctness is correctness
    assert said in item.outcome.reasons["correctness"]


def test_errors_of_an_earlier_run_that_still_lie_there_accuse_nobody(tmp_path: Path) -> None:
    """A file that this run did not touch; the true program would have removed it."""
    host = BurnHost(tmp_path)
    made = adapter(host, host.environ())
    (host.output / "npu_burn_errors.csv").write_text("task,device_id\nmatmul,0,0,17,1,2\n", encoding="utf-8")
    launch = made.launch(_ASKED)
    rows = "".join(f"matmul,{device},0,100,1,12.5,0,PASS,x\n" for device in (0, 1))
    (host.output / "npu_burn_results.csv").write_text(rows, encoding="utf-8")
    assert made.judge(_ASKED, launch, b"").correctness is Correctness.VALIDATED


def test_the_outer_limit_is_never_time_limit_reached(tmp_path: Path) -> None:
    """9.3 and stress.md 4.10: a burn that was cut off has proved nothing."""
    host = BurnHost(tmp_path)
    host.behave(sleeps_s=60)
    report = burn(host, timeout_s=1.0)
    (item,) = report.benchmarks
    assert (report.status, item.status) == (Status.UNHEALTHY, Status.UNHEALTHY)


def test_the_dispatcher_still_serves_whoever_has_one(tmp_path: Path) -> None:
    """With adapter script nothing of this is asked."""
    settings = burn_settings(tmp_path, adapter="script")
    host = BurnHost(tmp_path)
    answer = manager(host, settings).availability("npu_burn")
    assert "stress.script_path" in answer.message


def test_the_box_is_looked_at_with_its_chips(tmp_path: Path) -> None:
    chips: dict[tuple[int, int], dict[str, object]] = {(0, 0): {"name": "910B3", "logic": 0}}
    write_npu_a2(str(tmp_path / "node"))
    files = RecordedFiles(str(tmp_path / "node"))
    library = FakeDcmi(chips, {(0, 0): {"health": [0, 0], "temperature": [0, 55], "power": [0, 3100]}})
    machine = Machine(files, RecordedCommands({}), ManualClock(), dcmi=library)
    tools = JobTools.here(burn_settings(tmp_path), SystemClock(), ENVIRON, Switches(), machine)
    assert "stream" not in tools.evidence
    probe = tools.evidence["npu_burn"]()
    try:
        report = probe.open(Sensitivity.STABILITY, Switches())
        assert [(device.device, device.temp_c) for device in report.before.devices] == [("npu0", 55.0)]
    finally:
        probe.abandon()
        machine.settle(5.0)


# The container


def test_a_burn_in_the_container_is_judged_as_one_on_the_host(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    with container_engine(host):
        profile = adapter(host, host.in_container()).describe(_ASKED)
        assert profile.preflight.status is CheckStatus.WARN  # for its limit of 20 s
        told = parameters(profile)
        assert (told["image"], told["cann"], told["topology_source"]) == (IMAGE, "8.3", "container_lspci")
        assert (told["devices"], profile.container) == ("0,1", "burner")
        (item,) = burn(host, host.in_container()).benchmarks
    assert item.status is Status.HEALTHY
    assert item.values["devices"] == 2


@pytest.mark.parametrize(
    ("running", "image", "said"), [(False, IMAGE, "does not run"), (True, "other:latest", "runs image other:latest, not")]
)
def test_the_wrong_container_is_never_replaced_by_the_host(tmp_path: Path, *, running: bool, image: str, said: str) -> None:
    host = BurnHost(tmp_path)
    with container_engine(host, running=running, image=image):
        profile = adapter(host, host.in_container()).describe(_ASKED)
        assert profile.preflight.status is CheckStatus.FAIL
        assert said in profile.preflight.message
        assert parameters(profile)["devices"] == "all"
        with pytest.raises(LaunchError, match=said):
            adapter(host, host.in_container()).launch(_ASKED)


def test_an_engine_that_is_not_there_fails(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    profile = adapter(host, host.in_container()).describe(_ASKED)
    assets = {one.name: one.status for one in profile.assets}
    assert (assets["container_runtime"], assets["container"]) == (CheckStatus.FAIL, CheckStatus.FAIL)


def test_cancelling_ends_the_program_inside(tmp_path: Path) -> None:
    """It is no child of ours: with the client gone, its input ends, and then it."""
    host = BurnHost(tmp_path)
    host.behave(sleeps_s=120)
    with container_engine(host):
        made = manager(host, burn_settings(tmp_path), host.in_container())
        report = made.start(["npu_burn"])
        pid = _started(host)
        assert pid != 0
        made.cancel(report.job_id)
        ended = made.wait(report.job_id, 15.0)
        assert ended is not None
        assert ended.status is not Status.HEALTHY
        _gone(pid)


def test_killing_the_client_ends_the_program_inside(tmp_path: Path) -> None:
    host = BurnHost(tmp_path)
    host.behave(sleeps_s=120)
    with container_engine(host):
        made = manager(host, burn_settings(tmp_path), host.in_container())
        report = made.start(["npu_burn"])
        pid = _started(host)
        os.kill(_client(host), signal.SIGKILL)
        assert made.wait(report.job_id, 15.0) is not None
        _gone(pid)


def _started(host: BurnHost) -> int:
    ends = time.monotonic() + 10.0
    while time.monotonic() < ends:
        if host.pid_file.exists() and host.pid_file.read_text():
            return int(host.pid_file.read_text())
        time.sleep(0.02)
    return 0


def _client(host: BurnHost) -> int:
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(host.bin / "docker").encode() in words[:2]:
                return int(name)
    raise AssertionError("the client does not run")


def _gone(pid: int) -> None:
    ends = time.monotonic() + 10.0
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < ends, "the program inside still runs"
        time.sleep(0.05)
