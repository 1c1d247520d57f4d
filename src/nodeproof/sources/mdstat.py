"""Software RAID: ``/proc/mdstat`` and the files of ``/sys/block/mdN/md`` (md(4), Documentation/admin-guide/md.rst).

::

    md1 : active raid1 sdb1[1](F) sda1[0]
          976630336 blocks [2/1] [U_]
          [==>..................]  recovery = 12.6% (123055422/976630336) finish=90.1min speed=157900K/sec

The kernel's own files say more than the text and are preferred; raid0 has no ``[n/m]``, an inactive array no level, and Unraid
puts a file of another format in the same place.
"""

import re
from enum import IntEnum
from typing import NamedTuple

from nodeproof.errors import Absence, NoData

__all__ = ["Array", "ArrayState", "judge", "member_kind", "parse", "sync_percent"]

_MEMBER = re.compile(r"^(?P<name>\S+?)\[\d+\](?P<flags>(?:\([A-Z]\))*)$")
_COUNT = re.compile(r"\[(\d{1,6})/(\d{1,6})\]")
_SYNC = re.compile(r"\b(resync|recovery|reshape|check|repair)\s*=\s*(\d{1,3}(?:\.\d+)?%|PENDING|DELAYED|REMOTE)")
_LEVEL = re.compile(r"^(raid\d+|linear|multipath|faulty)$")
_SPARE_DISKS = {"raid0": 0, "linear": 0, "raid4": 1, "raid5": 1, "raid6": 2}
"""Members that may be missing before data are lost; mirrors need one that is left."""


class ArrayState(IntEnum):
    """How an array stands."""

    OPTIMAL = 0
    DEGRADED = 1
    INACTIVE = 2
    """Assembled in part and not started: nothing can be read from it."""
    FAILED = 3
    """More members are missing than the level can do without."""


class Array(NamedTuple):
    """One array; None = not told."""

    name: str
    state: ArrayState
    level: str
    """``raid1``; empty where an inactive array does not say."""
    members_wanted: int | None
    members_active: int | None
    members_failed: int
    members_spare: int
    sync_action: str
    """``idle``, ``resync``, ``recover``, ``reshape``, ``check``, ``repair``, ``frozen``."""
    sync_percent: float | None
    """None when nothing runs; 0 while it waits."""
    mismatches: int | None = None
    """Sectors that the last check found to differ."""


def judge(array_state: str, level: str, wanted: int | None, missing: int | None, active: int | None) -> ArrayState:
    """What a state of the kernel (``md/array_state``) and the members that are missing amount to."""
    if array_state == "broken":
        return ArrayState.FAILED
    if array_state in {"inactive", "clear"}:
        return ArrayState.INACTIVE
    if not missing:
        return ArrayState.OPTIMAL
    spare = _SPARE_DISKS.get(level)
    lost = missing > spare if spare is not None else active == 0 or (wanted is not None and missing >= wanted)
    return ArrayState.FAILED if lost else ArrayState.DEGRADED


def member_kind(state: str, /) -> str:
    """``active``, ``failed``, ``spare`` or ``other`` of a member's ``md/dev-X/state`` (``in_sync,write_mostly``)."""
    words = state.split(",")
    if "faulty" in words:
        return "failed"
    if "in_sync" in words:
        return "active"
    return "spare" if "spare" in words else "other"


def sync_percent(text: str, /) -> float | None:
    """Progress in ``md/sync_completed``: ``1234 / 5678`` sectors, ``delayed`` (0), ``none`` (None); None for anything else."""
    if text.strip() == "delayed":
        return 0.0
    done, slash, whole = (part.strip() for part in text.partition("/"))
    if not slash or not _is_count(done) or not _is_count(whole) or int(whole) == 0 or int(done) > int(whole):
        return None
    return round(100.0 * int(done) / int(whole), 2)


def parse(raw: bytes, /) -> dict[str, Array]:
    """Arrays by name, in order. Raises NoData (unsupported) for text that is no mdstat of Linux md."""
    text = raw.decode("utf-8", "replace")
    if "Personalities" not in text and "unused devices" not in text and not re.search(r"^md\S* : ", text, re.MULTILINE):
        raise NoData(Absence.UNSUPPORTED, "/proc/mdstat has another format than that of the md driver")
    arrays: dict[str, Array] = {}
    blocks: list[list[str]] = []
    for line in text.splitlines():
        if re.match(r"^md\S* : ", line):
            blocks.append([line])
        elif line[:1].isspace() and blocks:
            blocks[-1].append(line)
    for block in blocks:
        array = _array(block)
        if array is not None:
            arrays[array.name] = array
    return arrays


def _array(block: list[str]) -> Array | None:
    """One array; None for a container of external metadata (Intel, DDF), which holds arrays and is none."""
    name, _, head = block[0].partition(" : ")
    words = head.split()
    rest = " ".join([head, *block[1:]])
    level = next((word for word in words if _LEVEL.match(word)), "")
    if not level and "external:" in rest and words[:1] == ["inactive"]:
        return None
    flags = [match["flags"] for word in words if (match := _MEMBER.match(word))]
    failed = sum("(F)" in flag for flag in flags)
    spare = sum("(S)" in flag for flag in flags)
    count = _COUNT.search(rest)
    wanted, active = (int(count[1]), int(count[2])) if count else (None, None)
    missing = max(0, wanted - active) if wanted is not None and active is not None else failed
    state = judge("inactive" if words[:1] == ["inactive"] else "active", level, wanted, missing, active)
    action, percent = _sync(rest)
    return Array(name, state, level, wanted, active, failed, spare, action, percent)


def _sync(text: str) -> tuple[str, float | None]:
    match = _SYNC.search(text)
    if match is None:
        return "idle", None
    action = "recover" if match[1] == "recovery" else match[1]
    if not match[2].endswith("%"):
        return action, 0.0
    percent = float(match[2][:-1])
    return action, percent if percent <= 100.0 else None


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 20
