"""What a model has started ends with the run that let it, whichever way that ends; and nobody is let without being asked."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nodeproof.bench.testing import ScriptServer
from support.acting import Acting, call

_SLEEP = "sleep 86399"


def _bench(home: Path, url: str, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "nodeproof", "bench", "run", "agentic", "--url", url, "--model", "m", "--quiet", *more]
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "HOME": str(home)}
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _sleepers() -> int:
    found = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found += (entry / "cmdline").read_bytes().replace(b"\0", b" ").strip() == _SLEEP.encode()
            except OSError:
                continue
    return found


def _wait(count: int) -> None:
    ends_s = time.monotonic() + 40
    while _sleepers() != count:
        assert time.monotonic() < ends_s, f"{_sleepers()} processes of the model where {count} were expected"
        time.sleep(0.05)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=lambda number: number.name)
def test_what_a_model_started_ends_with_its_run(tmp_path: Path, number: signal.Signals, absent_here: list[str]) -> None:
    plan = [[call("bash", command=f"setsid {_SLEEP} & {_SLEEP}")]]
    with ScriptServer(Acting(plan)) as server:
        run = _bench(tmp_path, server.url, "--yes", "--skip-coherence-probe")
        try:
            ends_s = time.monotonic() + 40
            while _sleepers() != 2:
                if run.poll() is not None:
                    absent_here.append("namespaces: a run of what a model writes was not killed")
                    pytest.skip("nothing is run where the machine cannot be shut out")
                assert time.monotonic() < ends_s
                time.sleep(0.05)
            run.send_signal(number)
            code = run.wait(30)
        finally:
            run.kill()
            run.communicate()
    assert code == (130 if number is signal.SIGINT else -9)
    _wait(0)


@pytest.mark.timeout(60)
def test_nobody_runs_what_models_write_without_being_asked(tmp_path: Path) -> None:
    with ScriptServer(Acting(["no"])) as server:
        run = _bench(tmp_path, server.url)
        _, said = run.communicate(timeout=40)
        assert run.returncode == 1
        assert "agentic has side effects: " in said
        assert "Runs commands that a model has written. Give --yes to agree" in said
        assert server.served == []
