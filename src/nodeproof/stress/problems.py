"""Why a job cannot be started or found, each with a word that programs can tell it by."""

from nodeproof.errors import RunError
from nodeproof.model.job import Report

__all__ = ["Busy", "Disabled", "JobNotFound", "SelectionError", "StressError"]


class StressError(RunError):
    """Base; ``code`` is stable."""

    code = "error"


class Disabled(StressError):  # noqa: N818 - the reference's name
    """Stress jobs are switched off."""

    code = "disabled"


class Busy(StressError):  # noqa: N818 - the reference's name
    """Another job runs; ``report`` is it, as far as it can be told."""

    code = "busy"

    def __init__(self, message: str, report: Report | None) -> None:
        self.report = report
        super().__init__(message)


class JobNotFound(StressError):  # noqa: N818 - the reference's name
    """There is no such job."""

    code = "not_found"


class SelectionError(StressError):
    """What was asked for cannot be run: an unknown, unconfigured, disabled or unavailable item, or a limit that is none."""

    code = "invalid"
