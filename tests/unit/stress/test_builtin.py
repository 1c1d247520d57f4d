"""The adapter of the built-in workloads: what it says before it starts anything."""

import sys
from pathlib import Path

import msgspec
import pytest

from nodeproof.config.resolve import defaults
from nodeproof.errors import Absence, NoData
from nodeproof.host.machine import Machine
from nodeproof.host.recorded import recorded_machine
from nodeproof.model.job import CheckStatus
from nodeproof.stress.adapters import builtin
from nodeproof.stress.adapters.base import DescribeError, ItemRequest
from nodeproof.stress.adapters.builtin import BuiltinAdapter
from nodeproof.stress.facts import free_bytes, look_at_box
from nodeproof.stress.manager import Manager
from nodeproof.stress.profile import SIZE_NOW, identity_hash
from nodeproof.stress.settings import BUILT_IN, StressSettings, native_programs
from nodeproof.stress.sizing import Plan
from nodeproof.stress.views import doctor_view
from support.gpu import write_gpu
from support.stress import ENVIRON


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_workload_is_described_with_the_hashes_of_its_sources(name: str) -> None:
    profile = BuiltinAdapter(Machine.here(), "/tmp").describe(ItemRequest(name, Plan.QUICK))  # noqa: S108 - only its room is asked
    assert profile.benchmark == name
    assert profile.mpi.required is False
    hashed = {asset.name: asset.sha256 for asset in profile.assets if asset.sha256}
    assert f"source_{name}" in hashed
    assert all(len(digest) == 64 for digest in hashed.values())
    assert profile.resources.total_workers == look_at_box(Machine.here()).allowed_cpus
    assert (profile.preflight.status is CheckStatus.UNSUPPORTED) is (name == "gpu_burn"), "this machine has no GPU"


@pytest.mark.parametrize(("vendor", "there"), [("0x10de", True), ("0x1002", True), ("0x1a03", False)])
def test_gpu_burn_needs_an_accelerator_on_the_bus_and_torch(
    tmp_path: Path, vendor: str, *, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_gpu(str(tmp_path), "0000:17:00.0", vendor=vendor)
    here = look_at_box(Machine.here())
    monkeypatch.setattr(builtin, "look_at_box", lambda _: here)
    profile = BuiltinAdapter(recorded_machine(str(tmp_path))).describe(ItemRequest("gpu_burn", Plan.QUICK))
    assert ("there is no accelerator on the PCI bus" in profile.preflight.message) is not there
    torch = next(asset for asset in profile.assets if asset.name == "torch")
    assert torch.status is CheckStatus.PASS or torch.message == "not installed"
    if there and torch.status is CheckStatus.FAIL:
        assert profile.preflight.message.count("nodeproof[gpu]") == 1
    assert {"source_gpu_burn", "source_burn_torch", "source_burn_device"} <= {asset.name for asset in profile.assets}


def _manager(tmp_path: Path, *, configured: bool) -> Manager:
    settings = StressSettings.of(defaults({"HOME": str(tmp_path)}), {"HOME": str(tmp_path)})
    machine = recorded_machine(str(tmp_path / "root"))
    return Manager(msgspec.structs.replace(settings, configured=configured), machine=machine)


def test_a_machine_without_gpus_is_sound_unless_somebody_switched_gpu_burn_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = look_at_box(Machine.here())
    monkeypatch.setattr(builtin, "look_at_box", lambda _: here)
    why = "there is no accelerator on the PCI bus (run it on a machine with GPUs)"
    by_default = doctor_view(_manager(tmp_path, configured=False))
    told = {item.name: item for item in by_default.benchmarks}
    assert by_default.status is CheckStatus.PASS
    assert (told["gpu_burn"].status, told["gpu_burn"].available, told["gpu_burn"].message) == (
        CheckStatus.UNSUPPORTED,
        False,
        why,
    )
    asked_for = doctor_view(_manager(tmp_path, configured=True))
    told = {item.name: item for item in asked_for.benchmarks}
    assert asked_for.status is CheckStatus.FAIL, "a card that fell off the bus must not look like none"
    assert (told["gpu_burn"].status, told["gpu_burn"].message) == (CheckStatus.FAIL, why)


def test_a_remedy_is_said_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = look_at_box(Machine.here())
    monkeypatch.setattr(builtin, "look_at_box", lambda _: here)
    monkeypatch.setattr(builtin, "_GPU_LIBRARIES", ("torch_of_nobody",))
    write_gpu(str(tmp_path / "root"), "0000:17:00.0")
    answer = _manager(tmp_path, configured=False).availability("gpu_burn")
    assert answer.status is CheckStatus.FAIL
    assert answer.message.count("torch_of_nobody (torch_of_nobody): not installed") == 1
    assert answer.message.count("pip install 'nodeproof[gpu]'") == 1


def test_gpu_burn_on_a_bus_that_cannot_be_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = look_at_box(Machine.here())
    monkeypatch.setattr(builtin, "look_at_box", lambda _: here)
    (tmp_path / "sys/bus/pci").mkdir(parents=True)
    (tmp_path / "sys/bus/pci/devices").symlink_to("devices")
    profile = BuiltinAdapter(recorded_machine(str(tmp_path))).describe(ItemRequest("gpu_burn", Plan.QUICK))
    assert "there is no accelerator" not in profile.preflight.message


def test_the_command_line_holds_the_sizes_that_were_described() -> None:
    adapter = BuiltinAdapter(Machine.here())
    request = ItemRequest("stream", Plan.STANDARD, 7)
    profile, launch = adapter.describe(request), adapter.launch(request)
    assert launch.argv[:4] == (sys.executable, "-P", "-m", "nodeproof.stress.workloads.stream")
    assert launch.argv[4:] == ("--plan", "standard", "--seconds", "7", "--elements", profile.resources.problem_size)
    assert launch.watch.heartbeats
    assert {"python", "numpy", "source_triad"} <= {entry.name for entry in launch.provenance}
    assert "target_runtime" in {parameter.key for parameter in profile.parameters}


def test_a_standard_run_of_hpl_tells_its_order_and_whether_it_can_end_in_time() -> None:
    adapter = BuiltinAdapter(Machine.here())
    profile = adapter.describe(ItemRequest("hpl", Plan.STANDARD, limit_s=1.0))
    order = int(next(one.value for one in profile.parameters if one.key == SIZE_NOW))
    assert 0.6 < 8 * order**2 / look_at_box(Machine.here()).usable_bytes < 0.8
    assert "the limit is 1 s: it will be stopped without a result" in profile.preflight.message
    other = msgspec.structs.replace(profile, parameters=[one for one in profile.parameters if one.key != SIZE_NOW])
    assert identity_hash(profile) == identity_hash(other), "free memory moves all the time"
    assert SIZE_NOW not in {one.key for one in adapter.describe(ItemRequest("hpl", Plan.QUICK)).parameters}


def test_another_version_of_a_library_is_another_identity() -> None:
    profile = BuiltinAdapter(Machine.here()).describe(ItemRequest("hpl"))
    assets = [msgspec.structs.replace(one, message="0.0") if one.name == "scipy" else one for one in profile.assets]
    assert identity_hash(profile) != identity_hash(msgspec.structs.replace(profile, assets=assets))


def test_what_is_not_installed_fails_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtin, "_LIBRARIES", ("numpy", "nothing_of_this_name"))
    profile = BuiltinAdapter(Machine.here()).describe(ItemRequest("stream"))
    assert profile.preflight.status is CheckStatus.FAIL
    assert "pip install 'nodeproof[stress]'" in profile.preflight.message
    assert BuiltinAdapter(Machine.here()).describe(ItemRequest("npu_burn")).preflight.status is CheckStatus.FAIL


def test_without_a_word_about_memory_there_is_no_description(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: Machine) -> None:
        raise NoData(Absence.READ_ERROR, "it cannot be read")

    monkeypatch.setattr(builtin, "look_at_box", unknown)
    with pytest.raises(DescribeError, match="memory of this box"):
        BuiltinAdapter(Machine.here()).describe(ItemRequest("stream"))
    assert "--elements" not in BuiltinAdapter(Machine.here()).launch(ItemRequest("stream")).argv


def test_without_a_section_the_built_in_workloads_are_on() -> None:
    environ = {**ENVIRON, "XDG_STATE_HOME": "/var/lib/x"}
    settings = StressSettings.of(defaults(environ), environ)
    assert settings.enabled
    assert settings.default_benchmarks == ("stream",)
    assert settings.report_path == "/var/lib/x/nodeproof/stress/stress-latest.json"
    assert {name for name, item in settings.benchmarks.items() if item.enabled} == set(BUILT_IN)
    assert settings.benchmarks["hpl"].timeout_s == 3600


def test_native_programs_are_named_by_the_variables_of_the_dispatcher() -> None:
    environ = {
        "HPCG_EXECUTABLE": "/opt/xhpcg", "HPCG_MPI_LAUNCHER": "/opt/mpirun", "HPCG_MPI_PROCESSES": "4",
        "HPCG_THREADS_PER_PROCESS": "2", "HPCG_NX": "32", "HPCG_NY": "x", "HPCG_RUNTIME_SECONDS": "60",
        "STREAM_THREADS": "8",
    }  # fmt: skip
    found = native_programs("hpcg", environ)
    assert (found.executable, found.launcher, found.processes, found.threads) == ("/opt/xhpcg", "/opt/mpirun", 4, 2)
    assert (found.grid, found.runtime_s) == ((32, 0, 0), 60)
    assert native_programs("stream", environ).threads == 8


def test_room_is_that_of_the_nearest_folder_that_exists() -> None:
    room = free_bytes("/nonexistent/deep/below")
    assert room is not None
    assert room >= 0
