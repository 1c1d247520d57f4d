"""The runner as a process: thin clients, foreign users, and every way for a job to lose its caller or its owner."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.stress import STREAM_GOOD, write_dispatcher
from support.users import ENVIRONMENT, nobody

pytestmark = pytest.mark.timeout(60)
BLOCK = "echo $$ > {folder}/pid; setsid bash -c 'trap \"\" TERM INT; echo $$ > {folder}/child; sleep 300' & echo begun; sleep 300"


class Site:
    """A folder with a configuration, a dispatcher, and a runner."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "runner.sock"
        (folder / "nodeproof.yaml").write_text(
            "stress:\n"
            "  enabled: true\n"
            f"  script_path: {folder}/check.sh\n"
            f"  report_path: {folder}/reports/stress-latest.json\n"
            "  default_benchmarks: [stream]\n"
            "  benchmarks:\n"
            "    stream: {enabled: true, timeout: 1m}\n",
            encoding="utf-8",
        )
        write_dispatcher(folder / "check.sh")
        self.children: list[subprocess.Popen[str]] = []
        self.runner = self.serve()

    def start(self, *words: str, **more: str) -> "subprocess.Popen[str]":
        environment = {
            **os.environ,
            "XDG_STATE_HOME": str(self.folder / "state"),
            "NODEPROOF_CONFIG": f"{self.folder}/nodeproof.yaml",
        }
        environment.pop("NODEPROOF_DATA_DIR", None)
        child = subprocess.Popen(
            [sys.executable, "-m", "nodeproof", *words],
            env={**environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.children.append(child)
        return child

    def serve(self) -> "subprocess.Popen[str]":
        child = self.start("runner", "--socket", str(self.socket))
        assert child.stdout is not None
        assert "Running stress jobs" in child.stdout.readline()
        return child

    def stress(self, *words: str) -> tuple[int, str, str]:
        child = self.start("stress", *words, NODEPROOF_RUNNER_SOCKET=str(self.socket))
        out, err = child.communicate(timeout=40)
        return child.returncode, out, err

    def block(self) -> None:
        write_dispatcher(self.folder / "check.sh", run=BLOCK.format(folder=self.folder))

    def pids(self) -> list[int]:
        names = [self.folder / "pid", self.folder / "child"]
        until(lambda: all(name.exists() and name.read_text().strip() for name in names))
        return [int(name.read_text()) for name in names]


def until(condition: object, seconds: float = 20.0) -> None:
    assert callable(condition)
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    for child in made.children:
        if child.poll() is None:
            child.kill()
        child.communicate()


def test_a_command_line_behaves_as_without_a_runner(site: Site) -> None:
    with_runner = site.stress("-o", "json")
    report = json.loads(with_runner[1])
    assert (with_runner[0], with_runner[2], report["status"], report["initiator"]) == (0, "", "healthy", "cli")
    assert report["owner"]["pid"] == site.runner.pid
    code, out, _ = site.stress("history", "-o", "json")
    assert (code, json.loads(out)[0]["job_id"]) == (0, report["job_id"])
    code, out, _ = site.stress("show", report["benchmarks"][0]["run_id"], "-o", "json")
    assert (code, json.loads(out)["run_id"]) == (0, report["benchmarks"][0]["run_id"])
    code, _, err = site.stress("nothing")
    assert code == 2
    assert "no stress item" in err


def test_the_client_of_an_adapter_prints_what_the_program_printed(site: Site) -> None:
    child = site.start("runner", "run", "stream", "--socket", str(site.socket))
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (0, f"{STREAM_GOOD}\n", "")
    child = site.start("runner", "describe", "stream", "--socket", str(site.socket))
    out, err = child.communicate(timeout=30)
    assert (child.returncode, json.loads(out)["protocol_version"]) == (0, 1)
    child = site.start("runner", "describe", "hpl", "--socket", str(site.socket))
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out) == (1, "")
    assert "hpl is not enabled here" in err
    child = site.start("runner", "run", "rm", "--socket", str(site.socket))
    child.communicate(timeout=30)
    assert child.returncode == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_caller_that_ends_takes_its_job_along(site: Site, number: signal.Signals) -> None:
    site.block()
    caller = site.start("stress", NODEPROOF_RUNNER_SOCKET=str(site.socket))
    pids = site.pids()
    caller.send_signal(number)
    until(lambda: all(gone(pid) for pid in pids))
    until(lambda: json.loads(site.stress("status", "-o", "json")[1])["status"] == "cancelled")
    assert site.runner.poll() is None


def test_a_cancel_from_elsewhere(site: Site) -> None:
    site.block()
    caller = site.start("stress", "-o", "json", NODEPROOF_RUNNER_SOCKET=str(site.socket))
    pids = site.pids()
    assert site.stress("cancel")[0] == 0
    out, _ = caller.communicate(timeout=30)
    assert (caller.returncode, json.loads(out)["status"]) == (1, "cancelled")
    assert all(gone(pid) for pid in pids)


def test_a_runner_that_is_told_to_end_leaves_nothing(site: Site) -> None:
    site.block()
    caller = site.start("stress", NODEPROOF_RUNNER_SOCKET=str(site.socket))
    pids = site.pids()
    site.runner.terminate()
    assert site.runner.wait(timeout=30) == 0
    assert all(gone(pid) for pid in pids)
    assert not site.socket.exists()
    caller.communicate(timeout=30)
    assert caller.returncode == 1
    report = json.loads((site.folder / "reports" / "stress-latest.json").read_text())
    assert report["status"] == "cancelled"


def test_a_runner_that_is_killed_leaves_nothing_and_its_successor_says_so(site: Site) -> None:
    site.block()
    caller = site.start("stress", NODEPROOF_RUNNER_SOCKET=str(site.socket))
    pids = site.pids()
    site.runner.kill()
    site.runner.wait(timeout=10)
    _, err = caller.communicate(timeout=30)
    assert caller.returncode == 1
    assert "the runner" in err
    until(lambda: all(gone(pid) for pid in pids))
    assert site.socket.exists()
    site.runner = site.serve()
    code, out, _ = site.stress("status", "-o", "json")
    assert code == 0
    report = json.loads(out)
    assert (report["status"], report["benchmarks"][0]["outcome"]["execution"]) == ("unhealthy", "interrupted")


def test_a_second_runner_does_not_take_the_socket(site: Site) -> None:
    second = site.start("runner", "--socket", str(site.socket))
    _, err = second.communicate(timeout=30)
    assert second.returncode == 1
    assert f"(pid {site.runner.pid})" in err
    assert site.stress("status")[0] in {0, 1}
    assert site.runner.poll() is None


def test_another_user_at_the_socket(site: Site, absent_here: list[str]) -> None:
    user = nobody(site.folder)
    if user is None:
        absent_here.append("the runner's socket as another user: this process cannot become one")
        return
    script = (
        "import sys; from nodeproof.stress.runner.client import RunnerClient, RunnerGone\n"
        "client = RunnerClient(sys.argv[1])\n"
        "for method, target, body in (('GET', '/v1/healthz', None), ('POST', '/v1/runs', b'{\"benchmark\": \"stream\"}'),\n"
        "        ('POST', '/v2/jobs', b'{}'), ('GET', '/v2/jobs/latest', None)):\n"
        "    try: print(client.ask(method, target, body)[0])\n"
        "    except RunnerGone as error: print('no' if 'Permission denied' in str(error) else error)\n"
    )

    def attack() -> list[str]:
        argv = [*user.prefix, user.python, "-c", script, str(site.socket)]
        return subprocess.run(argv, env=ENVIRONMENT, capture_output=True, text=True, check=True).stdout.split()

    assert attack() == ["no"] * 4  # by the mode of the socket
    site.socket.chmod(0o666)
    assert attack() == ["403"] * 4  # and by who the kernel says it is
    assert json.loads(site.stress("status", "-o", "json")[1] or "null") is None
