"""Jobs of one item whose program is what a test says."""

import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from nodeproof.model.job import CheckStatus, ExecutionProfile, PreflightResult, ResourceProfile
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.ports import NullEvidence
from nodeproof.stress.adapters.base import ItemRequest, Launch, LaunchError
from nodeproof.stress.adapters.builtin import NO_MPI
from nodeproof.stress.judging import judge_output
from nodeproof.stress.manager import Manager
from nodeproof.stress.parsers.judgement import Judgement
from nodeproof.stress.progress import WatchPolicy
from support.stress import ENVIRON, make_settings, make_tools

__all__ = ["BEAT", "RESULT", "LeakingAdapter", "ProgramAdapter", "item_manager"]

BEAT = """\
print('nodeproof-heartbeat {"workload":"x","phase":"run","done":%d.0,"total":9.0,"rate":5.0,"rate_unit":"x/s","elapsed_s":1}' % n,
flush=True)"""
RESULT = 'print(\'nodeproof-result {"workload":"cpu_sdc","passed":true,"mismatches":0}\', flush=True)'


class ProgramAdapter:
    """Runs the Python program of a test."""

    kind = "builtin"

    def __init__(self, code: str, watch: WatchPolicy | None = None, error: str = "") -> None:
        self.code, self.watch, self.error = code, watch or WatchPolicy(), error

    def stamp(self, request: ItemRequest) -> object:
        return request

    def describe(self, request: ItemRequest) -> ExecutionProfile:
        return ExecutionProfile(
            protocol_version=1,
            benchmark=request.benchmark,
            parameters=[],
            resources=ResourceProfile(0, 0, 0, 0),
            assets=[],
            mpi=NO_MPI,
            preflight=PreflightResult(CheckStatus.PASS, "ok"),
        )

    def launch(self, request: ItemRequest) -> Launch:
        del request
        if self.error:
            raise LaunchError(self.error)
        return Launch(argv=(sys.executable, "-c", self.code), cwd="", watch=self.watch)

    def judge(self, request: ItemRequest, launch: Launch, output: bytes) -> Judgement:
        del launch
        return judge_output(request.benchmark, output)


class LeakingAdapter(ProgramAdapter):
    """Takes 8 MiB more at each of its heartbeats, and does less and less between two."""

    def __init__(self, watch: WatchPolicy) -> None:
        code = """
import time
kept, work = [], 0.0
for beat in range(40):
    rate = work / (beat or 1)
    told = '"rate":%r,"rate_unit":"x/s",' % rate if beat else ""
    print('nodeproof-heartbeat {"workload":"x","phase":"run","done":%d.0,%s"elapsed_s":%d.0}' % (beat, told, beat), flush=True)
    work += 100.0 - beat
    kept.append(bytearray(b"x" * (8 << 20)))
    time.sleep(0.18)
"""
        super().__init__(code + RESULT, watch)


def item_manager(
    folder: Path,
    adapter: ProgramAdapter,
    *,
    name: str = "cpu_sdc",
    timeout_s: float = 15.0,
    evidence: Callable[[], NullEvidence] = NullEvidence,
) -> Manager:
    settings = make_settings(folder, "", names=(name,), timeout_s=timeout_s)
    item = msgspec.structs.replace(settings.benchmarks[name], adapter="builtin")
    settings = msgspec.structs.replace(settings, benchmarks={name: item})
    tools = make_tools(settings)
    executor = BenchmarkExecutor(home=settings.state_root, store=tools.store, evidence=evidence)
    return Manager(settings, environ=ENVIRON, tools=tools._replace(executor=executor), adapters={"builtin": adapter})
