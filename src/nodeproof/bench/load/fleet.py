"""The worker processes of a load run: started together, watched, ended with proof."""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

import msgspec

from nodeproof.bench.load.plan import LoadPlan
from nodeproof.bench.load.worker import KEY_VARIABLE, Beat
from nodeproof.bench.reach import unreached
from nodeproof.errors import RunError
from nodeproof.host.atomic import store_file
from nodeproof.host.containment import Contained, Containment
from nodeproof.host.job_environment import allowed_environment
from nodeproof.model.process import EndKind, Limits

__all__ = ["Fleet"]

_START_S = 60.0
"""So long workers may load."""
_SOON_S = 0.1
_LOOK_S = 0.02
_START_EACH_S = 0.15
_GRACE_S = 2.0
_BACKSTOP_S = 120.0


class Fleet:
    """Workers of one plan. ``with`` ends them."""

    def __init__(self, plan: LoadPlan, folder: Callable[[str], str], *, key: str = "", name: str = "load") -> None:
        self.plan = plan
        """With the moment of the beginning, once :meth:`begin` has named it."""
        self.sample_paths = [folder(f"{name}-samples-{worker}.npsb") for worker in range(plan.workers)]
        self._workers: list[Contained] = []
        self._beats = [Beat() for _ in self.sample_paths]
        self._rests = [b"" for _ in self.sample_paths]
        self._plan_path, self._go_path = folder(f"{name}-plan.json"), folder(f"{name}-go")
        self._store_plan()
        environment = allowed_environment(os.environ)
        if key:
            environment[KEY_VARIABLE] = key
        try:
            for worker, samples in enumerate(self.sample_paths):
                self._workers.append(self._start(worker, samples, environment, folder(f"{name}-worker-{worker}.log")))
        except BaseException:
            self.close()
            raise

    def _start(self, worker: int, samples: str, environment: dict[str, str], log: str) -> Contained:
        total_s = _START_S + self.plan.duration_s + self.plan.drain_s + _BACKSTOP_S
        return Containment(use_cgroup=False).start(
            [sys.executable, "-P", "-m", "nodeproof.bench.load.worker", self._plan_path, str(worker), samples, self._go_path],
            cwd="/",
            output_path=log,
            environment=environment,
            limits=Limits(duration_s=total_s, grace_s=_GRACE_S),
        )

    def begin(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Have all begin at one moment, as soon as all have loaded. Raises RunError."""
        ends_s = time.monotonic() + _START_S
        while not all(beat.ready for beat in self._beats):
            if should_stop():
                return
            if self.wait(_LOOK_S) or time.monotonic() > ends_s:
                raise RunError(f"the workers did not begin within {_START_S:g} s")
        self.plan = msgspec.structs.replace(self.plan, epoch_s=time.monotonic() + _SOON_S)
        self._store_plan()
        store_file(self._go_path, repr(self.plan.epoch_s).encode())

    def _store_plan(self) -> None:
        store_file(self._plan_path, msgspec.json.format(msgspec.json.encode(self.plan), indent=2) + b"\n")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def wait(self, timeout_s: float) -> bool:
        """Wait until all have ended, at most so long; whether they have.

        Raises RunError when one could not do its work, EndpointLostError when the endpoint takes no connection any more.
        """
        ends_s = time.monotonic() + timeout_s
        over = True
        for worker in self._workers:
            over &= worker.wait(max(0.0, ends_s - time.monotonic())) is not None
        self._listen()
        for number, worker in enumerate(self._workers):
            self._check(number, worker)
        return over

    def beat(self) -> Beat:
        """All workers together, as they said last."""
        beats = self._beats
        return Beat(
            sent=sum(beat.sent for beat in beats),
            done=sum(beat.done for beat in beats),
            failed=sum(beat.failed for beat in beats),
            tokens=sum(beat.tokens for beat in beats),
            in_flight=sum(beat.in_flight for beat in beats),
            lag_s=max(beat.lag_s for beat in beats),
            connections=sum(beat.connections for beat in beats),
            ended=all(beat.ended for beat in beats),
            late_start_s=max(beat.late_start_s for beat in beats),
        )

    def cancel(self) -> None:
        """Have them stop; returns at once. What was measured so far is written."""
        for worker in self._workers:
            worker.request_cancel("the run is to stop")

    def close(self) -> None:
        """End what still runs."""
        for worker in self._workers:
            worker.request_cancel("the run is over")
        for worker in self._workers:
            with contextlib.suppress(OSError):
                worker.close()

    def _listen(self) -> None:
        for number, worker in enumerate(self._workers):
            *lines, self._rests[number] = (self._rests[number] + worker.output()).split(b"\n")
            for line in lines:
                with contextlib.suppress(msgspec.MsgspecError):
                    self._beats[number] = msgspec.json.decode(line, type=Beat)

    def _check(self, number: int, worker: Contained) -> None:
        beat, ended = self._beats[number], worker.ended
        if beat.error:
            raise RunError(f"worker {number}: {beat.error}")
        if beat.unreachable:
            raise unreached(self.plan.where.base_url, beat.unreachable, self.beat().done - self.beat().failed)
        if ended is not None and not beat.ended and ended.kind is not EndKind.CANCELLED:
            tail = " ".join(worker.tail().decode("utf-8", "replace").split())[-300:]
            raise RunError(f"worker {number} ended before its work was done ({ended.reason}): {tail}")
