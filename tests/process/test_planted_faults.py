"""Faults planted where they would really be, and the axis of a whole job that catches each: real programs, the real manager.

execution: crashed, hung, killed for want of memory; correctness: a wrong word in memory, a wrong answer of a processor;
performance: a box that was slowed by heat or swapped while the number was taken. None of them touches another's axis.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from nodeproof.hardware.probe import HardwareProbe
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import Postcheck, Validity
from nodeproof.model.job import BenchmarkResult, Correctness, Execution, Outcome, Performance, Status
from nodeproof.model.run import RunStatus, VerdictKind
from nodeproof.runs.executor import BenchmarkExecutor
from nodeproof.runs.ports import HardwareEvidence
from nodeproof.stress.adapters.base import ItemRequest, Launch
from nodeproof.stress.adapters.builtin import BuiltinAdapter
from nodeproof.stress.manager import Manager
from nodeproof.stress.progress import WatchPolicy
from nodeproof.stress.settings import StressSettings
from support.box import Box
from support.stress import ENVIRON, STREAM_GOOD, make_manager, make_settings, make_tools, write_dispatcher

pytestmark = pytest.mark.timeout(90)
LOOK_S = 0.25
HUNGRY = "blocks = []\nwhile True: blocks.append(bytearray(b'x' * 1048576))"
MEMORY = Path("/sys/fs/cgroup/memory")


class Watch(HardwareProbe):
    """Looks at a made-up box, which lives on while it is looked at; ``happens`` is called at each look."""

    def __init__(self, box: Box, happens: Callable[[Box, int], None]) -> None:
        super().__init__(box.machine, box.watch(period_s=LOOK_S)._settings)
        self._box, self._happens, self._ticks = box, happens, 0

    def tick(self) -> None:
        self._box.live(LOOK_S)
        self._happens(self._box, self._ticks)
        self._ticks += 1
        super().tick()


def nothing(box: Box, look: int) -> None:
    """A healthy box."""
    del box, look


def watched_manager(folder: Path, settings: StressSettings, happens: Callable[[Box, int], None]) -> Manager:
    """A manager whose box is made up."""
    boxes = iter(range(100))

    def evidence() -> HardwareEvidence:
        return Watch(Box(str(folder / f"box{next(boxes)}")), happens)

    tools = make_tools(settings)
    executor = BenchmarkExecutor(home=settings.home, store=tools.store, evidence=evidence)
    return Manager(settings, environ=ENVIRON, tools=tools._replace(executor=executor), machine=tools.machine)


def outcome_of(item: BenchmarkResult) -> Outcome:
    assert item.outcome is not None
    return item.outcome


def run(manager: Manager, *names: str) -> BenchmarkResult:
    report = manager.start(names)
    ended = manager.wait(report.job_id, 80.0)
    assert ended is not None
    (item,) = ended.benchmarks
    return item


def stream(folder: Path, happens: Callable[[Box, int], None]) -> Manager:
    """STREAM's output, after a second in which something may happen to the box."""
    script = write_dispatcher(folder / "check.sh", run=f"sleep 1.2\ncat <<'END'\n{STREAM_GOOD}\nEND")
    return watched_manager(folder, make_settings(folder, script), happens)


# ---- performance: the box


def test_six_runs_on_a_sound_box_end_valid_and_in_band(tmp_path: Path) -> None:
    manager = stream(tmp_path, nothing)
    for _ in range(5):
        assert outcome_of(run(manager)).performance is Performance.NO_BASELINE
    item = run(manager)
    assert item.status is Status.HEALTHY
    outcome = outcome_of(item)
    assert (outcome.execution, outcome.correctness, outcome.performance) == ("finished", "validated", "in_band")
    assert outcome.reasons["performance"].startswith("1e+04 MB/s, +0.0% from the median 1e+04 of 5 runs")
    assert item.details["hardware"] == {"validity": "valid", "concerns": []}
    stored = manager.runs.load(item.run_id)
    assert stored.problems == ()
    assert stored.record.verdict.kind is VerdictKind.PASS
    hardware = stored.record.frame.hardware_state
    assert hardware is not None
    assert msgspec.convert(hardware["postcheck"], Postcheck).validity is Validity.VALID


def throttles(box: Box, look: int) -> None:
    if look == 2:
        box.throttle(core_events=11, core_ms=140)


def swaps(box: Box, look: int) -> None:
    if look == 2:
        box.swapped += 300


@pytest.mark.parametrize(
    ("happens", "concern"),
    [(throttles, "processors slowed by heat for 40000 µs: cpu0"), (swaps, "300 pages came back from swap")],
)
def test_a_box_that_throttles_or_swaps_spoils_the_number_and_nothing_else(
    tmp_path: Path, happens: Callable[[Box, int], None], concern: str
) -> None:
    manager = stream(tmp_path, happens)
    item = run(manager)
    outcome = outcome_of(item)
    assert (outcome.execution, outcome.correctness) == (Execution.FINISHED, Correctness.VALIDATED)
    assert outcome.performance is Performance.NOT_JUDGED
    assert outcome.reasons["performance"] == "the box was not fit while the number was taken"
    assert item.details["hardware"]["validity"] == "invalid"
    assert any(concern in told for told in item.details["hardware"]["concerns"]), item.details["hardware"]
    assert item.status is Status.HEALTHY, "the state of the hardware never changes it"
    assert not (tmp_path / "state" / "baselines").exists(), "and no baseline is made of it"
    record = manager.runs.load(item.run_id).record
    assert any("the numbers of this run are not valid" in warning for warning in record.warnings)


def test_an_uncorrected_memory_error_under_load_fails_a_stability_run(tmp_path: Path) -> None:
    def errs(box: Box, look: int) -> None:
        if look == 1:
            box.edac(ue=1)

    good = 'nodeproof-result {"workload":"cpu_sdc","passed":true,"mismatches":0}'
    script = write_dispatcher(tmp_path / "check.sh", run=f"sleep 1\necho '{good}'")
    manager = watched_manager(tmp_path, make_settings(tmp_path, script, names=("cpu_sdc",)), errs)
    item = run(manager, "cpu_sdc")
    record = manager.runs.load(item.run_id).record
    assert (record.status, record.verdict.kind) == (RunStatus.COMPLETED, VerdictKind.FAIL)
    assert record.verdict.reason.startswith("hardware failed under load: ")
    assert item.details["hardware"]["validity"] == "invalid"


# ---- correctness: memory and processors


class Planting(BuiltinAdapter):
    """The built-in workload, small, with a fault planted by its own hook."""

    def __init__(self, *arguments: str) -> None:
        super().__init__(Machine.here())
        self._arguments = arguments

    def launch(self, request: ItemRequest) -> Launch:
        launch = super().launch(request)
        return msgspec.structs.replace(launch, argv=(*launch.argv, *self._arguments))


def built_in(folder: Path, name: str, *arguments: str) -> Manager:
    settings = make_settings(folder, "", names=(name,), timeout_s=80.0)
    item = msgspec.structs.replace(settings.benchmarks[name], adapter="builtin")
    settings = msgspec.structs.replace(settings, benchmarks={name: item})
    return Manager(settings, environ=ENVIRON, tools=make_tools(settings), adapters={"builtin": Planting(*arguments)})


def test_a_flipped_bit_in_memory_fails_on_the_second_axis_with_its_place(tmp_path: Path) -> None:
    item = run(built_in(tmp_path, "memory_pattern", "--mib", "64", "--passes", "1", "--inject", "1000:5"), "memory_pattern")
    outcome = outcome_of(item)
    assert (outcome.execution, outcome.correctness) == (Execution.FINISHED, Correctness.FAILED)
    assert item.status is Status.UNHEALTHY
    assert "ERROR element=address-1 address=0x" in item.message
    assert item.message.endswith("differing=0x0000000000000020"), "bit 5, and no other"


def test_a_wrong_answer_of_a_processor_fails_on_the_second_axis_with_kernel_and_core(tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    item = run(built_in(tmp_path, "cpu_sdc", "--rounds", "1", "--inject", f"hash:{cpu}:3"), "cpu_sdc")
    outcome = outcome_of(item)
    assert (outcome.execution, outcome.correctness) == (Execution.FINISHED, Correctness.FAILED)
    assert f"MISMATCH kernel=hash cpu={cpu} round=1 expected=0x" in item.message
    assert item.message.endswith(" bits=3")


# ---- execution: hangs, crashes, memory


def test_a_planted_hang_of_a_built_in_workload_is_a_hang_with_who_stood_still(tmp_path: Path) -> None:
    """The workload is stopped in its tracks, as a device that hangs stops it: no heartbeat comes any more."""
    manager = built_in(tmp_path, "memory_pattern", "--mib", "64", "--passes", "1000")
    hasty = WatchPolicy(heartbeats=True, silent_after_s=1.0, hung_after_s=2.0)
    adapter = manager._adapters["builtin"]
    launch = adapter.launch
    adapter.launch = lambda request: msgspec.structs.replace(launch(request), watch=hasty)  # type: ignore[method-assign]  # planted
    report = manager.start(["memory_pattern"])
    ends = time.monotonic() + 60
    while (live := manager.live()) is None or live.phase is None or live.phase.name in {"compile", "setup"}:
        assert time.monotonic() < ends
        time.sleep(0.02)
    stopped = program_of(manager)
    os.kill(stopped, signal.SIGSTOP)
    ended = manager.wait(report.job_id, 60.0)
    assert ended is not None
    (item,) = ended.benchmarks
    outcome = outcome_of(item)
    assert (outcome.execution, outcome.correctness) == (Execution.HUNG, Correctness.NOT_PROVEN)
    assert item.status is Status.UNHEALTHY
    assert [(sight["pid"], sight["state"]) for sight in item.details["processes"]] == [(stopped, "T")]
    assert item.details["process_tree"]["empty"] is True


def program_of(manager: Manager) -> int:
    """Process number of the program that runs."""
    job = manager._job
    assert job is not None
    assert job._bench is not None
    contained = job._bench._job
    assert contained is not None
    return contained.pid


@pytest.fixture
def small_memory(absent_here: list[str]) -> Iterator[Path]:
    group = MEMORY / f"nodeproof-planted-{os.getpid()}"
    if not os.access(MEMORY, os.W_OK) or not (MEMORY / "cgroup.procs").exists():
        absent_here.append("no memory group of cgroup v1: a job that is killed for want of memory")
        pytest.skip("no memory group of cgroup v1")
    group.mkdir()
    (group / "memory.limit_in_bytes").write_text(str(48 << 20), encoding="ascii")
    yield group
    ends = time.monotonic() + 10
    while (group / "cgroup.procs").read_text(encoding="ascii") and time.monotonic() < ends:
        time.sleep(0.01)
    group.rmdir()


def test_killed_for_want_of_memory_is_told_from_a_crash(tmp_path: Path, small_memory: Path) -> None:
    run_it = f'echo $$ > {small_memory}/cgroup.procs; exec {sys.executable} -S -E -c "{HUNGRY}"'
    manager = make_manager(make_settings(tmp_path, write_dispatcher(tmp_path / "check.sh", run=run_it)))
    item = run(manager)
    outcome = outcome_of(item)
    assert (outcome.execution, outcome.cause) == (Execution.CRASHED, "out_of_memory")
    assert outcome.correctness is Correctness.NOT_PROVEN
    assert "for want of memory" in item.message
    assert item.status is Status.UNHEALTHY
    write_dispatcher(tmp_path / "check.sh", run="kill -KILL $$")
    other = outcome_of(run(manager))
    assert (other.execution, other.cause) == (Execution.CRASHED, "signal")
