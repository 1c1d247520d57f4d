"""The box around one run, as the executor sees it: looked at before, watched, looked at after; unknown wherever that fails."""

from collections.abc import Callable

import msgspec

from nodeproof.errors import RunError
from nodeproof.model.hardware import HardwareReport, Sensitivity, Validity
from nodeproof.model.run import Frame, Json, RunStatus, Stage, Verdict, VerdictKind
from nodeproof.runs.frames import default_verdict, error_chain
from nodeproof.runs.ports import HardwareEvidence, NullEvidence, Switches, unknown_report
from nodeproof.runs.supervise import Graces, Supervisor
from nodeproof.runs.worker import Worker

__all__ = ["BoxWatch"]


class BoxWatch:
    """Calls the evidence of one run. No method raises: what goes wrong is a warning, and a report of unknowns."""

    def __init__(
        self,
        make: Callable[[], HardwareEvidence],
        *,
        sensitivity: Sensitivity,
        switches: Switches,
        supervisor: Supervisor,
        graces: Graces,
        name: str,
        warn: Callable[[str], None],
    ) -> None:
        self.evidence: HardwareEvidence = NullEvidence("the box has not been looked at yet")
        self.trouble = ""
        """Why the box is unknown; empty when it could be looked at."""
        self.worker = Worker(f"{name}-box", supervisor.wake)
        self._make = make
        self._sensitivity = sensitivity
        self._switches = switches
        self._supervisor = supervisor
        self._graces = graces
        self._warn = warn
        self._report: HardwareReport | None = None

    def look_before(self) -> tuple[HardwareReport, str]:
        """The report, not closed, and the box in one line, which is empty when it is unknown."""
        try:
            self._report, line = self._supervisor.call(
                self.worker, self._open, stage=Stage.HARDWARE, limit_s=self._graces.capture_s
            )
        except BaseException as error:  # noqa: BLE001 - a box that cannot be looked at is unknown, and the run goes on
            return self._unknown(f"the box could not be looked at: {error_chain(error)[0]}"), ""
        return self._report, line

    def watch(self) -> None:
        """Begin the sampling."""
        if self.trouble:
            return
        try:
            self._supervisor.call(self.worker, self.evidence.sample, stage=Stage.HARDWARE, limit_s=self._graces.capture_s)
        except BaseException as error:  # noqa: BLE001 - as a look that fails
            self._warn(f"hardware: the box cannot be watched during the run: {error_chain(error)[0]}")

    def look_after(self) -> HardwareReport:
        """The closed report; as it was before the run when the box cannot be looked at again: unmeasured, not valid."""
        if self._report is None or self.trouble:
            reason = self.trouble or "the run ended before the box was looked at"
            self.abandon()
            self.trouble = reason
            return unknown_report(self._sensitivity, reason, closed=True)
        try:
            return self._supervisor.call(self.worker, self._close, stage=Stage.AFTER, limit_s=self._graces.capture_s)
        except BaseException as error:  # noqa: BLE001 - the report stays open
            self._warn(f"hardware: the box could not be looked at after the run: {error_chain(error)[0]}")
            self.abandon()
            return self._report

    def not_looked_after(self) -> HardwareReport:
        """The report of a run that was refused: it is never closed."""
        self.abandon()
        return self._report or unknown_report(self._sensitivity, self.trouble, closed=False)

    def warnings(self, report: HardwareReport, *, completed: bool) -> list[str]:
        """What the closed report gives reason to say; ``completed``: the run has numbers."""
        post = report.postcheck
        if post is None or self.trouble:
            return []
        said = [f"hardware: {concern}" for concern in post.concerns]
        if completed and post.validity is Validity.INVALID:
            said.append("hardware: the numbers of this run are not valid: the box was not fit while they were taken")
        return said

    def judge(self, frame: Frame, report: HardwareReport) -> Frame:
        """``frame`` with the report of the box, and with what that does to the verdict."""
        completed = frame.status is RunStatus.COMPLETED
        for warning in self.warnings(report, completed=completed):
            self._warn(warning)
        verdict = frame.verdict or default_verdict(frame)
        if completed and report.sensitivity is Sensitivity.STABILITY and report.postcheck is not None and report.postcheck.failed:
            verdict = Verdict(VerdictKind.FAIL, "hardware failed under load: " + "; ".join(report.postcheck.concerns))
        return msgspec.structs.replace(frame, verdict=verdict, hardware_state=_document(report))

    def abandon(self) -> None:
        """End the sampling."""
        worker = Worker(f"{self.worker.name}-end", self._supervisor.wake)
        try:
            self._supervisor.call(worker, self.evidence.abandon, stage=Stage.AFTER, limit_s=self._graces.cancel_grace_s)
        except BaseException as error:  # noqa: BLE001 - the sampler is a daemon thread; the run does not wait for it
            self._warn(f"hardware: the watch on the box could not be ended: {error_chain(error)[0]}")
        finally:
            worker.stop()

    def _open(self) -> tuple[HardwareReport, str]:
        self.evidence = self._make()
        report = self.evidence.open(self._sensitivity, self._switches)
        return _checked(report), report.before.one_line()

    def _close(self) -> HardwareReport:
        return _checked(self.evidence.close())

    def _unknown(self, reason: str) -> HardwareReport:
        self.trouble = reason
        self._report = unknown_report(self._sensitivity, reason, closed=False)
        return self._report


def _document(report: HardwareReport) -> Json:
    """The report as it stands on a frame."""
    document: Json = msgspec.json.decode(msgspec.json.encode(report))
    return document


def _checked(report: object) -> HardwareReport:
    """A report that can be stored. Raises RunError for anything else."""
    if not isinstance(report, HardwareReport):
        raise RunError(f"the evidence gave a {type(report).__name__} where a HardwareReport was expected")
    return msgspec.json.decode(msgspec.json.encode(report), type=HardwareReport)
