"""A BFCL run that is killed: nothing of it runs on, nothing is half-made, and the next one goes on where it was."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeproof.bench.testing import End, Received, Script, ScriptServer, Step
from nodeproof.bench.testing.script import Behaviour
from support.answering import Answering
from support.bfcl import right, standin_wheel

pytestmark = pytest.mark.timeout(120)

_PROGRAM = """
import sys
from pathlib import Path
import nodeproof.bench.bfcl.benchmark as benchmark
from nodeproof.cli.main import main
from support.bfcl import standin_recipe
benchmark.GOLDEN_ENVIRONMENT = standin_recipe(Path(sys.argv[1]))
sys.exit(main(sys.argv[2:]))
"""


class _Silent(Behaviour):
    """An index that never says anything."""

    def __call__(self, request: Received) -> Script:
        del request
        return Script(steps=[Step(0.0, b"<")], end=End.HANG)


class _Place:
    """A home with the stand-in's wheel."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.wheel = standin_wheel(folder)

    def environment(self, index: str) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        where = {"PIP_INDEX_URL": index} if index else {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.wheel.parent)}
        path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
        return own | where | {"XDG_STATE_HOME": str(self.home), "HOME": str(self.home), "PYTHONPATH": path}

    def command(self, server: ScriptServer, *more: str) -> list[str]:
        run = ["bench", "run", "bfcl-subset", "--url", server.url, "--model", "m", "--skip-coherence-probe", "-o", "json", *more]
        return [sys.executable, "-c", _PROGRAM, str(self.wheel), *run]

    def kill(self, server: ScriptServer, until: Callable[[], bool], *more: str, index: str = "") -> None:
        """Run, and kill the run as soon as ``until`` holds."""
        child = subprocess.Popen(
            self.command(server, *more), env=self.environment(index), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            ends_s = time.monotonic() + 60
            while not until():
                assert time.monotonic() < ends_s, "it did not come to that"
                assert child.poll() is None, "it ended by itself"
                time.sleep(0.01)
        finally:
            child.send_signal(signal.SIGKILL)
            child.wait()

    def finish(self, server: ScriptServer, *more: str) -> dict[str, Any]:
        done = subprocess.run(
            self.command(server, *more), env=self.environment(""), capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def of(self, name: str) -> list[Path]:
        return list(self.home.rglob(name))


def test_a_kill_while_it_asks_loses_no_answer(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    with ScriptServer(Answering(right(wrong=["simple_python_1"]), delay_s=0.02)) as server:
        place.kill(server, lambda: len(server.served) > 30, "--param", "concurrency=2")
        (journal,) = place.of("answers/*.jsonl")
        kept = [json.loads(line)["sample_id"] for line in journal.read_bytes().splitlines()]
        assert 20 < len(kept) < 78
        before = len(server.served)
        record = place.finish(server)
        assert len(server.served) - before == 78 - len(kept) + 2  # the list of models and one question are asked before
    metrics = record["frame"]["metrics"]
    assert (metrics["resumed_answers"], metrics["samples"], metrics["subset.simple_python.hits"]) == (len(kept), 78, 23)


def test_a_kill_while_it_installs_leaves_no_process_and_nothing_half_made(tmp_path: Path) -> None:
    place = _Place(tmp_path)
    with ScriptServer(_Silent()) as index, ScriptServer(Answering(right())) as server:
        place.kill(server, lambda: bool(index.served), index=f"{index.url}/simple")
        ends_s = time.monotonic() + 30
        while _running(str(place.home)):
            assert time.monotonic() < ends_s, _running(str(place.home))
            time.sleep(0.05)
    assert place.of("env-*") == []
    with ScriptServer(Answering(right())) as server:
        record = place.finish(server, "--param", "shard=0/20")
    assert record["status"] == "completed"
    assert place.of(".making-*") == []
    assert len(place.of("env-*")) == 1


def _running(home: str) -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if home in line:
                found.append(line)
    return found
