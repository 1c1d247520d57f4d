"""A program that runs contained: what it may use, how it gets on, and how it and all its descendants ended.

These structs are what ``host.containment`` gives and takes. The last two stand in the file it leaves beside the output::

    {"schema":1,"token":"7f3a...","boot_id":"3b6f...","state":"ended","ended":{"kind":"exited","exit_code":0, ...}}
"""

from enum import StrEnum

import msgspec

__all__ = ["EndKind", "Ended", "Limits", "ProcessSight", "Progress"]


class Limits(msgspec.Struct, frozen=True):
    """What a contained program gets and may use; the defaults suit a job of minutes to hours."""

    duration_s: float | None = None
    """Time it may run; after that its whole tree is ended and the end is :attr:`EndKind.LIMIT`."""
    output_bytes: int = 64 * 1024 * 1024
    """Bytes of output kept in the file from the beginning on; beyond that only :attr:`tail_bytes` of the end, after a mark."""
    tail_bytes: int = 64 * 1024
    processes: int = 4096
    """More live processes than this at once end the tree (a fork bomb)."""
    cpus: tuple[int, ...] = ()
    """Processors it may use; empty = those of its starter."""
    nice: int = 0
    umask: int = 0o027
    oom_score_adj: int = 500
    """So that the kernel, short of memory, kills the workload and not the daemon; never lowered below the starter's."""
    grace_s: float = 1.0
    """From TERM to KILL where no caller names another time: after the limit, after the owner's death, for leftovers."""
    linger_s: float = 0.5
    """How long descendants may outlive the program itself before they are ended as leftovers."""
    kill_wait_s: float = 5.0
    """How long SIGKILL may take before what is left is reported as survivors."""


class Progress(msgspec.Struct, frozen=True):
    """The whole process tree at one moment; sums grow over its life, ended descendants included."""

    at_mono_s: float
    """Time on CLOCK_BOOTTIME."""
    cpu_s: float
    """User and system time."""
    output_bytes: int
    """Printed so far, kept or not."""
    processes: int
    threads: int
    resident_bytes: int
    states: dict[str, int]
    """Processes by state letter (proc_pid_stat(5))."""
    read_bytes: int | None = None
    """Through read calls, from whatever: files, pipes, devices. None where no process of it lets its counters be read."""
    written_bytes: int | None = None
    storage_read_bytes: int | None = None
    """What of it came from storage."""
    storage_written_bytes: int | None = None


class ProcessSight(msgspec.Struct, frozen=True):
    """One process as it was seen."""

    pid: int
    start_ticks: int
    """Its start after boot; with the pid it names a process for good."""
    name: str
    state: str
    """Letter of its state; D = waits in the kernel and takes no signal."""
    threads: int = 1
    wait: str = ""
    """Kernel function it sleeps in, where that may be read."""
    note: str = ""
    """Why it is still there."""


class EndKind(StrEnum):
    """Which road out a contained program took: the first cause wins."""

    EXITED = "exited"
    """By itself; see :attr:`Ended.exit_code`."""
    SIGNALLED = "signalled"
    """By a signal that was none of ours: a crash, or a stranger's kill."""
    CANCELLED = "cancelled"
    LIMIT = "limit"
    """Of time or of processes."""
    OOM = "oom"
    """The kernel killed it, or a process of it, for want of memory."""
    OWNER_LOST = "owner_lost"
    """The process that had started it died first."""
    KEEPER_LOST = "keeper_lost"
    """The supervisor of the tree died first; the owner ended what was left."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a contained program and of all its descendants."""

    kind: EndKind
    reason: str
    """In words, for people."""
    exit_code: int | None = None
    """None when it did not exit by itself, or nobody could see it."""
    signal: int | None = None
    duration_s: float
    """From its start to the proof that nothing of it is left."""
    ending_s: float = 0.0
    """From the first of our signals to that proof; 0 when none was needed."""
    forced: bool = False
    """SIGKILL was needed."""
    leftovers: int = 0
    """Descendants that outlived the program and had to be ended."""
    survivors: tuple[ProcessSight, ...] = ()
    """What could not be ended; empty is the rule."""
    empty: bool = False
    """It is proven that no process of the tree is left; :attr:`evidence` says how."""
    evidence: tuple[str, ...] = ()
    oom_kills: int = 0
    """Processes killed for want of memory, as far as it could be told."""
    output_bytes: int = 0
    output_kept_bytes: int = 0
    output_error: str = ""
    """Why output could not be kept, empty when it was."""
    progress: Progress | None = None
    """The last that was seen of the tree at work."""
    started_wall_s: float = 0.0
    ended_wall_s: float = 0.0

    @property
    def truncated(self) -> bool:
        """More was printed than was kept."""
        return self.output_kept_bytes < self.output_bytes

    @property
    def succeeded(self) -> bool:
        """It exited by itself with status 0, which alone proves nothing about its work."""
        return self.kind is EndKind.EXITED and self.exit_code == 0
