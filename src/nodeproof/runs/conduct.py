"""The course of one run: every stage in its order, one end on every road.

One thread leads. Code that may hang or break (the benchmark, the look at the box, the coherence probe, the disk) runs on worker
threads, so the leader always comes back: when the call does, when the run is cancelled and the grace is over, or when time is up.
Then the worker is given up, the record says in which stage, and ``cleanup`` is tried on another thread.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

import msgspec

from nodeproof.errors import RunCancelled, RunError
from nodeproof.host.containment import new_token
from nodeproof.host.job_lock import LockHolder
from nodeproof.model.hardware import Decision, LiveSample
from nodeproof.model.run import (
    Cause,
    Frame,
    GlowEvent,
    LogEvent,
    LogLevel,
    RunRecord,
    RunStatus,
    Stage,
    Verdict,
    VerdictKind,
    is_final,
)
from nodeproof.runs.artifacts import ArtifactStore
from nodeproof.runs.benchmark import Benchmark, PluginMetadata, drive, metadata_of
from nodeproof.runs.box import BoxWatch
from nodeproof.runs.cancel import CancelToken
from nodeproof.runs.coherence import probe_endpoint
from nodeproof.runs.desk import Desk
from nodeproof.runs.frames import SoundFrame, error_chain, sound_frame
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.records import Ending, draft_record, final_record
from nodeproof.runs.request import RunRequest
from nodeproof.runs.supervise import GivenUpError, Supervisor
from nodeproof.runs.worker import Worker

__all__ = ["KILL_SWITCH", "Run"]

_T = TypeVar("_T")
KILL_SWITCH = "NODEPROOF_NO_HW_PRECHECK"


class _EndedError(Exception):
    """The run is over, with this frame."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        super().__init__(frame.phase)


class Run:
    """One run. :meth:`begin` starts it; everything else that is public may be called from any thread."""

    def __init__(self, request: RunRequest) -> None:
        self.request = request
        self.token = CancelToken()
        self.stage = Stage.START
        self.finished = threading.Event()
        """Set last of all, whatever happened."""
        self.record: RunRecord | None = None
        self.saved_to = ""
        name = f"run-{request.number}"
        self._supervisor = Supervisor(self.token, request.graces.cancel_grace_s)
        self._plugin = Worker(f"{name}-plugin", self._supervisor.wake)
        self._desk = Desk(request, self._supervisor, name)
        self._box = BoxWatch(
            request.evidence,
            sensitivity=request.descriptor.sensitivity,
            switches=request.switches,
            supervisor=self._supervisor,
            graces=request.graces,
            name=name,
            warn=self._desk.warn,
        )
        self.log = self._desk.log
        self._started = request.clock.now()
        self._benchmark: Benchmark | None = None
        self._metadata = PluginMetadata("", "")
        self._handle: PluginHandle | None = None
        self._ending = threading.RLock()
        """Held while the terminal frame goes out: a cancel comes before it or after it."""

    @property
    def given_up(self) -> tuple[Worker, ...]:
        """Threads that this run gave up and that are still there."""
        return tuple(worker for worker in self._supervisor.given_up if worker.is_alive())

    @property
    def run_id(self) -> str:
        """Name in the store; empty until it has one."""
        return self._desk.run_id

    @property
    def save_error(self) -> str:
        """Why record or log could not be stored; empty when all went well."""
        return self._desk.fault

    def begin(self) -> None:
        """Start. Never raises: where no thread is to be had the run ends here and now."""
        self._supervisor.set_deadline(self.request.deadline_s)
        try:
            threading.Thread(target=self._lead, name=f"run-{self.request.number}", daemon=True).start()
        except RuntimeError:
            self._lead()

    def cancel(self, reason: str) -> None:
        """Order the run to stop. Returns at once; has no effect once the terminal frame is out."""
        with self._ending:
            if self.log.terminal is None and self.token.set(reason):
                self._supervisor.wake()

    def lose_reader(self) -> None:
        """The same, from a finalizer."""
        self._supervisor.order("nobody reads this run any more")

    def live(self) -> LiveSample | None:
        """The newest look at the box."""
        return self._box.evidence.live()

    # The order of things

    def _lead(self) -> None:
        try:
            frame = self._until_its_end()
        except BaseException as error:  # noqa: BLE001 - our own fault ends the run like any other
            frame = self._frame_of(error, "executor")
        ends: tuple[Callable[[Frame], None], ...]
        ends = (self._end, self._send_end, self._clean_up, self._glow_off, self._save, self._give_up_machine)
        for step in ends:
            try:
                step(frame)
            except BaseException as error:  # noqa: BLE001 - the next step is due all the same
                self._desk.warn(f"the executor failed in stage {self.stage}: {error_chain(error)[0]}")
        self.stage = Stage.DONE
        self.log.close()
        for worker in (self._plugin, self._box.worker, self._desk.worker):
            worker.stop()
        self.finished.set()

    def _until_its_end(self) -> Frame:
        """Everything up to the benchmark's end: its last frame, or one that says why there is none."""
        try:
            self._start()
            self._look_before()
            self._probe_coherence()
            self._load()
            self._configure()
            return self._drive()
        except _EndedError as end:
            return end.frame

    def _start(self) -> None:
        self._desk.say(GlowEvent(on=True))
        in_the_way = self._take_machine()
        # A run whose record could not be kept is not begun.
        self._ask(
            self._desk.worker, lambda: self._desk.claim(self._draft()), "setup", limit_s=self.request.graces.save_s, heed=False
        )
        self._enter(Stage.START)
        if in_the_way is not None:
            text = f"another job loads this machine: {in_the_way.detail}"
            cause = Cause(Stage.START, "busy", (text,))
            raise _EndedError(Frame.stopped(RunStatus.REFUSED, "lock", text, self._elapsed_s(), cause=cause))
        for worker in self.request.older:
            self._desk.warn(
                f"thread {worker.name} of an earlier run was given up and still lives: it may take time from this one"
            )
        benchmark = self._benchmark = self._ask(self._plugin, self.request.descriptor.build, "setup", heed=False)
        self._metadata = self._ask(self._plugin, lambda: metadata_of(benchmark), "setup")

    def _take_machine(self) -> LockHolder | None:
        """Get the right to load the machine, where the run was given locks to take; else who has it."""
        locks = self.request.locks
        if locks is None:
            return None
        in_the_way = self._ask(self._desk.worker, lambda: locks.acquire(new_token()), "setup", heed=False)
        if locks.trouble:
            self._desk.warn(locks.trouble)
        return in_the_way

    def _look_before(self) -> None:
        self._enter(Stage.HARDWARE)
        switches = self.request.switches
        report, line = self._box.look_before()
        if line:
            self._desk.say(LogEvent(LogLevel.INFO, f"hardware: {line}"))
        concerns = report.precheck.concerns
        if switches.never_refuse and not any(KILL_SWITCH in concern for concern in concerns):
            self._desk.warn(f"hardware: {KILL_SWITCH} is set: no state of the box stops this run, nor makes its numbers valid")
        for concern in concerns:
            self._desk.warn(f"hardware: {concern}")
        self._heed_cancel("hardware precheck")
        if report.precheck.decision is Decision.REFUSE and not switches.never_refuse:
            reason = "; ".join(report.precheck.concerns) or "the box is not fit for this run"
            text = f"{reason}; set {KILL_SWITCH}=1 to run all the same"
            cause = Cause(Stage.HARDWARE, "precheck", tuple(report.precheck.concerns))
            raise _EndedError(Frame.stopped(RunStatus.REFUSED, "hardware precheck", text, self._elapsed_s(), cause=cause))
        self._box.watch()
        self._heed_cancel("hardware precheck")

    def _probe_coherence(self) -> None:
        if self.request.coherence is not None and self.request.target is not None:
            self.stage = Stage.COHERENCE
            probe_endpoint(self.request, self._supervisor, self._desk)
            self._heed_cancel("coherence")

    def _load(self) -> None:
        self._enter(Stage.LOAD)
        benchmark = self._built()
        handle = PluginHandle(
            run_number=self.request.number,
            log=self.log,
            token=self.token,
            artifacts=ArtifactStore(self.request.home, self.request.descriptor.id),
            target=self.request.target,
            evidence=self._box.evidence,
            clock=self.request.clock,
            file_path=self._desk.keeper.file_path,
            locks=self.request.locks,
        )
        self._handle = handle
        self._ask(self._plugin, lambda: benchmark.load(handle), "setup")

    def _configure(self) -> None:
        self._enter(Stage.CONFIGURE)
        benchmark, values = self._built(), self.request.values

        def configure() -> None:
            values.validate_against(benchmark.parameters())
            benchmark.configure(values)

        self._ask(self._plugin, configure, "setup")

    def _drive(self) -> Frame:
        self._enter(Stage.RUN)
        frames = drive(self._built())

        def step() -> SoundFrame | Exception:
            item = next(frames)
            return item if isinstance(item, Exception) else sound_frame(item)

        while True:
            # A frame that came is kept, whatever was ordered meanwhile.
            item = self._ask(self._plugin, step, "run", heed=False)
            if isinstance(item, Exception):
                raise _EndedError(self._frame_of(item, "run"))
            for warning in item.warnings:
                self._desk.warn(warning)
            if is_final(item.frame):
                return item.frame
            self.log.frame(item.frame)
            self._heed_cancel("run")

    # The end

    def _end(self, frame: Frame) -> None:
        """Look at the box once more, then send the terminal frame."""
        self._supervisor.set_deadline(None)
        ended_in = self.stage
        if frame.status is RunStatus.REFUSED:
            report = self._box.not_looked_after()
        else:
            self._enter(Stage.AFTER)
            report = self._box.look_after()
        frame = self._box.judge(frame, report)
        with self._ending:
            if self.token.is_cancelled() and frame.status is not self._stopped_status():
                # The benchmark had come to an end all the same: its numbers stay, and nobody takes the run for a completed one.
                text = f"the benchmark had ended ({frame.status}) when the run was stopped: {self.token.reason}"
                self._desk.say(LogEvent(LogLevel.INFO, text))
                cause = Cause(ended_in, self._stop_type(), (self.token.reason,))
                frame = msgspec.structs.replace(frame, status=self._stopped_status(), cause=cause)
            self.log.frame(frame)

    def _send_end(self, frame: Frame) -> None:
        """The terminal frame as it is, if :meth:`_end` could not send it."""
        if self.log.terminal is None:
            verdict = Verdict(VerdictKind.INCONCLUSIVE, "the executor failed at the end of the run")
            self.log.frame(msgspec.structs.replace(frame, status=RunStatus.CRASHED, verdict=verdict))

    def _clean_up(self, _: Frame) -> None:
        """Once, on every road. A run whose benchmark was never built has nothing to clean."""
        self._enter(Stage.CLEANUP)
        benchmark = self._benchmark
        if benchmark is None:
            return
        worker = self._plugin
        if worker.abandoned_at_s is not None:
            worker = Worker(f"run-{self.request.number}-cleanup", self._supervisor.wake)
        try:
            self._call(worker, benchmark.cleanup, self.request.graces.cleanup_grace_s, cancellable=False)
        except BaseException as error:  # noqa: BLE001 - the verdict stands, whatever cleaning up does
            self._desk.warn(f"cleanup: {error_chain(error)[0]}")
        finally:
            worker.stop()

    def _glow_off(self, _: Frame) -> None:
        self._enter(Stage.SAVE)
        self._desk.say(GlowEvent(on=False))

    def _save(self, _: Frame) -> None:
        limit_s = self.request.graces.save_s
        self.log.close()
        try:
            self._call(self._desk.worker, self._desk.flush, limit_s, cancellable=False)  # the last lines of the log
            self.record = record = self._final()
            publish = self._desk.keeper.publish
            self.saved_to = self._call(self._desk.worker, lambda: publish(record), limit_s, cancellable=False)
        except BaseException as error:  # noqa: BLE001 - the record lives on in memory, and says so
            self._desk.fault = f"the record of this run could not be stored: {error_chain(error)[0]}"
            self.record = self._final()

    def _give_up_machine(self, _: Frame) -> None:
        locks = self.request.locks
        if locks is not None:
            locks.release()

    # Calls and errors

    def _call(self, worker: Worker, function: Callable[[], _T], limit_s: float | None, *, cancellable: bool = True) -> _T:
        return self._supervisor.call(worker, function, stage=self.stage, limit_s=limit_s, cancellable=cancellable)

    def _ask(
        self, worker: Worker, function: Callable[[], _T], phase: str, *, limit_s: float | None = None, heed: bool = True
    ) -> _T:
        """As :meth:`_call`; whatever goes wrong ends the run with a frame of ``phase``."""
        try:
            value = self._call(worker, function, limit_s)
        except BaseException as error:  # noqa: BLE001 - of whatever kind: it ended the run
            raise _EndedError(self._frame_of(error, phase)) from None
        if heed:
            self._heed_cancel(phase)
        return value

    def _heed_cancel(self, phase: str) -> None:
        self._supervisor.look()
        if self.token.is_cancelled():
            raise _EndedError(self._frame_of(RunCancelled(self.token.reason), phase))

    def _frame_of(self, error: BaseException, phase: str) -> Frame:
        """The terminal frame of a run that ``error`` ended."""
        chain = error_chain(error)
        if isinstance(error, GivenUpError):
            self._desk.warn(f"stage {self.stage}: {chain[0]}")
        if self.token.is_cancelled():
            if not isinstance(error, RunCancelled | GivenUpError):
                self._desk.say(LogEvent(LogLevel.INFO, f"told to stop, it reported: {': '.join(chain)}"))
            status, reason = self._stopped_status(), f"{self.token.reason} (stage {self.stage})"
            cause = Cause(self.stage, self._stop_type(), (self.token.reason, *chain))
            return Frame.stopped(status, str(status), reason, self._elapsed_s(), cause=cause)
        status = RunStatus.FAILED if isinstance(error, Exception) else RunStatus.CRASHED
        cause = Cause(self.stage, type(error).__name__, chain)
        return Frame.stopped(status, phase, ": ".join(chain), self._elapsed_s(), cause=cause)

    def _stopped_status(self) -> RunStatus:
        return RunStatus.TIMED_OUT if self._supervisor.overdue else RunStatus.CANCELLED

    def _stop_type(self) -> str:
        return "deadline" if self._supervisor.overdue else "cancel"

    # Small things

    def _enter(self, stage: Stage) -> None:
        self.stage = stage
        self._desk.enter(stage)

    def _built(self) -> Benchmark:
        if self._benchmark is None:
            raise RunError("the benchmark was not built")
        return self._benchmark

    def _elapsed_s(self) -> float:
        return self.request.clock.now().mono_s - self._started.mono_s

    def _draft(self) -> RunRecord:
        request = self.request
        return draft_record(request.descriptor, request.values, request.target, request.source, self._started)

    def _final(self) -> RunRecord:
        frame = self.log.terminal or self._frame_of(RunError("no terminal frame was sent"), "executor")
        end = Ending(
            run_id=self.run_id,
            version=self._metadata.version,
            at=self.request.clock.now(),
            frame=frame,
            provenance=() if self._handle is None else self._handle.provenance(),
            warnings=(*self.log.warnings(), *((self.save_error,) if self.save_error else ())),
            abandoned=tuple(self._supervisor.abandoned),
            dropped_messages=self.log.dropped,
            cancel_requested=self.token.is_cancelled() and not self._supervisor.overdue,
        )
        return final_record(self._draft(), end)
