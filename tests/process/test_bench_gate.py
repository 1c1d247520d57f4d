"""From nothing to a proven gate and back: certify, gate, a changed byte, compare, pin and export, as a user runs them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.bench.testing import Model, ScriptServer

pytestmark = pytest.mark.timeout(120)

GATE = """
schema = 1

[[benchmarks]]
id = "load"
model = "m"
box_validity = "unknown"
note = "a virtual machine tells nothing of its clocks"
param_overrides = {duration_s = 1.5, warmup_s = 0.2, output_tokens = 4, concurrency = 2, input_tokens = 16}

[benchmarks.metrics.ttft_p50_ms]
max = 500
unit = "ms"

[benchmarks.metrics.requests_failed]
min = 0
max = 0
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptServer]:
    """A model that knows its answers."""
    with ScriptServer(Model(ttft_s=0.01, tpot_s=0.005, answers={"two and two": "4", "capital": "Paris"})) as running:
        yield running


def bench(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of the node whose home it is."""
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "HOME": str(home)}
    command = [sys.executable, "-m", "nodeproof", "bench", *arguments]
    return subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=60, check=False)


def validity(home: Path) -> str:
    """What the one record says of its box."""
    (path,) = home.rglob("record.json")
    record = json.loads(path.read_bytes())
    return str(record["frame"]["hardware_state"]["postcheck"]["validity"])


def test_from_nothing_to_proof_and_back(tmp_path: Path, server: ScriptServer) -> None:
    (tmp_path / "bench.toml").write_text(GATE, encoding="utf-8")
    assert bench(tmp_path, "gate", "-o", "json").returncode == 3
    done = bench(tmp_path, "certify", "--url", server.url, "-o", "json")
    found = json.loads(done.stdout)  # progress is on standard error
    assert "1 of 1: load m" in done.stderr
    assert [unit["why"] for unit in found["plan"]] == ["no record of load"]
    (run_id,) = found["ran"]
    judgement = found["gate"]["judgements"][0]
    assert (judgement["runs"], judgement["signed_by"]) == ([run_id], found["gate"]["trusted"])
    # A machine with neighbours is not fit for a number of speed; then the record is refused for that, and for nothing else.
    unfit = validity(tmp_path) == "invalid"
    assert done.returncode == (3 if unfit else 0), done.stdout + done.stderr
    if unfit:
        assert "the box was not fit while" in judgement["reasons"][0]
    assert bench(tmp_path, "gate", "-o", "table").returncode == done.returncode

    page = bench(tmp_path, "export", run_id, "--format", "html")
    assert page.returncode == 0, page.stderr
    assert "<svg" in page.stdout
    pinned = bench(tmp_path, "pin", run_id, "--unproven-box", "-o", "json")
    if unfit:
        assert (pinned.returncode, "the box was not fit" in pinned.stderr) == (1, True)
    else:
        assert json.loads(pinned.stdout)["metrics"]["requests_failed"] == 0
        course = bench(tmp_path, "compare", run_id, "-o", "json")
        assert {one["word"] for one in json.loads(course.stdout)["metrics"]} <= {"same", "unknown"}

    (record,) = tmp_path.rglob("record.json")
    record.chmod(0o600)
    record.write_bytes(record.read_bytes().replace(b'"requests_failed": 0', b'"requests_failed": 1', 1))
    refused = bench(tmp_path, "gate", "-o", "json")
    assert refused.returncode == 3
    assert "record.json was changed" in json.loads(refused.stdout)["judgements"][0]["reasons"][0]
