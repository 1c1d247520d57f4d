"""The stage in which an endpoint is asked questions with known answers. It never stops a run."""

from nodeproof.model.run import LogEvent, LogLevel, Stage, StatusEvent
from nodeproof.runs.desk import Desk
from nodeproof.runs.frames import error_chain
from nodeproof.runs.request import RunRequest
from nodeproof.runs.supervise import Supervisor
from nodeproof.runs.worker import Worker

__all__ = ["probe_endpoint"]


def probe_endpoint(request: RunRequest, supervisor: Supervisor, desk: Desk) -> None:
    """Ask, and say what came of it. The caller heeds a cancel, which ends the asking."""
    probe, target = request.coherence, request.target
    if probe is None or target is None:
        return
    desk.enter(Stage.COHERENCE)
    desk.say(StatusEvent("asking the endpoint questions with known answers"))
    expectation, token = request.descriptor.intended_for, supervisor.token
    worker = Worker(f"run-{request.number}-coherence", supervisor.wake)
    try:
        report = supervisor.call(
            worker,
            lambda: probe.probe(target, expectation, token),
            stage=Stage.COHERENCE,
            limit_s=request.graces.coherence_s,
        )
    except BaseException as error:  # noqa: BLE001 - of whatever kind
        supervisor.look()
        if not token.is_cancelled():
            desk.warn(f"coherence: the endpoint could not be probed: {error_chain(error)[0]}")
    else:
        for answer in () if report.concern else report.answers:
            desk.say(LogEvent(LogLevel.INFO, f"coherence: {answer}"))
        if report.concern:
            desk.warn(f"coherence: {report.concern}")
    finally:
        worker.stop()
