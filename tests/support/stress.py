"""Managers for tests: a dispatcher script that does what a test says, a box that is not looked at, short graces."""

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from nodeproof.clock import SystemClock
from nodeproof.errors import Absence, NoData
from nodeproof.host.commands import HostCommands
from nodeproof.host.files import FileTree
from nodeproof.host.machine import Machine
from nodeproof.host.node_key import NodeKey
from nodeproof.model.job import Report
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.ports import NullEvidence, Switches
from nodeproof.runs.store import RunStore
from nodeproof.runs.supervise import Graces
from nodeproof.stress.baselines import BaselineStore
from nodeproof.stress.job import JobTools
from nodeproof.stress.manager import Manager
from nodeproof.stress.settings import ItemSettings, StressSettings

__all__ = [
    "ENVIRON",
    "STREAM_GOOD",
    "answer",
    "machine_without_caches",
    "make_manager",
    "make_settings",
    "make_tools",
    "run_job",
    "write_dispatcher",
]

ENVIRON = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": "/nonexistent"}
MARKER = "# CATMONITOR_STRESS_DESCRIBE_PROTOCOL=1"
STREAM_GOOD = """\
STREAM version $Revision: 5.10 $
This system uses 8 bytes per array element.
Array size = 80000000 (elements), Offset = 0 (elements)
Number of Threads requested = 2
Number of Threads counted = 2
Function    Best Rate MB/s  Avg time     Min time     Max time
Copy:            9000.5     0.142230     0.142214     0.142300
Scale:           8000.1     0.159999     0.159998     0.160100
Add:            10000.0     0.192010     0.192000     0.192100
Triad:          10000.0     0.192010     0.192000     0.192100
Solution Validates: avg error less than 1.000000e-13 on all three arrays"""


def answer(benchmark: str = "stream", **changes: object) -> dict[str, object]:
    """The smallest valid description, with ``changes``."""
    plain: dict[str, object] = {
        "protocol_version": 1,
        "benchmark": benchmark,
        "parameters": [],
        "resources": {"mpi_processes": 0, "threads_per_process": 0, "total_workers": 0, "runtime_seconds": 0},
        "assets": [],
        "mpi": {"required": False, "implementation": "none", "executable_abi": "none", "status": "pass", "message": "n/a"},
        "preflight": {"status": "pass", "message": "ok"},
    }
    return plain | changes


def write_dispatcher(
    path: Path,
    *,
    run: str = f"cat <<'END'\n{STREAM_GOOD}\nEND",
    describe: str | None = None,
    answers: Mapping[str, object] | None = None,
    marker: str = MARKER,
) -> str:
    """A dispatcher of the reference's kind: ``run`` and ``describe`` are Bash; ``answers`` change the valid description."""
    told = json.dumps(answer("NAME", **(answers or {}))).replace('"NAME"', '"\'"$2"\'"')
    said = describe if describe is not None else f"echo '{told}'"
    path.write_text(f'#!/bin/bash\n{marker}\nif [ "$1" = describe ]; then\n{said}\nexit $?\nfi\n{run}\n', encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def make_settings(folder: Path, script: str, *, names: tuple[str, ...] = ("stream",), timeout_s: float = 20.0) -> StressSettings:
    """Every item of ``names`` through ``script``; everything else below ``folder``."""
    results = folder / "results"
    results.mkdir(exist_ok=True)
    return StressSettings(
        enabled=True,
        web_enabled=False,
        script_path=script,
        report_path=str(folder / "reports" / "stress-latest.json"),
        state_root=str(folder / "state"),
        default_benchmarks=("stream",),
        benchmarks={
            name: ItemSettings(
                enabled=True, timeout_s=timeout_s, adapter="script", result_dir=str(results) if name == "hpcg" else ""
            )
            for name in names
        },
    )


class _NoCaches(FileTree):
    """This machine's files, but those of its caches: the arrays of ``STREAM_GOOD`` are small beside those of some machines."""

    def read(self, path: str) -> bytes:
        if path.startswith("/sys/devices/system/cpu/") and "/cache/" in path:
            raise NoData(Absence.UNSUPPORTED, f"{path}: not told")
        return super().read(path)


def machine_without_caches() -> Machine:
    """This machine, which does not tell the size of its caches."""
    return Machine(_NoCaches(), HostCommands(), SystemClock())


def make_tools(settings: StressSettings) -> JobTools:
    """With a box that nobody looks at."""
    clock = SystemClock()
    store = RunStore(settings.home)
    graces = Graces(cancel_grace_s=5.0, cleanup_grace_s=5.0, capture_s=2.0, coherence_s=2.0, save_s=10.0)
    return JobTools(
        executor=BenchmarkExecutor(
            home=settings.home, store=store, evidence=lambda: NullEvidence("not looked at in tests"), graces=graces
        ),
        store=store,
        baselines=BaselineStore(os.path.join(settings.state_root, "baselines"), NodeKey(settings.home)),
        clock=clock,
        environment=ENVIRON,
        switches=Switches(),
        machine=machine_without_caches(),
        state_root=settings.state_root,
        use_cgroup=False,
    )


def make_manager(settings: StressSettings) -> Manager:
    """A manager as the command line makes one, without the look at the box."""
    tools = make_tools(settings)
    return Manager(settings, environ=ENVIRON, tools=tools, machine=tools.machine)


def run_job(manager: Manager, *names: str) -> Report:
    """Run a job to its end."""
    report = manager.start(names)
    ended = manager.wait(report.job_id, 15.0)
    assert ended is not None, "the job did not end"
    return ended
