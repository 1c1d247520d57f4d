"""Containers of a deployment through an engine that keeps them in a file: what it is asked, and what it never must be."""

import json
import os
from pathlib import Path

import pytest

from nodeproof.cli.main import main
from nodeproof.host.commands import HostCommands
from nodeproof.operate.deploy import doctor, lifecycle
from nodeproof.operate.deploy.engine import Engine
from nodeproof.operate.deploy.lifecycle import Site
from nodeproof.operate.deploy.manifest import load
from nodeproof.operate.deploy.problems import DeployError
from support.deploy import FakeEngine, Yard, fake_engine

pytestmark = pytest.mark.timeout(60)
IMAGES = {"site/control:1": {"id": "c" * 64}, "site/cpu:1": {"id": "1" * 64}}
STRESS = "/opt/nodeproof/bin/nodeproof stress doctor -o json"


class Desk:
    """A deployment and an engine."""

    def __init__(self, folder: Path) -> None:
        self.yard = Yard(folder)
        self.fake: FakeEngine = fake_engine(folder)
        self.fake.change(images=IMAGES)
        self.said: list[str] = []

    def site(self, profile: str, **more: object) -> Site:
        return Site(deployment=load(str(self.yard.place)), profile=profile, **more)  # type: ignore[arg-type]  # the keys are fields

    def engine(self) -> Engine:
        return Engine(HostCommands(), str(self.fake.client))

    def up(self, profile: str, **more: object) -> list[str]:
        """What was asked of the engine."""
        self.fake.change(log=[])
        lifecycle.up(self.site(profile, **more), self.engine(), wait_s=2.0, say=self.said.append)
        return self.fake.changes()


@pytest.fixture(autouse=True)
def _as_root(absent_here: list[str]) -> None:
    if os.geteuid() != 0:
        absent_here.append("only root gives directories to others: containers of deployments were not started")
        pytest.skip("not root")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_what_is_right_is_left_alone_and_what_is_stopped_is_started(desk: Desk) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    made = ("create nodeproof-{0}.next", "rename nodeproof-{0}", "start nodeproof-{0}")
    assert desk.up("cpu-stress") == [line.format(name) for name in ("daemon", "runner", "web") for line in made]
    assert desk.up("cpu-stress") == []
    containers = desk.fake.state["containers"]
    containers["nodeproof-runner"]["running"] = False
    desk.fake.change(containers=containers)
    assert desk.up("cpu-stress") == ["start nodeproof-runner"]


def test_another_configuration_or_image_makes_a_container_anew(desk: Desk) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.up("cpu-stress")
    from nodeproof.operate.deploy.inputs import CpuInputs  # noqa: PLC0415 - beside its use

    desk.yard.generate(desk.yard.cpu_stress(cpu=CpuInputs(hpcg_runtime_s=120), force=True))
    assert desk.up("cpu-stress") == [
        "create nodeproof-runner.next",
        "stop nodeproof-runner",
        "rm nodeproof-runner",
        "rename nodeproof-runner",
        "start nodeproof-runner",
    ]
    desk.fake.change(images={**IMAGES, "site/control:1": {"id": "d" * 64}})
    assert {line.split()[1].removesuffix(".next") for line in desk.up("cpu-stress")} == {"nodeproof-daemon", "nodeproof-web"}


def test_the_words_of_create(desk: Desk) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.up("cpu-stress")
    words = desk.fake.state["containers"]["nodeproof-runner"]["words"]
    assert isinstance(words, list)
    text = " ".join(words)
    for part in (
        "create --pull never --name nodeproof-runner.next",
        "--network none",
        "--user 65532:65532",
        "--read-only",
        "--cap-drop ALL",
        "--security-opt no-new-privileges",
        "--pids-limit 4096",
        "--shm-size 2g",
        "--tmpfs /tmp:size=64m,mode=1777,noexec,nosuid,nodev",
        f"--mount type=bind,source={desk.yard.place}/nodeproof-runner.yaml,target=/etc/nodeproof/nodeproof.yaml,readonly",
        "--ulimit nofile=16384:16384",
        f"{'1' * 64} runner serve --config /etc/nodeproof/nodeproof.yaml",
    ):
        assert part in text
    assert "--privileged" not in words
    daemon = desk.fake.state["containers"]["nodeproof-daemon"]["words"]
    assert isinstance(daemon, list)
    assert "type=bind,source=/,target=/host,readonly,bind-propagation=rslave" in daemon


def test_down_removes_what_up_made_and_nothing_else(desk: Desk) -> None:
    desk.yard.generate(desk.yard.full())
    desk.up("ascend-a2", acknowledged_socket=True)
    burner = {"running": True, "image": "x", "labels": {}}
    desk.fake.change(containers={**desk.fake.state["containers"], "burner": burner, "nodeproof": burner}, log=[])
    assert lifecycle.down(desk.site("ascend-a2"), desk.engine(), say=desk.said.append) == 4
    assert desk.fake.changes()[0] == "stop nodeproof-web"
    assert set(desk.fake.state["containers"]) == {"burner", "nodeproof"}
    assert (desk.yard.folder / "state" / "daemon").is_dir()
    assert lifecycle.down(desk.site("ascend-a2"), desk.engine(), say=desk.said.append) == 0


@pytest.mark.parametrize("action", ["up", "down"])
def test_a_container_of_somebody_else_is_never_touched(desk: Desk, action: str) -> None:
    desk.yard.generate(desk.yard.monitoring())
    desk.fake.change(containers={"nodeproof-web": {"running": True, "image": "x", "labels": {}}})

    def act() -> None:
        if action == "up":
            desk.up("monitoring")
        else:
            lifecycle.down(desk.site("monitoring"), desk.engine(), say=desk.said.append)

    with pytest.raises(DeployError, match="nodeproof-web was not made by nodeproof deploy; rename it"):
        act()
    assert desk.fake.changes() == []
    assert [line for line in desk.up("monitoring", project="other") if "start" in line] == [
        "start other-daemon",
        "start other-web",
    ]


def test_the_engines_socket_is_agreed_to_or_nothing_starts(desk: Desk) -> None:
    desk.yard.generate(desk.yard.full())
    with pytest.raises(DeployError, match="nodeproof-stress-owner gets the engine's socket, which is as much as root"):
        desk.up("ascend-a2")
    assert desk.fake.changes() == []
    assert [line for line in desk.up("monitoring") if "start" in line] == ["start nodeproof-daemon", "start nodeproof-web"]


@pytest.mark.parametrize(
    ("kind", "profile", "message"),
    [
        ("monitoring", "cpu-stress", "was generated for monitoring"),
        ("cpu_stress", "ascend-a2", "was generated for cpu-stress"),
        ("full", "ascend-a3", "was generated for ascend-a2"),
        ("full", "cpu-stress", "was generated for ascend-a2"),
        ("host", "monitoring", "is for the host, not for containers"),
        ("monitoring", "everything", "--profile 'everything'"),
    ],
)
def test_a_profile_that_the_deployment_is_not_made_for(desk: Desk, kind: str, profile: str, message: str) -> None:
    desk.yard.generate(getattr(desk.yard, kind)())
    with pytest.raises(DeployError, match=message):
        desk.up(profile)


def test_a_deployment_that_was_moved_is_not_started(desk: Desk) -> None:
    desk.yard.generate(desk.yard.monitoring())
    desk.yard.place.rename(desk.yard.folder / "moved")
    desk.yard.place = desk.yard.folder / "moved"
    with pytest.raises(DeployError, match="was generated to lie in"):
        desk.up("monitoring")


@pytest.mark.parametrize(
    ("images", "message"),
    [
        ({}, "there is no image site/control:1 here"),
        (
            {**IMAGES, "site/cpu:1": {"id": "2" * 64}},
            "image site/cpu:1 is 222222222222, and the deployment was generated for 1111",
        ),
    ],
)
def test_images_that_are_missing_or_others(desk: Desk, images: dict[str, object], message: str) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.fake.change(images=images)
    with pytest.raises(DeployError, match=message):
        desk.up("cpu-stress")
    assert desk.fake.changes() == []


def test_a_failure_half_way_says_what_runs(desk: Desk) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.up("monitoring")
    containers = desk.fake.state["containers"]
    del containers["nodeproof-web"]
    desk.fake.change(containers=containers, fail={"create": "no space left on device"})
    with pytest.raises(DeployError, match=r"no space left on device; started before that and left running: nodeproof-daemon "):
        desk.up("cpu-stress")


def test_while_the_new_one_cannot_be_made_the_old_one_runs_on(desk: Desk) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.up("cpu-stress")
    desk.yard.generate(desk.yard.cpu_stress(enable_web=True, force=True))
    desk.fake.change(fail={"create": "no space left on device"})
    with pytest.raises(DeployError, match="no space left on device"):
        desk.up("cpu-stress")
    assert desk.fake.state["containers"]["nodeproof-runner"]["running"] is True


@pytest.mark.parametrize("stage", ["made", "removed"])
def test_one_that_was_killed_half_way_is_put_right_by_the_next(desk: Desk, stage: str) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.up("cpu-stress")
    containers = desk.fake.state["containers"]
    containers["nodeproof-runner.next"] = {**containers["nodeproof-runner"], "running": False}
    if stage == "removed":
        del containers["nodeproof-runner"]
    desk.fake.change(containers=containers)
    desk.yard.generate(desk.yard.cpu_stress(enable_web=True, force=True))
    desk.up("cpu-stress")
    assert set(desk.fake.state["containers"]) == {"nodeproof-daemon", "nodeproof-runner", "nodeproof-web"}
    containers = desk.fake.state["containers"]
    containers["nodeproof-web.next"] = containers["nodeproof-web"]
    desk.fake.change(containers=containers)
    lifecycle.down(desk.site("cpu-stress"), desk.engine(), say=desk.said.append)
    assert desk.fake.state["containers"] == {}


def test_a_runner_that_does_not_answer_is_told_with_what_it_printed(desk: Desk) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.fake.change(exec={"nodeproof-runner": 1})
    with pytest.raises(DeployError, match=r"nodeproof-runner is running and does not answer after 0\.1 s"):
        lifecycle.up(desk.site("cpu-stress"), desk.engine(), wait_s=0.1, say=desk.said.append)


def test_status_tells_absent_stopped_and_stale(desk: Desk) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.up("cpu-stress")
    containers = desk.fake.state["containers"]
    del containers["nodeproof-daemon"]
    containers["nodeproof-runner"] |= {"running": False, "exit": 137}
    containers["nodeproof-web"]["labels"] |= {"io.nodeproof.spec-sha256": "0"}  # type: ignore[operator]  # a dictionary
    desk.fake.change(containers=containers)
    found = {line.container: (line.state, line.message) for line in lifecycle.status(desk.site("cpu-stress"), desk.engine())}
    assert found == {
        "nodeproof-daemon": ("absent", "deploy up makes it"),
        "nodeproof-runner": ("exited", "it ended with status 137"),
        "nodeproof-web": ("running", "it is of another deployment or image: deploy up makes it anew"),
    }


def test_the_doctor_asks_inside_and_looks_outside(desk: Desk) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    desk.up("cpu-stress")
    view = {
        "status": "pass",
        "feature_enabled": True,
        "web_enabled": False,
        "script_path": "",
        "report_path": "",
        "benchmarks": [
            {"name": "stream", "enabled": True, "available": True, "status": "pass", "message": "precheck passed"},
            {"name": "npu_burn", "enabled": False, "available": False, "status": "unsupported", "message": "disabled"},
        ],
    }
    desk.fake.change(says={STRESS: json.dumps(view)})
    found = doctor.examine(desk.site("cpu-stress"), desk.engine())
    assert {(line.check, str(line.status)) for line in found} == {
        ("inputs", "pass"),
        ("directories", "pass"),
        ("engine", "pass"),
        ("image", "pass"),
        ("container", "pass"),
        ("stream", "pass"),
    }
    assert doctor.worst(found) == "pass"
    desk.fake.change(says={})
    (desk.yard.folder / "state" / "runner").chmod(0o700)
    os.chown(desk.yard.folder / "state" / "web", 1, 1)
    desk.yard.image("site/cpu:1", "3" * 64)
    broken = {line.check for line in doctor.examine(desk.site("cpu-stress"), desk.engine()) if line.status == "fail"}
    assert broken == {"inputs", "directories", "stress"}
    desk.fake.change(fail={"info": "Cannot connect to the Docker daemon"})
    found = doctor.examine(desk.site("cpu-stress"), desk.engine())
    assert [line.message for line in found if line.check == "engine"] == ["docker info: Cannot connect to the Docker daemon"]
    assert doctor.worst([]) == "fail"


def test_the_commands(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.yard.generate(desk.yard.cpu_stress())
    words = ["--deployment", str(desk.yard.place), "--profile", "cpu-stress", "--engine", str(desk.fake.client)]
    assert main(["deploy", "plan", *words], {}) == 0
    out = capsys.readouterr().out
    assert "nodeproof-runner  create" in out
    assert f"writes {desk.yard.folder}/state/runner" in out
    assert desk.fake.changes() == []
    assert main(["deploy", "status", *words], {}) == 1
    assert main(["deploy", "up", *words, "--skip-doctor", "--runner-wait", "5"], {}) == 0
    assert "nodeproof-runner: created and started" in capsys.readouterr().err
    assert main(["deploy", "up", *words, "--runner-wait", "601"], {}) == 2
    assert main(["deploy", "status", *words, "-o", "json"], {}) == 0
    assert main(["deploy", "plan", *words, "-o", "json"], {}) == 0
    assert main(["deploy", "doctor", *words, "-o", "json"], {}) == 1
    assert main(["deploy", "up", *words], {}) == 1
    assert main(["deploy", "down", *words], {}) == 0
    assert main(["deploy", "down", *words], {}) == 0
    assert "nothing to take down" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("client", "options", "message"),
    [
        ("docker", (), "expected the absolute path"),
        ("/none/docker", (), "it is not there or cannot be run"),
        ("/bin/true", ("run",), "--engine-option 'run': expected --NAME"),
        ("/bin/true", ("--x=$(reboot)",), "--engine-option"),
    ],
)
def test_clients_that_are_refused(client: str, options: tuple[str, ...], message: str) -> None:
    with pytest.raises(DeployError, match=message):
        Engine(HostCommands(), client, options)


def test_no_engine_at_all(tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="neither docker nor podman is installed"):
        Engine(HostCommands(str(tmp_path)))


@pytest.mark.parametrize("said", ["{", "[]", "[1]", '{"a": 1}'])
def test_an_engine_whose_answer_is_no_answer(tmp_path: Path, said: str) -> None:
    client = tmp_path / "podman"
    client.write_text(f"#!/bin/sh\necho '{said}'\n")
    client.chmod(0o755)
    engine = Engine(HostCommands(str(tmp_path)))
    with pytest.raises(DeployError, match="its answer cannot be understood"):
        engine.container("x")


def test_a_daemon_that_is_down_is_not_an_absent_container(tmp_path: Path) -> None:
    client = tmp_path / "docker"
    client.write_text("#!/bin/sh\necho 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock' >&2\nexit 1\n")
    client.chmod(0o755)
    with pytest.raises(DeployError, match="Cannot connect"):
        Engine(HostCommands(), str(client)).container("x")
