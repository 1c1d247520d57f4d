"""Ending a job whose keeper is gone, and finding out what became of one whose owner is.

Without the keeper no orphan is handed to anybody here, so that the exact proof (no child is left) is not to be had: what is left
is looked for by mark, cgroup, last known members and all their descendants, until two looks in a row find nothing.
"""

import os
import signal
import time
from enum import StrEnum
from typing import NamedTuple

import msgspec

from nodeproof.errors import WriteError
from nodeproof.host.atomic import store_file
from nodeproof.host.cgroups import JobCgroup
from nodeproof.host.job_family import Birthmarks, Family
from nodeproof.host.job_record import RECORD_SCHEMA, boottime_s
from nodeproof.host.locks import boot_id
from nodeproof.host.pidfd import send_signal
from nodeproof.host.process_tree import Identity, ProcessTree
from nodeproof.model.process import Ended, EndKind, ProcessSight, Progress

__all__ = ["Fate", "Recovery", "end_failed_start", "end_without_keeper", "recover"]

_PAUSES_S = (0.002, 0.05)
_CLEAN_LOOKS = 2
_KILL_WAIT_S = 5.0
_KEEPER_PATIENCE_S = 10.0
"""A keeper whose owner died needs its grace and its kill wait; then it is ended, too."""


class Fate(StrEnum):
    """What became of a job that a record tells of."""

    ENDED = "ended"
    """Its keeper saw it through; :attr:`Recovery.ended` says how."""
    SWEPT = "swept"
    """Owner and keeper were dead; what was left of the tree, if anything, was ended now."""
    OTHER_BOOT = "other_boot"
    """It ended with the machine: nothing of it can run."""
    RUNNING = "running"
    """Its owner lives: nothing was touched."""
    UNREADABLE = "unreadable"
    """Its record is gone or damaged: what carries its token was ended, and no more than that can be known."""


class Recovery(NamedTuple):
    """Answer of :func:`recover`."""

    fate: Fate
    detail: str
    ended: Ended | None


class _Record(msgspec.Struct):
    schema: int
    token: str
    boot_id: str
    owner: tuple[int, int]
    state: str
    keeper: tuple[int, int]
    mark: int
    cgroup: str
    ended: Ended | None = None


def recover(record_path: str, *, token: str = "", patience_s: float = _KEEPER_PATIENCE_S) -> Recovery:
    """See to the job that left ``record_path``, whose owner is believed dead. Never raises.

    To be called under the lock of jobs, so that nobody else does. ``token`` finds what is left where there is no record.
    """
    tree = ProcessTree()
    record = _read(record_path)
    if isinstance(record, _Record) and record.ended is None and record.boot_id == boot_id():
        if _is_alive(tree, record.owner):
            return Recovery(Fate.RUNNING, f"its owner, process {record.owner[0]}, lives", None)
        _wait_for_keeper(tree, record.keeper, patience_s)
        record = _read(record_path)
    if isinstance(record, str):
        return Recovery(Fate.UNREADABLE, record, _sweep_by_token(token, record_path, record) if token else None)
    if record.ended is not None:
        return Recovery(Fate.ENDED, record.ended.reason, record.ended)
    if record.boot_id != boot_id():
        return Recovery(Fate.OTHER_BOOT, "the machine was started anew since", None)
    ended = _sweep(record, record_path, EndKind.OWNER_LOST, "its owner and its keeper were killed")
    return Recovery(Fate.SWEPT, ended.reason, ended)


def end_failed_start(token: str, record_path: str) -> None:
    """End what a keeper left that died while it started its program, as far as its record tells of anything. Never raises."""
    record = _read(record_path)
    if isinstance(record, _Record) and record.token == token and record.ended is None:
        _sweep(record, record_path, EndKind.KEEPER_LOST, "its keeper died while it started it")
    leaf = JobCgroup.find(token)
    if leaf is not None:
        leaf.remove()


def _sweep(record: _Record, record_path: str, kind: EndKind, reason: str) -> Ended:
    family = Family(
        ProcessTree(),
        Birthmarks(record.token, record.mark, record.keeper[1]),
        cgroup=JobCgroup(record.cgroup) if record.cgroup else None,
    )
    return end_without_keeper(family, kind, reason, record_path=record_path, started_s=boottime_s())


def _sweep_by_token(token: str, record_path: str, why: str) -> Ended:
    family = Family(ProcessTree(), Birthmarks(token, 0, 0), cgroup=JobCgroup.find(token))
    reason = f"it has no record ({why})"
    return end_without_keeper(family, EndKind.OWNER_LOST, reason, record_path=record_path, started_s=boottime_s())


def end_without_keeper(
    family: Family,
    kind: EndKind,
    reason: str,
    *,
    record_path: str,
    started_s: float,
    started_wall_s: float = 0.0,
    output_path: str = "",
    kill_wait_s: float = _KILL_WAIT_S,
    progress: Progress | None = None,
) -> Ended:
    """Kill what is left of the job, look twice, and complete its record. Never raises."""
    begun_s = boottime_s()
    found = len(family.members())
    left = _strike_until_gone(family, begun_s + kill_wait_s)
    now = boottime_s()
    evidence = ["its keeper was gone, so that orphans went to process 1: they were looked for by mark, cgroup and acquaintance"]
    if not left:
        evidence.append(f"{_CLEAN_LOOKS} looks in a row at all of /proc found no process of the job")
    if family.cgroup is not None:
        evidence.append(f"{family.cgroup.path}: populated {family.cgroup.populated()}")
        family.cgroup.remove()
    size = _size(output_path)
    ended = Ended(
        kind=kind,
        reason=reason + ("; not all of its processes could be ended" if left else ""),
        duration_s=round(now - started_s, 3),
        ending_s=round(now - begun_s, 3),
        forced=found > 0,
        leftovers=found,
        survivors=tuple(left),
        empty=not left,
        evidence=tuple(evidence),
        output_bytes=max(size, progress.output_bytes if progress is not None else 0),
        output_kept_bytes=size,
        progress=progress,
        started_wall_s=started_wall_s,
        ended_wall_s=time.time(),
    )
    return _complete_record(record_path, ended)


def _strike_until_gone(family: Family, until_s: float) -> list[ProcessSight]:
    """Survivors; none is the rule."""
    pause_s, clean = _PAUSES_S[0], 0
    while clean < _CLEAN_LOOKS and boottime_s() < until_s:
        clean = 0 if family.strike() else clean + 1
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _PAUSES_S[1])
    return [msgspec.convert(sight, ProcessSight) for sight in family.sights(family.members())]


def _complete_record(path: str, ended: Ended) -> Ended:
    """Put the end into the record that the keeper had begun."""
    try:
        with open(path, "rb") as file:
            record = msgspec.json.decode(file.read(), type=dict[str, object])
        record |= {"schema": RECORD_SCHEMA, "state": "ended", "ended": msgspec.to_builtins(ended)}
        store_file(path, msgspec.json.encode(record) + b"\n")
    except (OSError, WriteError, msgspec.DecodeError) as error:
        return msgspec.structs.replace(ended, evidence=(*ended.evidence, f"the record could not be completed: {error}"))
    return ended


def _read(path: str) -> _Record | str:
    """The record, or what is wrong with it."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(), type=_Record)
    except (OSError, msgspec.DecodeError) as error:
        return f"{path}: {error}"


def _is_alive(tree: ProcessTree, identity: tuple[int, int]) -> bool:
    stat = tree.stat(identity[0])
    return stat is not None and stat.lives and stat.start_ticks == identity[1]


def _wait_for_keeper(tree: ProcessTree, keeper: tuple[int, int], patience_s: float) -> None:
    """Until the keeper of a dead owner has done its work; one that takes too long is killed."""
    until_s = boottime_s() + patience_s
    while _is_alive(tree, keeper):
        if boottime_s() >= until_s:
            send_signal(Identity(*keeper), signal.SIGKILL, tree)
            until_s += patience_s
        time.sleep(_PAUSES_S[1])


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size if path else 0
    except OSError:
        return 0
