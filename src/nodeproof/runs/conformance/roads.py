"""Cases about the course of a run: order, refusal, errors of every kind in every call."""

import copy
import threading
from collections.abc import Callable

from nodeproof.errors import ParamError, RunError
from nodeproof.model.hardware import Decision, HardwareReport, Precheck, Sensitivity
from nodeproof.model.run import ExitCode, Frame, RunStatus, Stage, VerdictKind
from nodeproof.runs.benchmark import drive
from nodeproof.runs.conformance.subject import (
    HANG_S,
    Case,
    Disturbance,
    Outcome,
    Rig,
    Subject,
    expect,
    injected,
    plugin_handle,
)
from nodeproof.runs.params import ParamValue, ParamValues
from nodeproof.runs.ports import NullEvidence, Switches, unknown_report

__all__ = ["ROAD_CASES"]


class _Unfit(NullEvidence):
    """A box that is not fit."""

    def open(self, sensitivity: Sensitivity, switches: Switches) -> HardwareReport:
        """Refuses."""
        del switches
        report = unknown_report(sensitivity, "planted throttle", closed=False)
        return HardwareReport(
            sensitivity=sensitivity,
            perf_class=report.perf_class,
            before=report.before,
            precheck=Precheck(Decision.REFUSE, ["planted throttle", "planted neighbour"]),
        )


def _unfit(_: Rig) -> NullEvidence:
    return _Unfit()


class _Blind(NullEvidence):
    """Evidence that breaks when it looks."""

    def __init__(self, *, before: bool) -> None:
        super().__init__()
        self._before = before

    def open(self, sensitivity: Sensitivity, switches: Switches) -> HardwareReport:
        """Breaks, if before."""
        if self._before:
            raise OSError("planted: no sensor answers")
        return super().open(sensitivity, switches)

    def close(self) -> HardwareReport:
        """Breaks."""
        raise OSError("planted: no sensor answers")


def _whole_run(subject: Subject) -> None:
    with Rig(subject) as rig:
        outcome = rig.run()
    outcome.check_end()
    steps = outcome.calls.count("next")
    expect(
        outcome.calls == ["load", "configure", *["next"] * steps, "cleanup"], "load, configure, next ..., cleanup", outcome.calls
    )
    expect(steps == len(outcome.frames()), "one frame a step", f"{len(outcome.frames())} frames of {steps} steps")
    expect(outcome.record.status is RunStatus.COMPLETED, "a run that completes", _told(outcome))
    expect(outcome.record.params == subject.values().to_strings(), "every parameter in the record", outcome.record.params)
    order = [Stage.START, Stage.HARDWARE, Stage.LOAD, Stage.CONFIGURE, Stage.RUN, Stage.AFTER, Stage.CLEANUP, Stage.SAVE]
    expect(
        [stage for stage in outcome.stages() if stage is not Stage.COHERENCE] == order, "all stages in order", outcome.stages()
    )
    expect(outcome.took_s <= subject.within_s, f"a run of at most {subject.within_s:g} s", outcome.took_s)


def _same_by_hand(subject: Subject) -> None:
    with Rig(subject, disturb=Disturbance(steps=1)) as rig:
        outcome = rig.run()
        benchmark = rig.descriptor.build()
        benchmark.load(plugin_handle(rig.store.root, subject.target, subject.descriptor.id))
        benchmark.configure(subject.values())
        items = list(drive(benchmark))
        benchmark.cleanup()
    expect(all(isinstance(item, Frame) for item in items), "frames from drive()", items)
    seen = [item.status for item in items if isinstance(item, Frame)]
    expect(seen == [frame.status for frame in outcome.frames()], "the same frames by hand and through the executor", seen)


def _refused(subject: Subject) -> None:
    with Rig(subject, evidence=_unfit) as rig:
        outcome = rig.run()
    outcome.check_end()
    record = outcome.record
    expect(outcome.calls == ["cleanup"], "no call but cleanup on a box that is not fit", outcome.calls)
    expect((record.status, record.exit_code) == (RunStatus.REFUSED, ExitCode.REFUSED), "a refusal", _told(outcome))
    for concern in ("planted throttle", "planted neighbour", "NODEPROOF_NO_HW_PRECHECK"):
        expect(concern in record.verdict.reason, f"{concern!r} in the reason", record.verdict.reason)
    expect("postcheck" not in (record.frame.hardware_state or {"postcheck": ""}), "a report that was never closed")


def _kill_switch(subject: Subject) -> None:
    for _ in range(2):
        with Rig(subject, evidence=_unfit, disturb=Disturbance(steps=1)) as rig:
            outcome = rig.run(switches=Switches(never_refuse=True))
        outcome.check_end()
        expect(outcome.record.status is RunStatus.COMPLETED, "a run in spite of the refusal", _told(outcome))
        said = "\n".join(outcome.record.warnings)
        expect("NODEPROOF_NO_HW_PRECHECK is set" in said, "a warning that the switch is set, every time", said)
        expect("planted throttle" in said, "every concern as a warning", said)


def _blind_before(subject: Subject) -> None:
    with Rig(subject, evidence=lambda _: _Blind(before=True), disturb=Disturbance(steps=1)) as rig:
        outcome = rig.run()
    outcome.check_end()
    expect(outcome.record.status is RunStatus.COMPLETED, "a run on a box that cannot be looked at", _told(outcome))
    expect(_postcheck(outcome) == "unknown", "a report of unknowns", outcome.record.frame.hardware_state)


def _blind_after(subject: Subject) -> None:
    with Rig(subject, evidence=lambda _: _Blind(before=False), disturb=Disturbance(steps=1)) as rig:
        outcome = rig.run()
    outcome.check_end()
    expect(outcome.record.status is RunStatus.COMPLETED, "a run whose box cannot be looked at afterwards", _told(outcome))
    expect(_postcheck(outcome) is None, "a report that was not closed", outcome.record.frame.hardware_state)


def _error_in(call: str, calls: list[str], stage: Stage, phase: str) -> Callable[[Subject], None]:
    """An error, and an end that is not even an error, after the real call was made."""

    def check(subject: Subject) -> None:
        for planted, status in ((RunError("planted"), RunStatus.FAILED), (SystemExit("planted"), RunStatus.CRASHED)):
            with Rig(subject, disturb=Disturbance({f"after {call}": injected(planted)})) as rig:
                outcome = rig.run()
            outcome.check_end()
            record, cause = outcome.record, outcome.record.frame.cause
            expect(outcome.calls == calls, "no call after the error but cleanup", outcome.calls)
            expect((record.status, record.frame.phase) == (status, phase), f"{status} in phase {phase}", _told(outcome))
            expect(record.exit_code == ExitCode.HARNESS, "exit code 1", record.exit_code)
            expect(record.verdict.kind is VerdictKind.INCONCLUSIVE, "an inconclusive verdict", record.verdict)
            expect(cause is not None and cause.stage is stage, f"stage {stage} as the cause", cause)
            expect(cause is not None and tuple(cause.chain) == ("planted", "planted cause"), "the whole chain of errors", cause)
            expect(record.frame.hardware_state is not None, "a report of the box")

    return check


def _bad_parameter(subject: Subject) -> None:
    values = ParamValues({**_plain(subject.values()), "no-such-parameter": "1"})
    with Rig(subject) as rig:
        outcome = rig.run(values)
    outcome.check_end()
    record, cause = outcome.record, outcome.record.frame.cause
    expect((record.status, record.frame.phase) == (RunStatus.FAILED, "setup"), "failed in phase setup", _told(outcome))
    expect(cause is not None and cause.type == ParamError.__name__, "a ParamError as the cause", cause)
    expect("no-such-parameter" in record.verdict.reason, "the parameter's name in the reason", record.verdict.reason)
    expect("next" not in outcome.calls, "no step of a run that could not be configured", outcome.calls)


def _cleanup_error(subject: Subject) -> None:
    for planted in (RunError("planted"), SystemExit("planted")):
        with Rig(subject, disturb=Disturbance({"after cleanup": injected(planted)}, steps=1)) as rig:
            outcome = rig.run()
        outcome.check_end()
        expect(outcome.record.status is RunStatus.COMPLETED, "a run that completed, however cleaning up ends", _told(outcome))
        expect(outcome.record.verdict.kind is VerdictKind.PASS, "the verdict as it was", outcome.record.verdict)
        expect("cleanup: planted" in outcome.record.warnings, "a warning about cleaning up", outcome.record.warnings)


def _cleanup_hang(subject: Subject) -> None:
    release = threading.Event()
    with Rig(subject, disturb=Disturbance({"after cleanup": lambda _: _hang(release)}, steps=1)) as rig:
        outcome = rig.run()
        release.set()
    outcome.check_end()
    expect(outcome.record.status is RunStatus.COMPLETED, "a run that completed, though cleaning up hangs", _told(outcome))
    expect(Stage.CLEANUP in outcome.record.abandoned, "cleanup among the stages that were given up", outcome.record.abandoned)


def _numbers(subject: Subject) -> None:
    with Rig(subject, evidence=_unfit) as rig:
        other = copy.copy(rig.executor)
        handles = [executor.start(rig.descriptor, subject.values()) for executor in (rig.executor, other, rig.executor)]
        numbers = [handle.number for handle in handles]
        for handle in handles:
            expect(handle.wait(subject.within_s), "an end")
        names = {handle.run_id for handle in handles}
    expect(numbers == [1, 2, 3], "one count for an executor and its copies", numbers)
    expect(len(names) == len(handles), "a name of its own for every run", names)


def _hang(release: threading.Event) -> None:
    release.wait(HANG_S)


def _plain(values: ParamValues) -> dict[str, ParamValue]:
    return dict(values.items())


def _postcheck(outcome: Outcome) -> object:
    post = (outcome.record.frame.hardware_state or {}).get("postcheck")
    return post["validity"] if isinstance(post, dict) else post


def _told(outcome: Outcome) -> str:
    frame = outcome.record.frame
    return f"{frame.status} in phase {frame.phase}: {outcome.record.verdict.reason}"


_LOADED = ["load", "cleanup"]
_CONFIGURED = ["load", "configure", "cleanup"]
_STEPPED = ["load", "configure", "next", "cleanup"]

ROAD_CASES = (
    Case("whole-run", "calls and stages in order, one frame a step, a record that equals what was said", _whole_run),
    Case("same-by-hand", "driving it by hand gives the frames that the executor gives", _same_by_hand),
    Case("refused", "a box that is not fit: nothing is loaded, the report stays open, exit code 4", _refused),
    Case("kill-switch", "the kill switch lets it run, and is warned of every time", _kill_switch),
    Case("blind-before", "a box that cannot be looked at before gives a report of unknowns", _blind_before),
    Case("blind-after", "a box that cannot be looked at afterwards leaves the report open", _blind_after),
    Case("error-in-load", "an error in load() ends the run in phase setup", _error_in("load", _LOADED, Stage.LOAD, "setup")),
    Case(
        "error-in-configure",
        "an error in configure() ends the run in phase setup",
        _error_in("configure", _CONFIGURED, Stage.CONFIGURE, "setup"),
    ),
    Case("error-in-next", "an error in next() ends the run in phase run", _error_in("next", _STEPPED, Stage.RUN, "run")),
    Case("bad-parameter", "a parameter that does not exist is named, and no step is made", _bad_parameter),
    Case("cleanup-error", "an error in cleanup() is a warning and changes no verdict", _cleanup_error),
    Case("cleanup-hang", "a cleanup() that does not come back is given up", _cleanup_hang),
    Case("numbers", "runs of an executor and its copies have numbers and names of their own", _numbers),
)
