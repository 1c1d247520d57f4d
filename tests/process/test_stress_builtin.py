"""The built-in STREAM as everybody meets it first: a machine with nothing but nodeproof."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)


def stress(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "XDG_STATE_HOME": str(folder), "NODEPROOF_CONFIG": "/dev/null"}
    for name in ("NODEPROOF_DATA_DIR", "CATMONITOR_DATA_DIR"):
        environment.pop(name, None)
    argv = [sys.executable, "-m", "nodeproof", "stress", *arguments]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=100, check=False)


def test_a_quick_stream_is_validated_and_its_record_says_what_ran_on_what_box(tmp_path: Path) -> None:
    done = stress(tmp_path, "--plan", "quick")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    (item,) = report["benchmarks"]
    assert (item["name"], item["status"], item["source"]) == ("stream", "healthy", "stdout")
    assert set(item["values"]) == {"copy_mb_s", "scale_mb_s", "add_mb_s", "triad_mb_s"}
    assert all(100 < value < 10_000_000 for value in item["values"].values())
    assert item["outcome"]["correctness"] == "validated"
    assert item["outcome"]["progress"] is True
    assert item["details"]["process_tree"]["empty"] is True
    assert item["details"]["hardware"]["validity"] in {"valid", "invalid", "unknown"}
    assert "nodeproof-heartbeat" not in item["output"]
    shown = json.loads(stress(tmp_path, "show", item["run_id"]).stdout)
    assert shown["frame"]["hardware_state"]["postcheck"]["validity"] == item["details"]["hardware"]["validity"]
    assert {"python", "numpy", "numba", "source_stream"} <= {entry["name"] for entry in shown["provenance"]}
    assert len(shown["fingerprint"]) == 64


def test_a_limit_of_a_second_ends_the_workload_and_all_it_began(tmp_path: Path) -> None:
    done = stress(tmp_path, "stream", "--plan", "quick", "--seconds", "1", "--timeout", "1s")
    report = json.loads(done.stdout)
    (item,) = report["benchmarks"]
    assert item["status"] in {"time_limit_reached", "unhealthy", "healthy"}
    assert item["details"]["process_tree"]["empty"] is True
