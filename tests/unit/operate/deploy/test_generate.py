"""What is generated: complete or not at all, and every line of it."""

import json
import os
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from nodeproof.cli.main import main
from nodeproof.config.loader import load_text
from nodeproof.errors import WriteError
from nodeproof.host import exchange as exchanging
from nodeproof.operate.deploy import compose, generate
from nodeproof.operate.deploy.inputs import CpuInputs, Images, Inputs
from nodeproof.operate.deploy.manifest import NAME, changed_inputs, load
from nodeproof.operate.deploy.problems import DeployError
from nodeproof.operate.deploy.services import Service
from support.deploy import ENVIRON, Yard

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def yard(tmp_path: Path) -> Yard:
    return Yard(tmp_path)


def settings_of(script: str) -> dict[str, str]:
    """The variables as bash has them after the part above the line."""
    head = script.partition("# ----")[0]
    shown = subprocess.run(["/bin/bash", "-c", f"{head}\nenv -0"], capture_output=True, text=True, check=True, env={})
    return dict(line.split("=", 1) for line in shown.stdout.split("\0") if "=" in line)


def test_on_the_host_there_are_adapter_configuration_and_manifest(yard: Yard) -> None:
    made = yard.generate(yard.host(numactl="/usr/bin/numactl"))
    files = yard.files()
    assert sorted(files) == ["benchmark_check.sh", "nodeproof.yaml", NAME]
    assert {name: stat.S_IMODE((yard.place / name).stat().st_mode) for name in files} == {
        "benchmark_check.sh": 0o750,
        "nodeproof.yaml": 0o640,
        NAME: 0o640,
    }
    runtime = f"{yard.folder}/plugin/runtime"
    told = settings_of(files["benchmark_check.sh"])
    assert {name: value for name, value in told.items() if name.startswith(("STREAM", "HPL", "HPCG", "CPU"))} == {
        "CPU_EXECUTION_BACKEND": "local",
        "CPU_EXECUTION_PROFILE": "host_local",
        "STREAM_EXECUTABLE": f"{runtime}/stream/stream_omp",
        "STREAM_NUMACTL": "/usr/bin/numactl",
        "STREAM_THREADS": "0",
        "HPL_EXECUTABLE": f"{runtime}/hpl/xhpl",
        "HPL_WORKDIR": f"{runtime}/hpl",
        "HPL_MPI_LAUNCHER": "/usr/bin/mpirun",
        "HPL_MPI_PROCESSES": "2",
        "HPL_THREADS_PER_PROCESS": "2",
        "HPL_LIBRARY_DIR": "",
        "HPCG_EXECUTABLE": f"{runtime}/hpcg/xhpcg",
        "HPCG_WORKDIR": f"{yard.folder}/state/stress/work/hpcg",
        "HPCG_MPI_LAUNCHER": "/usr/bin/mpirun",
        "HPCG_MPI_PROCESSES": "4",
        "HPCG_THREADS_PER_PROCESS": "1",
        "HPCG_NX": "32",
        "HPCG_NY": "32",
        "HPCG_NZ": "32",
        "HPCG_RUNTIME_SECONDS": "60",
    }
    config = load_text("nodeproof.yaml", files["nodeproof.yaml"].encode(), ENVIRON)
    assert config.stress is not None
    assert (config.stress.enabled, config.stress.web_enabled) == (True, False)
    assert config.stress.script_path == f"{yard.folder}/plugin/benchmark_check.sh"
    assert config.stress.report_path == f"{yard.folder}/state/stress/stress-latest.json"
    assert config.stress.benchmarks["hpcg"].result_dir == f"{yard.folder}/state/stress/work/hpcg"
    assert made.manifest.items == ["stream", "hpl", "hpcg"]
    assert load(str(yard.place)).manifest == made.manifest
    assert (made.manifest.profile, made.manifest.schema_version) == ("host", 1)


def test_only_what_was_built_is_deployed(yard: Yard) -> None:
    made = yard.generate(yard.inputs(cpu=CpuInputs(manifest=yard.assets("stream"))))
    assert made.manifest.items == ["stream"]
    assert "HPL_" not in yard.files()["benchmark_check.sh"]
    assert list(yaml.safe_load(yard.files()["nodeproof.yaml"])["stress"]["benchmarks"]) == ["stream"]


def test_without_stress_nothing_of_it_is_mounted(yard: Yard) -> None:
    made = yard.generate(yard.monitoring())
    assert sorted(yard.files()) == ["compose.yaml", "nodeproof.yaml", NAME]
    assert made.manifest.profile == "monitoring"
    services = compose.read("compose.yaml", yard.files()["compose.yaml"].encode())
    assert [service.name for service in services] == ["daemon", "web"]
    sources = {volume.source for service in services for volume in service.volumes}
    assert sources == {
        "/",
        f"{yard.place}/nodeproof.yaml",
        f"{yard.folder}/state/daemon",
        f"{yard.folder}/state/web",
        f"{yard.folder}/run/snapshot",
    }
    assert all(dict(service.environment)["NODEPROOF_RUNNER_SOCKET"] == "none" for service in services)
    config = load_text("nodeproof.yaml", yard.files()["nodeproof.yaml"].encode(), ENVIRON)
    assert config.stress is not None
    assert not config.stress.enabled


@pytest.mark.parametrize("kind", ["monitoring", "cpu_stress", "full"])
def test_every_container_is_closed_but_for_what_it_needs(yard: Yard, kind: str) -> None:
    yard.generate(getattr(yard, kind)())
    files = yard.files()
    found = compose.read("compose.yaml", files["compose.yaml"].encode())
    if kind != "monitoring":
        found = compose.merge(found, compose.read("compose.stress.yaml", files["compose.stress.yaml"].encode()))
    socket = "/var/run/docker.sock"
    for service in found:
        assert service.read_only, service.name
        assert service.cap_drop == ("ALL",), service.name
        assert service.cap_add == (), service.name
        assert service.security == ("no-new-privileges",), service.name
        assert service.scratch == ("/tmp:size=64m,mode=1777,noexec,nosuid,nodev",), service.name  # noqa: S108 - in the container
        assert service.pids, service.name
        mounts = {volume.source for volume in service.volumes}
        assert (socket in mounts) == (service.name == "stress-owner"), service.name
        assert ("/" in mounts) == (service.name == "daemon"), service.name
        writable = {volume.source.removeprefix(f"{yard.folder}/") for volume in service.volumes if not volume.read_only}
        assert (
            writable
            == {
                "daemon": {"state/daemon", "run/snapshot"},
                "web": {"state/web"},
                "runner": {"state/runner", "run/runner"},
                "stress-owner": {"state/owner", "run/owner"},
            }[service.name]
        )
    users = {service.name: service.user for service in found}
    networks = {service.name: service.network for service in found}
    expected = {"daemon": "65530:65530", "web": "65531:65530", "runner": "65532:65532", "stress-owner": "0:65532"}
    assert users == {name: expected[name] for name in users}
    assert networks == {name: "host" if name in {"daemon", "web"} else "none" for name in networks}
    assert len(found) == {"monitoring": 2, "cpu_stress": 3, "full": 4}[kind]
    assert "privileged" not in "".join(files.values())


def test_the_runner_computes_with_programs_of_its_image(yard: Yard) -> None:
    yard.generate(yard.cpu_stress(cpu=CpuInputs(numactl="/usr/bin/numactl", hpcg_nx=64, hpcg_runtime_s=1800)))
    files = yard.files()
    assert "benchmark_check.sh" not in files
    config = load_text("nodeproof-runner.yaml", files["nodeproof-runner.yaml"].encode(), ENVIRON)
    assert config.stress is not None
    native = config.stress.benchmarks["hpcg"].native
    assert (native.executable, native.grid, native.runtime_s) == (
        "/opt/nodeproof-stress/runtime/hpcg/xhpcg",
        (64, 32, 32),
        1800.0,
    )
    assert native.workdir == ""
    assert config.stress.benchmarks["hpcg"].timeout_s == 4200.0
    assert config.stress.benchmarks["hpl"].native.workdir == ""
    (runner,) = [one for one in compose.read("x", files["compose.stress.yaml"].encode()) if one.name == "runner"]
    assert runner.cap_add == ("SYS_NICE",)
    assert (runner.shm, runner.pids, dict(runner.limits)["nofile"]) == ("2g", 4096, 16384)
    assert runner.health is not None
    assert runner.health.command.endswith("nodeproof runner health --socket /run/nodeproof-runner/runner.sock")


def test_an_hpl_dat_in_the_image_is_the_one_that_runs(yard: Yard) -> None:
    manifest = yard.image("site/cpu:1", hpl_processes=[8, 4])
    images = Images(control="site/control:1", runner="site/cpu:1", runner_manifest=manifest)
    made = yard.generate(yard.inputs(backend="unix", images=images))
    config = load_text("nodeproof-runner.yaml", yard.files()["nodeproof-runner.yaml"].encode(), ENVIRON)
    assert config.stress is not None
    assert config.stress.benchmarks["hpl"].native.workdir == "/opt/nodeproof-stress/runtime/hpl"
    assert made.manifest.sizes["hpl_processes"] == 8


def test_one_owner_of_jobs_where_npu_burn_is_among_them(yard: Yard) -> None:
    made = yard.generate(yard.full(enable_web=True))
    files = yard.files()
    assert made.manifest.profile == "ascend"
    config = load_text("nodeproof-owner.yaml", files["nodeproof-owner.yaml"].encode(), ENVIRON)
    assert config.stress is not None
    assert (config.stress.web_enabled, sorted(config.stress.benchmarks)) == (True, ["hpcg", "hpl", "npu_burn", "stream"])
    runner = load_text("nodeproof-runner.yaml", files["nodeproof-runner.yaml"].encode(), ENVIRON)
    assert runner.stress is not None
    shared = "/var/lib/nodeproof-runner/work/hpcg"
    assert (config.stress.benchmarks["hpcg"].result_dir, runner.stress.benchmarks["hpcg"].native.workdir) == (shared, shared)
    told = settings_of(files["benchmark_check.sh"])
    assert told["CPU_EXECUTION_BACKEND"] == "unix"
    assert told["CPU_RUNNER_SOCKET"] == "/run/nodeproof-runner/runner.sock"
    assert (told["NPU_BURN_BACKEND"], told["NPU_BURN_DEVICE"], told["NPU_BURN_RUN_CASE"]) == ("docker_exec", "0,1", "matmul")
    assert "STREAM_EXECUTABLE" not in told
    overlay = {service.name: service for service in compose.read("x", files["compose.stress.yaml"].encode())}
    assert overlay["daemon"].devices == (
        "/dev/davinci2",
        "/dev/davinci5",
        "/dev/davinci_manager",
        "/dev/devmm_svm",
        "/dev/hisi_hdc",
    )
    assert all(volume.read_only and volume.source == volume.target for volume in overlay["daemon"].volumes)
    assert not any("lspci" in volume.source for volume in overlay["daemon"].volumes)
    assert dict(overlay["web"].environment) == {"NODEPROOF_RUNNER_SOCKET": "/run/nodeproof-owner/runner.sock"}


def test_another_device_changes_the_adapter_and_no_container(yard: Yard) -> None:
    yard.generate(yard.full())
    before = yard.files()
    yard.generate(msgspec.structs.replace(yard.full(), npu=yard.npu(device="1"), force=True))
    after = yard.files()
    changed = {name for name in before if before[name] != after[name]} - {NAME}
    assert changed == {"benchmark_check.sh"}


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({}, "nothing to generate"),
            ({"backend": "docker"}, "--cpu-backend 'docker': expected local or unix"),
            ({"images": Images(control="x"), "backend": "unix"}, "--cpu-backend unix takes"),
            ({"images": Images(runner="x")}, "goes with --cpu-backend unix"),
            ({"images": Images(control="Not An Image")}, "--control-image 'Not An Image'"),
            ({"images": Images(control="x"), "web_address": "0.0.0.0:9527"}, "--web-address '0.0.0.0:9527'"),
            ({"images": Images(control="x"), "web_address": "127.0.0.1:70000"}, "--web-address '127.0.0.1:70000'"),
            ({"images": Images(control="x"), "exporter_address": ":19320"}, "--exporter-address ':19320'"),
            ({"images": Images(control="x"), "state_dir": "relative"}, "--state-dir 'relative'"),
            ({"images": Images(control="x"), "state_dir": "/"}, "--state-dir '/': expected a place of its own"),
            ({"images": Images(control="x"), "state_dir": "/a b"}, "--state-dir '/a b'"),
            ({"images": Images(control="x"), "state_dir": "/a/../b"}, "--state-dir '/a/../b'"),
            ({"images": Images(control="x"), "run_dir": "/a:b"}, "--run-dir '/a:b'"),
        ],
    )
    def test_of_the_whole(self, yard: Yard, changes: dict[str, object], message: str) -> None:
        with pytest.raises(DeployError, match=message):
            yard.generate(yard.inputs(**changes))
        assert not yard.place.exists()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"hpl_processes": 0}, "--hpl-processes 0: expected a whole number from 1"),
            ({"hpl_processes": 3}, "--hpl-processes 3: HPL.dat has grids of 2 processes"),
            ({"hpcg_threads": -1}, "--hpcg-threads -1"),
            ({"hpcg_nx": 20}, "--hpcg-nx 20: expected a multiple of 8"),
            ({"hpcg_nz": 8}, "--hpcg-nz 8"),
            ({"hpcg_runtime_s": 0}, "--hpcg-runtime 0"),
            ({"stream_threads": -2}, "--stream-threads -2"),
            ({"mpi_launcher": "mpirun"}, "--mpi-launcher 'mpirun': expected an absolute path"),
            ({"numactl": "$(reboot)"}, "--numactl"),
        ],
    )
    def test_of_cpu_items(self, yard: Yard, changes: dict[str, object], message: str) -> None:
        with pytest.raises(DeployError, match=message):
            yard.generate(yard.host(**changes))
        assert not yard.place.exists()

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"device": "0,0"}, "--npu-device: device 0 stands twice"),
            ({"device": "0, 1"}, "--npu-device: ' 1'"),
            ({"device": "-1"}, "--npu-device: '-1'"),
            ({"device": "zero"}, "--npu-device: 'zero'"),
            ({"device": ""}, "NPU Burn also takes --npu-device"),
            ({"image": ""}, "NPU Burn also takes --npu-image"),
            ({"group": "all"}, "exactly one of --npu-run-case and --npu-group"),
            ({"run_case": ""}, "exactly one of --npu-run-case and --npu-group"),
            ({"run_case": "a;b"}, "--npu-run-case 'a;b'"),
            ({"generation": "A4"}, "--npu-chip-generation 'A4': expected one of A2, A3, A5"),
            ({"container": "-rm"}, "--npu-container '-rm'"),
            ({"internal_timeout_s": 0}, "--npu-internal-timeout 0"),
            ({"output_dir": "out"}, "--npu-output-dir 'out'"),
        ],
    )
    def test_of_npu_burn(self, yard: Yard, changes: dict[str, object], message: str) -> None:
        with pytest.raises(DeployError, match=message):
            yard.generate(yard.inputs(npu=yard.npu(**changes)))
        assert not yard.place.exists()

    def test_everything_that_is_wrong_is_said_at_once(self, yard: Yard) -> None:
        with pytest.raises(DeployError) as raised:
            yard.generate(yard.inputs(cpu=CpuInputs(manifest="/none", hpl_processes=0, hpcg_nx=1), web_address=""))
        assert len(str(raised.value).splitlines()) == 4

    def test_manifests_that_are_missing_damaged_or_of_another_image(self, yard: Yard) -> None:
        with pytest.raises(DeployError, match="/none: there is no such manifest"):
            yard.generate(yard.inputs(cpu=CpuInputs(manifest="/none")))
        damaged = yard.folder / "m.json"
        for text in ("{", '{"schema_version": 0, "kind": "", "generated_at": "", "image": "site/cpu:1", "image_id": ""}'):
            damaged.write_text(text)
            images = Images(control="x", runner="site/cpu:1", runner_manifest=str(damaged))
            with pytest.raises(DeployError, match=r"--cpu-runner-manifest .*m\.json"):
                yard.generate(yard.inputs(backend="unix", images=images))
        images = Images(control="x", runner="site/cpu:2", runner_manifest=yard.image("site/cpu:1"))
        with pytest.raises(DeployError, match="is of site/cpu:1"):
            yard.generate(yard.inputs(backend="unix", images=images))

    def test_a_program_that_changed_since_it_was_built(self, yard: Yard) -> None:
        inputs = yard.host()
        with (yard.folder / "plugin" / "runtime" / "hpl" / "xhpl").open("ab") as file:
            file.write(b"\0")
        with pytest.raises(DeployError, match=r"xhpl: it is .* was built; build anew"):
            yard.generate(inputs)

    def test_a_node_without_a_driver(self, yard: Yard) -> None:
        inputs = yard.full()
        (yard.folder / "dev" / "hisi_hdc").unlink()
        (yard.folder / "host" / "usr" / "local" / "dcmi").rmdir()
        with pytest.raises(DeployError, match=r"there is no .*/dev/hisi_hdc; no .*/usr/local/dcmi"):
            yard.generate(inputs)

    def test_what_is_there_goes_only_by_force_and_what_is_not_ours_never(self, yard: Yard) -> None:
        yard.generate(yard.monitoring())
        before = yard.files()
        with pytest.raises(DeployError, match="holds a deployment already; replace it with --force"):
            yard.generate(yard.monitoring())
        yard.generate(yard.cpu_stress(force=True))
        assert "compose.stress.yaml" in yard.files()
        yard.generate(yard.monitoring(force=True))
        assert set(yard.files()) == set(before)
        (yard.place / "notes.txt").write_text("mine")
        with pytest.raises(DeployError, match=r"'notes\.txt', which is not of a deployment"):
            yard.generate(yard.monitoring(force=True))

    def test_nothing_is_written_through_a_link(self, yard: Yard) -> None:
        elsewhere = yard.folder / "elsewhere"
        elsewhere.mkdir()
        yard.place.symlink_to(elsewhere)
        with pytest.raises(DeployError, match="is no directory of its own"):
            yard.generate(yard.monitoring(force=True))
        assert list(elsewhere.iterdir()) == []


class TestAllOrNothing:
    @pytest.mark.parametrize("broken", ["compose.yaml", "nodeproof-runner.yaml", NAME])
    def test_a_full_disk_leaves_the_old_one(self, yard: Yard, broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
        yard.generate(yard.monitoring())
        before = yard.files()
        real = generate.store_file  # type: ignore[attr-defined]  # the one that the module uses

        def full(path: str, data: bytes, *, mode: int = 0o640) -> None:
            if path.endswith(broken):
                raise WriteError(path, "No space left on device")
            real(path, data, mode=mode)

        monkeypatch.setattr(generate, "store_file", full)
        with pytest.raises(WriteError):
            yard.generate(yard.cpu_stress(force=True))
        assert yard.files() == before
        assert [path.name for path in yard.folder.iterdir() if path.name.startswith(".")] == []

    def test_a_shell_that_does_not_understand_it_stops_it(self, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(generate, "render_adapter", lambda *_: "if\n")
        with pytest.raises(DeployError, match="is no script that bash understands"):
            yard.generate(yard.host())
        assert not yard.place.exists()

    def test_where_names_cannot_be_exchanged_two_renames_do(self, yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
        yard.generate(yard.monitoring())
        monkeypatch.setattr(generate, "exchange", exchanging._in_turn)
        yard.generate(yard.cpu_stress(force=True))
        assert "compose.stress.yaml" in yard.files()
        assert [path.name for path in yard.folder.iterdir() if "deployment" in path.name] == ["deployment"]


def test_a_changed_file_is_named_and_so_is_a_changed_input(yard: Yard) -> None:
    yard.generate(yard.cpu_stress())
    deployment = load(str(yard.place))
    assert changed_inputs(deployment.manifest) == []
    manifest = yard.image("site/cpu:1", "2" * 64)
    assert changed_inputs(deployment.manifest) == [f"{manifest} is another since the deployment was generated; generate it anew"]
    with (yard.place / "compose.yaml").open("a") as file:
        file.write("#\n")
    with pytest.raises(DeployError, match=r"compose\.yaml was changed since it was generated"):
        load(str(yard.place))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"schema_version": 1}',
        None,
    ],
)
def test_a_manifest_that_is_none(yard: Yard, text: str | None) -> None:
    yard.place.mkdir()
    if text is not None:
        (yard.place / NAME).write_text(text)
    with pytest.raises(DeployError, match=NAME):
        load(str(yard.place))


def test_names_in_a_manifest_lead_nowhere_else(yard: Yard) -> None:
    yard.generate(yard.monitoring())
    tree = json.loads((yard.place / NAME).read_text())
    tree["files"] = {"../../etc/passwd": "0" * 64}
    (yard.place / NAME).write_text(json.dumps(tree))
    with pytest.raises(DeployError, match="is no name of a file beside it"):
        load(str(yard.place))
    tree["schema_version"] = 2
    (yard.place / NAME).write_text(json.dumps(tree))
    with pytest.raises(DeployError, match="schema 2; this nodeproof knows 1"):
        load(str(yard.place))


PATHS = st.from_regex(r"/[a-z0-9._+@%=/-]{0,30}", fullmatch=True).filter(lambda path: ".." not in path.split("/"))


@given(state=PATHS, run=PATHS, name=st.from_regex(r"[a-z][a-z0-9]{0,20}(/[a-z]{1,9})?(:[a-z0-9]{1,9})?", fullmatch=True))
def test_compose_files_are_read_back_as_they_were_meant(state: str, run: str, name: str) -> None:
    from nodeproof.operate.deploy import services  # noqa: PLC0415 - beside its own test

    inputs = Inputs(output_dir="/d", state_dir=state, run_dir=run, images=Images(control=name, runner=name))
    for found in (services.base(inputs, "/d"), services.override(inputs, "/d", ["stream", "npu_burn"])):
        plain = tuple(msgspec.structs.replace(service, why="") for service in found)
        assert compose.read("x", compose.render("title", "p", found).encode()) == plain


@given(text=st.text(max_size=300) | st.binary(max_size=300).map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_or_refused(text: str) -> None:
    for tree in (text, f"services:\n  web:\n    image: {text}", f"services: {{web: {{volumes: [{text}]}}}}"):
        try:
            found = compose.read("x.yaml", tree.encode("utf-8", "replace"))
        except DeployError:
            continue
        assert all(isinstance(service, Service) for service in found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("services: {web: {privileged: true}}", "services.web.privileged: nodeproof deploy does not know this key"),
        ("services: {web: [x]}", "services.web: expected keys and values"),
        ("services: {web: {volumes: ['/a:/b']}}", "services.web"),
        ("services: {web: {volumes: ['/a:/b:rx']}}", "expected SOURCE:TARGET:ro or rw"),
        ("services: {web: {read_only: 'yes'}}", "neither true nor false"),
        ("services: {web: {command: nodeproof}}", "expected a list of texts"),
        ("services: {web: {image: 1}}", "is no text"),
        ("services: {web: {healthcheck: {test: [CMD, x]}}}", "expected CMD-SHELL"),
        ("version: 3", "expected one key, services"),
        ("services: {a: &a [*a]}", "services.a: expected keys and values"),
    ],
)
def test_a_compose_file_that_was_not_generated_is_refused(text: str, message: str) -> None:
    with pytest.raises(DeployError, match=message):
        compose.read("compose.yaml", text.encode())


def test_the_command_writes_and_says_what_comes_next(yard: Yard, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["deploy", "generate", "--output-dir", str(yard.place), "--control-image", "site/control:1"]
    assert main(argv, ENVIRON) == 0
    out = capsys.readouterr().out
    assert "for: monitoring; stress items: none" in out
    assert f"nodeproof deploy plan --deployment {yard.place} --profile monitoring" in out
    assert main([*argv, "--force", "-o", "json"], ENVIRON) == 0
    assert msgspec.json.decode(capsys.readouterr().out)["profile"] == "monitoring"
    assert main(argv, ENVIRON) == 1
    assert "--force" in capsys.readouterr().err
    assert os.listdir(yard.folder) == ["deployment"]
