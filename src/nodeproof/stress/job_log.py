"""What happens to jobs, for the log: a sentence for people, and the same in fields for whoever collects log records.

Each record has ``event`` and, where it applies, ``job_id``, ``initiator``, ``benchmark``, ``status``, ``duration_ms`` and
``timeout_seconds`` as attributes (``logging.LogRecord``).
"""

import logging
from enum import StrEnum

__all__ = ["JobEvent", "log_event"]

_log = logging.getLogger("nodeproof.stress")


class JobEvent(StrEnum):
    """What happened."""

    JOB_STARTED = "job_started"
    JOB_REJECTED_BUSY = "job_rejected_busy"
    CANCELLATION_REQUESTED = "cancellation_requested"
    BENCHMARK_STARTED = "benchmark_started"
    BENCHMARK_FINISHED = "benchmark_finished"
    JOB_FINISHED = "job_finished"
    JOB_INTERRUPTED = "job_interrupted"
    """Its owner had died; found by the next."""
    REPORT_FAILED = "report_persistence_failed"
    HISTORY_FAILED = "history_failed"
    LOCK_FAILED = "lock_release_failed"
    TROUBLE = "trouble"
    """Anything else that is not the workload's fault."""


_GRAVE = frozenset({JobEvent.REPORT_FAILED, JobEvent.HISTORY_FAILED, JobEvent.LOCK_FAILED, JobEvent.TROUBLE})
_ODD = frozenset({JobEvent.JOB_INTERRUPTED})


def log_event(event: JobEvent, text: str, *, error: BaseException | None = None, **fields: str | int) -> None:
    """One record; with the traceback of ``error``, where something of ours broke."""
    level = logging.ERROR if event in _GRAVE else logging.WARNING if event in _ODD else logging.INFO
    _log.log(level, "%s", text, exc_info=error, extra={"event": str(event), **fields})
