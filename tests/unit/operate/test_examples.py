"""The examples for schedulers do what they say: run as they lie there, with a program that answers and an API that listens."""

import datetime as dt
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from nodeproof.cli.parser import COMMANDS
from nodeproof.config.loader import load_text

EXAMPLES = Path(__file__).parents[3] / "examples"
SLURM = EXAMPLES / "slurm"
LINES = {
    0: "SOUND: score 100",
    1: "WARNING: score 88",
    2: 'CRITICAL: "disk" is `read-only`; $(reboot)',
    3: "UNKNOWN: daemon dead",
}


class Node:
    """A node of Slurm: a nodeproof that answers as told, and an scontrol that notes what it is asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = "State=IDLE"
        self._program("scontrol", f'printf "%s\\n" "$*" >> {folder}/asked; [ "$1" = show ] && cat {folder}/state; exit 0')

    def _program(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def run(self, script: str, code: int, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one of the scripts while nodeproof answers with ``code``."""
        (self.folder / "line").write_text(LINES.get(code, ""))
        (self.folder / "state").write_text(f"NodeName=n1 {self.state}\n")
        self._program("nodeproof", f'[ "$*" = check ] || exit 9; cat {self.folder}/line; exit {code}')
        environment = {
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "SLURMD_NODENAME": "n1",
            "NODEPROOF_SETTINGS": str(self.folder / "settings"),
            **variables,
        }
        return subprocess.run([str(SLURM / script)], env=environment, capture_output=True, text=True, check=False, timeout=10)

    def updates(self) -> list[str]:
        """What scontrol was asked to change."""
        asked = self.folder / "asked"
        lines = asked.read_text().splitlines() if asked.exists() else []
        asked.unlink(missing_ok=True)
        return [line for line in lines if line.startswith("update")]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """One that is idle."""
    return Node(tmp_path)


@pytest.mark.parametrize(
    ("code", "variables", "passes"),
    [
        (0, {}, True),
        (1, {}, True),
        (2, {}, False),
        (3, {}, False),
        (127, {}, False),
        (1, {"NODEPROOF_WARNING": "refuse"}, False),
        (3, {"NODEPROOF_UNKNOWN": "allow"}, True),
        (2, {"NODEPROOF_UNKNOWN": "allow"}, False),
    ],
)
def test_a_job_starts_only_on_a_node_that_is_proven(code: int, variables: dict[str, str], passes: bool, node: Node) -> None:  # noqa: FBT001
    done = node.run("prolog.sh", code, **variables)

    assert (done.returncode == 0) == passes
    assert done.stderr == "" if passes else done.stderr.startswith("nodeproof: ")


def test_settings_may_stand_in_a_file(node: Node) -> None:
    (node.folder / "settings").write_text("NODEPROOF_UNKNOWN=allow\n")

    assert node.run("prolog.sh", 3).returncode == 0


@pytest.mark.parametrize(("code", "passes"), [(0, True), (1, True), (2, False), (3, True)])
def test_after_a_job_only_what_is_broken_keeps_the_next_away(code: int, passes: bool, node: Node) -> None:  # noqa: FBT001
    assert (node.run("epilog.sh", code).returncode == 0) == passes


def test_the_health_check_drains_once_with_a_reason_that_is_harmless(node: Node) -> None:
    assert node.run("healthcheck.sh", 2).returncode == 0
    assert node.updates() == ["update NodeName=n1 State=DRAIN Reason=nodeproof: CRITICAL: disk is read-only; $(reboot)"]
    assert not (node.folder / "reboot").exists()

    node.state = "State=IDLE+DRAIN Reason=nodeproof: CRITICAL"
    node.run("healthcheck.sh", 2)
    assert node.updates() == [], "it is drained already"


def test_the_health_check_takes_back_only_what_it_did(node: Node) -> None:
    node.state = "State=IDLE+DRAIN Reason=nodeproof: UNKNOWN: daemon dead"
    node.run("healthcheck.sh", 0)
    assert node.updates() == ["update NodeName=n1 State=RESUME"]

    node.state = "State=IDLE+DRAIN Reason=bad DIMM, by an operator"
    node.run("healthcheck.sh", 0)
    assert node.updates() == []
    node.state = "State=IDLE"
    node.run("healthcheck.sh", 0)
    assert node.updates() == []


def test_the_scripts_are_sound_shell() -> None:
    for script in SLURM.glob("*.sh"):
        assert subprocess.run(["/bin/sh", "-n", str(script)], check=False).returncode == 0, script.name


class _Api(http.server.BaseHTTPRequestHandler):
    """As much of an API server as a Node needs."""

    conditions: ClassVar[list[dict[str, str]]] = []
    asked: ClassVar[list[tuple[str, str, str, Any]]] = []
    status = 200

    def _answer(self, body: Any) -> None:
        self.asked.append((self.command, self.path, self.headers.get("Authorization", ""), body))
        content = json.dumps({"status": {"conditions": self.conditions}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        self._answer(None)

    def do_PATCH(self) -> None:
        assert self.headers["Content-Type"] == "application/strategic-merge-patch+json"
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def api() -> Iterator[tuple[type[_Api], str]]:
    """A server on loopback, and its address."""
    handler = type("Api", (_Api,), {"conditions": [], "asked": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield handler, f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def _report(folder: Path, address: str, code: int) -> subprocess.CompletedProcess[str]:
    program = folder / "np"
    program.write_text(f"#!/bin/sh\necho '{LINES[code].replace(chr(39), '')}'\nexit {code}\n")
    program.chmod(0o755)
    (folder / "token").write_text("of-the-test\n")
    environment = os.environ | {
        "KUBERNETES_API": address,
        "KUBERNETES_ACCOUNT": str(folder),
        "NODE_NAME": "node 1",
        "NODEPROOF": str(program),
    }
    argv = [sys.executable, str(EXAMPLES / "kubernetes" / "node_condition.py"), "--once"]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=15)


@pytest.mark.parametrize(("code", "status"), [(0, "True"), (1, "True"), (2, "False"), (3, "Unknown")])
def test_the_condition_of_a_node_is_what_nodeproof_says(
    code: int, status: str, api: tuple[type[_Api], str], tmp_path: Path
) -> None:
    handler, address = api
    handler.conditions = [
        {"type": "Ready", "status": "True"},
        {"type": "NodeproofSound", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]

    done = _report(tmp_path, address, code)

    assert done.returncode == 0, done.stderr
    (get, patch) = handler.asked
    assert get[:3] == ("GET", "/api/v1/nodes/node%201", "Bearer of-the-test")
    assert patch[:2] == ("PATCH", "/api/v1/nodes/node%201/status")
    (told,) = patch[3]["status"]["conditions"]
    assert (told["type"], told["status"], told["message"]) == ("NodeproofSound", status, LINES[code])
    kept = told["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert kept == (status == "True"), "the time of the last change stays as long as the status does"
    dt.datetime.strptime(told["lastHeartbeatTime"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=dt.UTC)


def test_a_report_that_cannot_be_made_is_said(api: tuple[type[_Api], str], tmp_path: Path) -> None:
    handler, address = api
    handler.status = 403

    refused = _report(tmp_path, address, 0)
    handler.status = 200
    nobody = _report(tmp_path, "http://127.0.0.1:1", 0)

    assert (refused.returncode, nobody.returncode) == (1, 1)
    assert "was not renewed: GET /api/v1/nodes/node%201: 403" in refused.stderr
    assert "was not renewed" in nobody.stderr


def test_the_manifest_gives_no_more_rights_than_it_says() -> None:
    documents = list(yaml.safe_load_all((EXAMPLES / "kubernetes" / "nodeproof.yaml").read_text("utf-8")))
    by_kind = {document["kind"]: document for document in documents}
    pod = by_kind["DaemonSet"]["spec"]["template"]["spec"]

    assert by_kind["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    ]
    assert pod["securityContext"]["runAsNonRoot"] is True
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
        mounts = {mount["name"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
        hosts = {volume["name"] for volume in pod["volumes"] if "hostPath" in volume}
        assert all(mounts[name] for name in hosts & mounts.keys()), "nothing of the host can be written"
    commands = {name for name, *_ in COMMANDS}
    assert pod["containers"][0]["args"][1] in commands


def test_the_configuration_in_the_manifest_is_one() -> None:
    documents = yaml.safe_load_all((EXAMPLES / "kubernetes" / "nodeproof.yaml").read_text("utf-8"))
    text = next(one for one in documents if one["kind"] == "ConfigMap")["data"]["nodeproof.yaml"]

    config = load_text("nodeproof.yaml", text.encode(), {"HOME": "/root"})

    assert (config.exporter.address, config.storage.data_dir) == ("0.0.0.0:19320", "/state/data")
    assert config.warnings == ()


def test_systemd_takes_the_timer(tmp_path: Path, absent_here: list[str]) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        absent_here.append("systemd-analyze (Debian package systemd): the timer of the examples was not checked")
        return
    units = []
    for unit in sorted((EXAMPLES / "systemd").iterdir()):
        (tmp_path / unit.name).write_text(unit.read_text("utf-8"), "utf-8")
        units.append(str(tmp_path / unit.name))

    done = subprocess.run([program, "verify", "--man=no", *units], capture_output=True, text=True, check=False, timeout=15)

    told = [line for line in done.stderr.splitlines() if "nodeproof-prune" in line]
    assert told == []
