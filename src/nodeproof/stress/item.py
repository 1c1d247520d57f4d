"""One item of a job as a benchmark of the executor: start the program contained, watch it, judge what it left.

::

    load       the program, its output file, its working directory
    configure  plan and time limit
    next       watch for some seconds; the last frame when the whole tree has ended
    cleanup    end the tree, if it still runs; remove the working directory
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Sequence

import msgspec

from nodeproof.clock import Instant
from nodeproof.errors import RunError
from nodeproof.host.atomic import make_directory, store_file
from nodeproof.host.containment import Contained, Containment, new_token
from nodeproof.host.job_environment import allowed_environment
from nodeproof.model.job import Correctness, Execution, Outcome
from nodeproof.model.process import Ended, EndKind, Limits, ProcessSight
from nodeproof.model.run import Frame, RunStatus, Stat, Verdict, VerdictKind
from nodeproof.runs.benchmark import Descriptor, PluginMetadata
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.params import Choice, Float, Int, ParamSpec, ParamValues
from nodeproof.stress.adapters.base import Adapter, ItemRequest, Launch
from nodeproof.stress.metric_units import metric_unit, rate_text
from nodeproof.stress.output import MAX_OUTPUT_BYTES, LineReader, plain_tail, read_output
from nodeproof.stress.parsers.judgement import Judgement, outcome_of
from nodeproof.stress.progress import ProgressWatch, WatchState
from nodeproof.stress.sizing import Plan
from nodeproof.stress.soak import SoakSamples
from nodeproof.stress.workloads.heartbeat import Heartbeat

__all__ = ["Confinement", "ItemBenchmark", "ItemEnd", "item_parameters"]

_TURN_S = 5.0
"""So long one call of ``next`` watches."""
_LOOK_S = 0.2
_GRACE_S = 1.0
_BACKSTOP_S = 60.0
"""Beyond the limit the keeper ends the tree itself, should this process hang."""
_CANNOT_RUN = 69
"""Exit status of a built-in workload that found it cannot run here."""
_OUTPUT = "output.log"


class Confinement(msgspec.Struct, frozen=True, kw_only=True):
    """Where a job runs."""

    work_root: str = ""
    """Working directories are made in here; empty = among the artifacts of the benchmark."""
    record_path: str = ""
    """Of the contained job, for whoever finds it when both owner and keeper were killed; empty = beside the output."""
    token: str = ""
    """Name of the job; empty = made up."""
    environment: dict[str, str] | None = None
    """Of the caller, what a program needs of it gets through; None = that of this process."""
    keep_fds: tuple[int, ...] = ()
    """Locks that must outlive a killed owner until its tree is gone."""
    use_cgroup: bool = True


class ItemEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How an item ended, for its job."""

    outcome: Outcome
    judgement: Judgement | None
    output_tail: str
    details: dict[str, object]


def item_parameters(timeout_s: float) -> list[ParamSpec]:
    """What every item can be asked."""
    return [
        ParamSpec("plan", "Plan", "How much is proven", Choice(tuple(str(plan) for plan in Plan)), str(Plan.STANDARD)),
        ParamSpec("seconds", "Seconds", "Run for about so long; 0 = as the plan says", Int(0, 30 * 86400), 0),
        ParamSpec("timeout_s", "Time limit", "Seconds after which it is stopped", Float(0.05, 366 * 86400.0), timeout_s),
    ]


class ItemBenchmark:
    """One run of one item."""

    def __init__(
        self, descriptor: Callable[[], Descriptor], benchmark: str, adapter: Adapter, confinement: Confinement, timeout_s: float
    ) -> None:
        self.benchmark = benchmark
        self.end: ItemEnd | None = None
        """Set before the last frame goes out."""
        self.beat: Heartbeat | None = None
        """The newest heartbeat, for people who watch."""
        self._descriptor = descriptor
        self._adapter = adapter
        self._where = confinement
        self._request = ItemRequest(benchmark)
        self._timeout_s = timeout_s
        self._handle: PluginHandle | None = None
        self._launch: Launch | None = None
        self._job: Contained | None = None
        self._watch: ProgressWatch | None = None
        self._soak = SoakSamples()
        self._lines = LineReader()
        self._started: Instant | None = None
        self._folder = ""
        self._stop: tuple[Execution, str] | None = None
        self._progressed = False
        self._stuck: tuple[ProcessSight, ...] = ()

    def descriptor(self) -> Descriptor:
        """The one it was made by."""
        return self._descriptor()

    def metadata(self) -> PluginMetadata:
        """Ours."""
        from nodeproof import __version__  # noqa: PLC0415 - the package's own name

        return PluginMetadata(f"Stress item {self.benchmark}", __version__, license="Apache-2.0", official=True)

    def parameters(self) -> Sequence[ParamSpec]:
        """Plan, time and limit."""
        return item_parameters(self._timeout_s)

    def load(self, handle: PluginHandle) -> None:
        """Nothing is started yet."""
        self._handle = handle

    def configure(self, values: ParamValues) -> None:
        """Take plan and limit over."""
        self._request = ItemRequest(self.benchmark, Plan(values.text("plan")), values.int("seconds"))
        self._timeout_s = values.float("timeout_s")

    def next(self) -> Frame:
        """Start at the first call; watch for some seconds at each. Raises LaunchError, CommandError and WriteError."""
        handle = self._loaded()
        if self._job is None:
            self._start(handle)
            return Frame.running("start", 0.0)
        ended = self._follow(handle, handle.now().mono_s + _TURN_S)
        if ended is None:
            beat = self.beat
            progress = (int(beat.done), int(beat.total)) if beat is not None and beat.total else None
            return Frame.running(beat.phase if beat is not None else "run", self._elapsed_s(), progress=progress)
        handle.check_cancelled()
        return self._last_frame(ended)

    def cleanup(self) -> None:
        """End what still runs, prove that it is gone, and remove the working directory."""
        job = self._job
        if job is not None:
            job.close()
            ended = job.ended
            if ended is not None:
                self._tell_end(ended)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._where.record_path and (job is None or (job.ended is not None and job.ended.empty)):
            with contextlib.suppress(OSError):
                os.unlink(self._where.record_path)

    @property
    def ended(self) -> Ended | None:
        """How its process tree ended, once it has."""
        return self._job.ended if self._job is not None else None

    def kill(self) -> None:
        """End the tree without a grace. Returns at once."""
        if self._job is not None:
            self._job.request_cancel("killed by the user", 0.0)

    @property
    def output_path(self) -> str | None:
        """Where its program prints to, once it runs."""
        return self._job.output_path if self._job is not None else None

    def tail(self) -> str:
        """The end of what was printed so far."""
        job = self._job
        if job is None:
            return ""
        with contextlib.suppress(OSError):
            return plain_tail(job.output_path)
        return ""

    # Start and watch

    def _start(self, handle: PluginHandle) -> None:
        launch = self._launch = self._adapter.launch(self._request)
        for entry in launch.provenance:
            handle.ran(entry.name, version=entry.version, sha256=entry.sha256, path=entry.path)
        where = self._where
        cwd = launch.cwd
        token = where.token or new_token()
        if not cwd:
            cwd = self._folder = os.path.join(where.work_root or handle.artifacts.directory("work"), f"{token}-{self.benchmark}")
            make_directory(cwd)
            for name, text in launch.files.items():
                store_file(os.path.join(cwd, name), text.encode())
            if not launch.result_dir:
                self._launch = launch = msgspec.structs.replace(launch, result_dir=cwd)
        if where.record_path:
            make_directory(os.path.dirname(where.record_path))
        handle.info(f"starting {' '.join(launch.argv)}")
        self._started = handle.now()
        self._watch = ProgressWatch(launch.watch, self._started.mono_s)
        inherited = allowed_environment(os.environ if where.environment is None else where.environment)
        self._job = Containment(use_cgroup=where.use_cgroup).start(
            launch.argv,
            cwd=cwd,
            output_path=handle.file_path(_OUTPUT),
            environment={**inherited, **launch.environment},
            limits=Limits(duration_s=self._timeout_s + _BACKSTOP_S, grace_s=_GRACE_S, output_bytes=MAX_OUTPUT_BYTES),
            token=token,
            record_path=where.record_path,
            keep_fds=where.keep_fds or (handle.locks.fds if handle.locks is not None else ()),
        )
        if handle.locks is not None:
            handle.locks.name(token, self._job.record_path)

    def _follow(self, handle: PluginHandle, until_s: float) -> Ended | None:
        """Watch until the tree has ended or the time is over."""
        job, watch = self._running()
        with handle.on_cancel(lambda: job.request_cancel("cancelled")):
            while True:
                now_s = handle.now().mono_s
                pause_s = (
                    min(until_s - now_s, _LOOK_S) if self._stop is not None else min(until_s - now_s, _LOOK_S, self._left_s())
                )
                ended = job.wait(max(0.0, pause_s))
                self._hear(handle, job, watch)
                if ended is not None:
                    return ended
                if self._stop is None:
                    self._heed_limits(handle.now().mono_s, job, watch)
                if handle.now().mono_s >= until_s:
                    return None

    def _hear(self, handle: PluginHandle, job: Contained, watch: ProgressWatch) -> None:
        """Take in what was printed and how the tree gets on."""
        beat = self.beat
        while chunk := job.output():
            for found in self._lines.heartbeats(chunk):
                beat = found
        now_s = handle.now().mono_s
        if beat is not None and beat is not self.beat:
            self.beat = beat
            watch.beat(now_s)
            self._soak.rate(beat)
            if beat.total:
                handle.progress(int(beat.done), int(beat.total))
            rate = f", {rate_text(beat.rate, beat.rate_unit)}" if beat.rate is not None and beat.rate_unit else ""
            handle.status(f"{beat.phase}{rate}")
        progress = job.progress()
        self._soak.memory(progress.at_mono_s, progress.resident_bytes)
        watch.see(progress, now_s)

    def _heed_limits(self, now_s: float, job: Contained, watch: ProgressWatch) -> None:
        """Stop it at its limit, or when it stands still."""
        seen = watch.judge(now_s)
        if seen.state is WatchState.HUNG:
            self._end_early(job, Execution.HUNG, f"it hung: {seen.reason}", grace_s=0.0)
        elif self._left_s() <= 0:
            judged = watch.judge_stop(now_s)
            self._progressed = judged.progressed
            limit = f"its time limit of {self._timeout_s:g} s was reached"
            if judged.hung:
                self._end_early(job, Execution.HUNG, f"{limit}; {judged.reason}", grace_s=0.0)
            else:
                self._end_early(job, Execution.PLANNED_STOP, f"{limit}; {judged.reason}", grace_s=_GRACE_S)

    def _end_early(self, job: Contained, execution: Execution, reason: str, *, grace_s: float) -> None:
        if execution is Execution.HUNG:
            self._stuck = job.survivors()
        self._stop = (execution, reason)
        job.request_cancel(reason, grace_s)

    def _left_s(self) -> float:
        return self._timeout_s - self._elapsed_s()

    def _elapsed_s(self) -> float:
        handle = self._loaded()
        return 0.0 if self._started is None else handle.now().mono_s - self._started.mono_s

    # The end

    def _last_frame(self, ended: Ended) -> Frame:
        execution, reason, cause = self._execution(ended)
        judgement = self._judgement()
        progressed = self._progressed or (execution is Execution.FINISHED and ended.output_bytes > 0)
        outcome = outcome_of(execution, judgement, progress=progressed, execution_reason=reason, cause=cause)
        details: dict[str, object] = dict(judgement.details) if judgement is not None else {}
        if self._stuck:
            details["processes"] = [msgspec.to_builtins(sight) for sight in self._stuck]
        if self._request.plan is Plan.SOAK:
            details["soak"], concerns = self._soak.judge()
            outcome = msgspec.structs.replace(outcome, concerns=[*outcome.concerns, *concerns])
        if ended.survivors:
            names = ", ".join(f"{sight.name} ({sight.pid})" for sight in ended.survivors)
            outcome = msgspec.structs.replace(outcome, concerns=[*outcome.concerns, f"still running: {names}"])
        self.end = ItemEnd(outcome=outcome, judgement=judgement, output_tail=self.tail(), details=details)
        return self._frame(outcome, judgement)

    def _execution(self, ended: Ended) -> tuple[Execution, str, str]:
        """First axis, why, and one word of cause."""
        if self._stop is not None and ended.kind is EndKind.CANCELLED:
            return (*self._stop, "")
        if ended.kind is EndKind.EXITED and ended.exit_code == 0:
            left = f"; {ended.leftovers} processes outlived it and were ended" if ended.leftovers else ""
            return Execution.FINISHED, f"it ended by itself{left}", ""
        if ended.kind is EndKind.EXITED and ended.exit_code == _CANNOT_RUN and self._adapter.kind == "builtin":
            return Execution.REFUSED, self._last_line() or "it cannot run here", "config_error"
        if ended.kind is EndKind.LIMIT and self._watch is not None:
            return Execution.HUNG, f"nobody stopped it at its limit; {ended.reason}", ""
        causes = {EndKind.OOM: "out_of_memory", EndKind.SIGNALLED: "signal", EndKind.KEEPER_LOST: "keeper_lost"}
        return Execution.CRASHED, ended.reason, causes.get(ended.kind, "exit_status")

    def _judgement(self) -> Judgement | None:
        job, launch = self._job, self._launch
        if job is None or launch is None:
            return None
        try:
            output = read_output(job.output_path)
        except OSError as error:
            raise RunError(f"its output cannot be read: {os.strerror(error.errno or 0)}") from None
        return self._adapter.judge(self._request, launch, output)

    def _frame(self, outcome: Outcome, judgement: Judgement | None) -> Frame:
        elapsed_s = self._elapsed_s()
        reason = "; ".join(outcome.reasons.get(axis, "") for axis in ("execution", "correctness") if outcome.reasons.get(axis))
        values = judgement.values if judgement is not None else {}
        if outcome.execution in {Execution.CRASHED, Execution.HUNG, Execution.REFUSED}:
            wrong = outcome.correctness is Correctness.FAILED or outcome.execution is Execution.HUNG
            status = RunStatus.REFUSED if outcome.execution is Execution.REFUSED else RunStatus.CRASHED
            frame = Frame.stopped(status, str(outcome.execution), reason, elapsed_s)
            verdict = Verdict(VerdictKind.FAIL if wrong else VerdictKind.INCONCLUSIVE, reason)
            return msgspec.structs.replace(frame, verdict=verdict, metrics={key: float(value) for key, value in values.items()})
        kind = {Correctness.VALIDATED: VerdictKind.PASS, Correctness.FAILED: VerdictKind.FAIL}
        return Frame.completed(
            str(outcome.execution),
            elapsed_s,
            verdict=Verdict(kind.get(outcome.correctness, VerdictKind.INCONCLUSIVE), reason),
            metrics={key: float(value) for key, value in values.items()},
            summary=tuple(Stat(key, f"{value:,.6g}", metric_unit(key)) for key, value in list(values.items())[:6]),
        )

    def _tell_end(self, ended: Ended) -> None:
        handle = self._loaded()
        text = f"{ended.kind}: {ended.reason}" if ended.reason else str(ended.kind)
        if ended.empty:
            handle.info(f"process tree ended ({text}); nothing of it is left: {'; '.join(ended.evidence)}")
        else:
            handle.warn(f"process tree ended ({text}), and it is not proven that nothing of it is left")
        if ended.truncated:
            handle.warn(f"{ended.output_bytes} bytes were printed, {ended.output_kept_bytes} of them are kept")
        if ended.output_error:
            handle.warn(f"output could not be kept: {ended.output_error}")

    def _last_line(self) -> str:
        lines = [line for line in self.tail().splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""

    def _loaded(self) -> PluginHandle:
        if self._handle is None:
            raise RunError("the item was not loaded")
        return self._handle

    def _running(self) -> tuple[Contained, ProgressWatch]:
        if self._job is None or self._watch is None:
            raise RunError("the item was not started")
        return self._job, self._watch
