"""Cases about being stopped: a cancel in every stage, readers that go away, and what may be left afterwards."""

import gc
import os
import threading
import time
from collections.abc import Callable

from nodeproof.host.process_tree import ProcessTree
from nodeproof.model.hardware import HardwareReport, Sensitivity
from nodeproof.model.run import ExitCode, RunStatus, Stage, VerdictKind
from nodeproof.runs.conformance.subject import Case, Disturbance, Outcome, Rig, Subject, expect
from nodeproof.runs.endpoint import ModelExpectation, TargetEndpoint
from nodeproof.runs.ports import CancelSignal, CoherenceReport, NullEvidence, Switches

__all__ = ["END_CASES"]

_EXTRA_S = 2.0
"""What the executor itself may take beside the graces: threads, disk."""
_SETTLE_S = 5.0


class _Waiting(NullEvidence):
    """Evidence that is cancelled while it looks, and takes its time."""

    def __init__(self, cancel: Callable[[], None], *, after: bool) -> None:
        super().__init__()
        self._cancel = cancel
        self._after = after

    def open(self, sensitivity: Sensitivity, switches: Switches) -> HardwareReport:
        """Is cancelled, if before."""
        if not self._after:
            self._cancel()
        return super().open(sensitivity, switches)

    def close(self) -> HardwareReport:
        """Is cancelled, if after."""
        if self._after:
            self._cancel()
        return super().close()


class _Probe:
    """A coherence probe that is cancelled while it asks."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._cancel = cancel

    def probe(self, target: TargetEndpoint, intended_for: ModelExpectation | None, cancel: CancelSignal) -> CoherenceReport:
        """Waits to be told."""
        del target, intended_for
        self._cancel()
        cancel.wait(_SETTLE_S)
        return CoherenceReport(concern="stopped while asking")


def _cancelled(outcome: Outcome, subject: Subject, stage: Stage) -> None:
    """What holds whenever a cancel came before the benchmark's own end."""
    outcome.check_end()
    record, cause = outcome.record, outcome.record.frame.cause
    expect(
        (record.status, record.exit_code) == (RunStatus.CANCELLED, ExitCode.CANCELLED), "cancelled, exit code 130", record.status
    )
    expect(record.cancel_requested, "the cancel in the record")
    expect(cause is not None and cause.stage is stage, f"stage {stage} as the place of the cancel", cause)
    expect(not record.abandoned, "every call to come back within the grace of a cancel", f"given up in {list(record.abandoned)}")
    limit_s = subject.cancel_grace_s + _EXTRA_S
    expect(outcome.took_s <= limit_s, f"an end within {limit_s:g} s of the cancel", f"{outcome.took_s:.2f} s")


def _cancel_in_call(call: str, stage: Stage) -> Callable[[Subject], None]:
    """A cancel a moment after the real call has begun; a call that is quicker is seen to stop after it."""

    def check(subject: Subject) -> None:
        with Rig(subject, disturb=Disturbance({f"before {call}": Rig.cancel_soon, f"after {call}": _await})) as rig:
            outcome = rig.run()
        _cancelled(outcome, subject, stage)

    return check


def _await(rig: Rig) -> None:
    """Not to come back before the cancel was given."""
    ends_s = time.monotonic() + _SETTLE_S
    while not rig.cancelled_at_s and time.monotonic() < ends_s:
        time.sleep(0.005)


def _cancel_in_hardware(subject: Subject) -> None:
    with Rig(subject, evidence=lambda rig: _Waiting(rig.cancel, after=False)) as rig:
        outcome = rig.run()
    _cancelled(outcome, subject, Stage.HARDWARE)
    expect(outcome.calls == ["cleanup"], "nothing loaded after the cancel", outcome.calls)


def _cancel_in_coherence(subject: Subject) -> None:
    wanted = subject._replace(target=subject.target or TargetEndpoint.local(9, "none"))
    with Rig(wanted, coherence=lambda rig: _Probe(rig.cancel)) as rig:
        outcome = rig.run()
    _cancelled(outcome, subject, Stage.COHERENCE)
    expect(outcome.calls == ["cleanup"], "nothing loaded after the cancel", outcome.calls)


def _cancel_seen_by_driver(subject: Subject) -> None:
    """The order stands before next() is called: the benchmark sees it by itself, or gives a frame that is its last."""
    with Rig(subject, disturb=Disturbance({"before next": Rig.cancel})) as rig:
        outcome = rig.run()
    _cancelled(outcome, subject, Stage.RUN)
    expect(outcome.calls.count("next") == 1, "no step after the cancel", outcome.calls)


def _cancel_at_the_end(subject: Subject) -> None:
    """The terminal frame is on its way when the cancel comes: its numbers stay, and the run counts as cancelled."""
    with Rig(subject, disturb=Disturbance({"terminal": Rig.cancel})) as rig:
        outcome = rig.run()
    outcome.check_end()
    expect(outcome.record.status is RunStatus.CANCELLED, "a cancelled run", outcome.record.status)
    expect(outcome.record.exit_code == ExitCode.CANCELLED, "exit code 130", outcome.record.exit_code)


def _cancel_in_after(subject: Subject) -> None:
    with Rig(subject, evidence=lambda rig: _Waiting(rig.cancel, after=True), disturb=Disturbance(steps=1)) as rig:
        outcome = rig.run()
    outcome.check_end()
    expect(outcome.record.status is RunStatus.CANCELLED, "a cancelled run", outcome.record.status)
    expect(outcome.record.verdict.kind is VerdictKind.PASS, "the benchmark's own verdict beside it", outcome.record.verdict)


def _cancel_too_late(subject: Subject) -> None:
    with Rig(subject, disturb=Disturbance({"before cleanup": Rig.cancel}, steps=1)) as rig:
        outcome = rig.run()
    outcome.check_end()
    expect(outcome.record.status is RunStatus.COMPLETED, "a completed run: its terminal frame was out", outcome.record.status)
    expect(not outcome.record.cancel_requested, "no cancel in the record of a run that had ended")


def _closed_reader(subject: Subject) -> None:
    with Rig(subject, disturb=Disturbance({"before next": Rig.close})) as rig:
        outcome = rig.run()
    outcome.check_end()
    expect(outcome.record.status is RunStatus.CANCELLED, "a run cancelled by its reader's going", outcome.record.status)


def _lost_reader(subject: Subject) -> None:
    """Nobody holds the handle any more: the run is cancelled, and its record stored."""
    started = threading.Event()
    with Rig(subject, disturb=Disturbance({"before next": lambda _: _until_lost(started)})) as rig:
        rig.executor.start(rig.descriptor, subject.values(), target=subject.target)
        gc.collect()
        started.set()
        ends_s = time.monotonic() + subject.within_s
        while not (stored := rig.store.history()) and time.monotonic() < ends_s:
            time.sleep(0.01)
        expect(stored, "a stored record", "none")
        expect(stored[0].status is RunStatus.CANCELLED, "a cancelled run", stored[0].status)
        expect(rig.calls.count("cleanup") == 1, "cleanup called once", rig.calls)


def _until_lost(started: threading.Event) -> None:
    started.wait(_SETTLE_S)
    time.sleep(0.05)


def _nothing_left(subject: Subject) -> None:
    """Neither after a whole run nor after a cancelled one."""
    for cancel in (False, True):
        before = _children(), _threads()
        points = {"before next": Rig.cancel_soon} if cancel else {}
        with Rig(subject, disturb=Disturbance(points)) as rig:
            rig.run()
        ends_s = time.monotonic() + _SETTLE_S
        while (_children() - before[0] or _threads() - before[1]) and time.monotonic() < ends_s:
            time.sleep(0.01)
        expect(not _children() - before[0], "no process left behind", _children() - before[0])
        expect(not _threads() - before[1], "no thread left behind", [thread.name for thread in _threads() - before[1]])


def _children() -> set[tuple[int, str]]:
    return {(stat.pid, stat.name) for stat in ProcessTree().descendants(os.getpid()) if stat.lives}


def _threads() -> set[threading.Thread]:
    return set(threading.enumerate())


END_CASES = (
    Case("cancel-in-hardware", "a cancel while the box is looked at", _cancel_in_hardware),
    Case("cancel-in-coherence", "a cancel while the endpoint is probed", _cancel_in_coherence),
    Case("cancel-in-load", "a cancel during load()", _cancel_in_call("load", Stage.LOAD)),
    Case("cancel-in-configure", "a cancel during configure()", _cancel_in_call("configure", Stage.CONFIGURE)),
    Case("cancel-in-next", "a cancel during next(): work in flight stops within the grace", _cancel_in_call("next", Stage.RUN)),
    Case("cancel-before-next", "a cancel that the benchmark itself sees first", _cancel_seen_by_driver),
    Case("cancel-at-the-end", "a cancel that races the terminal frame", _cancel_at_the_end),
    Case("cancel-in-after", "a cancel while the box is looked at once more", _cancel_in_after),
    Case("cancel-too-late", "a cancel after the terminal frame changes nothing", _cancel_too_late),
    Case("closed-reader", "closing the handle cancels; the record has its terminal frame", _closed_reader),
    Case("lost-reader", "losing the handle cancels; the record has its terminal frame", _lost_reader),
    Case("nothing-left", "no process and no thread is left behind", _nothing_left),
)
