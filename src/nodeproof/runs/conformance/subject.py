"""What is tested, the stand-in that watches and disturbs it, and the executor that it runs in."""

import contextlib
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

from nodeproof.clock import SystemClock
from nodeproof.errors import RunError
from nodeproof.model.run import ExecutorMessage, Frame, GlowEvent, RunRecord, Stage, StageEvent, Verdict, VerdictKind, is_final
from nodeproof.runs.artifacts import ArtifactStore
from nodeproof.runs.benchmark import Benchmark, Descriptor, PluginMetadata
from nodeproof.runs.cancel import CancelToken
from nodeproof.runs.endpoint import TargetEndpoint
from nodeproof.runs.executor import BenchmarkExecutor, RunHandle
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.messages import MessageLog
from nodeproof.runs.open_run import ScratchRun
from nodeproof.runs.params import ParamSpec, ParamValues
from nodeproof.runs.ports import CoherenceProbe, HardwareEvidence, NullEvidence, Switches
from nodeproof.runs.store import RunStore
from nodeproof.runs.supervise import Graces

__all__ = [
    "HANG_S",
    "Case",
    "ConformanceError",
    "Disturbance",
    "Outcome",
    "Rig",
    "Stand",
    "Subject",
    "expect",
    "injected",
    "plugin_handle",
]

HANG_S = 120.0
"""So long a planted hang lasts when nobody ends it."""


class ConformanceError(AssertionError):
    """The benchmark, or the executor with it, does not do what the contract says."""


class Subject(NamedTuple):
    """The benchmark, and how to run it quickly."""

    descriptor: Descriptor
    overrides: Mapping[str, str] = {}
    """Parameters with which a whole run is short."""
    target: TargetEndpoint | None = None
    within_s: float = 60.0
    """A whole run takes no longer."""
    cancel_grace_s: float = 5.0
    """A cancelled call comes back within this time."""

    def values(self) -> ParamValues:
        """Its configuration."""
        return ParamValues.from_overrides(self.descriptor.build().parameters(), self.overrides.items())


class Case(NamedTuple):
    """One thing that must hold."""

    name: str
    about: str
    check: Callable[[Subject], None]
    """Raises ConformanceError when it does not hold."""

    def __str__(self) -> str:
        return self.name


def expect(condition: object, expected: str, seen: object = "") -> None:
    """Raise ConformanceError unless ``condition`` holds."""
    if not condition:
        raise ConformanceError(f"expected {expected}" + (f", saw {seen}" if seen != "" else ""))


class Stand:
    """Stands before the real benchmark: notes every call, and does what the case wants before or after it."""

    def __init__(self, real: Benchmark, rig: "Rig") -> None:
        self._real = real
        self._rig = rig
        self._steps = 0

    def descriptor(self) -> Descriptor:
        """The real one's."""
        return self._real.descriptor()

    def metadata(self) -> PluginMetadata:
        """The real one's."""
        return self._real.metadata()

    def parameters(self) -> Sequence[ParamSpec]:
        """The real one's."""
        return self._real.parameters()

    def load(self, handle: PluginHandle) -> None:
        """As the real one, noted."""
        with self._noted("load"):
            self._real.load(handle)

    def configure(self, values: ParamValues) -> None:
        """As the real one, noted."""
        with self._noted("configure"):
            self._real.configure(values)

    def next(self) -> Frame:
        """As the real one, noted; the end comes early when the case needs no whole run."""
        self._steps += 1
        if self._rig.disturb.steps and self._steps > self._rig.disturb.steps:
            self._rig.calls.append("next")
            return Frame.completed("cut short", 0.0, verdict=Verdict(VerdictKind.PASS, "as many steps as wanted: 1 of 1"))
        with self._noted("next"):
            frame = self._real.next()
        if is_final(frame):
            self._act("terminal")
        return frame

    def cleanup(self) -> None:
        """As the real one, noted."""
        with self._noted("cleanup"):
            self._real.cleanup()

    @contextlib.contextmanager
    def _noted(self, name: str) -> Iterator[None]:
        self._rig.calls.append(name)
        self._act(f"before {name}")
        yield
        self._act(f"after {name}")

    def _act(self, point: str) -> None:
        action = self._rig.disturb.points.get(point)
        if action is not None:
            action(self._rig)


class Disturbance(NamedTuple):
    """What happens at which point of a run."""

    points: Mapping[str, "Callable[[Rig], None]"] = {}
    """By ``before load``, ``after next`` ...; ``terminal`` comes when the last frame is there, and not yet handed over."""
    steps: int = 0
    """So many real steps are made, then the run ends; 0 = as many as it has."""


class Outcome(NamedTuple):
    """A run that is over."""

    record: RunRecord
    messages: list[ExecutorMessage]
    calls: list[str]
    took_s: float
    """From the cancel, where there was one; else from the start."""
    path: str

    def frames(self) -> list[Frame]:
        """Its frames."""
        return [message.frame for message in self.messages if message.frame is not None]

    def stages(self) -> list[Stage]:
        """Its stages."""
        return [message.event.stage for message in self.messages if isinstance(message.event, StageEvent)]

    def glows(self) -> list[bool]:
        """Work in flight: on, off."""
        return [message.event.on for message in self.messages if isinstance(message.event, GlowEvent)]

    def check_end(self) -> None:
        """What holds on every road: one terminal frame, the last one; one cleanup, after it; light on, then off; all stored."""
        frames = self.frames()
        expect(frames, "a terminal frame", "no frame at all")
        expect([is_final(frame) for frame in frames] == [False] * (len(frames) - 1) + [True], "one terminal frame, the last one")
        expect(frames[-1].verdict is not None and frames[-1].verdict.reason, "a verdict with a reason on the terminal frame")
        expect(self.calls.count("cleanup") == 1, "cleanup called once", f"{self.calls.count('cleanup')} calls")
        expect(self.calls[-1] == "cleanup", "cleanup as the last call", self.calls)
        expect(self.glows() == [True, False], "work in flight said on once and off once", self.glows())
        expect(self.record.frame == frames[-1], "the terminal frame in the record, as it was sent")
        numbers = [message.sequence for message in self.messages]
        expect(numbers == list(range(1, len(numbers) + 1)), "messages numbered from 1 without a gap", numbers)
        times = [message.mono_s for message in self.messages]
        expect(times == sorted(times), "times that never go back")
        said = [message.warning for message in self.messages if message.warning]
        expect(list(self.record.warnings) == said, "every warning in the record", f"{list(self.record.warnings)} for {said}")


def _blindfold(_: "Rig") -> HardwareEvidence:
    return NullEvidence()


class Rig:
    """An executor with a store of its own, for one case."""

    def __init__(
        self,
        subject: Subject,
        *,
        evidence: "Callable[[Rig], HardwareEvidence]" = _blindfold,
        coherence: "Callable[[Rig], CoherenceProbe] | None" = None,
        disturb: Disturbance | None = None,
    ) -> None:
        self.subject = subject
        self.disturb = disturb or Disturbance()
        self.calls: list[str] = []
        self.cancelled_at_s = 0.0
        self._handle: RunHandle | None = None
        self._started = threading.Event()
        self._root = tempfile.mkdtemp(prefix="nodeproof-conformance-")
        self.store = RunStore(self._root)
        self.executor = BenchmarkExecutor(
            home=self._root,
            store=self.store,
            evidence=lambda: evidence(self),
            coherence=None if coherence is None else coherence(self),
            graces=Graces(cancel_grace_s=subject.cancel_grace_s, cleanup_grace_s=subject.cancel_grace_s),
        )
        real = subject.descriptor
        self.descriptor = msgspec.structs.replace(real, build=lambda: Stand(real.build(), self))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.executor.shutdown(self.subject.within_s)
        shutil.rmtree(self._root, ignore_errors=True)

    def start(self, values: ParamValues | None = None, switches: Switches | None = None) -> RunHandle:
        """Start a run."""
        handle = self.executor.start(
            self.descriptor, values or self.subject.values(), target=self.subject.target, switches=switches
        )
        self._handle = handle
        self._started.set()
        return handle

    def cancel(self) -> None:
        """Cancel it, and note when. May be called from the run itself, a moment before :meth:`start` has come back."""
        self._started.wait(HANG_S)
        self.cancelled_at_s = time.monotonic()
        if self._handle is not None:
            self._handle.cancel()

    def close(self) -> None:
        """Close its handle."""
        self._started.wait(HANG_S)
        if self._handle is not None:
            self._handle.close()

    def cancel_soon(self) -> None:
        """Cancel it in a moment, from another thread: the call in flight has begun by then."""
        timer = threading.Timer(0.05, self.cancel)
        timer.daemon = True
        timer.start()

    def finish(self, handle: RunHandle) -> Outcome:
        """Wait for the end. Raises ConformanceError when there is none in time."""
        begun_s = time.monotonic()
        expect(handle.wait(self.subject.within_s), f"an end within {self.subject.within_s:g} s", f"stage {handle.stage}")
        took_s = time.monotonic() - (self.cancelled_at_s or begun_s)
        record = handle.record
        if record is None or handle.save_error:
            raise ConformanceError(f"expected a stored record, saw {handle.save_error or 'none'}")
        stored = self.store.load(handle.run_id)
        expect(stored.record == record, "the record as it was stored")
        return Outcome(record, stored.messages(), self.calls, took_s, stored.path)

    def run(self, values: ParamValues | None = None, switches: Switches | None = None) -> Outcome:
        """Start a run and wait for its end."""
        return self.finish(self.start(values, switches))


def plugin_handle(home: str, target: TargetEndpoint | None = None, benchmark_id: str = "benchmark") -> PluginHandle:
    """A handle for tests that call a benchmark without an executor."""
    clock = SystemClock()
    return PluginHandle(
        run_number=1,
        log=MessageLog(clock, lambda _: None),
        token=CancelToken(),
        artifacts=ArtifactStore(home, benchmark_id),
        target=target,
        evidence=NullEvidence(),
        clock=clock,
        file_path=ScratchRun().file_path,
    )


def injected(error: BaseException) -> Callable[[Rig], None]:
    """Raises ``error`` with a cause, where it is called."""

    def act(_: Rig) -> None:
        raise error from RunError("planted cause")

    return act
