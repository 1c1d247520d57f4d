"""What owner and keeper hand each other, and the file they leave beside the output of a job.

The record is written before the program starts and again when its tree is gone, each time whole and durable, so that whoever
finds it after a crash knows whom to look for::

    {"schema":1,"token":"7f3a","boot_id":"3b6f...","owner":[812,40127],"argv":["/opt/stream"],"state":"ended","pid":815,
     "keeper":[814,40130],"mark":4616064196456040610,"cgroup":"","ended":{"kind":"exited","exit_code":0, ...}}

A pair of numbers is a process: its pid and its start in ticks after boot. ``ended`` has the fields of
:class:`nodeproof.model.process.Ended`.
"""

import json
import time
from collections.abc import Mapping
from typing import NamedTuple

from nodeproof.host.locks import boot_id

__all__ = ["RECORD_SCHEMA", "JobLimits", "JobSpec", "boottime_s", "record_of"]

RECORD_SCHEMA = 1


class JobLimits(NamedTuple):
    """:class:`nodeproof.model.process.Limits` as the keeper has it, who does without that room's libraries."""

    duration_s: float | None
    output_bytes: int
    tail_bytes: int
    processes: int
    cpus: tuple[int, ...]
    nice: int
    umask: int
    oom_score_adj: int
    grace_s: float
    linger_s: float
    kill_wait_s: float


class JobSpec(NamedTuple):
    """All a keeper needs to know."""

    token: str
    argv: tuple[str, ...]
    executable: str
    cwd: str
    environment: dict[str, str]
    limits: JobLimits
    output_path: str
    record_path: str
    owner: tuple[int, int]
    use_cgroup: bool

    def to_json(self) -> bytes:
        """For :meth:`from_json`."""
        return json.dumps({**self._asdict(), "limits": self.limits._asdict()}).encode()

    @classmethod
    def from_json(cls, raw: bytes) -> "JobSpec":
        """What :meth:`to_json` of the same release wrote."""
        fields = json.loads(raw)
        fields["limits"] = JobLimits(**fields["limits"])
        return cls(**fields)


def record_of(spec: JobSpec, now: Mapping[str, object], ended: Mapping[str, object] | None) -> bytes:
    """Content of the record: what was asked, what is so ``now``, and the end if there is one."""
    record: dict[str, object] = {
        "schema": RECORD_SCHEMA,
        "token": spec.token,
        "boot_id": boot_id(),
        "owner": list(spec.owner),
        "argv": list(spec.argv),
        **now,
    }
    if ended is not None:
        record["ended"] = ended
    return json.dumps(record).encode() + b"\n"


def boottime_s() -> float:
    """CLOCK_BOOTTIME, which no change of the wall clock moves and suspend does not stop."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
