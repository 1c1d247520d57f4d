"""Stress jobs: one at a time on this machine, whoever starts it, with reports that outlive every crash.

::

    manager = Manager(settings)
    report = manager.start(["stream"], plan=Plan.QUICK)      # returns at once
    report = manager.wait(report.job_id)

A job is a row of items that run one after another, each through the executor of ``runs``. Its report is on the disk before its
first item starts and after every change. Anybody who may write into the directory of requests may cancel it, from any process:
:meth:`Manager.cancel` leaves a request there, the owner looks for it five times a second.
"""

import contextlib
import sys
import threading
from collections.abc import Mapping, Sequence

import msgspec

from nodeproof.clock import Clock, SystemClock, rfc3339
from nodeproof.errors import RecordError
from nodeproof.host.containment import new_token
from nodeproof.host.job_lock import HolderState
from nodeproof.host.machine import Machine
from nodeproof.host.owner import this_process
from nodeproof.model.job import (
    HISTORY_DEFAULT,
    BenchmarkResult,
    ExecutionProfile,
    JobOwner,
    Report,
    Status,
)
from nodeproof.model.live_job import LiveJob
from nodeproof.runs.job_locks import JobLocks
from nodeproof.runs.ports import Switches
from nodeproof.runs.store import RunStore, StoredRun
from nodeproof.stress import availability
from nodeproof.stress.adapters.base import Adapter, DescribeError, ItemRequest
from nodeproof.stress.adapters.builtin import BuiltinAdapter
from nodeproof.stress.adapters.gpu_native import GpuNativeAdapter
from nodeproof.stress.adapters.native import NativeAdapter
from nodeproof.stress.adapters.npu_burn import NpuBurnAdapter
from nodeproof.stress.adapters.script import ScriptAdapter
from nodeproof.stress.availability import Availability
from nodeproof.stress.describe import Describer, finished_profile
from nodeproof.stress.facade import RunOptions
from nodeproof.stress.interrupted import interrupted_report
from nodeproof.stress.job import Job, JobTools, PlannedItem
from nodeproof.stress.job_log import JobEvent, log_event
from nodeproof.stress.problems import Busy, Disabled, JobNotFound, SelectionError
from nodeproof.stress.profile import report_hash
from nodeproof.stress.selection import select_names, select_timeouts
from nodeproof.stress.settings import ItemSettings, StressSettings
from nodeproof.stress.shared import SharedReports
from nodeproof.stress.sizing import Plan

__all__ = ["Manager"]

_ENDING_S = 10.0
"""So long a start waits for what a killed owner left to be ended."""
_ENDING_LOOK_S = 0.05
_LONGEST_S = 7 * 86400.0
"""Limit of an item whose caller has one of its own."""


class Manager:
    """May be used from any thread."""

    def __init__(
        self,
        settings: StressSettings,
        *,
        environ: Mapping[str, str] | None = None,
        machine: Machine | None = None,
        clock: Clock | None = None,
        switches: Switches | None = None,
        adapters: Mapping[str, Adapter] | None = None,
        tools: JobTools | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock or SystemClock()
        self._machine = machine or Machine.here()
        environment = dict(environ or {})
        self._adapters: dict[str, Adapter] = {
            "builtin": BuiltinAdapter(self._machine, settings.state_root),
            "script": ScriptAdapter(settings, environment, self._machine),
            "native": NativeAdapter(settings, environment, self._machine),
            **(adapters or {}),
        }
        self._npu_burn = NpuBurnAdapter(settings, environment, self._machine)
        self._gpu_native = GpuNativeAdapter(settings, self._machine)
        self._describer = Describer(self._adapter_of, self._clock)
        self._shared = SharedReports(settings, self._clock)
        self._files = self._shared.files
        self._requests = self._shared.requests
        self._tools = tools or JobTools.here(settings, self._clock, environment, switches or Switches(), self._machine)
        self._lock = threading.Lock()
        self._job: Job | None = None
        self._last: Report | None = None

    @property
    def config(self) -> StressSettings:
        """What it was told."""
        return self._settings

    @property
    def runs(self) -> RunStore:
        """The full records of all items."""
        return self._tools.store

    # What could be run

    def _adapter_of(self, name: str) -> Adapter:
        """How ``name`` runs here. There is no built-in NPU Burn: without a dispatcher it is the administrator's program."""
        chosen = self._item(name).adapter
        if name == "npu_burn" and chosen in {"builtin", "native"}:
            return self._npu_burn
        if name == "gpu_burn" and chosen == "native":
            return self._gpu_native
        return self._adapters[chosen]

    def availability(self, name: str, plan: Plan = Plan.STANDARD) -> Availability:
        """Whether ``name`` can be run now, and why not."""
        return availability.check(self._settings, name, lambda: self.describe(name, plan=plan))

    def describe(self, name: str, *, timeout_s: float = 0.0, plan: Plan = Plan.STANDARD, seconds: int = 0) -> ExecutionProfile:
        """What a start would run, read-only. Raises DescribeError, also for an item that is not configured or switched off."""
        item = self._settings.benchmarks.get(name)
        if item is None or not item.enabled or not self._settings.enabled:
            raise DescribeError(f"{name} is not enabled here")
        fault = availability.path_fault(self._settings, name)
        if fault:
            raise DescribeError(fault)
        return self._describer.describe(
            ItemRequest(name, plan, seconds, timeout_s or item.timeout_s),
            timeout_s=timeout_s or item.timeout_s,
            result_dir=item.result_dir,
        )

    # Start

    def start(self, names: Sequence[str] = (), *, plan: Plan = Plan.STANDARD) -> Report:
        """Start a job with the configured limits; :meth:`start_with_options`."""
        return self.start_with_options(names, RunOptions(plan=plan))

    def start_with_options(self, names: Sequence[str], options: RunOptions) -> Report:
        """Start a job and return its first report.

        Raises Disabled, Busy with the report of the job that runs, SelectionError, and WriteError when the report cannot be kept.
        """
        if not self._settings.enabled:
            raise Disabled("stress jobs are disabled (stress.enabled)")
        self._refuse_while_busy()
        planned = self._plan(names, options)
        with self._lock:
            if self._job is not None and not self._job.done.is_set():
                raise _busy(_busy_text(self._job.report), self._job.report)
            locks = JobLocks(self._settings.home, self._settings.report_path)
            job_id = new_token()
            holder = locks.acquire(job_id, self._tools.record_path(job_id))
            if holder is not None:
                running = self._shared.latest()
                raise _busy(f"another job runs: {holder.detail}", running)
            try:
                self._bury()
                job = Job(self._first_report(job_id, planned, options), planned, locks, self._files, self._requests, self._tools)
                job.persist_first()
            except BaseException:
                locks.release()
                raise
            self._job = job
            self._last = job.report
        log_event(
            JobEvent.JOB_STARTED,
            f"stress job {job_id} started by {options.initiator}: {', '.join(item.name for item in planned)}",
            job_id=job_id,
            initiator=str(options.initiator),
            timeout_seconds=round(options.timeout_s),
        )
        job.begin()
        return msgspec.structs.replace(job.report, cancellable=True)

    # Reads

    def latest(self) -> Report | None:
        """The job of this process while it runs; else the newest of all. One whose owner died is shown as interrupted."""
        job = self._job
        if job is not None and not job.done.is_set():
            return msgspec.structs.replace(job.report, cancellable=True)
        shared = self._shared.latest()
        if shared is not None:
            self._last = shared
        return shared if shared is not None else (job.report if job is not None else self._last)

    def job(self, job_id: str) -> Report:
        """The job with this id, from the newest report or the history. Raises JobNotFound."""
        own = self._job
        if own is not None and own.report.job_id == job_id:
            return own.report if own.done.is_set() else msgspec.structs.replace(own.report, cancellable=True)
        return self._shared.job(job_id)

    def history(self, limit: int = HISTORY_DEFAULT) -> list[Report]:
        """The newest jobs that have ended, newest first, at most 100."""
        return self._shared.history(limit)

    def history_damage(self) -> str:
        """What is wrong with the history file; empty when nothing is."""
        return self._files.damage() if self._files is not None else ""

    def live(self) -> LiveJob | None:
        """How the job that runs gets on, whichever process runs it; None when none does, or its owner has told nothing yet."""
        job = self._job
        if job is not None and not job.done.is_set():
            return job.live()
        return self._shared.live()

    def live_output_path(self) -> str | None:
        """Where the program that this process runs prints to; None when none runs."""
        job = self._job
        return job.output_path() if job is not None and not job.done.is_set() else None

    def inspect(self, run_id: str) -> StoredRun:
        """The record of an item, its files checked against their hashes. Raises RecordError."""
        return self.runs.inspect(run_id)

    def wait(self, job_id: str, timeout_s: float | None = None) -> Report | None:
        """Wait for the end of a job of this process; None when it has not come in time. Raises JobNotFound."""
        job = self._job
        if job is None or job.report.job_id != job_id:
            raise JobNotFound(f"this process runs no stress job {job_id[:80]!r}")
        return job.report if job.done.wait(timeout_s) else None

    # Cancel

    def can_cancel(self, job_id: str) -> bool:
        """Whether this caller may cancel this job: it runs, and is its own or its owner can be asked."""
        own = self._job
        if own is not None and own.report.job_id == job_id:
            return not own.done.is_set()
        return self._shared.can_cancel(job_id)

    def cancel(self, job_id: str, reason: str = "cancelled by the user") -> None:
        """Have a job stopped and return at once. Raises JobNotFound, and WriteError when its owner cannot be asked."""
        own = self._job
        if own is not None and own.report.job_id == job_id and not own.report.status.is_final:
            own.cancel(reason)
            return
        newest = self._shared.latest()
        if newest is None or newest.job_id != job_id or newest.status.is_final:
            raise JobNotFound(f"no stress job {job_id[:80]!r} runs")
        self._requests.ask(job_id, reason)

    def kill(self) -> None:
        """End the job of this process without a grace; its report is still written."""
        job = self._job
        if job is not None:
            job.kill()

    def shutdown(self, timeout_s: float) -> bool:
        """Cancel the job of this process, never anybody else's, and wait for its last report; whether it came in time."""
        job = self._job
        if job is None or job.done.is_set():
            return True
        job.cancel("nodeproof is shutting down")
        return job.done.wait(timeout_s)

    # Inside

    def _item(self, name: str) -> ItemSettings:
        return self._settings.benchmarks[name]

    def _refuse_while_busy(self) -> None:
        """Before anything is described: somebody else's job must not be disturbed by it."""
        job = self._job
        if job is not None and not job.done.is_set():
            raise _busy(_busy_text(job.report), msgspec.structs.replace(job.report, cancellable=True))
        locks = JobLocks(self._settings.home, self._settings.report_path)
        holder = locks.holder()
        ends_s = self._clock.now().mono_s + _ENDING_S
        while holder.state is HolderState.ENDING and self._clock.now().mono_s < ends_s:
            self._clock.sleep(_ENDING_LOOK_S)
            holder = locks.holder()
        # A lock that cannot even be looked at is told as what it is when it is to be taken.
        if holder.held and holder.state is not HolderState.UNKNOWN:
            raise _busy(f"another job runs: {holder.detail}", self._shared.latest())

    def _plan(self, names: Sequence[str], options: RunOptions) -> list[PlannedItem]:
        chosen = select_names(self._settings, names)
        limits = select_timeouts(self._settings, chosen, options.timeout_s)
        if options.callers_limit:
            limits = dict.fromkeys(chosen, _LONGEST_S)
        planned = []
        for name in chosen:
            request = ItemRequest(name, options.plan, options.seconds, limits[name])

            def describe(name: str = name, request: ItemRequest = request) -> ExecutionProfile:
                item = self._item(name)
                return self._describer.describe(request, timeout_s=limits[name], result_dir=item.result_dir)

            answer = availability.check(self._settings, name, describe)
            if not sys.platform.startswith("linux"):
                raise SelectionError(answer.message)
            if not answer.available or answer.profile is None:
                raise SelectionError(f"{name} is not available: {answer.message}")
            item = self._item(name)
            profile = finished_profile(answer.profile, timeout_s=limits[name], result_dir=item.result_dir)
            planned.append(PlannedItem(name, self._adapter_of(name), request, limits[name], profile))
        return planned

    def _first_report(self, job_id: str, planned: list[PlannedItem], options: RunOptions) -> Report:
        now = rfc3339(self._clock.now().wall_s)
        items = [
            BenchmarkResult(name=item.name, status=Status.PENDING, message="waiting", duration_ms=0, profile=item.profile)
            for item in planned
        ]
        owner = this_process()
        return Report(
            job_id=job_id,
            initiator=str(options.initiator),
            timestamp=now,
            started_at=now,
            platform=sys.platform,
            timeout_seconds=int(options.timeout_s),
            status=Status.RUNNING,
            configuration_sha256=report_hash(items),
            benchmarks=items,
            plan=str(options.plan),
            owner=JobOwner(owner.pid, owner.start_ticks, owner.boot_id),
        )

    def _bury(self) -> None:
        """Under the locks: give the job of a dead owner its last report, and its runs their records. Raises WriteError."""
        self._tools.store.recover()
        self._tools.sweep()
        files = self._files
        if files is None:
            return
        files.tidy()
        with contextlib.suppress(RecordError):
            report = files.latest()
            if report is not None and not report.status.is_final:
                told = interrupted_report(report, rfc3339(self._clock.now().wall_s))
                files.store(told)
                files.archive(told)
                text = f"stress job {report.job_id} was interrupted: its owner died"
                log_event(JobEvent.JOB_INTERRUPTED, text, job_id=report.job_id, initiator=report.initiator)


def _busy(text: str, running: Report | None) -> Busy:
    """The refusal, told in the log."""
    job_id = running.job_id if running is not None else ""
    log_event(JobEvent.JOB_REJECTED_BUSY, f"a stress job was refused: {text}", job_id=job_id)
    return Busy(text, running)


def _busy_text(report: Report) -> str:
    return f"job {report.job_id} runs (started by {report.initiator or 'unknown'} at {report.started_at})"
