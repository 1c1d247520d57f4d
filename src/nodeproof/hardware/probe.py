"""The box watched around one run: looked at and judged before, sampled during, looked at and judged after.

``open`` takes two looks a moment apart, so that what moves now (somebody's load, a throttle counter) is seen before the run.
``sample`` begins a thread that looks a few times a second. ``judge`` gives the verdict on a window that the run names, and the
closed report lists it. A look that fails gives unknowns; nothing here raises because of the machine.

Once cells were judged, they decide: the run is as valid as the newest cell of each name, and as what concerns all cells alike
(hardware errors). Without cells the whole run is one.
"""

import os
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

import msgspec

from nodeproof.clock import Instant
from nodeproof.errors import Absence, NoData
from nodeproof.hardware.before import before_facts
from nodeproof.hardware.delta import accelerator_facts, chassis_rise, governor_changes, hardware_delta, merged
from nodeproof.hardware.facts import Facts
from nodeproof.hardware.live import live_sample
from nodeproof.hardware.looks import Look, Looker
from nodeproof.hardware.notes import kernel_notes
from nodeproof.hardware.policy import Ceilings, Options, judge, judge_cell, judge_cells, precheck
from nodeproof.hardware.providers import AcceleratorProvider, Accelerators, DeviceSet
from nodeproof.hardware.readers.processes import OwnPids
from nodeproof.hardware.recorder import Recorder
from nodeproof.hardware.rules import DEFAULT_POLICY, Policy
from nodeproof.hardware.state import StateMaker
from nodeproof.host.machine import Machine
from nodeproof.host.own_process import thread_cpu_s
from nodeproof.host.suspend import suspended_s
from nodeproof.model.hardware import (
    REPORT_SCHEMA,
    CellReport,
    Fact,
    HardwareReport,
    HardwareState,
    LiveSample,
    SamplerReport,
    Sensitivity,
    Validity,
)

__all__ = ["HardwareProbe", "Settings", "SwitchesLike"]

_MAX_CELLS = 4096


class SwitchesLike(Protocol):
    """What the user has decided, as the executor hands it over."""

    @property
    def never_refuse(self) -> bool:
        """A refusal becomes a warning."""
        ...

    @property
    def temperature_gate(self) -> bool:
        """Temperatures over the ceilings refuse."""
        ...


class Settings(NamedTuple):
    """How a run is watched."""

    period_s: float = 0.5
    """Time between two looks while the run goes on: 0.25 to 1 s."""
    first_window_s: float = 0.5
    """Time between the two looks before the run."""
    boundary_deadline_s: float = 5.0
    """A look before or after the run waits at most so long for its slowest source."""
    ceilings: Ceilings = Ceilings()
    policy: Policy = DEFAULT_POLICY
    roots: tuple[int, ...] | None = None
    """Processes whose trees are the run's own; None = this process."""
    own_pids: OwnPids | None = None
    """Tells more of them at each look."""
    providers: tuple[AcceleratorProvider, ...] = ()
    devices: DeviceSet = None
    """Accelerators that the run uses; empty = none."""
    suspended_s: Callable[[], float] = suspended_s


class HardwareProbe:
    """Evidence about the box for one run. ``judge``, ``live`` and ``abandon`` may be called by any thread, the others by one."""

    def __init__(self, machine: Machine, settings: Settings = Settings()) -> None:  # noqa: B008 - immutable
        self._machine = machine
        self._settings = settings
        self._lock = threading.RLock()
        """Held for a look and for changes of what follows; no look lasts longer than its time-out."""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        accelerators = Accelerators(machine, settings.providers, settings.devices)
        roots = settings.roots if settings.roots is not None else (os.getpid(),)
        self._looker = Looker(machine, accelerators, roots=roots, own_pids=settings.own_pids, suspended_s=settings.suspended_s)
        allowed = self._looker.processors.allowed
        self._allowed = max(1, len(allowed))
        self._recorder = Recorder(accelerators)
        self._facts = Facts(self._recorder, self._allowed)
        self._states = StateMaker(machine, accelerators, allowed)
        self._accelerators = accelerators
        self._sensitivity = Sensitivity.SPEED
        self._report: HardwareReport | None = None
        self._first: Look | None = None
        self._begin: Look | None = None
        self._end_s: float | None = None
        self._cells: list[CellReport] = []
        self._unread: dict[str, int] = {}
        self._looks = 0
        self._late = 0
        self._recording_cpu_s = 0.0
        self._opening_cpu_s = 0.0

    def open(self, sensitivity: Sensitivity, switches: SwitchesLike) -> HardwareReport:
        """Look at the box and judge it; the report is not closed."""
        with self._lock:
            self._sensitivity = sensitivity
            deadline_s = self._settings.boundary_deadline_s
            self._first = self._look(deadline_s, full=True)
        self._machine.clock.sleep(self._settings.first_window_s)
        with self._lock:
            self._begin = self._look(deadline_s, full=True)
            options = Options(switches.never_refuse, switches.temperature_gate, self._settings.ceilings)
            verdict = precheck(sensitivity, self._before_facts(), self._settings.policy, options)
            before = self._states.state(self._begin)
            self._opening_cpu_s = self._cpu_s()
            self._report = HardwareReport(
                sensitivity=sensitivity,
                perf_class=before.perf_class,
                before=before,
                precheck=verdict,
                schema=REPORT_SCHEMA,
            )
            return self._report

    def summary(self) -> str:
        """The box before the run in one line."""
        return self._report.before.one_line() if self._report is not None else "the box was not looked at"

    def sample(self) -> None:
        """Begin to look a few times a second; nothing happens when that was begun before, or cannot be."""
        if self._thread is not None or self._stop.is_set():
            return
        thread = threading.Thread(target=self._run, name="hardware-sampler", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no thread to be had: the looks before and after remain, and the report counts them
            return
        self._thread = thread

    def tick(self) -> None:
        """One look, now: what the sampler's thread does each period."""
        with self._lock:
            if not self._stop.is_set():
                self._look(self._settings.period_s * 0.4, full=False)

    def judge(self, name: str, begin_s: float, end_s: float) -> CellReport:
        """Verdict on the window from ``begin_s`` to ``end_s`` (seconds since boot); the newest of one name counts."""
        try:
            with self._lock:
                return self._judge(name, begin_s, end_s)
        except Exception as error:  # noqa: BLE001 - a run does not end because its evidence cannot be told
            reason = f"the box could not be judged: {type(error).__name__}: {error}"
            return CellReport(name, begin_s, end_s, Validity.UNKNOWN, [reason])

    mark_cell = judge
    """The same, by the name that runs use for their windows."""

    def live(self) -> LiveSample | None:
        """The newest look, for people who watch; None before the first."""
        try:
            with self._lock:
                return live_sample(self._recorder, self._facts, self._begin)
        except Exception:  # noqa: BLE001 - a strip that cannot be shown must not stop the page
            return None

    def close(self) -> HardwareReport:
        """End the sampling, look once more, and judge."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(self._settings.boundary_deadline_s)
        with self._lock:
            try:
                return self._close()
            finally:
                self._looker.close()

    def abandon(self) -> None:
        """End the sampling without looking again."""
        self._stop.set()
        self._looker.close()

    def _look(self, timeout_s: float, *, full: bool) -> Look:
        look = self._looker.look(timeout_s, full=full)
        began_s = thread_cpu_s()
        self._recorder.take(look)
        self._looks += 1
        for name, reading in look.sources():
            if isinstance(reading, NoData) and reading.state is not Absence.NOT_APPLICABLE:
                self._unread[name] = self._unread.get(name, 0) + 1
        self._recording_cpu_s += thread_cpu_s() - began_s
        return look

    def _run(self) -> None:
        clock, period_s = self._machine.clock, self._settings.period_s
        due_s = clock.now().mono_s + period_s
        while not self._stop.wait(max(0.0, due_s - clock.now().mono_s)):
            if clock.now().mono_s - due_s > period_s / 2:
                self._late += 1
            self.tick()
            due_s = max(due_s + period_s, clock.now().mono_s)

    def _before_facts(self) -> dict[str, Fact]:
        first, second = self._first, self._begin
        if first is None or second is None:
            return {}
        window = self._facts.window(first.at.mono_s, second.at.mono_s, first.at.mono_s)
        governors = second.governors if second.governors is not None else NoData(Absence.UNKNOWN, "not read")
        slow = governors if isinstance(governors, NoData) else self._looker.governors.slow(governors)
        return before_facts(second, window, self._accelerators, self._settings.ceilings, slow)

    def _judge(self, name: str, begin_s: float, end_s: float) -> CellReport:
        last = self._recorder.last
        if self._end_s is None and not self._stop.is_set() and (last is None or last.at.mono_s < end_s):
            self._look(self._settings.period_s * 0.4, full=False)
        cell = self._cell(name, begin_s, end_s)
        if len(self._cells) < _MAX_CELLS:
            self._cells.append(cell)
        return cell

    def _cell(self, name: str, begin_s: float, end_s: float) -> CellReport:
        run_begin_s = self._begin.at.mono_s if self._begin is not None else begin_s
        facts = self._facts.window(begin_s, end_s, run_begin_s)
        verdict = judge_cell(self._sensitivity, facts, self._settings.policy)
        energy = self._recorder.rails.energy(begin_s, end_s)
        return CellReport(name, begin_s, end_s, verdict.validity, verdict.concerns, verdict.findings, energy=energy)

    def _close(self) -> HardwareReport:
        report = self._report
        if report is None:
            raise NoData(Absence.UNKNOWN, "the box was not looked at before the run")
        if report.postcheck is not None:
            return report
        end = self._look(self._settings.boundary_deadline_s, full=True)
        self._end_s = end.at.mono_s
        after = self._states.state(end)
        begin = self._begin or end
        cells = self._final_cells()
        facts = self._run_facts(report.before, after, begin, end)
        policy = self._settings.policy
        verdict = judge(self._sensitivity, facts, policy)
        if cells:
            verdict = judge_cells(
                verdict, self._sensitivity, facts, policy, [cell.validity for cell in cells if not cell.superseded]
            )
        duration_s = end.at.mono_s - begin.at.mono_s
        self._report = msgspec.structs.replace(
            report,
            after=after,
            delta=hardware_delta(report.before, after, duration_s, facts.values()),
            postcheck=verdict,
            cells=cells,
            kernel_events=kernel_notes(self._machine, begin.at.mono_s),
            sampler=self._sampler_report(begin.at, end.at),
            energy=self._recorder.rails.energy(begin.at.mono_s, end.at.mono_s),
        )
        return self._report

    def _run_facts(self, before: HardwareState, after: HardwareState, begin: Look, end: Look) -> dict[str, Fact]:
        facts = self._facts.window(begin.at.mono_s, end.at.mono_s, begin.at.mono_s)
        facts["chassis_rise_c"] = chassis_rise(before, after)
        facts["governor_changes"] = _governors(begin, end)
        for fact in accelerator_facts(before, after, end.at.mono_s - begin.at.mono_s, self._accelerators.mine):
            facts[fact.name] = merged(facts.get(fact.name), fact)
        return facts

    def _final_cells(self) -> list[CellReport]:
        """Every cell judged anew, now that all is known; an earlier one of the same name is superseded."""
        newest = {cell.name: at for at, cell in enumerate(self._cells)}
        return [
            msgspec.structs.replace(self._cell(cell.name, cell.begin_s, cell.end_s), superseded=newest[cell.name] != at)
            for at, cell in enumerate(self._cells)
        ]

    def _cpu_s(self) -> float:
        return self._looker.cpu_s + self._recording_cpu_s

    def _sampler_report(self, begin: Instant, end: Instant) -> SamplerReport:
        cpu_s = self._cpu_s() - self._opening_cpu_s
        passed_s = max(1e-9, end.mono_s - begin.mono_s)
        return SamplerReport(
            period_s=self._settings.period_s,
            samples=self._looks,
            late=self._late,
            cpu_s=round(cpu_s, 6),
            cpu_share=cpu_s / passed_s / self._allowed,
            unread=dict(self._unread),
        )


def _governors(begin: Look, end: Look) -> Fact:
    for reading in (begin.governors, end.governors):
        if isinstance(reading, NoData):
            return Fact("governor_changes", state=reading.state, reason=reading.reason)
    before = None if isinstance(begin.governors, NoData) else begin.governors
    after = None if isinstance(end.governors, NoData) else end.governors
    return governor_changes(before, after)
