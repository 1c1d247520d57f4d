"""The fixed container of NPU Burn: made once, started when it is stopped, and never removed."""

from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.main import main
from nodeproof.host.commands import HostCommands
from nodeproof.operate.deploy.engine import Engine
from nodeproof.operate.deploy.npu_container import NpuContainer, ensure
from nodeproof.operate.deploy.npu_host import discover
from nodeproof.operate.deploy.problems import DeployError
from support.deploy import FakeEngine, Yard, fake_engine

pytestmark = pytest.mark.timeout(60)


class Desk:
    """A host with two accelerators, and an engine."""

    def __init__(self, folder: Path) -> None:
        self.yard = Yard(folder)
        self.places = self.yard.ascend((2, 10))
        self.fake: FakeEngine = fake_engine(folder)
        self.fake.change(images={"site/burn:a2": {"id": "b" * 64}, "site/burn:a3": {"id": "e" * 64}})

    def ensure(self, *, only_plan: bool = False, **changes: object) -> str:
        host = discover(self.places["npu_host_root"], self.places["npu_device_root"])
        plain = NpuContainer(image="site/burn:a2", name="burner", output_dir="/results", host=host)
        wanted = msgspec.structs.replace(plain, **changes)
        return ensure(wanted, Engine(HostCommands(), str(self.fake.client)), only_plan=only_plan)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_it_is_made_once_with_every_device(desk: Desk) -> None:
    assert desk.ensure(only_plan=True) == "burner would be made with 2 accelerators"
    assert desk.fake.changes() == []
    assert desk.ensure() == "burner was made with 2 accelerators, and runs"
    assert desk.ensure() == "burner runs as it should"
    assert desk.fake.changes() == ["create burner", "start burner"]
    words = desk.fake.state["containers"]["burner"]["words"]
    assert isinstance(words, list)
    devices = [words[place + 1] for place, word in enumerate(words) if word == "--device"]
    assert devices == [
        "/dev/davinci2:/dev/davinci2",
        "/dev/davinci10:/dev/davinci10",
        "/dev/davinci_manager:/dev/davinci_manager",
        "/dev/devmm_svm:/dev/devmm_svm",
        "/dev/hisi_hdc:/dev/hisi_hdc",
    ]
    text = " ".join(words)
    for part in (
        "--privileged --network none --security-opt label=disable --shm-size 64m --workdir /workspace",
        "--restart unless-stopped",
        "type=bind,source=/usr/local/Ascend/driver/lib64,target=/usr/local/Ascend/driver/lib64,readonly",
        "type=bind,source=/results,target=/root/.ascend_npu_burn/output",
    ):
        assert part in text
    assert "--env" not in words
    assert words[words.index("--entrypoint") + 2] == "site/burn:a2"  # by its name the adapter knows it
    assert "lspci" not in text


def test_an_image_that_moves_while_it_is_made(desk: Desk) -> None:
    podman = desk.yard.folder / "moving"
    podman.write_text(
        f'#!/bin/sh\n{desk.fake.client} "$@" || exit\n'
        f'[ "$1" != create ] || sed -i \'s/"image": "b*"/"image": "f"/\' {desk.yard.folder}/engine.json\n'
    )
    podman.chmod(0o755)
    host = discover(desk.places["npu_host_root"], desk.places["npu_device_root"])
    wanted = NpuContainer(image="site/burn:a2", name="burner", output_dir="/r", host=host)
    with pytest.raises(DeployError, match="was made of another image than"):
        ensure(wanted, Engine(HostCommands(), str(podman)))
    assert desk.fake.changes() == ["create burner"]


def test_a_stopped_one_is_started(desk: Desk) -> None:
    desk.ensure()
    containers = desk.fake.state["containers"]
    containers["burner"]["running"] = False
    desk.fake.change(containers=containers, log=[])
    assert desk.ensure(only_plan=True) == "burner would be started"
    assert desk.ensure() == "burner was exited, and runs again"
    assert desk.fake.changes() == ["start burner"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image": "site/burn:a3"}, r"is of image bbbbbbbbbbbb, not eeeeeeeeeeee \(site/burn:a3\)"),
        ({"output_dir": "/elsewhere"}, "was made with other devices, paths or options"),
        ({"network": "host"}, "was made with other devices, paths or options"),
    ],
)
def test_another_one_of_that_name_is_an_error_and_stays(desk: Desk, changes: dict[str, object], message: str) -> None:
    desk.ensure()
    desk.fake.change(log=[])
    with pytest.raises(DeployError, match=f"{message}.*nodeproof removes no container"):
        desk.ensure(**changes)  # type: ignore[arg-type]  # only_plan is not among them
    assert desk.fake.changes() == []


def test_one_of_somebody_else_and_one_whose_devices_changed(desk: Desk) -> None:
    desk.ensure()
    (desk.yard.folder / "dev" / "davinci11").touch()
    with pytest.raises(DeployError, match="with other devices"):
        desk.ensure()
    desk.fake.change(containers={"burner": {"running": True, "image": "b" * 64, "labels": {}}}, log=[])
    with pytest.raises(DeployError, match="was not made by nodeproof"):
        desk.ensure()
    assert desk.fake.changes() == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image": "none:1"}, "--image none:1: there is no such image here"),
        ({"image": "-x"}, "--image '-x'"),
        ({"name": "--rm"}, "--name '--rm'"),
        ({"output_dir": "results"}, "--output-dir 'results'"),
        ({"restart": "sometimes"}, "--restart-policy 'sometimes'"),
        ({"network": "bridge"}, "--network 'bridge'"),
        ({"runtime": "a b"}, "--runtime 'a b'"),
    ],
)
def test_refusals(desk: Desk, changes: dict[str, object], message: str) -> None:
    with pytest.raises(DeployError, match=message):
        desk.ensure(**changes)  # type: ignore[arg-type]  # only_plan is not among them
    assert desk.fake.changes() == []


def test_podman_takes_its_runtime_elsewhere(desk: Desk) -> None:
    podman = desk.yard.folder / "podman"
    podman.symlink_to(desk.fake.client)
    host = discover(desk.places["npu_host_root"], desk.places["npu_device_root"])
    wanted = NpuContainer(image="site/burn:a2", name="burner", output_dir="/r", host=host, runtime="runc")
    with pytest.raises(DeployError, match="--engine-option=--runtime=runc"):
        ensure(wanted, Engine(HostCommands(), str(podman)))


def test_no_devices(desk: Desk) -> None:
    for number in (2, 10):
        (desk.yard.folder / "dev" / f"davinci{number}").unlink()
    with pytest.raises(DeployError, match="davinciN: no accelerator"):
        desk.ensure()
    with pytest.raises(DeployError, match="/none: No such file"):
        discover("/", "/none")


def test_the_command(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["deploy", "npu-container", "--image", "site/burn:a2", "--engine", str(desk.fake.client)]
    argv += ["--output-dir", str(desk.yard.folder / "results"), "--npu-host-root", desk.places["npu_host_root"]]
    argv += ["--npu-device-root", desk.places["npu_device_root"]]
    assert main([*argv, "--plan"], {}) == 0
    assert not (desk.yard.folder / "results").exists()
    assert main(argv, {}) == 0
    assert (desk.yard.folder / "results").is_dir()
    assert "nodeproof-npuburn was made with 2 accelerators" in capsys.readouterr().out
