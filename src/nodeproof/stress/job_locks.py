"""The locks that a job holds from its first report to its last: that of the whole machine, and the one beside its report."""

import os

from nodeproof.errors import WriteError
from nodeproof.host.job_lock import HolderState, JobLock, LockHolder, probe_job_lock
from nodeproof.host.job_recovery import recover

__all__ = ["JobLocks", "host_lock_path", "report_lock_path"]


def host_lock_path(state_root: str) -> str:
    """The lock of this machine; benchmark runs take it, too."""
    return os.path.join(state_root, "job.lock")


def report_lock_path(report_path: str) -> str:
    """The reference's lock."""
    return f"{report_path}.lock"


class JobLocks:
    """Taken together or not at all."""

    def __init__(self, state_root: str, report_path: str) -> None:
        paths = [host_lock_path(state_root)]
        if report_path and report_lock_path(report_path) not in paths:
            paths.append(report_lock_path(report_path))
        self._locks = [JobLock(path) for path in paths]

    @property
    def fds(self) -> tuple[int, ...]:
        """What the keeper of a job keeps open."""
        return tuple(lock.fd for lock in self._locks)

    def acquire(self, token: str, record_path: str) -> LockHolder | None:
        """Take all; None when they are ours now, else who holds one. Ends what a killed owner left. Raises WriteError."""
        taken: list[JobLock] = []
        try:
            for lock in self._locks:
                former = lock.acquire(token, record_path)
                if former.held:
                    _release(taken)
                    return former
                taken.append(lock)
                if former.state is HolderState.DEAD and former.record:
                    recover(former.record)
        except BaseException:
            _release(taken)
            raise
        return None

    def name(self, token: str, record_path: str) -> None:
        """Say anew for which program they are held. Raises WriteError."""
        for lock in self._locks:
            lock.name(token, record_path)

    def release(self) -> str:
        """Let go of all; what went wrong, empty when nothing did."""
        return _release(self._locks)

    def holder(self) -> LockHolder:
        """Who holds one of them now; the first one's answer when nobody does."""
        answers = [probe_job_lock(lock.path) for lock in self._locks]
        return next((answer for answer in answers if answer.held), answers[-1])


def _release(locks: list[JobLock]) -> str:
    faults = []
    for lock in reversed(locks):
        try:
            lock.release()
        except (OSError, WriteError) as error:
            faults.append(f"{lock.path}: {error}")
    return "; ".join(faults)
