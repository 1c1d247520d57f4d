"""Reports of stress jobs as every process sees them, whoever runs the job: the files, and the truth about dead owners."""

import contextlib
import os

from nodeproof.clock import Clock, rfc3339
from nodeproof.errors import RecordError
from nodeproof.model.job import HISTORY_DEFAULT, HISTORY_LIMIT, Report
from nodeproof.model.live_job import LiveJob
from nodeproof.runs.job_locks import JobLocks
from nodeproof.stress.interrupted import interrupted_report
from nodeproof.stress.live import live_path, read_live
from nodeproof.stress.problems import JobNotFound
from nodeproof.stress.report_files import ReportFiles
from nodeproof.stress.requests import CancelRequests
from nodeproof.stress.settings import StressSettings

__all__ = ["SharedReports"]


class SharedReports:
    """Reads only. May be used from any thread."""

    def __init__(self, settings: StressSettings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self.files = ReportFiles(settings.report_path) if settings.report_path else None
        """None = nothing is kept."""
        self.requests = CancelRequests(os.path.dirname(settings.report_path) or settings.state_root)

    def stamp(self) -> object:
        """Changes whenever a report, a history or what a running job tells does; cheap."""
        if self.files is None:
            return None
        return [_stamp(path) for path in (self.files.latest_path, live_path(self._settings.report_path))]

    def latest(self) -> Report | None:
        """The newest report on the disk; one whose owner died is shown as interrupted."""
        if self.files is None:
            return None
        locks = JobLocks(self._settings.state_root, self._settings.report_path)
        with contextlib.suppress(RecordError):
            report = self.files.latest()
            if report is None or report.status.is_final or locks.holder().held:
                return report
            # Nobody held the lock after it had said that it runs: either it ended meanwhile, or its owner is dead.
            again = self.files.latest()
            if again is None or again.status.is_final or again.job_id != report.job_id:
                return again
            return interrupted_report(again, rfc3339(self._clock.now().wall_s))
        return None

    def history(self, limit: int = HISTORY_DEFAULT) -> list[Report]:
        """The newest jobs that have ended, newest first, at most 100."""
        return self.files.history(min(max(0, limit), HISTORY_LIMIT)) if self.files is not None else []

    def job(self, job_id: str) -> Report:
        """The job with this id, from the newest report or the history. Raises JobNotFound."""
        newest = self.latest()
        if newest is not None and newest.job_id == job_id:
            return newest
        found = next((report for report in self.history(HISTORY_LIMIT) if report.job_id == job_id), None)
        if found is None:
            raise JobNotFound(f"there is no stress job {job_id[:80]!r}")
        return found

    def live(self) -> LiveJob | None:
        """How the job that runs gets on; None when none does, or its owner has told nothing yet."""
        running = self.latest()
        if running is None or running.status.is_final:
            return None
        return read_live(live_path(self._settings.report_path), running.job_id)

    def can_cancel(self, job_id: str) -> bool:
        """Whether the job runs and its owner can be asked to stop it."""
        newest = self.latest()
        return newest is not None and newest.job_id == job_id and not newest.status.is_final and self.requests.may_ask()


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        about = os.stat(path)
    except OSError:
        return None
    return (about.st_ino, about.st_size, about.st_mtime_ns)
