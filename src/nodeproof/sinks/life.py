"""Whether a daemon still stands behind a snapshot directory: the judgement, for whatever has read its files.

Nothing of it is guessed. The kernel frees the lock of a process that ends; a file names the boot and the process that wrote it;
and its age is measured on CLOCK_BOOTTIME, which nobody can set. The wall clock has no part in it. Free of structs: ``check``
needs this, and nothing else.
"""

import os
from typing import NamedTuple

from nodeproof.errors import SnapshotError
from nodeproof.host import locks
from nodeproof.model.daemon_verdict import DaemonVerdict

__all__ = ["CLOCK_SLACK_S", "Head", "Life", "Signs", "content", "judge"]

CLOCK_SLACK_S = 1.0
"""A file that is younger than this by less than nothing is of now."""


class Head(NamedTuple):
    """What tells the age of ``snapshot.json``; a file of another maker has none of it."""

    boot_id: str = ""
    pid: int = 0
    monotonic_s: float | None = None
    stale_after_ms: int = 0
    stopped: bool = False


class Signs(NamedTuple):
    """What a verdict rests on; the fields of :class:`nodeproof.model.snapshot.Evidence`."""

    lock_held: bool | None
    lock_pid: int
    snapshot_pid: int
    same_boot: bool | None
    age_s: float | None
    stale_after_s: float | None
    process_state: str


class Life(NamedTuple):
    """A verdict with its reason in words."""

    verdict: DaemonVerdict
    reason: str
    signs: Signs


def content(path: str) -> bytes:
    """The file ``path``, if only a snapshot may lie there. Raises SnapshotError, and FileNotFoundError when nothing does."""
    try:
        with open(path, "rb", buffering=0, opener=_open_at_once) as file:
            return file.read() or b""
    except FileNotFoundError:
        raise
    except OSError as error:
        raise SnapshotError(f"{path}: {os.strerror(error.errno or 0)}") from None


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting: a named pipe in the place of a snapshot must not hold its reader."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def judge(directory: str, head: Head | None, problem: str, now_s: float) -> Life:
    """What has become of the daemon of ``directory`` at ``now_s`` (CLOCK_BOOTTIME). Never raises.

    ``head`` is None when there is no file, or none that can be read: ``problem`` then says why.
    """
    lock = locks.probe_lock(directory)
    signs = _signs(lock, head, locks.boot_id(), now_s)
    verdict, reason = _judged(directory, lock, head, problem, signs)
    return Life(verdict, reason, signs)


def _signs(lock: locks.LockState, head: Head | None, boot: str, now_s: float) -> Signs:
    known = head is not None and head.monotonic_s is not None
    same_boot = head.boot_id == boot if head is not None and known and boot else None
    age_s = round(now_s - head.monotonic_s, 3) if head is not None and head.monotonic_s is not None and same_boot else None
    return Signs(
        lock_held=lock.held,
        lock_pid=lock.pid,
        snapshot_pid=head.pid if head is not None else 0,
        same_boot=same_boot,
        age_s=age_s,
        stale_after_s=head.stale_after_ms / 1000 if head is not None and known else None,
        process_state=locks.process_state(lock.pid) if lock.held and lock.pid else "",
    )


def _judged(directory: str, lock: locks.LockState, head: Head | None, problem: str, signs: Signs) -> tuple[DaemonVerdict, str]:
    if problem:
        return DaemonVerdict.UNKNOWN, problem
    if lock.held is False:
        return _judge_free(directory, head, signs)
    holder = f"process {lock.pid}" if lock.held else "a process that could not be told"
    foreign = _foreign(lock, head, signs)
    if foreign and lock.held:
        return DaemonVerdict.STARTING, f"{holder} holds {directory}; {foreign}"
    if foreign or head is None:
        return DaemonVerdict.UNKNOWN, f"{foreign}, and {lock.detail}"
    if head.stopped:
        return DaemonVerdict.STOPPED, f"process {head.pid} was stopped in good order"
    return _judge_age(holder, signs)


def _foreign(lock: locks.LockState, head: Head | None, signs: Signs) -> str:
    """Why the files are not those of the process that holds the lock; empty when they are."""
    if head is None:
        return "nothing has been written there yet"
    if signs.age_s is None:
        return "the files there are of another boot or another program"
    if lock.pid and lock.pid != head.pid:
        return f"the files there are still those of process {head.pid}"
    return ""


def _judge_free(directory: str, head: Head | None, signs: Signs) -> tuple[DaemonVerdict, str]:
    """Nobody holds the lock, so nobody writes."""
    if head is None:
        return DaemonVerdict.ABSENT, f"no daemon has written to {directory}"
    if head.stopped:
        return DaemonVerdict.STOPPED, f"process {head.pid} was stopped in good order"
    if signs.same_boot is False:
        return DaemonVerdict.DEAD, f"process {head.pid} ran before this machine was booted"
    if signs.same_boot is None:
        return DaemonVerdict.UNKNOWN, f"the files in {directory} say neither when nor by whom they were written"
    return DaemonVerdict.DEAD, f"process {head.pid} is gone and did not say so: killed, or crashed"


def _judge_age(holder: str, signs: Signs) -> tuple[DaemonVerdict, str]:
    age_s, limit_s = signs.age_s or 0.0, signs.stale_after_s or 0.0
    if age_s < -CLOCK_SLACK_S:
        return DaemonVerdict.UNKNOWN, f"{holder} counts time from another start than this process (a time namespace)"
    if age_s <= limit_s:
        return DaemonVerdict.RUNNING, f"{holder} wrote {max(0.0, age_s):.1f} s ago"
    why = {
        "T": "it is stopped by a signal (SIGCONT lets it go on)",
        "D": "it waits in the kernel",
        "Z": "it has ended and its parent has not noticed",
    }.get(signs.process_state, "it is stuck, starved, or cannot write there")
    return DaemonVerdict.FROZEN, f"{holder} has not written for {age_s:.0f} s (limit {limit_s:g} s): {why}"
