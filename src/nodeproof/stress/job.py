"""The job that this process runs: its thread, its report, and the end of each item."""

import contextlib
import logging
import os
import shutil
import threading
from collections.abc import Mapping
from typing import NamedTuple, Self

import msgspec

from nodeproof.clock import Clock, rfc3339
from nodeproof.errors import NodeproofError, RecordError, WriteError
from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.host.machine import Machine
from nodeproof.model.hardware import LiveSample
from nodeproof.model.job import (
    BenchmarkResult,
    Execution,
    ExecutionProfile,
    Initiator,
    Report,
    Status,
    job_status,
)
from nodeproof.model.run import RunSource
from nodeproof.runs.executor import BenchmarkExecutor, RunHandle
from nodeproof.runs.params import ParamValues
from nodeproof.runs.ports import HardwareEvidence, Switches
from nodeproof.runs.store import RunStore
from nodeproof.stress.adapters.base import Adapter, ItemRequest
from nodeproof.stress.baselines import BaselineStore
from nodeproof.stress.benchmarks import descriptor_of
from nodeproof.stress.expected import expected_range
from nodeproof.stress.item import Confinement, ItemBenchmark, item_parameters
from nodeproof.stress.job_locks import JobLocks
from nodeproof.stress.profile import environment_fingerprint, report_hash
from nodeproof.stress.report_files import ReportFiles
from nodeproof.stress.requests import CancelRequests
from nodeproof.stress.settings import StressSettings
from nodeproof.stress.verdict import Judged, cancelled_result, item_result, performance_of
from nodeproof.stress.workloads.heartbeat import Heartbeat

__all__ = ["Job", "JobTools", "Live", "PlannedItem"]

_log = logging.getLogger(__name__)
_POLL_S = 0.2


class PlannedItem(NamedTuple):
    """An item that was checked and may start."""

    name: str
    adapter: Adapter
    request: ItemRequest
    timeout_s: float
    profile: ExecutionProfile


class Live(NamedTuple):
    """How a job gets on."""

    job_id: str
    item: str
    number: int
    """Of the item, from 1."""
    items: int
    elapsed_s: float
    """Of the item."""
    timeout_s: float
    beat: Heartbeat | None
    """The workload's newest word."""
    box: LiveSample | None


class JobTools(NamedTuple):
    """What jobs are run with."""

    executor: BenchmarkExecutor
    store: RunStore
    baselines: BaselineStore
    clock: Clock
    environment: dict[str, str]
    switches: Switches
    machine: Machine
    state_root: str
    use_cgroup: bool = True

    @classmethod
    def here(
        cls, settings: StressSettings, clock: Clock, environment: Mapping[str, str], switches: Switches, machine: Machine
    ) -> Self:
        """Everything below the state directory, with the box watched around each run."""
        root = settings.state_root
        store = RunStore(os.path.join(root, "runs"))

        def evidence() -> HardwareEvidence:
            return HardwareProbe(Machine.here(), Settings(devices=()))

        return cls(
            executor=BenchmarkExecutor(home=root, store=store, evidence=evidence, clock=clock),
            store=store,
            baselines=BaselineStore(os.path.join(root, "baselines")),
            clock=clock,
            environment=dict(environment),
            switches=switches,
            machine=machine,
            state_root=root,
        )

    def record_path(self, job_id: str) -> str:
        """Where the keeper of a job tells what becomes of its tree."""
        return os.path.join(self.state_root, "jobs", f"{job_id}.json")

    @property
    def work_root(self) -> str:
        """Where working directories are made."""
        return os.path.join(self.state_root, "work")

    def sweep(self) -> None:
        """Under the locks: nothing runs, so whatever lies among working directories and job records was left by the dead."""
        shutil.rmtree(self.work_root, ignore_errors=True)
        shutil.rmtree(os.path.join(self.state_root, "jobs"), ignore_errors=True)


class Job:
    """One job. Public members may be used from any thread."""

    def __init__(
        self,
        report: Report,
        planned: list[PlannedItem],
        locks: JobLocks,
        files: ReportFiles | None,
        requests: CancelRequests,
        tools: JobTools,
    ) -> None:
        self.done = threading.Event()
        """Set when the last report is out and the locks are free."""
        self._report = report
        self._planned = planned
        self._locks = locks
        self._files = files
        self._requests = requests
        self._tools = tools
        self._lock = threading.Lock()
        self._cancelled = ""
        self._handle: RunHandle | None = None
        self._bench: ItemBenchmark | None = None
        self._index = 0
        self._item_started_s = 0.0

    @property
    def report(self) -> Report:
        """As it is now; a struct that never changes."""
        return self._report

    def persist_first(self) -> None:
        """Put the first report on the disk. Raises WriteError."""
        self._requests.prepare()
        if self._files is not None:
            self._files.store(self._report)

    def begin(self) -> None:
        """Run the items on a thread of their own."""
        threading.Thread(target=self._lead, name=f"stress-{self._report.job_id}", daemon=True).start()

    def cancel(self, reason: str) -> None:
        """Stop the item that runs and begin no other. Returns at once."""
        with self._lock:
            if not self._cancelled:
                self._cancelled = reason
                _log.info("stress job %s: cancellation requested: %s", self._report.job_id, reason)
            handle = self._handle
        if handle is not None:
            handle.cancel(reason)

    def kill(self) -> None:
        """The same, without a grace for the program."""
        self.cancel("killed by the user")
        bench = self._bench
        if bench is not None:
            bench.kill()

    def live(self) -> Live:
        """How it gets on."""
        planned = self._planned[min(self._index, len(self._planned) - 1)]
        handle, bench = self._handle, self._bench
        return Live(
            job_id=self._report.job_id,
            item=planned.name,
            number=self._index + 1,
            items=len(self._planned),
            elapsed_s=max(0.0, self._tools.clock.now().mono_s - self._item_started_s) if self._item_started_s else 0.0,
            timeout_s=planned.timeout_s,
            beat=bench.beat if bench is not None else None,
            box=handle.live() if handle is not None else None,
        )

    # The thread

    def _lead(self) -> None:
        try:
            for index, planned in enumerate(self._planned):
                self._index = index
                self._one(index, planned)
        except Exception as error:  # noqa: BLE001 - whatever broke, the job gets its last report
            _log.exception("stress job %s failed", self._report.job_id)
            self._note_error(f"the manager failed: {error}")
        finally:
            try:
                self._finish()
            finally:
                self.done.set()

    def _one(self, index: int, planned: PlannedItem) -> None:
        if self._cancelled:
            self._set(index, cancelled_result(planned.name, planned.profile, self._cancelled))
            return
        began = self._tools.clock.now()
        self._item_started_s = began.mono_s
        running = BenchmarkResult(
            name=planned.name,
            status=Status.RUNNING,
            message="running",
            started_at=rfc3339(began.wall_s),
            duration_ms=0,
            profile=planned.profile,
        )
        self._set(index, running)
        _log.info("stress job %s: %s started", self._report.job_id, planned.name)
        try:
            bench, handle = self._run(planned)
        except NodeproofError as error:
            ended = msgspec.structs.replace(running, status=Status.UNHEALTHY, message=str(error))
        else:
            ended = self._result(planned, running, bench, handle)
        end = self._tools.clock.now()
        ended = msgspec.structs.replace(
            ended, finished_at=rfc3339(end.wall_s), duration_ms=max(0, round((end.mono_s - began.mono_s) * 1000))
        )
        self._set(index, ended)
        _log.info("stress job %s: %s ended: %s", self._report.job_id, planned.name, ended.status)

    def _run(self, planned: PlannedItem) -> tuple[ItemBenchmark | None, RunHandle]:
        """One item through the executor, followed to its end."""
        built: list[ItemBenchmark] = []
        confinement = Confinement(
            work_root=self._tools.work_root,
            record_path=self._tools.record_path(self._report.job_id),
            token=self._report.job_id,
            environment=self._tools.environment,
            keep_fds=self._locks.fds,
            use_cgroup=self._tools.use_cgroup,
        )

        def build() -> ItemBenchmark:
            bench = ItemBenchmark(lambda: descriptor, planned.name, planned.adapter, confinement, planned.timeout_s)
            built.append(bench)
            self._bench = bench
            return bench

        descriptor = descriptor_of(planned.name, build, planned.request.plan)
        request = planned.request
        pairs = {"plan": str(request.plan), "seconds": str(request.seconds), "timeout_s": str(planned.timeout_s)}
        values = ParamValues.from_overrides(item_parameters(planned.timeout_s), pairs.items())
        source = RunSource.WEB if self._report.initiator == Initiator.WEB else RunSource.CLI
        handle = self._tools.executor.start(descriptor, values, source=source, switches=self._tools.switches)
        with self._lock:
            self._handle = handle
            cancelled = self._cancelled
        if cancelled:
            handle.cancel(cancelled)
        while not handle.wait(_POLL_S):
            handle.drain()
            asked = self._requests.asked(self._report.job_id)
            if asked is not None and not self._cancelled:
                self.cancel(asked)
        with self._lock:
            self._handle = None
        return (built[0] if built else None), handle

    def _result(
        self, planned: PlannedItem, running: BenchmarkResult, bench: ItemBenchmark | None, handle: RunHandle
    ) -> BenchmarkResult:
        """The end of an item: what the run proved, and how fast that was for this machine."""
        record = handle.record
        if record is None:
            return msgspec.structs.replace(running, status=Status.UNHEALTHY, message="the run ended without a record")
        if handle.save_error:
            self._note_error(handle.save_error)
        result = item_result(running, bench, record, handle.run_id if handle.saved_to else "")
        outcome = result.outcome
        if outcome is None or outcome.execution is not Execution.FINISHED:
            return result
        judged = Judged(
            result=result,
            judgement=bench.end.judgement if bench is not None and bench.end is not None else None,
            profile=planned.profile,
            plan=str(planned.request.plan),
            at_s=self._tools.clock.now().wall_s,
        )
        try:
            machine = self._tools.machine
            expected = expected_range(machine, planned.name, planned.profile.resources.total_workers or 1)
            return performance_of(judged, self._tools.baselines, lambda: environment_fingerprint(machine), expected)
        except (WriteError, OSError) as error:
            self._note_error(f"the baseline could not be kept: {error}")
            return result

    def _set(self, index: int, item: BenchmarkResult) -> None:
        """Change one item, and tell everybody."""
        items = list(self._report.benchmarks)
        items[index] = item
        now = rfc3339(self._tools.clock.now().wall_s)
        self._report = msgspec.structs.replace(self._report, benchmarks=items, timestamp=now)
        self._persist()

    def _persist(self) -> None:
        if self._files is not None:
            try:
                self._files.store(self._report)
            except (WriteError, OSError) as error:
                self._note_error(f"the report could not be written: {error}")

    def _finish(self) -> None:
        """The last report, the history, and the locks, in this order."""
        now = rfc3339(self._tools.clock.now().wall_s)
        items = [
            item if item.status.is_final else msgspec.structs.replace(item, status=Status.UNHEALTHY, message="the manager failed")
            for item in self._report.benchmarks
        ]
        self._report = msgspec.structs.replace(
            self._report,
            timestamp=now,
            finished_at=now,
            benchmarks=items,
            status=job_status([item.status for item in items]),
            configuration_sha256=report_hash(items),
        )
        self._persist()
        if self._files is not None:
            try:
                aside = self._files.archive(self._report)
                if aside:
                    self._note_error(f"the history was damaged: {aside}")
                    self._persist()
            except (WriteError, RecordError, OSError) as error:
                self._note_error(f"the history could not be written: {error}")
                self._persist()
        self._requests.forget(self._report.job_id)
        fault = self._locks.release()
        if fault:
            self._note_error(f"a lock could not be given back: {fault}")
        with contextlib.suppress(OSError):
            os.rmdir(self._tools.work_root)
        _log.info("stress job %s ended: %s", self._report.job_id, self._report.status)

    def _note_error(self, text: str) -> None:
        """A trouble that is not the workload's; the first one stands in the report."""
        _log.error("stress job %s: %s", self._report.job_id, text)
        if not self._report.report_error:
            self._report = msgspec.structs.replace(self._report, report_error=text)
