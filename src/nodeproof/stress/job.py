"""The job that this process runs: its thread, its report, and the end of each item."""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

import msgspec

from nodeproof.clock import Clock, rfc3339
from nodeproof.errors import NodeproofError, RecordError, WriteError
from nodeproof.hardware.probe import HardwareProbe, Settings
from nodeproof.hardware.readers.ascend import AscendProvider
from nodeproof.hardware.readers.gpus import GpuProvider
from nodeproof.host.machine import Machine
from nodeproof.host.node_key import NodeKey
from nodeproof.model.job import (
    BenchmarkResult,
    Execution,
    ExecutionProfile,
    Initiator,
    Report,
    Status,
    job_status,
)
from nodeproof.model.live_job import LiveJob
from nodeproof.model.run import RunSource
from nodeproof.runs.executor import BenchmarkExecutor, RunHandle
from nodeproof.runs.job_locks import JobLocks
from nodeproof.runs.params import ParamValues
from nodeproof.runs.ports import HardwareEvidence, Switches
from nodeproof.runs.store import RunStore
from nodeproof.stress.adapters.base import Adapter, ItemRequest
from nodeproof.stress.baselines import BaselineStore
from nodeproof.stress.benchmarks import descriptor_of
from nodeproof.stress.expected import expected_range
from nodeproof.stress.item import Confinement, ItemBenchmark, item_parameters
from nodeproof.stress.job_log import JobEvent, log_event
from nodeproof.stress.live import LiveTeller, live_path
from nodeproof.stress.profile import environment_fingerprint, report_hash
from nodeproof.stress.report_files import ReportFiles
from nodeproof.stress.requests import CancelRequests
from nodeproof.stress.settings import StressSettings
from nodeproof.stress.verdict import Judged, cancelled_result, item_result, performance_of

__all__ = ["Job", "JobTools", "PlannedItem"]

_POLL_S = 0.2


class PlannedItem(NamedTuple):
    """An item that was checked and may start."""

    name: str
    adapter: Adapter
    request: ItemRequest
    timeout_s: float
    profile: ExecutionProfile


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
    evidence: Mapping[str, Callable[[], HardwareEvidence]] = {}
    """Of items that look at more of the box than the executor does by itself."""

    @classmethod
    def here(
        cls, settings: StressSettings, clock: Clock, environment: Mapping[str, str], switches: Switches, machine: Machine
    ) -> Self:
        """Everything below the state directory, with the box watched around each run."""
        root, home = settings.state_root, settings.home
        store = RunStore(home)

        def evidence() -> HardwareEvidence:
            return HardwareProbe(Machine.here(), Settings(devices=()))

        def with_npus() -> HardwareEvidence:
            return HardwareProbe(Machine.here(), Settings(providers=(AscendProvider(machine),)))

        def with_gpus() -> HardwareEvidence:
            return HardwareProbe(Machine.here(), Settings(providers=(GpuProvider(machine),)))

        return cls(
            executor=BenchmarkExecutor(home=home, store=store, evidence=evidence, clock=clock),
            evidence={"npu_burn": with_npus, "gpu_burn": with_gpus},
            store=store,
            baselines=BaselineStore(os.path.join(root, "baselines"), NodeKey(home)),
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
        self._teller = self._teller_of(0)

    @property
    def report(self) -> Report:
        """As it is now; a struct that never changes."""
        return self._report

    def persist_first(self) -> None:
        """Put the first report on the disk. Raises WriteError."""
        if self._locks.trouble:
            self._note_error(self._locks.trouble)
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
                self._tell(JobEvent.CANCELLATION_REQUESTED, f"cancellation requested: {reason}")
            handle = self._handle
        if handle is not None:
            handle.cancel(reason)

    def kill(self) -> None:
        """The same, without a grace for the program."""
        self.cancel("killed by the user")
        bench = self._bench
        if bench is not None:
            bench.kill()

    def live(self) -> LiveJob:
        """How it gets on."""
        return self._teller.now

    def output_path(self) -> str | None:
        """Where the program that runs prints to."""
        bench = self._bench
        return bench.output_path if bench is not None else None

    def _teller_of(self, index: int) -> LiveTeller:
        """Who tells of item ``index``."""
        planned, now = self._planned[index], self._tools.clock.now()
        first = LiveJob(
            job_id=self._report.job_id,
            at=now.wall_s,
            item=planned.name,
            number=index + 1,
            items=len(self._planned),
            elapsed_s=0.0,
            timeout_s=planned.timeout_s,
        )
        return LiveTeller(first, now, live_path(self._files.latest_path) if self._files is not None else "")

    # The thread

    def _lead(self) -> None:
        try:
            for index, planned in enumerate(self._planned):
                self._one(index, planned)
        except Exception as error:  # noqa: BLE001 - whatever broke, the job gets its last report
            self._note_error(f"the manager failed: {type(error).__name__}: {error}", error=error)
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
        self._teller = self._teller_of(index)
        running = BenchmarkResult(
            name=planned.name,
            status=Status.RUNNING,
            message="running",
            started_at=rfc3339(began.wall_s),
            duration_ms=0,
            profile=planned.profile,
        )
        self._set(index, running)
        self._tell(
            JobEvent.BENCHMARK_STARTED,
            f"{planned.name} started",
            benchmark=planned.name,
            timeout_seconds=round(planned.timeout_s),
        )
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
        self._tell(
            JobEvent.BENCHMARK_FINISHED,
            f"{planned.name} ended: {ended.status}",
            benchmark=planned.name,
            status=str(ended.status),
            duration_ms=ended.duration_ms,
        )

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
        tools = self._tools
        evidence = tools.evidence.get(planned.name)
        handle = tools.executor.start(descriptor, values, source=source, switches=tools.switches, evidence=evidence)
        with self._lock:
            self._handle = handle
            cancelled = self._cancelled
        if cancelled:
            handle.cancel(cancelled)
        while not handle.wait(_POLL_S):
            handle.drain()
            bench = built[0] if built else None
            self._teller.tell(self._tools.clock.now(), bench.beat if bench is not None else None, handle.live())
            asked = self._requests.asked(self._report.job_id)
            if asked is not None and not self._cancelled:
                self.cancel(asked)
        self._teller.forget()
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
        except (WriteError, RecordError, OSError) as error:
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
                self._note_error(f"the report could not be written: {error}", JobEvent.REPORT_FAILED)

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
                    self._note_error(f"the history was damaged: {aside}", JobEvent.HISTORY_FAILED)
                    self._persist()
            except (WriteError, RecordError, OSError) as error:
                self._note_error(f"the history could not be written: {error}", JobEvent.HISTORY_FAILED)
                self._persist()
        self._requests.forget(self._report.job_id)
        fault = self._locks.release()
        if fault:
            self._note_error(f"a lock could not be given back: {fault}", JobEvent.LOCK_FAILED)
        with contextlib.suppress(OSError):
            os.rmdir(self._tools.work_root)
        self._tell(JobEvent.JOB_FINISHED, f"ended: {self._report.status}", status=str(self._report.status))

    def _tell(self, event: JobEvent, text: str, error: BaseException | None = None, **fields: str | int) -> None:
        report = self._report
        whose = {"job_id": report.job_id, "initiator": report.initiator}
        log_event(event, f"stress job {report.job_id}: {text}", error=error, **whose, **fields)

    def _note_error(self, text: str, event: JobEvent = JobEvent.TROUBLE, *, error: BaseException | None = None) -> None:
        """A trouble that is not the workload's; the first one stands in the report."""
        self._tell(event, text, error)
        if not self._report.report_error:
            self._report = msgspec.structs.replace(self._report, report_error=text)
