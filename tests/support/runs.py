"""A benchmark that does what a test wants, and executors with short graces."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nodeproof.clock import Clock
from nodeproof.errors import RunError
from nodeproof.model.hardware import (
    CellReport,
    Decision,
    HardwareReport,
    LiveSample,
    Postcheck,
    Precheck,
    Sensitivity,
    Validity,
)
from nodeproof.model.run import Event, ExecutorMessage, Frame, LogEvent, RunRecord, Verdict, VerdictKind
from nodeproof.runs.benchmark import Descriptor, PluginMetadata
from nodeproof.runs.executor import BenchmarkExecutor, RunHandle
from nodeproof.runs.handle import PluginHandle
from nodeproof.runs.messages import LogLimits
from nodeproof.runs.params import Int, ParamSpec, ParamValues
from nodeproof.runs.ports import CoherenceProbe, HardwareEvidence, NullEvidence, Switches, unknown_report
from nodeproof.runs.store import RunStore
from nodeproof.runs.supervise import Graces

__all__ = ["NO_VALUES", "PASS", "QUICK", "Bench", "Evidence", "Ran", "Scripted", "hang", "script"]

QUICK = Graces(cancel_grace_s=0.6, cleanup_grace_s=0.8, capture_s=0.8, coherence_s=0.8, save_s=15.0)
STEPS = [ParamSpec("steps", "Steps", "How many running frames come before the last", Int(0, 100), 2)]
NO_VALUES = ParamValues.defaults(STEPS)
PASS = Verdict(VerdictKind.PASS, "2 of 2")


class Scripted:
    """Calls the test's function, if there is one, at each call; ``calls`` is what was called."""

    def __init__(
        self, descriptor: Callable[[], Descriptor], calls: list[str], acts: dict[str, Callable[["Scripted"], object]]
    ) -> None:
        self._descriptor = descriptor
        self._calls = calls
        self._acts = acts
        self.handle: PluginHandle | None = None
        self.done = 0
        self.steps = 0

    @property
    def given(self) -> PluginHandle:
        if self.handle is None:
            raise RunError("not loaded")
        return self.handle

    def descriptor(self) -> Descriptor:
        return self._descriptor()

    def metadata(self) -> PluginMetadata:
        self._act("metadata")
        return PluginMetadata.third_party("Does what a test wants", "1.0")

    def parameters(self) -> Sequence[ParamSpec]:
        return STEPS

    def load(self, handle: PluginHandle) -> None:
        self._calls.append("load")
        self.handle = handle
        self._act("load")

    def configure(self, values: ParamValues) -> None:
        self._calls.append("configure")
        self.steps, self.done = values.int("steps"), 0
        self._act("configure")

    def next(self) -> Frame:
        self._calls.append("next")
        given = self._act("next")
        if given is not None:
            return given  # type: ignore[return-value]  # a test may hand over anything, as a plug-in may
        self.done += 1
        if self.done > self.steps:
            return Frame.completed("done", 1.5, verdict=PASS, metrics={"rate": 2.5})
        return Frame.running("work", 0.5, progress=(self.done, self.steps))

    def cleanup(self) -> None:
        self._calls.append("cleanup")
        self._act("cleanup")

    def _act(self, name: str) -> object:
        act = self._acts.get(name)
        return None if act is None else act(self)


def script(
    calls: list[str],
    sensitivity: Sensitivity = Sensitivity.SPEED,
    acts: dict[str, Callable[[Scripted], object]] | None = None,
    **more: Callable[[Scripted], object],
) -> Descriptor:
    """A descriptor whose benchmark does ``acts`` and ``more``; ``build`` is one of them."""
    acts = {**(acts or {}), **more}

    def build() -> Scripted:
        calls.append("build")
        if "build" in acts:
            acts["build"](Scripted(lambda: descriptor, calls, {}))
        return Scripted(lambda: descriptor, calls, acts)

    descriptor = Descriptor(
        id="scripted",
        name="Scripted",
        summary="Does what a test wants",
        detail="It costs nothing.",
        duration_hint="no time at all",
        expected_secs=1,
        updated="2026-11-30",
        sensitivity=sensitivity,
        build=build,
    )
    return descriptor


class Evidence(NullEvidence):
    """A box that is as a test wants it: its calls, and functions that stand for them."""

    def __init__(
        self,
        calls: list[str] | None = None,
        *,
        decision: Decision = Decision.PROCEED,
        concerns: Sequence[str] = (),
        postcheck: Postcheck | None = None,
        acts: Mapping[str, Callable[[], object]] | None = None,
    ) -> None:
        super().__init__()
        self.calls = calls if calls is not None else []
        self.switches = Switches()
        self._before = Precheck(decision, list(concerns))
        self._after = postcheck or Postcheck(Validity.VALID)
        self._acts = acts or {}
        self._kind = Sensitivity.SPEED

    def open(self, sensitivity: Sensitivity, switches: Switches) -> HardwareReport:
        self._kind, self.switches = sensitivity, switches
        given = self._act("open")
        return given if given is not None else self._report(closed=False)  # type: ignore[return-value]  # may be anything

    def sample(self) -> None:
        self._act("sample")

    def judge(self, name: str, begin_s: float, end_s: float) -> CellReport:
        return CellReport(name, begin_s, end_s, Validity.INVALID, ["planted"])

    def live(self) -> LiveSample | None:
        return LiveSample(at=1.0, mono_s=2.0)

    def close(self) -> HardwareReport:
        self._act("close")
        return self._report(closed=True)

    def abandon(self) -> None:
        self._act("abandon")

    def _act(self, name: str) -> object:
        self.calls.append(name)
        act = self._acts.get(name)
        return None if act is None else act()

    def _report(self, *, closed: bool) -> HardwareReport:
        unknown = unknown_report(self._kind, "", closed=closed)
        return HardwareReport(
            sensitivity=self._kind,
            perf_class="box@here",
            before=unknown.before,
            after=unknown.after,
            delta=unknown.delta,
            precheck=self._before,
            postcheck=self._after if closed else None,
        )


class Ran(NamedTuple):
    """A run that is over."""

    record: RunRecord
    messages: list[ExecutorMessage]
    handle: RunHandle

    @property
    def frames(self) -> list[Frame]:
        return [message.frame for message in self.messages if message.frame is not None]

    @property
    def events(self) -> list[Event]:
        return [message.event for message in self.messages if message.event is not None]

    @property
    def lines(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, LogEvent)]

    @property
    def hardware(self) -> dict[str, object]:
        return self.record.frame.hardware_state or {}


class Bench:
    """An executor over a store in ``folder``."""

    def __init__(
        self,
        folder: Path,
        *,
        evidence: Callable[[], HardwareEvidence] = NullEvidence,
        coherence: CoherenceProbe | None = None,
        graces: Graces = QUICK,
        limits: LogLimits | None = None,
        clock: Clock | None = None,
        store: RunStore | None = None,
    ) -> None:
        self.store = store or RunStore(str(folder))
        self.executor = BenchmarkExecutor(
            home=str(folder),
            store=self.store,
            evidence=evidence,
            coherence=coherence,
            graces=graces,
            limits=limits,
            clock=clock,
        )

    def run(self, descriptor: Descriptor, values: ParamValues = NO_VALUES, **options: object) -> Ran:
        return self.finish(self.executor.start(descriptor, values, **options))  # type: ignore[arg-type]  # handed on

    def finish(self, handle: RunHandle) -> Ran:
        assert handle.wait(15), f"not finished, stage {handle.stage}"
        record = handle.record
        assert record is not None
        return Ran(record, handle.drain(), handle)


def hang(release: threading.Event) -> None:
    """Not to come back until the test is over."""
    release.wait(15)
