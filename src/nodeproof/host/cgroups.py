"""A control group of the job's own, where this process may make one (cgroup v2, Documentation/admin-guide/cgroup-v2.rst).

It is a leaf ``nodeproof-<token>`` under the group of its maker. The program enters it before its exec, so that every descendant
is born in it; ``cgroup.kill`` (Linux 5.14) then ends all of them in one step that no fork can outrun, and ``populated 0`` in
``cgroup.events`` proves that none is left. No controller is switched on: the leaf limits nothing and costs the job nothing.
"""

import contextlib
import os
import re
import time

__all__ = ["JobCgroup", "memory_events", "own_groups"]

_LEAF = "nodeproof-"
_REMOVE_TRIES = 10
_REMOVE_PAUSE_S = 0.01
_OCTAL = re.compile(r"\\([0-7]{3})")


class JobCgroup:
    """One leaf of the hierarchy."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def make_or_tell(cls, token: str, proc: str = "/proc") -> "tuple[JobCgroup, str] | tuple[None, str]":
        """A new leaf; or None, and why there can be none."""
        parent = own_groups(proc).get("")
        if parent is None:
            return None, "no cgroup v2 hierarchy is mounted"
        path = os.path.join(parent, _LEAF + token)
        try:
            os.mkdir(path, 0o755)
        except OSError as error:
            return None, f"{parent} is not delegated to this user ({os.strerror(error.errno or 0)})"
        return cls(path), ""

    @classmethod
    def find(cls, token: str, proc: str = "/proc") -> "JobCgroup | None":
        """The leaf of that job under our own group, if there is one."""
        parent = own_groups(proc).get("")
        path = os.path.join(parent, _LEAF + token) if parent is not None else ""
        return cls(path) if path and os.path.isdir(path) else None

    def enter(self) -> None:
        """Put the calling process in. Raises OSError."""
        with open(f"{self.path}/cgroup.procs", "wb", buffering=0) as file:
            file.write(b"0")

    def pids(self) -> list[int]:
        """Processes in the leaf and in groups that the job made below it."""
        found: list[int] = []
        for folder, _, _ in os.walk(self.path):
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", "rb", buffering=0) as file:
                found += [int(word) for word in file.readall().split()]
        return found

    def kill(self) -> bool:
        """SIGKILL to all of them at once; False where the kernel cannot (before 5.14) or it was refused."""
        try:
            fd = os.open(f"{self.path}/cgroup.kill", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            os.write(fd, b"1")
        except OSError:
            return False
        finally:
            os.close(fd)
        return True

    def populated(self) -> bool | None:
        """Whether a live process is in it or below; None when that cannot be read."""
        try:
            with open(f"{self.path}/cgroup.events", "rb", buffering=0) as file:
                fields = dict(line.split() for line in file.read(4096).splitlines())
        except (OSError, ValueError):
            return None
        return {b"0": False, b"1": True}.get(fields.get(b"populated", b""))

    def remove(self) -> bool:
        """Remove the leaf and what the job made below it; False while a process is in it.

        A process that has just died may still be counted for a moment.
        """
        for _ in range(_REMOVE_TRIES):
            for folder, _, _ in os.walk(self.path, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            if not os.path.isdir(self.path):
                return True
            if self.populated():
                break
            time.sleep(_REMOVE_PAUSE_S)
        return False


def own_groups(proc: str = "/proc", pid: str = "self") -> dict[str, str]:
    """Directory of the group that ``pid`` is in, by controller; that of cgroup v2 under the empty name."""
    mounts = _mounts(proc)
    groups: dict[str, str] = {}
    try:
        with open(f"{proc}/{pid}/cgroup", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return groups
    for line in lines:  # 4:memory:/user.slice   0::/user.slice
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(","):
            if controller in mounts:
                root, folder = mounts[controller]
                inner = os.path.relpath(path, root)
                if not inner.startswith(".."):
                    groups[controller] = os.path.normpath(os.path.join(folder, inner))
    return groups


def memory_events(groups: dict[str, str]) -> int | None:
    """Processes of the group, and of those below, that were killed for want of memory so far; None where nobody counts them."""
    for path in (_join(groups.get(""), "memory.events"), _join(groups.get("memory"), "memory.oom_control")):
        if path:
            with contextlib.suppress(OSError, ValueError), open(path, "rb", buffering=0) as file:
                for line in file.read(4096).splitlines():
                    key, _, value = line.partition(b" ")
                    if key == b"oom_kill":
                        return int(value)
    return None


def _join(folder: str | None, name: str) -> str:
    return f"{folder}/{name}" if folder else ""


def _mounts(proc: str) -> dict[str, tuple[str, str]]:
    """For each controller, ``""`` for cgroup v2: which part of the hierarchy is mounted, and where (proc_pid_mountinfo(5))."""
    mounts: dict[str, tuple[str, str]] = {}
    try:
        with open(f"{proc}/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return mounts
    for line in lines:  # 31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 6 or len(kind) < 3:
            continue
        where = (_unescape(fields[3]), _unescape(fields[4]))
        if kind[0] == "cgroup2":
            mounts.setdefault("", where)
        elif kind[0] == "cgroup":
            for option in kind[2].split(","):
                mounts.setdefault(option, where)
    return mounts


def _unescape(path: str) -> str:
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), path)
