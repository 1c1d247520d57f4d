"""A deployment on a real engine: what is built and started, what its containers may do, and that nothing runs on inside them."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.cli.main import main
from nodeproof.host.commands import HostCommands
from nodeproof.model.job import Status
from nodeproof.operate.deploy import lifecycle
from nodeproof.operate.deploy.engine import Engine
from nodeproof.operate.deploy.lifecycle import Site
from nodeproof.operate.deploy.manifest import load
from nodeproof.operate.deploy.npu_container import IDLE
from nodeproof.stress.manager import Manager
from support.deploy import Yard
from support.npu_burn import burn_settings
from support.podman import PodmanEngine, copy_programs, lacking
from support.stress import ENVIRON, make_tools

pytestmark = pytest.mark.timeout(120)

# In place of nodeproof inside an image without anything else: tells what it may do, answers as a runner would, and waits.
PROGRAM = r"""
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static void end(int number) { (void)number; _exit(0); }
static void show(const char *path, const char *wanted) {
    char line[512];
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!wanted || strstr(line, wanted)) fputs(line, stdout);
}
static void write_into(const char *path) {
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    printf("write %s: %s\n", path, fd < 0 ? strerror(errno) : "done");
}
int main(int count, char **words) {
    if (count > 2 && !strcmp(words[1], "runner") && !strcmp(words[2], "health"))
        return access("/run/nodeproof-runner/ready", F_OK) ? 1 : 0;
    if (count > 1 && !strcmp(words[1], "stress")) {
        show("/etc/nodeproof/doctor.json", 0);
        return 0;
    }
    if (count > 1 && !strcmp(words[1], "tell")) {
        show("/proc/self/status", "Uid");
        show("/proc/self/status", "CapEff");
        show("/proc/self/status", "CapBnd");
        show("/proc/self/status", "NoNewPrivs");
        show("/proc/self/status", "Groups");
        show("/proc/net/dev", ":");
        write_into("/root-of-image");
        write_into("/var/lib/nodeproof-runner/state");
        write_into("/etc/nodeproof/nodeproof.yaml");
        return 0;
    }
    signal(SIGTERM, end);
    if (count > 1 && !strcmp(words[1], "runner")) close(open("/run/nodeproof-runner/ready", O_WRONLY | O_CREAT, 0600));
    for (;;) pause();
}
"""
DOCTOR = {
    "status": "pass",
    "feature_enabled": True,
    "web_enabled": False,
    "script_path": "",
    "report_path": "",
    "benchmarks": [{"name": "stream", "enabled": True, "available": True, "status": "pass", "message": "precheck passed"}],
}
REFUSED = {"Read-only file system", "Permission denied"}
LSPCI = "#!/bin/sh\necho '0000:c1:00.0 Processing accelerators: Huawei Technologies Co., Ltd. Device d802'\n"
BURN = "#!/bin/sh\n{trap}echo '[npu 0] matmul warm-up'\nwhile :; do sleep 0.2; done\n"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PodmanEngine | None]:
    """The engine; None where there is none, which is told at the end of the run."""
    if lacking():
        yield None
        return
    made = PodmanEngine(tmp_path_factory.mktemp("engine"))
    yield made
    made.close()


@pytest.fixture
def podman(engine: PodmanEngine | None, absent_here: list[str]) -> PodmanEngine:
    if engine is None:
        absent_here.append(f"containers: {lacking()}; deployments were not started on a real engine")
        pytest.skip(lacking())
    return engine


class Node:
    """A deployment with the CPU runner out of images that hold one program each."""

    def __init__(self, folder: Path, podman: PodmanEngine) -> None:
        self.yard = Yard(folder)
        self.podman = podman
        root = folder / "root"
        (root / "opt" / "nodeproof" / "bin").mkdir(parents=True)
        for place in ("etc/nodeproof", "run/nodeproof", "run/nodeproof-runner", "var/lib/nodeproof", "var/lib/nodeproof-runner"):
            (root / place).mkdir(parents=True)
        (root / "etc" / "nodeproof" / "doctor.json").write_text(json.dumps(DOCTOR))
        program = root / "opt" / "nodeproof" / "bin" / "nodeproof"
        subprocess.run(
            ["/usr/bin/gcc", "-static", "-O1", "-x", "c", "-", "-o", str(program)], input=PROGRAM, text=True, check=True
        )
        entry = 'ENTRYPOINT ["/opt/nodeproof/bin/nodeproof"]'
        podman.build("localhost/site/control:1", root, entry)
        self.image_id = podman.build("localhost/site/cpu:1", root, entry, "LABEL kind=cpu")

    def generate(self, **changes: object) -> None:
        images = self.yard.cpu_stress().images
        manifest = self.yard.image("localhost/site/cpu:1", self.image_id)
        images = msgspec.structs.replace(
            images, control="localhost/site/control:1", runner="localhost/site/cpu:1", runner_manifest=manifest
        )
        self.yard.generate(self.yard.inputs(backend="unix", images=images, **changes))

    def words(self) -> list[str]:
        return ["--deployment", str(self.yard.place), "--profile", "cpu-stress", "--engine", str(self.podman.client)]

    def tell(self, name: str) -> dict[str, str]:
        """What the program in a container sees of itself, by the first word of each line."""
        lines = self.podman.run("exec", name, "/opt/nodeproof/bin/nodeproof", "tell").stdout.splitlines()
        return {line.partition(":")[0].strip(): " ".join(line.partition(":")[2].split()) for line in lines}


@pytest.fixture
def site(tmp_path: Path, podman: PodmanEngine) -> Iterator[Node]:
    made = Node(tmp_path, podman)
    yield made
    podman.run("rm", "--all", "--force", "--time", "0", check=False)


def test_a_deployment_lives_on_a_real_engine(site: Node, capsys: pytest.CaptureFixture[str]) -> None:
    site.generate()
    assert main(["deploy", "up", *site.words(), "--runner-wait", "20"], {}) == 0, capsys.readouterr()
    out = capsys.readouterr()
    assert out.out.endswith("deployment: PASS\n")
    before = site.podman.run("ps", "--format", "{{.ID}} {{.Names}}").stdout
    assert {line.split()[1] for line in before.splitlines()} == {"nodeproof-daemon", "nodeproof-web", "nodeproof-runner"}

    told = site.tell("nodeproof-runner")
    assert told["Uid"] == "65532 65532 65532 65532"
    assert (told["CapEff"], told["CapBnd"], told["NoNewPrivs"]) == ("0000000000000000", "0000000000000000", "1")
    assert set(told) & {"lo", "eth0"} == {"lo"}
    assert told["write /root-of-image"] == "Read-only file system"
    assert told["write /etc/nodeproof/nodeproof.yaml"] in REFUSED
    assert told["write /var/lib/nodeproof-runner/state"] == "done"
    web = site.tell("nodeproof-web")
    assert web["Uid"].startswith("65531 ")
    assert "65532" in web["Groups"].split()
    assert web["write /var/lib/nodeproof-runner/state"] in REFUSED
    facts = json.loads(site.podman.run("inspect", "nodeproof-runner").stdout)[0]["HostConfig"]
    assert (facts["ReadonlyRootfs"], facts["Privileged"], facts["NetworkMode"], facts["PidsLimit"]) == (True, False, "none", 4096)
    assert facts["ShmSize"] == 2 << 30

    assert main(["deploy", "up", *site.words(), "--skip-doctor"], {}) == 0
    assert site.podman.run("ps", "--format", "{{.ID}} {{.Names}}").stdout == before
    site.podman.run("stop", "--time", "1", "nodeproof-web")
    assert main(["deploy", "status", *site.words()], {}) == 1
    assert main(["deploy", "up", *site.words(), "--skip-doctor"], {}) == 0
    again = site.podman.run("ps", "--format", "{{.ID}} {{.Names}}").stdout
    assert sorted(again.splitlines()) == sorted(before.splitlines())

    site.generate(enable_web=True, force=True)
    capsys.readouterr()
    assert main(["deploy", "plan", *site.words()], {}) == 0
    shown = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:4]]
    assert shown == [["nodeproof-daemon", "keep"], ["nodeproof-runner", "recreate"], ["nodeproof-web", "keep"]]
    assert main(["deploy", "up", *site.words(), "--skip-doctor"], {}) == 0
    assert main(["deploy", "down", *site.words()], {}) == 0
    assert site.podman.run("ps", "--all", "--quiet").stdout == ""


def test_monitoring_mounts_nothing_of_stress(site: Node) -> None:
    site.generate()
    deployment = load(str(site.yard.place))
    commands = HostCommands()
    asked = Engine(commands, str(site.podman.client))
    lifecycle.up(Site(deployment=deployment, profile="monitoring"), asked, wait_s=5.0, say=lambda _: None)
    commands.close()
    for name in ("nodeproof-daemon", "nodeproof-web"):
        mounts = json.loads(site.podman.run("inspect", name).stdout)[0]["Mounts"]
        sources = {mount["Source"] for mount in mounts if mount["Type"] == "bind"}
        assert not [source for source in sources if "runner" in source or "owner" in source or source.endswith(".sock")]
    assert "nodeproof-runner" not in site.podman.run("ps", "--all", "--format", "{{.Names}}").stdout


class Burner:
    """A fixed container with a stand-in of NPU Burn that goes on until it is ended."""

    def __init__(self, folder: Path, podman: PodmanEngine) -> None:
        self.podman = podman
        self.folder = folder
        root = folder / "root"
        copy_programs(root, "sh", "sleep", "cat", "ls", "setsid")
        (root / "devices").mkdir()
        (root / "devices" / "davinci0").touch()
        for name, text in (("lspci", LSPCI), ("burn", BURN.format(trap="")), ("stubborn", BURN.format(trap="trap '' TERM\n"))):
            (root / "bin" / name).write_text(text)
            (root / "bin" / name).chmod(0o755)
        (folder / "results").mkdir()
        podman.build("localhost/burn:1", root)
        limits = ("--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")
        podman.run("create", "--name", "burner", "--network", "none", *limits, "localhost/burn:1", "sh", *IDLE)
        podman.run("start", "burner")

    def manager(self, program: str, timeout_s: float) -> Manager:
        settings = burn_settings(self.folder, timeout_s=timeout_s)
        environ = ENVIRON | {
            "NPU_BURN_BACKEND": "docker_exec",
            "NPU_BURN_CONTAINER_RUNTIME": str(self.podman.client),
            "NPU_BURN_CONTAINER_NAME": "burner",
            "NPU_BURN_CONTAINER_IMAGE": "localhost/burn:1",
            "NPU_BURN_EXECUTABLE": f"/bin/{program}",
            "NPU_BURN_OUTPUT_DIR": str(self.folder / "results"),
            "NPU_BURN_DEVICE_ROOT": "/devices",
            "NPU_BURN_DEVICE": "0",
            "NPU_BURN_RUN_CASE": "matmul",
            "NPU_BURN_CHIP_GENERATION": "A2",
        }
        return Manager(settings, environ=environ, tools=make_tools(settings))

    def burning(self) -> dict[int, str]:
        return {pid: text for pid, text in self.podman.pids("burner").items() if "/bin/burn" in text or "/bin/stubborn" in text}

    def alone(self) -> bool:
        """Nothing but the container's own idling."""
        return sorted(text.split()[0] for text in self.podman.pids("burner").values()) == ["sh", "sleep"]


@pytest.fixture
def burner(tmp_path: Path, podman: PodmanEngine) -> Iterator[Burner]:
    yield Burner(tmp_path, podman)
    podman.run("rm", "--all", "--force", "--time", "0", check=False)


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not come true in time"
        time.sleep(0.05)


def test_limit_and_cancel_end_the_program_in_the_container(burner: Burner) -> None:
    manager = burner.manager("stubborn", 2.0)
    ended = manager.wait(manager.start(["npu_burn"]).job_id, 30.0)
    assert ended is not None
    assert ended.benchmarks[0].status is Status.UNHEALTHY
    until(burner.alone)

    manager = burner.manager("burn", 60.0)
    report = manager.start(["npu_burn"])
    until(burner.burning)
    manager.cancel(report.job_id)
    ended = manager.wait(report.job_id, 30.0)
    assert ended is not None
    assert ended.status is Status.CANCELLED
    until(burner.alone)


def test_the_death_of_the_owner_ends_the_program_in_the_container(burner: Burner) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\n"
        "from support.podman import PodmanEngine\n"
        "import importlib.util\n"
        "spec = importlib.util.spec_from_file_location('t', sys.argv[3])\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "burner = object.__new__(module.Burner)\n"
        "burner.folder, burner.podman = Path(sys.argv[4]), PodmanEngine(Path(sys.argv[5]))\n"
        "manager = burner.manager('burn', 60.0)\n"
        "manager.wait(manager.start(['npu_burn']).job_id)\n"
    )
    tests = str(Path(__file__).parents[1])
    argv = [sys.executable, "-c", code, tests, f"{tests}/../src", __file__, str(burner.folder), str(burner.podman.folder)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as owner:
        until(burner.burning)
        with contextlib.suppress(ProcessLookupError):
            os.kill(owner.pid, signal.SIGKILL)
    until(burner.alone)
