"""Reading a snapshot directory, and telling whether what lies there is the present.

Whether the daemon lives is proven, not guessed: the kernel frees its lock when it ends; a file names the boot and the process
that wrote it; and its age is measured on CLOCK_BOOTTIME, which nobody can set. The wall clock has no part in it.
"""

import os
from typing import TypeVar

import msgspec

from nodeproof.clock import Clock, SystemClock
from nodeproof.errors import SnapshotError
from nodeproof.host import locks
from nodeproof.model.snapshot import (
    ComponentAge,
    CompSnapshot,
    DaemonState,
    DaemonVerdict,
    Evidence,
    GlobalSnapshot,
    Snapshot,
)
from nodeproof.sinks.snapshot_names import GLOBAL_FILE, component_of_file

__all__ = ["read", "read_comp", "read_global", "read_state"]

_T = TypeVar("_T")
_CLOCK_SLACK_S = 1.0


def read(path: str) -> Snapshot:
    """The combined snapshot in the file ``path``. Raises SnapshotError."""
    return _decode(path, Snapshot)


def read_comp(path: str) -> CompSnapshot:
    """The snapshot of a component in the file ``path``. Raises SnapshotError."""
    return _decode(path, CompSnapshot)


def read_global(path: str) -> GlobalSnapshot:
    """The snapshot of the node in the file ``path``. Raises SnapshotError."""
    return _decode(path, GlobalSnapshot)


def _decode(path: str, kind: type[_T]) -> _T:
    try:
        with open(path, "rb", buffering=0, opener=_open_at_once) as file:
            return msgspec.json.decode(file.read() or b"", type=kind)
    except FileNotFoundError:
        raise SnapshotError(f"{path} does not exist; is a daemon running that writes snapshots here?") from None
    except OSError as error:
        raise SnapshotError(f"{path}: {os.strerror(error.errno or 0)}") from None
    except msgspec.MsgspecError as error:
        raise SnapshotError(f"{path} holds no snapshot: {error}") from None


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting: a named pipe in the place of a snapshot must not hold its reader."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


class _Head(msgspec.Struct):
    """What tells the age of a file; a file of another maker has none of it."""

    boot_id: str = ""
    pid: int = 0
    monotonic_s: float | None = None
    stale_after_ms: int = 0
    stopped: bool = False
    intervals_ms: dict[str, int] = {}


def read_state(directory: str, clock: Clock | None = None) -> DaemonState:
    """What has become of the daemon of ``directory``, with the evidence. Never raises."""
    now_s = (clock or SystemClock()).now().mono_s
    boot = locks.boot_id()
    lock = locks.probe_lock(directory)
    head, problem = _head(os.path.join(directory, GLOBAL_FILE))
    evidence = _evidence(lock, head, boot, now_s)
    verdict, reason = _judge(directory, lock, head, problem, evidence)
    components = {} if head is None else _components(directory, head, now_s)
    return DaemonState(verdict, reason, evidence, components)


def _head(path: str) -> tuple[_Head | None, str]:
    """The head of a file, or None and why; None and nothing when there is no such file."""
    try:
        os.stat(path)
        return _decode(path, _Head), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"{path}: {os.strerror(error.errno or 0)}"
    except SnapshotError as error:
        return None, str(error)


def _evidence(lock: locks.LockState, head: _Head | None, boot: str, now_s: float) -> Evidence:
    known = head is not None and head.monotonic_s is not None
    same_boot = head.boot_id == boot if head is not None and known and boot else None
    age_s = round(now_s - head.monotonic_s, 3) if head is not None and head.monotonic_s is not None and same_boot else None
    return Evidence(
        lock_held=lock.held,
        lock_pid=lock.pid,
        snapshot_pid=head.pid if head is not None else 0,
        same_boot=same_boot,
        age_s=age_s,
        stale_after_s=head.stale_after_ms / 1000 if head is not None and known else None,
        process_state=locks.process_state(lock.pid) if lock.held and lock.pid else "",
    )


def _judge(
    directory: str, lock: locks.LockState, head: _Head | None, problem: str, evidence: Evidence
) -> tuple[DaemonVerdict, str]:
    if problem:
        return DaemonVerdict.UNKNOWN, problem
    if lock.held is False:
        return _judge_free(directory, head, evidence)
    holder = f"process {lock.pid}" if lock.held else "a process that could not be told"
    foreign = _foreign(lock, head, evidence)
    if foreign and lock.held:
        return DaemonVerdict.STARTING, f"{holder} holds {directory}; {foreign}"
    if foreign or head is None:
        return DaemonVerdict.UNKNOWN, f"{foreign}, and {lock.detail}"
    if head.stopped:
        return DaemonVerdict.STOPPED, f"process {head.pid} was stopped in good order"
    return _judge_age(holder, evidence)


def _foreign(lock: locks.LockState, head: _Head | None, evidence: Evidence) -> str:
    """Why the files are not those of the process that holds the lock; empty when they are."""
    if head is None:
        return "nothing has been written there yet"
    if evidence.age_s is None:
        return "the files there are of another boot or another program"
    if lock.pid and lock.pid != head.pid:
        return f"the files there are still those of process {head.pid}"
    return ""


def _judge_free(directory: str, head: _Head | None, evidence: Evidence) -> tuple[DaemonVerdict, str]:
    """Nobody holds the lock, so nobody writes."""
    if head is None:
        return DaemonVerdict.ABSENT, f"no daemon has written to {directory}"
    if head.stopped:
        return DaemonVerdict.STOPPED, f"process {head.pid} was stopped in good order"
    if evidence.same_boot is False:
        return DaemonVerdict.DEAD, f"process {head.pid} ran before this machine was booted"
    if evidence.same_boot is None:
        return DaemonVerdict.UNKNOWN, f"the files in {directory} say neither when nor by whom they were written"
    return DaemonVerdict.DEAD, f"process {head.pid} is gone and did not say so: killed, or crashed"


def _judge_age(holder: str, evidence: Evidence) -> tuple[DaemonVerdict, str]:
    age_s, limit_s = evidence.age_s or 0.0, evidence.stale_after_s or 0.0
    if age_s < -_CLOCK_SLACK_S:
        return DaemonVerdict.UNKNOWN, f"{holder} counts time from another start than this process (a time namespace)"
    if age_s <= limit_s:
        return DaemonVerdict.RUNNING, f"{holder} wrote {max(0.0, age_s):.1f} s ago"
    why = {
        "T": "it is stopped by a signal (SIGCONT lets it go on)",
        "D": "it waits in the kernel",
        "Z": "it has ended and its parent has not noticed",
    }.get(evidence.process_state, "it is stuck, starved, or cannot write there")
    return DaemonVerdict.FROZEN, f"{holder} has not written for {age_s:.0f} s (limit {limit_s:g} s): {why}"


def _components(directory: str, head: _Head, now_s: float) -> dict[str, ComponentAge]:
    """Age of every component that the daemon collects, and of every file of this same daemon."""
    try:
        names = os.listdir(directory)
    except OSError:
        names = []
    present = {component for name in names if (component := component_of_file(name)) is not None}
    ages = {}
    for component in sorted(present | head.intervals_ms.keys()):
        part, _ = _head(os.path.join(directory, f"snapshot_{component}.json"))
        if part is None or part.monotonic_s is None or (part.pid, part.boot_id) != (head.pid, head.boot_id):
            ages[component] = ComponentAge(None, None, fresh=False)
            continue
        age_s = round(now_s - part.monotonic_s, 3)
        limit_s = part.stale_after_ms / 1000
        ages[component] = ComponentAge(age_s, limit_s, fresh=-_CLOCK_SLACK_S < age_s <= limit_s)
    return ages
