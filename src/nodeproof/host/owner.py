"""Who owns something that lies on the disk, and whether that process still lives.

A process number alone proves nothing: the kernel gives it to others later, and after a boot or in another container it counts
among other processes. Number, time of start, boot and PID namespace together do (pid_namespaces(7)).
"""

import os
from typing import NamedTuple

from nodeproof.host.locks import boot_id
from nodeproof.host.process_tree import ProcessTree

__all__ = ["ProcessOwner", "this_process"]


class ProcessOwner(NamedTuple):
    """A process for good."""

    pid: int
    start_ticks: int
    """Clock ticks after boot (field 22 of proc_pid_stat(5))."""
    boot_id: str
    pid_namespace: str
    """``pid:[4026531836]``; empty where it cannot be told."""

    def lives(self) -> bool | None:
        """Whether it does; None when it counts among processes that cannot be seen from here."""
        if self.boot_id != boot_id():
            return False
        if self.pid_namespace != _pid_namespace():
            return None
        stat = ProcessTree().stat(self.pid)
        return stat is not None and stat.lives and stat.start_ticks == self.start_ticks


def this_process() -> ProcessOwner:
    """Us. Asked anew each time: a fork has another number."""
    pid = os.getpid()
    stat = ProcessTree().stat(pid)
    return ProcessOwner(pid, stat.start_ticks if stat is not None else 0, boot_id(), _pid_namespace())


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
