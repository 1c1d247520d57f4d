"""Whether a workload gets on: judged by what it brings forth, never by the CPU time it burns.

Deadlocked MPI ranks spin in their receive loops at 100 % and look as busy as ranks that compute. So progress is output, bytes
read or written, or the workload's own heartbeat; CPU time only tells a silent program that may be computing from one that stands
still.

::

    no progress for less than ``silent_after_s``                      running
    for longer, and                                                   silent
        nothing of the tree computed for ``hung_after_s``, or
        the program had promised heartbeats, or ``mute_limit_s`` is over  hung

What loads a program (its libraries, its input) is read before it works, and what a program says of itself at the start it says
before it can hang. So when a program is stopped at its limit, that counts only if there was progress in the last part of its run:
otherwise nobody can say whether it still worked, and it is not proven.
"""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from nodeproof.model.process import Progress

__all__ = ["Observation", "ProgressWatch", "StopJudgement", "WatchPolicy", "WatchState"]


class WatchState(StrEnum):
    """How a program gets on."""

    RUNNING = "running"
    SILENT = "silent"
    """Nothing came from it for a while; it may be computing."""
    HUNG = "hung"
    UNKNOWN = "unknown"
    """Nobody has looked at it for a while."""


class WatchPolicy(msgspec.Struct, frozen=True):
    """How long is too long. Times in seconds."""

    silent_after_s: float = 30.0
    hung_after_s: float = 120.0
    """Neither progress nor CPU time for so long; for a program with heartbeats: no heartbeat for so long."""
    mute_limit_s: float | None = None
    """No progress for so long is a hang whatever it computes; None for programs that print nothing until their end."""
    heartbeats: bool = False
    """It has promised heartbeats that tell of work done: nothing else counts as progress."""
    idle_cores: float = 0.01
    """A tree that uses less CPU time than this share of one core computes nothing."""
    trickle_bytes_per_s: float = 4096.0
    """Less than this read and written is how a waiting program polls."""
    blind_after_s: float = 30.0
    """A look older than this tells nothing of now."""
    stop_share: float = 0.25
    """The last part of a run, as a share of it, in which a stop at the limit wants progress; at most ``silent_after_s``."""
    stop_least_s: float = 2.0
    """That part is at least so long."""


class Observation(NamedTuple):
    """How a program gets on at one moment."""

    state: WatchState
    quiet_s: float
    """Since the last progress, or since the start when there was none."""
    reason: str


class StopJudgement(NamedTuple):
    """What a stop at the planned limit is worth."""

    progressed: bool
    """It worked until it was stopped."""
    hung: bool
    reason: str


class ProgressWatch:
    """Follows one program from its start; times on CLOCK_BOOTTIME."""

    def __init__(self, policy: WatchPolicy, started_s: float) -> None:
        self._policy = policy
        self._started_s = started_s
        self._progress_s: float | None = None
        self._what = ""
        self._busy_s = started_s
        self._seen_s = started_s
        self._last: Progress | None = None

    def see(self, progress: Progress, now_s: float) -> Observation:
        """Take the newest look at the tree, which may be the one before again, and judge."""
        last = self._last
        if last is None or progress.at_mono_s > last.at_mono_s:
            self._last = progress
            self._seen_s = progress.at_mono_s
            if last is None:
                if progress.output_bytes > 0:
                    self._note(progress.at_mono_s, "output")
            else:
                self._compare(last, progress)
        return self.judge(now_s)

    def beat(self, at_s: float, what: str = "heartbeat") -> None:
        """The program has told of work done. A heartbeat that only says that it is alive is none."""
        if self._progress_s is None or at_s > self._progress_s:
            self._progress_s, self._what = at_s, what

    def judge(self, now_s: float) -> Observation:
        """How it gets on."""
        policy = self._policy
        quiet_s = now_s - (self._progress_s if self._progress_s is not None else self._started_s)
        last = f"its last {self._what} was {quiet_s:.0f} s ago" if self._what else f"nothing came from it in {quiet_s:.0f} s"
        if quiet_s < policy.silent_after_s:
            return Observation(WatchState.RUNNING, quiet_s, last)
        idle_s = now_s - self._busy_s
        unseen_s = now_s - self._seen_s
        if policy.heartbeats and quiet_s >= policy.hung_after_s:
            state, why = WatchState.HUNG, "though it had promised heartbeats"
        elif unseen_s >= policy.blind_after_s:
            state, why = WatchState.UNKNOWN, f"but nobody has looked at it for {unseen_s:.0f} s"
        elif policy.mute_limit_s is not None and quiet_s >= policy.mute_limit_s:
            state, why = WatchState.HUNG, f"and {policy.mute_limit_s:g} s are allowed"
        elif min(idle_s, quiet_s) >= policy.hung_after_s:
            state, why = WatchState.HUNG, f"and it has not computed for {idle_s:.0f} s{self._states()}"
        elif idle_s >= policy.silent_after_s:
            state, why = WatchState.SILENT, f"and it computes nothing{self._states()}"
        else:
            state, why = WatchState.SILENT, "and the CPU time it uses is no proof of progress"
        return Observation(state, quiet_s, f"{last}, {why}")

    def judge_stop(self, now_s: float) -> StopJudgement:
        """What it is worth that the program is stopped now, at its limit and still running."""
        seen = self.judge(now_s)
        if seen.state is WatchState.HUNG:
            return StopJudgement(progressed=False, hung=True, reason=f"it hung: {seen.reason}")
        ran_s = now_s - self._started_s
        policy = self._policy
        window_s = max(policy.stop_least_s, min(policy.silent_after_s, ran_s * policy.stop_share))
        if self._progress_s is None:
            return StopJudgement(
                progressed=False, hung=False, reason=f"it showed no progress in {ran_s:.0f} s, only its end would have"
            )
        if ran_s < window_s:
            reason = f"it ran for {ran_s:.1f} s, too short a time to tell whether it got on ({window_s:.0f} s)"
            return StopJudgement(progressed=False, hung=False, reason=reason)
        if seen.quiet_s > window_s:
            reason = f"{seen.reason}, and nothing came in the last {window_s:.0f} s of {ran_s:.0f} s"
            return StopJudgement(progressed=False, hung=False, reason=reason)
        return StopJudgement(progressed=True, hung=False, reason=f"it worked until it was stopped: {seen.reason}")

    def _compare(self, before: Progress, after: Progress) -> None:
        interval_s = after.at_mono_s - before.at_mono_s
        if after.cpu_s - before.cpu_s >= self._policy.idle_cores * interval_s:
            self._busy_s = after.at_mono_s
        if after.output_bytes > before.output_bytes:
            self._note(after.at_mono_s, "output")
        elif _moved(before, after) >= self._policy.trickle_bytes_per_s * interval_s:
            self._note(after.at_mono_s, "reading or writing")

    def _note(self, at_s: float, what: str) -> None:
        if not self._policy.heartbeats:
            self.beat(at_s, what)

    def _states(self) -> str:
        if self._last is None or not self._last.states:
            return ""
        listed = ", ".join(f"{count} in {state}" for state, count in sorted(self._last.states.items()))
        return f" (processes by state: {listed})"


def _moved(before: Progress, after: Progress) -> int:
    """Bytes read and written in between; 0 where they cannot be told."""
    pairs = ((before.read_bytes, after.read_bytes), (before.written_bytes, after.written_bytes))
    return sum(max(0, new - old) for old, new in pairs if old is not None and new is not None)
