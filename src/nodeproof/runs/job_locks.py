"""The right to load this machine, from the start of a job or run to its end.

Stress jobs and benchmark runs take the same lock of the whole machine, so that neither measures the other; a stress job takes
another beside its report, which the reference's programs keep, too.
"""

import os

from nodeproof.errors import WriteError
from nodeproof.host.job_lock import HolderState, JobLock, LockHolder, probe_job_lock
from nodeproof.host.job_recovery import Fate, Recovery, recover

__all__ = ["JobLocks", "host_lock_path", "report_lock_path"]

_SEEN_TO = frozenset({Fate.ENDED, Fate.SWEPT, Fate.OTHER_BOOT, Fate.UNREADABLE})


def host_lock_path(home: str) -> str:
    """The lock of this machine."""
    return os.path.join(home, "job.lock")


def report_lock_path(report_path: str) -> str:
    """The reference's lock."""
    return f"{report_path}.lock"


class JobLocks:
    """Taken together or not at all."""

    def __init__(self, home: str, report_path: str = "") -> None:
        paths = [host_lock_path(home)]
        if report_path and report_lock_path(report_path) not in paths:
            paths.append(report_lock_path(report_path))
        self._locks = [JobLock(path) for path in paths]
        self.trouble = ""
        """What could not be found out about the job of a dead owner when they were taken; empty is the rule."""

    @property
    def fds(self) -> tuple[int, ...]:
        """What the keeper of a job keeps open."""
        return tuple(lock.fd for lock in self._locks)

    def acquire(self, token: str, record_path: str = "") -> LockHolder | None:
        """Take all; None when they are ours now, else who is in the way. Ends what a killed owner left. Raises WriteError.

        Where something of that cannot be ended, it still loads the machine: nobody gets the locks before it is gone.
        """
        taken: list[JobLock] = []
        try:
            for lock in self._locks:
                former = lock.acquire(token, record_path)
                if former.held:
                    _release(taken)
                    return former
                hindrance = self._bury(former)
                if hindrance is not None:
                    lock.give_back(former)
                    _release(taken)
                    return hindrance
                taken.append(lock)
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
        return next((answer for answer in answers if answer.held), answers[0])

    def _bury(self, former: LockHolder) -> LockHolder | None:
        """See to the job of a dead holder; None when nothing of it is left, as far as can be known."""
        if former.state is not HolderState.DEAD or not former.record:
            return None
        recovery = recover(former.record, token=former.token)
        if recovery.fate is Fate.UNREADABLE:
            self.trouble = f"{former.detail}, and what it left could only be looked for by its token: {recovery.detail}"
        if recovery.fate in _SEEN_TO and (recovery.ended is None or recovery.ended.empty):
            return None
        return former._replace(state=HolderState.ENDING, detail=f"{former.detail}; {_left(recovery)}")


def _left(recovery: Recovery) -> str:
    if recovery.ended is None or not recovery.ended.survivors:
        return recovery.detail
    names = ", ".join(f"{sight.name} ({sight.pid}, state {sight.state})" for sight in recovery.ended.survivors)
    return f"what is left of it cannot be ended: {names}; see what they wait for, or start the machine anew"


def _release(locks: list[JobLock]) -> str:
    faults = []
    for lock in reversed(locks):
        try:
            lock.release()
        except (OSError, WriteError) as error:
            faults.append(f"{lock.path}: {error}")
    return "; ".join(faults)
