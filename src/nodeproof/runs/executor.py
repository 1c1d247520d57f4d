"""Starts runs, and what the starter holds of one.

::

    executor = BenchmarkExecutor(home=state_root, store=RunStore(state_root), evidence=make_probe)
    with executor.start(descriptor, values, source=RunSource.CLI) as run:
        while not run.wait(0.25):
            for message in run.drain():
                ...
    run.record.exit_code
"""

import itertools
import threading
import time
import weakref
from collections.abc import Callable
from types import TracebackType
from typing import Self

from nodeproof.clock import Clock, SystemClock
from nodeproof.model.hardware import LiveSample
from nodeproof.model.run import ExecutorMessage, RunRecord, RunSource, RunStatus, Stage
from nodeproof.runs.benchmark import Descriptor
from nodeproof.runs.conduct import Run
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.job_locks import JobLocks
from nodeproof.runs.messages import LogLimits
from nodeproof.runs.params import ParamValues
from nodeproof.runs.ports import CoherenceProbe, HardwareEvidence, NullEvidence, Switches
from nodeproof.runs.request import RunRequest
from nodeproof.runs.store import RunStore
from nodeproof.runs.supervise import Graces
from nodeproof.runs.worker import Worker

__all__ = ["BenchmarkExecutor", "RunHandle"]


class RunHandle:
    """A run that was started. Closing the handle, or losing it, cancels the run; its record is written all the same."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._finalizer = weakref.finalize(self, run.lose_reader)
        self._finalizer.atexit = False

    def drain(self) -> list[ExecutorMessage]:
        """What the run said since the last time, in order. Never blocks."""
        return self._run.log.drain()

    def cancel(self, reason: str = "cancelled by the user") -> None:
        """Order it to stop. Returns at once; once the terminal frame is out it changes nothing."""
        self._run.cancel(reason)

    def is_cancelled(self) -> bool:
        """Whether it was ordered to stop, by anybody or by its deadline."""
        return self._run.token.is_cancelled()

    def is_finished(self) -> bool:
        """Whether all is over: cleaned up, and the record written. Nothing comes after it but what :meth:`drain` still holds."""
        return self._run.finished.is_set()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is finished, at most ``timeout_s``; whether it is."""
        return self._run.finished.wait(timeout_s)

    def close(self) -> None:
        """Read no more: cancels. Returns at once."""
        self._run.cancel("its reader closed it")

    @property
    def number(self) -> int:
        """Counts the runs of one executor."""
        return self._run.request.number

    @property
    def run_id(self) -> str:
        """Name in the store; empty until it has one, a moment after the start."""
        return self._run.run_id

    @property
    def stage(self) -> Stage:
        """Where it is."""
        return self._run.stage

    @property
    def status(self) -> RunStatus:
        """``running`` until the terminal frame is out."""
        frame = self._run.log.terminal
        return RunStatus.RUNNING if frame is None else frame.status

    @property
    def record(self) -> RunRecord | None:
        """The record, once it is finished; also when it could not be stored."""
        return self._run.record if self._run.finished.is_set() else None

    @property
    def saved_to(self) -> str:
        """Directory of the stored run; empty before the end, or when it was not stored."""
        return self._run.saved_to

    @property
    def save_error(self) -> str:
        """Why record or log could not be stored; empty when all went well."""
        return self._run.save_error

    def live(self) -> LiveSample | None:
        """The newest look at the box, for people who watch."""
        return self._run.live()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


class BenchmarkExecutor:
    """Starts runs. May be used from any thread; copies share the count."""

    def __init__(
        self,
        *,
        home: str,
        store: RunStore | None,
        evidence: Callable[[], HardwareEvidence] = NullEvidence,
        coherence: CoherenceProbe | None = None,
        graces: Graces | None = None,
        limits: LogLimits | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._home = home
        self._store = store
        self._evidence = evidence
        self._coherence = coherence
        self._graces = graces or Graces()
        self._limits = limits or LogLimits()
        self._clock = clock or SystemClock()
        self._ledger = _Ledger()

    @property
    def runs_folder(self) -> str:
        """Folder of the store's runs; empty when nothing is kept."""
        return "" if self._store is None else self._store.runs_folder

    def start(
        self,
        descriptor: Descriptor,
        values: ParamValues,
        *,
        target: TargetEndpoint | None = None,
        source: RunSource = RunSource.UNKNOWN,
        probe_coherence: bool = True,
        switches: Switches | None = None,
        evidence: Callable[[], HardwareEvidence] | None = None,
        deadline_s: float | None = None,
        save: bool = True,
        locks: JobLocks | None = None,
    ) -> RunHandle:
        """Start a run and return at once. Never raises for anything that goes wrong in it: that is in its terminal frame.

        ``locks`` are taken for the run and given back at its end; where somebody else has them the run is refused.
        """
        with self._ledger.lock:
            self._ledger.tidy()
            run = Run(
                RunRequest(
                    descriptor=descriptor,
                    values=values,
                    target=target,
                    source=source,
                    coherence=self._coherence if probe_coherence else None,
                    switches=switches or Switches(),
                    evidence=evidence or self._evidence,
                    deadline_s=deadline_s,
                    store=self._store if save else None,
                    home=self._home,
                    number=next(self._ledger.numbers),
                    graces=self._graces,
                    limits=self._limits,
                    clock=self._clock,
                    older=tuple(self._ledger.given_up),
                    locks=locks,
                )
            )
            self._ledger.runs.append(run)
        run.begin()
        return RunHandle(run)

    def shutdown(self, timeout_s: float) -> bool:
        """Cancel every run of this executor and wait for their ends; whether all came to one in time."""
        ends_s = time.monotonic() + timeout_s
        with self._ledger.lock:
            runs = list(self._ledger.runs)
        for run in runs:
            run.cancel("nodeproof is shutting down")
        return all(run.finished.wait(max(0.0, ends_s - time.monotonic())) for run in runs)


class _Ledger:
    """What an executor and its copies know of their runs; everything in it is used under ``lock``."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.numbers = itertools.count(1)
        self.runs: list[Run] = []
        self.given_up: list[Worker] = []

    def tidy(self) -> None:
        """Forget runs that are over, but not the threads that they left behind."""
        self.given_up = [worker for worker in self.given_up if worker.is_alive()]
        for run in self.runs:
            if run.finished.is_set():
                self.given_up += run.given_up
        self.runs = [run for run in self.runs if not run.finished.is_set()]
