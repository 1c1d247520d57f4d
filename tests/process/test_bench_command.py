"""``nodeproof bench`` as a user runs it, and what is left when it is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeproof.bench.testing import Model, ScriptServer

_QUICK = ["--param", "duration_s=2", "--param", "warmup_s=0.5", "--param", "output_tokens=4", "--param", "concurrency=2"]


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptServer]:
    """A model that knows its answers."""
    with ScriptServer(Model(ttft_s=0.01, tpot_s=0.005, answers={"two and two": "4", "capital": "Paris"})) as running:
        yield running


def _environment(home: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(home), "HOME": str(home), **more}


def _bench(home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nodeproof", "bench", *arguments]
    return subprocess.run(command, env=_environment(home, **more), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.timeout(90)
def test_run_show_stats_and_history(tmp_path: Path, server: ScriptServer) -> None:
    key = tmp_path / "key"
    key.write_text("sk-planted\n", encoding="utf-8")
    done = _bench(
        tmp_path, "run", "load", "--url", server.url, "--model", "m", *_QUICK, "--api-key-file", str(key), "-o", "json",
        "--no-fail-on-verdict",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)  # nothing else is on standard output
    assert record["status"] == "completed"
    assert record["frame"]["metrics"]["requests_failed"] == 0
    assert record["frame"]["hardware_state"]["precheck"]["decision"] in {"proceed", "warn"}
    assert server.served[-1].request.headers["authorization"] == "Bearer sk-planted"
    assert "sk-planted" not in done.stdout + done.stderr
    shown = _bench(tmp_path, "show", record["run_id"], "-o", "table")
    assert shown.returncode == 0
    assert f"{record['run_id']}: completed" in shown.stdout
    again = _bench(tmp_path, "stats", record["run_id"], "-o", "json")
    assert again.returncode == 0, again.stderr
    cells = json.loads(again.stdout)
    (last,) = set(cells["cells"]) - set(cells["superseded"])
    figures = cells["cells"][last]["figures"]
    assert figures["ttft_p50_ms"][0] == record["frame"]["metrics"]["ttft_p50_ms"]
    table = _bench(tmp_path, "stats", record["run_id"], "-o", "table")
    assert "ttft_p50_ms" in table.stdout
    assert record["run_id"] in _bench(tmp_path, "history", "--id", "load", "-o", "table").stdout
    samples = next(tmp_path.rglob("cell0-samples-0.npsb"))
    samples.chmod(0o600)
    raw = bytearray(samples.read_bytes())
    raw[-20] ^= 1
    samples.write_bytes(raw)
    tampered = _bench(tmp_path, "stats", record["run_id"], "-o", "json")
    assert tampered.returncode == 1
    assert "cell0-samples-0.npsb" in tampered.stderr


@pytest.mark.timeout(90)
@pytest.mark.parametrize("begun", [False, True], ids=["while it asks", "while it measures"])
def test_a_run_that_is_killed_leaves_its_samples(tmp_path: Path, *, begun: bool) -> None:
    slow = Model(ttft_s=0.01 if begun else 5.0, tpot_s=0.005)
    with ScriptServer(slow) as server:
        command = [sys.executable, "-m", "nodeproof", "bench", "run", "load", "--url", server.url, "--model", "m"]
        command += ["--param", "duration_s=60", "--param", "warmup_s=0.1", "--param", "output_tokens=2", "--skip-coherence-probe"]
        started = subprocess.Popen(command, env=_environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait(lambda: len(server.served) > (400 if begun else 0))
            if begun:
                time.sleep(1.5)  # a block of samples is written once a second
        finally:
            started.send_signal(signal.SIGKILL)
            started.wait()
        asked = len(server.served)
        _wait(lambda: not _workers(tmp_path))
    (run,) = json.loads(_bench(tmp_path, "history", "-o", "json").stdout)
    assert (run["status"], run["interrupted"], run["exit_code"]) == ("crashed", "run", 1)
    stats = _bench(tmp_path, "stats", run["run_id"], "-o", "json")
    if begun:
        counts = json.loads(stats.stdout)["cells"]["cell0"]["counts"]
        assert 100 < counts["requests_ok"] <= asked
    else:
        assert "holds no samples" in stats.stderr


def _workers(home: Path) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            if "bench.load.worker" in line and str(home) in line:
                found.append(line)
    return found


def _wait(holds: object) -> None:
    ends_s = time.monotonic() + 40
    while not holds():  # type: ignore[operator]  # a function without arguments
        assert time.monotonic() < ends_s, "it did not come to that"
        time.sleep(0.05)


@pytest.mark.timeout(60)
def test_two_loads_on_one_machine_exclude_each_other(tmp_path: Path, server: ScriptServer) -> None:
    command = [sys.executable, "-m", "nodeproof", "bench", "run", "load", "--url", server.url, "--model", "m", *_QUICK]
    first = subprocess.Popen(
        [*command, "--param", "duration_s=30"], env=_environment(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        begun = len(server.served)
        _wait(lambda: len(server.served) > begun)
        second = _bench(tmp_path, "run", "load", "--url", server.url, "--model", "m", *_QUICK)
        assert second.returncode == 4
        assert f"job.lock is held by process {first.pid}" in second.stdout
    finally:
        first.send_signal(signal.SIGINT)
        assert first.wait(20) == 130
