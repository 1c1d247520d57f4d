"""Reading a snapshot directory, and telling (``sinks.life``) whether what lies there is the present."""

import os
from typing import TypeVar

import msgspec

from nodeproof.clock import Clock, SystemClock
from nodeproof.errors import SnapshotError
from nodeproof.model.snapshot import ComponentAge, CompSnapshot, DaemonState, Evidence, GlobalSnapshot, Snapshot
from nodeproof.sinks import life
from nodeproof.sinks.snapshot_names import GLOBAL_FILE, component_of_file

__all__ = ["read", "read_comp", "read_global", "read_state"]

_T = TypeVar("_T")


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
        return msgspec.json.decode(life.content(path), type=kind)
    except FileNotFoundError:
        raise SnapshotError(f"{path} does not exist; is a daemon running that writes snapshots here?") from None
    except msgspec.MsgspecError as error:
        raise SnapshotError(f"{path} holds no snapshot: {error}") from None


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
    head, problem = _head(os.path.join(directory, GLOBAL_FILE))
    known = None if head is None else life.Head(head.boot_id, head.pid, head.monotonic_s, head.stale_after_ms, head.stopped)
    found = life.judge(directory, known, problem, now_s)
    components = {} if head is None else _components(directory, head, now_s)
    return DaemonState(found.verdict, found.reason, Evidence(**found.signs._asdict()), components)


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
        ages[component] = ComponentAge(age_s, limit_s, fresh=-life.CLOCK_SLACK_S < age_s <= limit_s)
    return ages
